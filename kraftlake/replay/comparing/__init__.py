"""Holds copies of a metadata log against each other: which are one log, where they part, what each has alone."""
