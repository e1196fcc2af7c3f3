from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log import partition_store
from kraftlake.replay.log.delta_chunk import LogBegin
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.partition_store import PartitionStore
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.history.history_columns import PARTITION_COLUMNS
from kraftlake.tables.history.writers import PartitionHistoryWriter
from tests.few_examples import few_examples
from tests.metadata_logs import START_TIME, metadata_logs
from tests.replay.made_logs import abort, begin, end, topic, uuid_of
from tests.tables.history.reference import KEYS, Row, images, partition_rows, plain
from tests.tables.logs_for_writers import HISTORIES_OF_REAL_LOGS, cut, generated_log, real_log, take_into

KEY = KEYS["partition_history"]


def partition(number: int, partition_id: int = 0, replicas: tuple[int, ...] = (1, 2)) -> r.PartitionRecord:
    return r.PartitionRecord(
        topic_id=uuid_of(number), partition_id=partition_id, replicas=replicas, isr=replicas, leader=replicas[0],
        leader_epoch=0, partition_epoch=0, directories=(uuid_of(900),) * len(replicas),
    )  # fmt: skip


def log_of(*groups: Sequence[Message]) -> list[RecordBatch]:
    """A log from offset 0, in batches; partition records in the version that holds everything."""
    batches: list[RecordBatch] = []
    offset = 0
    for group in groups:
        versions = [2 if isinstance(m, r.PartitionRecord | r.PartitionChangeRecord) else 0 for m in group]
        records = [ApiMessageAndVersion(m, version) for m, version in zip(group, versions, strict=True)]
        batches.append(RecordBatch.of(offset, 1, START_TIME + offset, records))
        offset += len(group)
    return batches


def history(
    pieces: Iterable[Sequence[RecordBatch]],
    *,
    writer: PartitionHistoryWriter | None = None,
    start: MetadataImage = MetadataImage.EMPTY,
) -> list[Row]:
    """The whole history, by batches taken so many at a time."""
    writer = writer or PartitionHistoryWriter()
    replay = LogReplay()
    writer.open(replay, LogBegin() if start is MetadataImage.EMPTY else replay.begin(start, QuorumState()))
    ended = []
    for piece in pieces:
        take_into(writer, replay, piece)
        ended.append(writer.drain_later())
    # Rows are made when the states have long moved on.
    return plain(pa.concat_tables([*(rows.table() for rows in ended), *writer.open_tables()]).to_pylist(), KEY)


@few_examples
@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_every_state_is_what_an_image_after_each_record_says(log: list[RecordBatch], cuts: list[int]) -> None:
    assert history(cut(log, cuts)) == partition_rows(log)


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=80), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_columns_and_objects_have_the_same_rows_for_busy_topics(log: list[RecordBatch], cuts: list[int]) -> None:
    assert history(cut(log, cuts)) == history([log]) == partition_rows(log)


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=60), at=st.integers(0, 30))
def test_it_goes_on_from_any_image_and_what_was_open_there(log: list[RecordBatch], at: int) -> None:
    """The states of an image are valid from its own offset where nobody knows better."""
    at = min(at, len(log))
    start = [MetadataImage.EMPTY, *images(log[:at])][-1]
    before = LogReplay()
    [*before.take_parts(log[:at])]
    assume(not before.in_transaction)  # a snapshot is made outside of transactions only
    assert history([log[at:]], start=start) == partition_rows(log[at:], start)


@pytest.mark.parametrize("sample", HISTORIES_OF_REAL_LOGS)
def test_real_logs_have_the_history_that_their_images_have(sample: str) -> None:
    batches = real_log(sample)
    expected = partition_rows(batches)
    assert len(expected) > 10
    assert history([batches]) == expected
    assert history(cut(batches, range(0, len(batches), 97))) == expected


def test_generated_logs_have_it_too() -> None:
    batches = generated_log(4)
    expected = partition_rows(batches)
    assert len(expected) > 400
    assert history(cut(batches, (3, 50, 200))) == expected


def test_a_transaction_takes_effect_at_its_end_and_an_aborted_one_never() -> None:
    log = log_of(
        [begin(), topic(1), partition(1, replicas=(1, 2)), partition(1, 1, replicas=(1, 2))],
        [r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2), end()],
        [begin(), r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=1), abort()],
        [begin(), topic(2), partition(2), r.RemoveTopicRecord(topic_id=uuid_of(2)), end()],
    )
    rows = history([log])
    leaders = [(row["topic"], row["partition"], row["leader"], row["leader_epoch"]) for row in rows]
    assert leaders == [("topic-1", 0, 2, 1), ("topic-1", 1, 1, 0)]
    assert {(row["valid_from_offset"], row["valid_to_offset"]) for row in rows} == {(5, None)}


def test_a_deleted_topic_ends_at_its_removal_and_comes_again_with_another_id() -> None:
    log = log_of(
        [topic(1, "foo"), partition(1)], [r.RemoveTopicRecord(topic_id=uuid_of(1))], [topic(2, "foo"), partition(2)]
    )
    rows = history([log])
    assert [(row["topic"], row["topic_id"], row["valid_from_offset"], row["valid_to_offset"]) for row in rows] == [
        ("foo", str(uuid_of(1)), 1, 2),
        ("foo", str(uuid_of(2)), 4, None),
    ]


def test_a_record_that_says_what_is_so_already_makes_no_state_but_a_change_does() -> None:
    again = partition(1, replicas=(1, 2, 3, 4))
    nothing = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1))
    log = log_of([topic(1), again], [again], [nothing], [again], [again])
    rows = history([log])
    assert [(row["valid_from_offset"], row["partition_epoch"]) for row in rows] == [(1, 0), (3, 1), (4, 0)]


def test_clearing_the_elr_makes_a_state_of_each_partition_that_has_one() -> None:
    log = log_of(
        [topic(1), partition(1), partition(1, 1), topic(2), partition(2)],
        [r.PartitionChangeRecord(partition_id=1, topic_id=uuid_of(1), eligible_leader_replicas=(2,))],
        [r.ClearElrRecord(topic_name="topic-1")],
        [r.ClearElrRecord(topic_name="")],
    )
    rows = history([log])
    elr = [(row["topic"], row["partition"], row["elr"], row["valid_from_offset"]) for row in rows]
    assert elr == [("topic-1", 0, [], 1), ("topic-1", 1, [], 2), ("topic-1", 1, [2], 5), ("topic-1", 1, [], 6),
                   ("topic-2", 0, [], 4)]  # fmt: skip


def test_a_record_of_what_is_not_there_is_named_with_its_offset() -> None:
    log = log_of([topic(1), partition(1)], [r.PartitionChangeRecord(partition_id=7, topic_id=uuid_of(1), leader=1)])
    with pytest.raises(ReplayError, match=r"offset 2, .*no partition 7"):
        history([log])


def test_an_odd_record_is_left_to_objects_and_columns_take_over_again() -> None:
    wide = tuple(range(1, 1100))
    log = log_of(
        [topic(1), *(partition(1, number) for number in range(4))],
        [begin(), topic(2, "föö"), partition(2), topic(3), partition(3, 5), partition(3, 9, replicas=wide), end()],
        [r.PartitionChangeRecord(partition_id=2, topic_id=uuid_of(1), leader=1)],
        [r.PartitionChangeRecord(partition_id=9, topic_id=uuid_of(3), leader=1)],
    )
    writer = PartitionHistoryWriter()
    assert history(cut(log, (1, 2, 3)), writer=writer) == partition_rows(log)
    assert writer.open_count == 7
    assert history([log]) == partition_rows(log)


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=80), cuts=st.lists(st.integers(0, 40), min_size=2, max_size=6))
def test_what_is_gone_can_be_dropped_at_any_time(log: list[RecordBatch], cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartitionStore, "is_worn", property(lambda _: True))
        assert history(cut(log, cuts)) == partition_rows(log)


def test_lists_of_ended_states_are_dropped_when_they_take_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_store, "_WORN_BYTES", 1 << 19)
    wide = (1, 2, 3, 4)
    changes = [r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), isr=wide[: n % 4]) for n in range(20_000)]
    log = log_of([topic(1), partition(1, replicas=wide)], *(changes[n : n + 500] for n in range(0, 20_000, 500)))
    writer = PartitionHistoryWriter()
    rows = history(cut(log, range(40)), writer=writer)
    assert len(rows) == 20_001
    assert writer._store.rows().heaps.added.nbytes < 1_000_000, "all of them take 1.7 million"


def registration(broker: int, rack: str | None, epoch: int) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(broker_id=broker, rack=rack, broker_epoch=epoch, incarnation_id=uuid_of(epoch))


@pytest.mark.parametrize("cuts", [(), range(9)], ids=["at once", "batch by batch"])
def test_a_row_ends_where_the_leaders_broker_gets_another_rack(cuts: Sequence[int]) -> None:
    log = log_of(
        [topic(1), partition(1), partition(1, 1, (2, 3))],
        [registration(1, "a", 3)],
        [registration(2, "b", 4)],
        [registration(1, "a", 5)],
        [registration(1, "c", 6), r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2)],
        [
            begin(),
            registration(2, None, 9),
            r.PartitionChangeRecord(partition_id=1, topic_id=uuid_of(1), leader=1),
            end(),
        ],
        [r.UnregisterBrokerRecord(broker_id=1, broker_epoch=6)],
    )
    rows = history(cut(log, cuts))
    racks = [(row["partition"], row["leader_rack"], row["valid_from_offset"], row["valid_to_offset"]) for row in rows]
    assert racks == [
        (0, None, 1, 3),
        (0, "a", 3, 6),
        (0, "c", 6, 7),
        (0, "b", 7, 11),
        (0, None, 11, None),
        (1, None, 2, 4),
        (1, "b", 4, 11),
        (1, "c", 11, 12),
        (1, None, 12, None),
    ]
    assert rows == partition_rows(log)


def test_every_column_says_what_it_means() -> None:
    assert [field.name for field, _ in PARTITION_COLUMNS][:3] == ["topic", "topic_id", "partition"]
    assert all(len(comment) > 15 for _, comment in PARTITION_COLUMNS)
    assert str(Uuid.ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
