"""Reads a log: its readers, the snapshots to start from, the offsets of times, many batches at once."""
