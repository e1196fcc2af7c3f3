"""Snapshot files (`*.checkpoint`): reading them, and cutting records into their batches."""
