"""Compaction of logs: which records stay, which log is next, and the exchange of its segments."""
