"""The lists of packed partitions as flat arrays, against those of the partitions' objects."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import RowWriter, registration_of
from kraftlake.image.topics.row_lists import LISTS, RowLists
from kraftlake.kernels.partition_row import COLUMNS
from tests.at_least_one import at_least_one
from tests.tables.events.test_event_rows import registrations


@given(st.lists(registrations(), max_size=8), st.integers(0, 8))
def test_every_list_is_that_of_the_object_wherever_it_lies(states: list[PartitionRegistration], base: int) -> None:
    writer, rows, base_size = RowWriter([], 0), [], 0
    for number, state in enumerate(states):
        base_size = len(writer.heap) if number == base else base_size
        rows.append(writer.row(state))
    heap = np.array(writer.heap, np.int32)
    lists = RowLists(np.array(rows, np.int32).reshape(-1, COLUMNS), heap[:base_size], heap[base_size:])
    back = [registration_of(row, heap, writer.directories) for row in rows]
    assert back == states
    for name in at_least_one({*LISTS} - {"directories"}):
        bounds, members = lists.flat(name)
        assert [tuple(members[a:b].tolist()) for a, b in itertools.pairwise(bounds)] == [
            getattr(state, name) for state in states
        ]
        assert lists.lengths(name).tolist() == [len(getattr(state, name)) for state in states]
