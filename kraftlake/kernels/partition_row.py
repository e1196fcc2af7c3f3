"""The columns of a partition's row; `image.topics.partition_rows` describes rows and the heap."""

from __future__ import annotations

WIDTH, ISR, DIRECTORIES, LEADER, RECOVERY, SHAPE, COLUMNS = 3, 3, 6, 9, 12, 13, 14
LEADER_EPOCH, PARTITION_EPOCH = 10, 11
RARE, HEAP_LISTS = -1, 7

LOST_ELR, LOST_DIRECTORIES = 1, 2
"""The parts of a row that a PartitionRecord of an earlier version can't express."""
