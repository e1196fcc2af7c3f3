"""Segment files: batch headers, the walk over batches, and reading past damage."""
