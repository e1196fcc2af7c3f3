"""The columns of `log_rows`: the facts about a batch of a partition's log. Imports nothing, unlike the loops."""

from __future__ import annotations

from typing import Final

BASE, LAST, EPOCH, TIME, PRODUCER, PRODUCER_EPOCH, KIND, START, STOP = range(9)
"""Base and last offset, leader epoch, largest timestamp, producer id and epoch, bits of the kind, start and end."""
CHOSEN, OFFSET, POSITION, LARGEST, OFFSET_OF_LARGEST, SLOT, BEHIND = range(9, 16)
"""Columns that do not describe the row's own batch: results, and working values, from the first row on."""
COLUMNS: Final = 16
TRANSACTIONAL, CONTROL = 0x10, 0x20
"""Bits of the kind: those of the attributes."""
NO_PRODUCER: Final = -1
KEPT: Final = 5
"""The number of the last batches that a producer's state holds."""
