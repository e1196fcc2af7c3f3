"""The state of a partition as a row of 14 numbers, and its conversion to and from an object.

A row is int32[14]: three replicas, three of the ISR, the numbers of three directories, leader, leader epoch, partition
epoch, recovery state, shape. The shape holds the numbers of replicas (low byte) and of ISR members (next byte). Unused
numbers are 0, so that equal states are equal rows. A state that doesn't fit (more than three replicas or ISR members,
replicas being added or removed, eligible leader replicas) has the shape RARE: its lists are in the *heap*, an int32
array that only grows, from the place in the row's first number on: seven lengths, then replicas, ISR, directories,
adding, removing, ELR and last known ELR. Directory number 0 is MIGRATING.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.kernels.partition_row import COLUMNS, DIRECTORIES, HEAP_LISTS, ISR, LEADER, RARE, WIDTH
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.uuid import Uuid

ROW_BYTES: Final = 4 * COLUMNS
ROW: Final = struct.Struct(f"={COLUMNS}i")

_FULL = 0x0303
_RECOVERY_STATES = (LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING)
_Mutable: Any = mutable_class(PartitionRegistration)
_new: Any = object.__new__


def registration_of(row: tuple[int, ...], heap: Any, directories: Sequence[Uuid]) -> PartitionRegistration:
    """The object of a row; `heap` is an int32 array, `directories` has the ids by number."""
    r0, r1, r2, i0, i1, i2, d0, d1, d2, leader, leader_epoch, partition_epoch, recovery, shape = row
    made = _new(_Mutable)
    if shape == _FULL:
        made.replicas = (r0, r1, r2)
        made.isr = (i0, i1, i2)
        made.directories = (directories[d0], directories[d1], directories[d2])
        made.removing_replicas = made.adding_replicas = made.elr = made.last_known_elr = ()
    elif shape >= 0:
        count = shape & 0xFF
        made.replicas = row[:count]
        made.isr = row[ISR : ISR + (shape >> 8)]
        made.directories = tuple([directories[number] for number in row[DIRECTORIES : DIRECTORIES + count]])
        made.removing_replicas = made.adding_replicas = made.elr = made.last_known_elr = ()
    else:
        lists = heap_lists(heap, r0)
        made.replicas, made.isr, numbers = lists[:3]
        made.directories = tuple([directories[number] for number in numbers])
        made.adding_replicas, made.removing_replicas, made.elr, made.last_known_elr = lists[3:]
    made.leader = leader
    made.leader_recovery_state = _RECOVERY_STATES[recovery]
    made.leader_epoch = leader_epoch
    made.partition_epoch = partition_epoch
    made.__class__ = PartitionRegistration
    return made  # type: ignore[no-any-return]


def heap_lists(heap: Any, start: int) -> list[tuple[int, ...]]:
    """The seven lists at `start` in the heap."""
    lists = []
    at = start + HEAP_LISTS
    for length in heap[start : start + HEAP_LISTS].tolist():
        lists.append(tuple(heap[at : at + length].tolist()))
        at += length
    return lists


class RowWriter:
    """Converts partition states to rows; `heap` has the numbers to append, `directories` grows by new ids.

    `heap_start` is the length of the existing heap.
    """

    def __init__(self, directories: Sequence[Uuid], heap_start: int) -> None:
        self.directories = list(directories)
        self.heap: list[int] = []
        self._numbers = {directory: number for number, directory in enumerate(directories)}
        self._heap_start = heap_start

    def row(self, state: PartitionRegistration) -> tuple[int, ...]:
        """The row of a state."""
        numbers = [self._number(directory) for directory in state.directories]
        replicas, isr = state.replicas, state.isr
        rare = (
            len(replicas) > WIDTH or len(isr) > WIDTH or state.adding_replicas or state.removing_replicas
            or state.elr or state.last_known_elr
        )  # fmt: skip
        tail = (state.leader, state.leader_epoch, state.partition_epoch, int(state.leader_recovery_state))
        if not rare:
            lists = (*_padded(replicas), *_padded(isr), *_padded(numbers))
            return (*lists, *tail, len(replicas) | len(isr) << 8)
        start = self._heap_start + len(self.heap)
        parts = (
            replicas,
            isr,
            numbers,
            state.adding_replicas,
            state.removing_replicas,
            state.elr,
            state.last_known_elr,
        )
        self.heap += map(len, parts)
        for part in parts:
            self.heap += part
        return (start, *(0,) * (LEADER - 1), *tail, RARE)

    def after(self, heap: Any) -> Any:
        """A heap with the lists of the written rows behind it."""
        return array("i", chain(heap, self.heap)) if self.heap else heap

    def known(self, directories: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
        """Directories with the new ones behind them."""
        return tuple(self.directories) if len(self.directories) > len(directories) else directories

    def _number(self, directory: Uuid) -> int:
        number = self._numbers.get(directory)
        if number is None:
            number = self._numbers[directory] = len(self.directories)
            self.directories.append(directory)
        return number


def _padded(numbers: Sequence[int]) -> tuple[int, ...]:
    return (*numbers, *(0,) * (WIDTH - len(numbers)))
