"""The columns of partition and partition change records, from which `topic_values` makes values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kraftlake.kernels.language import Bytes, IntRows, Ints, LongsOut

VERSION = 2
"""Of the partition and partition change records: it holds every field."""
PARTITION_BYTES, CHANGE_BYTES, TOPIC_BYTES = 96, 144, 32
"""The largest size of a value in bytes, without the elements of its lists or its name."""


class Columns(NamedTuple):
    """The fields of n partition or partition change records.

    `lengths` (int32[7, n]) has the lengths of replicas, ISR, directories, adding, removing, ELR and last known ELR,
    -1 for null. Their elements lie in `values` (int32), those of each list behind `firsts[list]` one record after the
    other, and directories in `directories` (uint8, 16 each). `ids` (uint8[16 n]) are the topics'.
    """

    ids: Bytes
    partitions: Ints
    leaders: Ints
    leader_epochs: Ints
    partition_epochs: Ints
    recovery: Ints
    lengths: IntRows
    firsts: LongsOut
    values: Ints
    directories: Bytes
