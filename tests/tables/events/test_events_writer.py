"""The rows of `events/` made of the log's rows, against those of the changes that a broker's loader publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VoterEndpoint,
    VotersRecord,
)
from kraftlake.records.row_values import values_of_rows
from kraftlake.records.rows import to_rows
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.events.events_table import EVENTS
from kraftlake.tables.events.events_writer import EventsWriter
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import begin, data, end, partition, topic, uuid_of
from tests.tables.events.reference import change_events
from tests.tables.logs_for_writers import (
    NEWER,
    REAL_LOGS,
    check_real_log,
    check_refused_in_a_newer_version,
    cut,
    generated_log,
    real_log,
    table_of,
    taken,
)

KINDS = {"topic_created", "topic_deleted", "leader_moved", "isr_shrank", "isr_expanded", "config_changed"}


class InMemory:
    """Batches as a LogReader."""

    name = "made up"
    cluster_id = None
    start_offset = 0
    snapshots = ()

    def __init__(self, batches: Sequence[RecordBatch]) -> None:
        self._batches = batches
        self.end_offset = batches[-1].last_offset + 1

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterable[RecordBatch]:
        last = self.end_offset if to_offset is None else to_offset
        return (batch for batch in self._batches if batch.last_offset >= from_offset and batch.base_offset <= last)

    def bulk_batches(self, from_offset: int, to_offset: int) -> Iterator[BatchValues | RecordBatch]:
        """As `batches`, many at once."""
        return values_of_rows(to_rows(self.batches(from_offset, to_offset)))


def published(batches: Sequence[RecordBatch]) -> pa.Table:
    """The rows of the changes that a broker's loader publishes after each batch, by objects."""
    changes = LogChanges(InMemory(batches))  # type: ignore[arg-type]
    control = [batch for batch in batches if batch.control]
    rows: list[tuple[Any, ...]] = [row for change in changes for row in change_events(change, control)]
    return table_of(rows, EVENTS.schema)


def written(pieces: Iterable[Sequence[RecordBatch]]) -> pa.Table:
    """The rows that the writer makes of the log's rows, piece by piece."""
    return taken(EventsWriter(), pieces, EVENTS.schema)


@few_examples
@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_every_row_is_what_the_changes_of_a_brokers_loader_show(log: list[RecordBatch], cuts: list[int]) -> None:
    assert written(cut(log, cuts)).equals(published(log))


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=80), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_rows_of_busy_topics_made_by_compiled_code_are_those_of_a_brokers_loader(
    log: list[RecordBatch], cuts: list[int]
) -> None:
    assert written(cut(log, cuts)).equals(published(log))


@pytest.mark.parametrize("sample", REAL_LOGS)
def test_real_logs_have_the_rows_of_their_changes(sample: str) -> None:
    batches = real_log(sample)
    check_real_log(batches, written, published(batches))


@pytest.mark.parametrize("factor", [2, 4])
def test_generated_logs_do_too(factor: int) -> None:
    """Four replicas are more than a row of numbers has room for."""
    batches = generated_log(factor)
    expected = published(batches)
    assert set(expected.column("kind").to_pylist()) >= KINDS
    assert written(cut(batches, (3, 50, 200))).equals(expected)


def changed(number: int, **values: Any) -> r.PartitionChangeRecord:
    """A change of the first partition of a topic."""
    return r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(number), **values)


def newest(offset: int, record: r.PartitionChangeRecord) -> RecordBatch:
    """A batch of the record in the version that has all of its fields."""
    return RecordBatch.of(offset, 1, 1000 + offset, [ApiMessageAndVersion(record, 2)])


def config(name: str, value: str | None) -> r.ConfigRecord:
    """A topic's config."""
    return r.ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value=value)


def leads(offset: int, epoch: int, leader: int) -> RecordBatch:
    """The batch with which a controller begins its epoch."""
    return RecordBatch.control_of(offset, epoch, 1000 + offset, [LeaderChangeMessage(leader_id=leader)])


def sentences(rows: pa.Table) -> list[tuple[int, str]]:
    return [(row["offset"], row["sentence"]) for row in rows.to_pylist()]


def check_sentences(log: Sequence[RecordBatch], after: int, *expected: str) -> None:
    """The rows of a log are as published, and have these sentences behind an offset."""
    rows = written([log])
    assert rows.equals(published(log))
    assert [words for offset, words in sentences(rows) if offset > after] == [*expected]


def test_topics_that_are_gone_come_first_and_their_configs_go_last() -> None:
    log = [
        data(0, topic(1, "b"), partition(1), topic(2, "z"), partition(2), config("z", "1")),
        data(5, r.RemoveTopicRecord(topic_id=uuid_of(2)), changed(1, leader=2), topic(3, "a"), partition(3)),
        data(9, topic(4, "z"), partition(4), r.RemoveTopicRecord(topic_id=uuid_of(4)), config("b", "2")),
    ]
    check_sentences(
        log,
        4,
        "topic z with 1 partition, replication factor 2 is gone",
        "topic a is created with 1 partition, replication factor 2",
        "b-0 is led by 2 instead of 1",
        "topic z has retention.ms no longer set, it was 1",
        "topic b has retention.ms set to 2",
    )


def test_a_topic_that_grows_twice_says_how_many_it_had() -> None:
    log = [
        data(0, topic(1), partition(1), topic(2)),
        data(3, partition(1, partition_id=1), partition(2), partition(2, partition_id=1)),
        data(6, partition(1, partition_id=2), partition(1, partition_id=3)),
        data(8, r.RemoveTopicRecord(topic_id=uuid_of(1))),
    ]
    check_sentences(
        log,
        2,
        "topic topic-1 has 2 partitions, 1 more than before",
        "topic topic-2 has 2 partitions, 2 more than before",
        "topic topic-1 has 4 partitions, 2 more than before",
        "topic topic-1 with 4 partitions, replication factor 2 is gone",
    )


def test_reassignments_and_eligible_leaders_are_described_with_lists_that_no_row_has_room_for() -> None:
    log = [
        data(0, topic(1), partition(1, replicas=(1, 2, 3))),
        data(2, changed(1, replicas=[1, 2, 3, 4], adding_replicas=[4], removing_replicas=[3])),
        data(3, changed(1, replicas=[1, 2, 3, 4, 5], adding_replicas=[4, 5], removing_replicas=[3, 2])),
        newest(4, changed(1, isr=[1, 4, 5], leader=4, eligible_leader_replicas=[2], last_known_elr=[3])),
        data(5, changed(1, replicas=[1, 4, 5], adding_replicas=[], removing_replicas=[])),
        data(6, changed(1, replicas=[1, 4, 5, 2], adding_replicas=[2])),
        data(7, changed(1, replicas=[1, 4, 5], adding_replicas=[], leader_recovery_state=1)),
        data(8, changed(1, replicas=[5, 4, 1], isr=[], leader=-1), changed(1, leader_recovery_state=0)),
        newest(10, changed(1, leader=5, isr=[5], eligible_leader_replicas=[])),
    ]
    rows = written([log])
    assert rows.equals(published(log))
    assert {"elr_changed", "leader_lost", "leader_elected", "recovery_state_changed", "replicas_changed"} <= {
        *rows.column("kind").to_pylist()
    }
    moves = [kind for kind in rows.column("kind").to_pylist() if kind.startswith("reassignment")]
    assert moves == [f"reassignment_{done}" for done in ("started", "changed", "finished", "started", "cancelled")]


def test_a_new_leader_of_the_quorum_is_reported_first_and_in_no_batch_of_no_op_records() -> None:
    quiet = RecordBatch.of(4, 3, 1004, [ApiMessageAndVersion(r.NoOpRecord(), 0)])
    log = [
        leads(0, 1, 3000),
        data(1, topic(1), partition(1)),
        leads(3, 2, 3001),
        quiet,
        data(5, changed(1, leader=2), epoch=3),
        data(6, changed(1, leader=1), epoch=4),
        leads(7, 5, 3002),
    ]
    for cuts in ((), range(len(log))):
        rows = written(cut(log, cuts))
        assert rows.equals(published(log))
    assert [(offset, words) for offset, words in sentences(rows) if "quorum" in words or offset == 6] == [
        (0, "controller 3000 leads the quorum in epoch 1"),
        (3, "controller 3001 leads the quorum in epoch 2"),
        (6, "controller 3001 leads the quorum in epoch 4"),
        (6, "topic-1-0 is led by 1 instead of 2"),
        (7, "controller 3002 leads the quorum in epoch 5"),
    ]


def test_a_delta_ends_before_a_transaction_that_begins_in_mid_batch() -> None:
    log = [
        data(0, topic(1), partition(1), begin(), changed(1, leader=2), config("topic-1", "3")),
        leads(5, 2, 3001),
        data(6, changed(1, isr=(2,)), end(), changed(1, leader=3), epoch=2),
    ]
    rows = written([log[:1], log[1:]])
    assert rows.equals(published(log))
    assert set(rows.column("offset").to_pylist()) == {1, 8}


def test_an_odd_record_makes_its_whole_delta_go_by_objects() -> None:
    """The delta of a topic with an odd name: what compiled code has replayed of it is taken back."""
    log = [
        data(0, topic(1), partition(1), topic(5, "five"), partition(5), config("five", "5")),
        data(5, config("topic-1", "1")),
        data(6, topic(2), partition(2), changed(2, leader=2), r.RemoveTopicRecord(topic_id=uuid_of(5))),
        data(10, config("topic-1", "2"), changed(1, leader=2), topic(3, "föö"), partition(3)),
        data(14, changed(2, leader=1), config("föö", "2")),
    ]
    assert written([log]).equals(published(log))


def test_a_record_that_contradicts_what_is_there_is_named() -> None:
    change = r.PartitionChangeRecord(partition_id=3, topic_id=uuid_of(1), leader=2)
    with pytest.raises(ReplayError, match=r"offset 2, PARTITION_CHANGE_RECORD: topic 'topic-1' has no partition 3"):
        written([[data(0, topic(1), partition(1), change)]])
    with pytest.raises(ReplayError, match=r"offset 2, FENCE_BROKER_RECORD: broker 7 is not registered"):
        written([[data(0, topic(1), partition(1), r.FenceBrokerRecord(id=7, epoch=1))]])


@pytest.mark.parametrize("record", NEWER)
def test_a_version_that_nobody_knows_is_refused_as_by_a_loader(record: Message) -> None:
    check_refused_in_a_newer_version(record, published, lambda log: written([log]))


def test_an_acl_that_is_another_under_its_id_is_removed_and_added() -> None:
    acl = r.AccessControlEntryRecord(
        id=uuid_of(1), resource_type=2, resource_name="a", pattern_type=3, principal="User:b", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    other = attrs.evolve(acl, operation=4)
    rows = written([[data(0, acl), data(1, r.RemoveAccessControlEntryRecord(id=uuid_of(1)), other)]])
    assert [words for _, words in sentences(rows)][1:] == [
        "ACL removed: allow User:b read on topic a from *",
        "ACL added: allow User:b write on topic a from *",
    ]


def voted(offset: int, *voters: tuple[int, int]) -> RecordBatch:
    """A batch with kraft.version 1 and voters, each with its id and port."""
    named = [
        Voter(voter_id=id_, endpoints=(VoterEndpoint(name="CONTROLLER", host="c", port=port),)) for id_, port in voters
    ]
    return RecordBatch.control_of(
        offset, 1, 1000 + offset, [KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=tuple(named))]
    )


def test_voters_come_change_and_go_and_count_as_of_the_next_delta() -> None:
    log = [leads(0, 1, 3000), voted(1, (3000, 1), (3001, 2)), data(3, begin()), voted(4, (3000, 3)), data(6, end())]
    changed = 'endpoints changed: {"CONTROLLER": {"host": "c", "port": 1}} → {"CONTROLLER": {"host": "c", "port": 3}}'
    expected = [
        (0, "controller 3000 leads the quorum in epoch 1"),
        (2, "kraft.version is at level 1 instead of 0"),
        (2, "controller 3000 is a voter of the quorum"),
        (2, "controller 3001 is a voter of the quorum"),
        (6, f"voter 3000 has {changed}"),
        (6, "controller 3001 is no longer a voter of the quorum"),
    ]
    for pieces in (cut(log, range(len(log))), [log]):
        assert sentences(written(pieces)) == expected
