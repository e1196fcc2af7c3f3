"""Appending to the log: a commit of it, its data file, group commit, and the creation of a lake."""
