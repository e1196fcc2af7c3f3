"""What rows make of partitions is what objects make of them, and what the images of each offset say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_rows import registration_of
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log import partition_store
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.partition_changes import HAD, HAS, WRITTEN, PartitionChanges
from kraftlake.runtime.errors import ReplayError
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.log.object_partitions import ObjectStore
from tests.replay.made_logs import begin, data, end, partition, topic, uuid_of
from tests.tables.logs_for_writers import cut


def states(changes: PartitionChanges, rows: Any, exists: Any) -> list[Any]:
    heap = np.concatenate(changes.heaps)
    directories = [Uuid.from_string(text) for text in changes.names.directories.to_pylist()]
    return [
        registration_of(tuple(row.tolist()), heap, directories) if there else None
        for row, there in zip(rows, exists.tolist(), strict=True)
    ]


def described(changes: PartitionChanges) -> list[tuple[Any, ...]]:
    """Each change as objects; those of one offset by topic and partition."""
    names, ids = changes.names.topics.to_pylist(), changes.names.ids.to_pylist()
    topics, had = changes.topics.tolist(), changes.flags & HAD != 0
    has = changes.flags & HAS != 0
    columns = (
        changes.offsets.tolist(),
        changes.deltas.tolist(),
        [names[number] for number in topics],
        [ids[number] for number in topics],
        changes.partitions.tolist(),
        [since if flag else None for since, flag in zip(changes.since.tolist(), had, strict=True)],
        [since if flag else None for since, flag in zip(changes.since_times.tolist(), had, strict=True)],
        changes.times.tolist(),
        (changes.flags & WRITTEN != 0).tolist(),
        (changes.altered | ~(had | has)).tolist(),
        (changes.unclean * has).tolist(),
        (changes.eligible * has).tolist(),
        states(changes, changes.before, had),
        states(changes, changes.after, has),
    )
    return sorted(zip(*columns, strict=True), key=lambda row: row[:5])


def replay_of(*, objects: bool, lenient: bool = False) -> LogReplay:
    deltas = LogReplay(lenient=lenient)
    if objects:
        deltas.store = ObjectStore()  # type: ignore[assignment]
    return deltas


def folded(
    pieces: Iterable[Sequence[RecordBatch]], *, objects: bool = False, by_delta: bool = False
) -> list[tuple[Any, ...]]:
    """All changes of a log, with the last offset of its delta in the place of its number."""
    deltas, found = replay_of(objects=objects), []
    for piece in pieces:
        for chunk in deltas.take(to_rows(piece)) if piece else ():
            changes = chunk.partitions.by_delta() if by_delta else chunk.partitions
            assert (np.diff(changes.deltas) >= 0).all()
            assert not len(chunk.partitions.none().by_delta())
            ends = chunk.boundaries.offsets.tolist()
            found += [(offset, ends[delta], *rest) for offset, delta, *rest in described(changes)]
    return found


def topic_changes(
    pieces: Iterable[Sequence[RecordBatch]], *, objects: bool = False
) -> tuple[list[Any], list[Any], list[Any]]:
    """The topics that deltas create and remove, and the partitions that those with changes have at the end."""
    deltas, created, removed, sizes = replay_of(objects=objects), list[Any](), list[Any](), dict[str, int]()
    for piece in pieces:
        for chunk in deltas.take(to_rows(piece)) if piece else ():
            changes, ends = chunk.partitions, chunk.boundaries.offsets.tolist()
            ids = changes.names.ids.to_pylist()
            created += [(ends[delta], ids[number]) for delta, number in changes.created.tolist()]
            for delta, number, record in changes.removed.tolist():
                removed.append((ends[delta], ids[number], int(chunk.records.offsets[record])))
            sizes |= {ids[number]: int(changes.sizes[number]) for number in changes.topics.tolist()}
    return created, removed, sorted(sizes.items())


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=80), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_compiled_code_makes_of_partitions_what_objects_make(log: list[RecordBatch], cuts: list[int]) -> None:
    pieces = cut(log, cuts)
    for by_delta in (False, True):
        assert folded(pieces, by_delta=by_delta) == folded(pieces, objects=True, by_delta=by_delta)
    assert topic_changes(pieces) == topic_changes(pieces, objects=True)


@few_examples
@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_where_a_log_is_cut_changes_nothing(log: list[RecordBatch], cuts: list[int]) -> None:
    for by_delta in (False, True):
        assert folded(cut(log, cuts), by_delta=by_delta) == folded([log], by_delta=by_delta)


@few_examples
@given(log=metadata_logs(max_steps=60))
def test_the_rows_of_the_store_are_those_of_the_image(log: list[RecordBatch]) -> None:
    deltas = LogReplay()
    since: dict[tuple[str, int], int] = {}
    for batch in log:
        for chunk in deltas.take(to_rows([batch])):
            for offset, _, _, id_, number, *_, altered, _, _, _, after in described(chunk.partitions):
                if after is None:
                    since.pop((id_, number), None)
                elif altered:
                    since[id_, number] = offset
    rows = deltas.store.rows()
    ids = rows.names.ids.to_pylist()
    keys = [(ids[number], id_) for number, id_ in zip(rows.topics.tolist(), rows.partitions.tolist(), strict=True)]
    assert dict(zip(keys, rows.since.tolist(), strict=True)) == since
    assert deltas.store.count == len(since)
    other = LogReplay()
    other.store.begin(deltas.store.topics(), -1, -1)
    assert other.store.topics() == deltas.store.topics()


@pytest.mark.parametrize("objects", [False, True])
def test_a_partition_that_changes_twice_in_a_delta_has_one_change_in_it(objects: bool) -> None:
    def leads(leader: int) -> r.PartitionChangeRecord:
        return r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=leader)

    log = [
        data(0, topic(1), partition(1)),
        data(2, leads(2), leads(1)),
        data(4, begin(), leads(2), leads(1), r.RemoveTopicRecord(topic_id=uuid_of(1)), end()),
        data(9, topic(2), partition(2), r.RemoveTopicRecord(topic_id=uuid_of(2))),
    ]
    by_offset = [row[:2] for row in folded([log], objects=objects)]
    assert by_offset == [(1, 1), (2, 3), (3, 3), (8, 8), (10, 11), (11, 11)]
    by_delta = folded([log], objects=objects, by_delta=True)
    assert [row[:2] for row in by_delta] == [(1, 1), (3, 3), (8, 8), (11, 11)]
    assert [(row[5], row[-2] is None, row[-1] is None) for row in by_delta] == [
        (None, True, False), (1, False, False), (3, False, True), (None, True, True)
    ]  # fmt: skip


def test_a_record_that_contradicts_the_state_ends_the_fold_behind_the_deltas_before_it() -> None:
    gone = r.PartitionChangeRecord(partition_id=7, topic_id=uuid_of(2), leader=2)
    log = [
        data(0, topic(1), partition(1)),
        data(2, topic(2), partition(2), gone, partition(2, partition_id=1)),
    ]
    parts = LogReplay().take_parts(log)
    assert next(parts).boundaries.offsets.tolist() == [1]
    with pytest.raises(ReplayError, match=r"offset 4, PARTITION_CHANGE_RECORD: topic .* has no partition 7"):
        next(parts)
    with pytest.raises(ReplayError, match=r"offset 4, PARTITION_CHANGE_RECORD: topic .* has no partition 7"):
        folded([log], objects=True)


def test_memory_of_what_is_gone_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_store, "_WORN_BYTES", 1000)
    log = []
    for number in range(60):
        log.append(data(3 * number, topic(number), partition(number, replicas=(1, 2, 3, 4))))
        log.append(data(3 * number + 2, r.RemoveTopicRecord(topic_id=uuid_of(number))))
    deltas, places, found = LogReplay(), [0], []
    for batch in log:
        for chunk in deltas.take(to_rows([batch])):
            places += chunk.partitions.places.tolist()
            found += described(chunk.partitions)
    assert max(places) < 40, "there were 60 partitions"
    assert [row[4:] for row in found] == [row[4:] for row in folded([log], objects=True)]


@pytest.mark.parametrize("objects", [False, True])
def test_lists_of_any_length_are_kept(objects: bool) -> None:
    wide = tuple(range(1, 1100))
    log = [
        data(0, topic(1), partition(1, replicas=wide), partition(1, partition_id=1)),
        data(3, r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), isr=wide[:5])),
        data(4, r.PartitionChangeRecord(partition_id=1, topic_id=uuid_of(1), leader=2)),
    ]
    after = [row[-1] for row in folded([log], objects=objects)]
    assert [len(state.isr) for state in after] == [1099, 2, 5, 2]
    assert folded(cut(log, (1, 2)), objects=objects) == folded([log], objects=objects)


def test_a_store_begins_with_what_is_known() -> None:
    deltas = LogReplay()
    [*deltas.take(to_rows([data(0, topic(1), partition(1), partition(1, partition_id=1))]))]
    topics = deltas.store.topics()
    other = LogReplay()
    image = attrs.evolve(MetadataImage.EMPTY, topics=topics)
    other.go_on(ReplayState(image=image, since=np.array([7, 8]), since_times=np.array([70, -1])))
    (chunk,) = other.take(to_rows([data(9, r.RemoveTopicRecord(topic_id=uuid_of(1)))]))
    assert chunk.partitions.since.tolist() == [7, 8]
    assert chunk.partitions.since_times.tolist() == [70, -1]
    assert other.store.topics() == TopicsImage.EMPTY
