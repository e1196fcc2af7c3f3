"""The columns in which `batch_walk` has batches, and the sizes that it knows."""

from __future__ import annotations

HEADER_SIZE = 61
SMALLEST_RECORD = 7
SMALLEST_BATCH = HEADER_SIZE + SMALLEST_RECORD

FIRST, STOP, BASE, COUNT, EPOCH, TIME, MAX_TIME = range(7)
"""What is known of a batch: the bytes of its records, base offset, records, epoch, base and largest time."""
