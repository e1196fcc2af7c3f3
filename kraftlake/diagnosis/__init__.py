"""An operator's questions about a log: since when, by which record, from which offset on, and what is wrong."""
