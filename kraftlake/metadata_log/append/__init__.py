"""Appending to the log: checks of new rows, the commit protocol that fences, the hash chain, group commit."""
