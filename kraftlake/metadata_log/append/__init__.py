"""Appending to the log: one commit, its data file, group commit, and the creation of a lake."""
