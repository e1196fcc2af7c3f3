"""An operator's questions about a log: since when, which record made it so, where a condition began, what is wrong."""
