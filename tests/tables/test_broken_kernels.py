"""A compiled function that numba can't make: what jobs make by places is made of objects, and is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("numba")

from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels import (
    event_texts,
    indexes,
    partition_events,
    partition_intervals,
    partition_journal,
    partition_moves,
    row_lists,
    state_columns,
)
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.tables.changes.partition_store import PartitionPlaces
from kraftlake.tables.events.partition_event_columns import have_code
from kraftlake.tables.history.bulk_partitions import BulkPartitions
from tests.broken_kernels import breaking
from tests.replay.made_logs import topic, uuid_of
from tests.tables.events.test_writer import published as events_published
from tests.tables.events.test_writer import told as events_told
from tests.tables.history.reference import partition_rows
from tests.tables.history.test_partition_states import history, log_of, partition
from tests.tables.local_changes.test_writer import published, told

SHARED = [
    partition_journal.list_lengths,
    partition_journal.list_values,
    partition_journal.heap_size,
    partition_journal.move_lists,
    row_lists.any_differs,
    row_lists.any_differs_at,
    row_lists.scatter,
]
NOTING = [partition_journal.replay_journaled, indexes.index_ids]
OF_PLACES = [*SHARED, partition_moves.move_on, partition_moves.count_on]
OF_EVENTS = [partition_events.find_events, event_texts.write_texts]
IN_COLUMNS = [state_columns.fill_columns, state_columns.fill_members, state_columns.renumber]
OF_STATES = [*SHARED, *IN_COLUMNS, partition_intervals.end_intervals]


@pytest.fixture
def break_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], list[str]]]:
    yield from breaking(monkeypatch)


def log() -> list[RecordBatch]:
    """Topics that come, change and go, one of them with a name that compiled code leaves to objects."""
    wide = (1, 2, 3, 4)
    return log_of(
        [topic(1), *(partition(1, number, replicas=wide) for number in range(5)), topic(2), partition(2)],
        [r.PartitionChangeRecord(partition_id=2, topic_id=uuid_of(1), leader=2, isr=(2, 3, 4))],
        [r.RemoveTopicRecord(topic_id=uuid_of(2)), topic(3, "föö"), partition(3)],
        [r.PartitionChangeRecord(partition_id=3, topic_id=uuid_of(1), leader=3)],
    )


@pytest.mark.parametrize("kernel", [*OF_STATES, *NOTING], ids=lambda kernel: kernel.__name__)
def test_a_history_without_a_kernel_is_the_same(break_kernel: Callable[[Any], list[str]], kernel: Any) -> None:
    assert history([[batch] for batch in log()], bulk=True) == partition_rows(log())
    asked = break_kernel(kernel)
    assert history([[batch] for batch in log()], bulk=True) == partition_rows(log())
    assert asked


@pytest.mark.parametrize("kernel", [*OF_PLACES, *NOTING], ids=lambda kernel: kernel.__name__)
def test_local_changes_without_a_kernel_are_the_same(break_kernel: Callable[[Any], list[str]], kernel: Any) -> None:
    expected = published(log())
    assert told([[batch] for batch in log()], bulk=True).equals(expected)
    asked = break_kernel(kernel)
    assert told([[batch] for batch in log()], bulk=True).equals(expected)
    assert asked


@pytest.mark.parametrize("kernel", [*OF_EVENTS, partition_moves.move_on], ids=lambda kernel: kernel.__name__)
def test_events_without_a_kernel_are_the_same(break_kernel: Callable[[Any], list[str]], kernel: Any) -> None:
    expected = events_published(log())
    assert events_told([[batch] for batch in log()], bulk=True).equals(expected)
    asked = break_kernel(kernel)
    assert events_told([[batch] for batch in log()], bulk=True).equals(expected)
    assert asked


def test_all_code_is_there_before_the_first_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that none can turn out to be missing when objects can't take over any more."""
    kernels: dict[Any, dict[str, Any]] = {kernel: {} for kernel in (*OF_PLACES, *OF_EVENTS, *OF_STATES)}
    for kernel, codes in kernels.items():
        monkeypatch.setattr(kernel, "_codes", codes)
    PartitionPlaces(TopicsImage.EMPTY)
    have_code()
    BulkPartitions(TopicsImage.EMPTY, [], [])
    known = {kernel.__name__: set(codes) for kernel, codes in kernels.items()}
    told([[batch] for batch in log()], bulk=True)
    events_told([[batch] for batch in log()], bulk=True)
    history([[batch] for batch in log()], bulk=True)
    assert {kernel.__name__: set(codes) for kernel, codes in kernels.items()} == known
