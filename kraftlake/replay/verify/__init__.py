"""The checks of a source, and the report of their problems."""
