"""The columns in which `batch_walk` has batches, and the sizes and places in a batch of format v2."""

from __future__ import annotations

MAGIC = 2
LENGTH_FROM = 12
"""The length field counts the bytes behind itself."""
CRC_AT, CRC_FROM = 17, 21
"""The CRC, and what it covers: everything behind itself."""
HEADER_SIZE = 61
SMALLEST_RECORD = 7
SMALLEST_BATCH = HEADER_SIZE + SMALLEST_RECORD

FIRST, STOP, BASE, COUNT, EPOCH, TIME, MAX_TIME = range(7)
"""The facts about a batch: the bytes of its records, base offset, records, epoch, base and largest time."""
