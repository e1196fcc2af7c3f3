"""Segment files: batch headers, the iteration over batches, and reading past damage."""
