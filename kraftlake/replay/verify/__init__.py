"""Every check of a source, and the report of what is wrong."""
