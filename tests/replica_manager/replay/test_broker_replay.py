"""A log, replayed for one broker."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.api import Source
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.broker_partitions import hosted_partitions
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replica_manager.replay.broker_replay import BrokerReplay
from kraftlake.replica_manager.replay.causes import Cause
from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
from kraftlake.replica_manager.transitions import TransitionKind
from kraftlake.runtime.errors import OffsetError, ReplayError, UsageError
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, TORN
from tests.few_examples import few_examples
from tests.histories import uuid_of
from tests.replica_manager.brokers import BAR, D1, D2, FOO, broker, change, feature, partition, topic

K = TransitionKind
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
BROKERS = {DIRECTORY: (1, 2, 3, 4), TORN: (1,)}


def hosted(image: MetadataImage, broker_id: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The partitions that a broker leads and follows, by the image."""
    leads, follows = [], []
    for name, number, state in hosted_partitions(image.topics, broker_id):
        (leads if state.leader == broker_id else follows).append((name, number))
    return sorted(leads), sorted(follows)


@pytest.mark.parametrize(
    ("path", "id_"), [(path, id_) for path, ids in BROKERS.items() for id_ in ids if LONG or id_ in (1, 4)]
)
def test_after_every_offset_of_a_real_log_a_broker_hosts_exactly_what_the_image_says(path, id_):
    replay = BrokerReplay(kraftlake.open(path), id_)
    for step in replay.steps():
        assert replay.broker.roles() == hosted(step.image, id_), step.offset
    assert replay.offset == replay.source.last_image_offset


@functools.cache
def deltas(path) -> tuple[tuple[MetadataDelta, MetadataImage], ...]:
    """The published deltas of a sample, one a batch."""
    published: list[tuple[MetadataDelta, MetadataImage]] = []
    loader = MetadataBatchLoader(publish=lambda delta, image, _: published.append((delta, image)))
    for batch in kraftlake.open(path).batches():
        loader.load_batch(batch)
        loader.flush()
    return tuple(published)


@functools.cache
def batches(path) -> tuple[RecordBatch, ...]:
    return tuple(kraftlake.open(path).batches())


@few_examples
@given(st.data())
def test_however_a_log_is_cut_into_deltas_a_broker_hosts_what_the_image_says(data):
    path = data.draw(st.sampled_from([DIRECTORY, TORN]), label="sample")
    id_ = data.draw(st.sampled_from(BROKERS[path]), label="broker")
    every = batches(path)
    cuts = set(data.draw(st.lists(st.integers(0, len(every) - 1), max_size=12), label="cuts"))
    driven = ReplayedBroker(id_, lambda _: None)
    loader = MetadataBatchLoader(publish=lambda delta, image, _: driven.publish(delta, image))
    for place, batch in enumerate(every):
        loader.load_batch(batch)
        if place in cuts:
            loader.flush()
    loader.flush()
    assert driven.roles() == hosted(driven.image, id_)


@pytest.mark.parametrize("at", [3, 67, 458, 1059, 3480, 4592, 5690] if LONG else [3, 458, 4592])
def test_a_replay_from_an_offset_ends_where_the_whole_one_does(at):
    source = kraftlake.open(DIRECTORY)
    ends = []
    for first in (None, at):
        replay = BrokerReplay(source, 2, first, at + 40)
        list(replay.steps())
        ends.append((replay.broker.roles(), [(f.leader, sorted(f.states)) for f in replay.broker.fetchers()]))
    whole, from_offset = ends
    assert whole[0] == from_offset[0]


def test_an_offset_within_a_batch_is_the_end_of_a_replay():
    replay = BrokerReplay(kraftlake.open(DIRECTORY), 2, 403, 430)
    (step,) = replay.steps()
    assert (step.first_offset, step.offset) == (403, 430)
    assert max(cause.offset for _, cause in step.transitions) <= 430


def test_each_transition_names_its_record():
    source = kraftlake.open(DIRECTORY)
    types = {record.offset: record.type for record in source.records()}
    for step in at_least_one(BrokerReplay(source, 3).steps()):
        for _, cause in step.transitions:
            assert cause is not None
            assert step.first_offset <= cause.offset <= step.offset
            assert types[cause.offset] == cause.type


def test_becoming_leader_comes_from_the_record_that_named_the_leader():
    source = kraftlake.open(DIRECTORY)
    partitions = 0
    for step in BrokerReplay(source, 2).steps():
        for transition, cause in step.transitions:
            if transition.kind is K.BECAME_LEADER and cause.type == "PARTITION_CHANGE_RECORD":
                (record,) = source.records(cause.offset, cause.offset)
                assert record.message.leader == 2
                assert record.message.partition_id == transition.partition.partition
                partitions += 1
    assert partitions > 100


# made logs


class MadeLog:
    """Batches in memory, as a reader."""

    name, cluster_id, snapshots = "made", None, ()

    def __init__(self, *batches_: list[Message]) -> None:
        self.made: list[RecordBatch] = []
        self.start_offset = self.end_offset = 0
        for messages in batches_:
            versioned = [ApiMessageAndVersion(m, _VERSIONS.get(type(m), 0)) for m in messages]
            self.made.append(RecordBatch.of(self.end_offset, 1, 1_000 + self.end_offset, versioned))
            self.end_offset += len(messages)

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        for batch in self.made:
            if batch.last_offset >= from_offset and (to_offset is None or batch.base_offset <= to_offset):
                yield batch


_VERSIONS = {
    r.RegisterBrokerRecord: 3, r.BrokerRegistrationChangeRecord: 2, r.PartitionRecord: 2, r.PartitionChangeRecord: 2,
}  # fmt: skip


def made(*batches_: list[Message]) -> Source:
    return Source(MadeLog([feature(), broker(1), broker(2), broker(3)], *batches_), SourceKind.DIRECTORY, "made", None)


def transitions_of(source: Source, first: int | None = None, id_: int = 1) -> list[tuple[TransitionKind, str, Cause]]:
    return [
        (t.kind, "" if t.partition is None else str(t.partition), cause)
        for step in BrokerReplay(source, id_, first).steps()
        for t, cause in step.transitions
    ]


def test_a_metadata_transaction_is_one_delta_at_its_end():
    source = made([r.BeginTransactionRecord(), topic()], [partition(leader=1)], [r.EndTransactionRecord()])
    assert transitions_of(source, 4) == [
        (K.LOG_CREATED, "foo-0", Cause(6, "PARTITION_RECORD")),
        (K.BECAME_LEADER, "foo-0", Cause(6, "PARTITION_RECORD")),
    ]
    assert transitions_of(source, 6) != []


def test_an_aborted_transaction_causes_no_transition():
    source = made(
        [topic(), partition(leader=1)],
        [r.BeginTransactionRecord(), change(leader=2), r.AbortTransactionRecord(), change(isr=(1, 2))],
    )
    assert transitions_of(source, 6) == [(K.LEADER_UPDATED, "foo-0", Cause(9, "PARTITION_CHANGE_RECORD"))]


def test_a_deleted_topic_is_the_cause_of_the_deletes_and_a_clear_of_elr_of_updates():
    source = made(
        [topic(), partition(leader=1, eligible_leader_replicas=(3,), isr=(1, 2))],
        [r.ClearElrRecord(topic_name="foo")],
        [r.RemoveTopicRecord(topic_id=FOO)],
    )
    assert transitions_of(source, 6) == [
        (K.LEADER_UPDATED, "foo-0", Cause(6, "CLEAR_ELR_RECORD")),
        (K.LOG_DELETED, "foo-0", Cause(7, "REMOVE_TOPIC_RECORD")),
    ]


def again(*directories, epoch: int, incarnation: int):
    return r.RegisterBrokerRecord(
        broker_id=1, broker_epoch=epoch, incarnation_id=uuid_of(incarnation), features=(), log_dirs=directories,
        end_points=(r.BrokerEndpoint(name="PLAINTEXT", host="b1", port=9092, security_protocol=0),),
    )  # fmt: skip


def registered(*directories, **more):
    return r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, log_dirs=directories, **more)


def test_a_directory_that_is_no_longer_registered_has_failed_until_the_broker_restarts():
    source = made(
        [again(D1, D2, epoch=101, incarnation=701)],
        [topic(), partition(0, leader=1, directories=(D2, D1, D1)), partition(1, leader=1)],
        [registered(D1), change(0, leader=2)],
        [again(D1, D2, epoch=300, incarnation=799)],
    )
    replay = BrokerReplay(source, 1, 8)
    failed, restarted = list(replay.steps())
    assert [(t.kind, cause.offset) for t, cause in failed.transitions] == [
        (K.DIRECTORY_FAILED, 8), (K.PARTITION_OFFLINE, 9), (K.PARTITION_OFFLINE, 9),
    ]  # fmt: skip
    assert failed.transitions[1][0].reason == "its log directory has failed"
    assert [t.kind for t, _ in restarted.transitions if t.partition and t.partition.partition == 0] == [
        K.BECAME_FOLLOWER, K.FETCHING_STARTED,
    ]  # fmt: skip
    assert {cause for _, cause in restarted.transitions} == {Cause(10, "REGISTER_BROKER_RECORD")}
    assert replay.broker.roles() == ([("foo", 1)], [("foo", 0)])


def test_a_deleted_offline_partition_is_no_longer_hosted():
    source = made(
        [again(D1, D2, epoch=101, incarnation=701)],
        [topic(), partition(0, leader=2, directories=(D2, D1, D1))],
        [registered(D1)],
        [r.RemoveTopicRecord(topic_id=FOO)],
    )
    replay = BrokerReplay(source, 1)
    roles = [replay.broker.roles() for _ in replay.steps()]
    assert roles[-2:] == [([], [("foo", 0)]), ([], [])]


def test_a_restarted_broker_finds_stray_logs():
    source = made(
        [topic(), partition(leader=2)],
        [r.RemoveTopicRecord(topic_id=FOO), topic(topic_id=BAR), partition(leader=2, topic_id=BAR),
         again(D1, epoch=300, incarnation=799)],
    )  # fmt: skip
    assert (K.LOG_DELETED, "foo-0", Cause(9, "REGISTER_BROKER_RECORD")) in transitions_of(source, 6)


def test_a_broker_in_shutdown_stops_followers_and_restarts_them_later():
    source = made(
        [topic(), partition(leader=2)],
        [registered(in_controlled_shutdown=1), change(isr=(2, 3), leader=3)],
        [again(D1, epoch=300, incarnation=799)],
    )
    replay = BrokerReplay(source, 1)
    steps = list(replay.steps())
    assert K.REPLICA_STOPPED in [t.kind for t, _ in steps[-2].transitions]
    assert not replay.broker.manager.in_controlled_shutdown
    assert [fetcher.leader.id for fetcher in replay.broker.fetchers()] == [3]


def test_a_broker_at_an_earlier_point_is_found_again():
    replay = BrokerReplay(kraftlake.open(DIRECTORY), 2, 403, 900)
    steps, roles = [], []
    for step in replay.steps():
        steps.append(step)
        roles.append(replay.broker.roles())
    for place in at_least_one(range(0, len(steps), 17)):
        assert replay.again(steps[: place + 1]).roles() == roles[place]


# what a source may be


def test_a_log_that_starts_above_zero_starts_with_its_snapshot(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for name in ("00000000000000003038-0000000002.checkpoint", "00000000000000003532.log", "00000000000000002027.log"):
        (folder / name).write_bytes((DIRECTORY / name).read_bytes())
    replay = BrokerReplay(kraftlake.open(folder), 2)
    first, *_ = replay.steps()
    assert first.offset == 3037
    assert {cause for _, cause in first.transitions} == {Cause(3037, "SNAPSHOT")}
    assert replay.broker.roles() == hosted(replay.broker.image, 2)
    with pytest.raises(OffsetError, match="3037"):
        BrokerReplay(kraftlake.open(folder), 2, None, 2500)


def test_a_log_that_an_older_snapshot_does_not_lead_to_starts_with_the_first_one_that_does(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for name in ("00000000000000003038-0000000002.checkpoint", "00000000000000004593-0000000002.checkpoint"):
        (folder / name).write_bytes((DIRECTORY / name).read_bytes())
    for name in ("00000000000000003532.log", "00000000000000005488.log"):
        (folder / name).write_bytes((DIRECTORY / name).read_bytes())
    source = kraftlake.open(folder)
    replay = BrokerReplay(source, 2)
    first, *_ = replay.steps()
    assert first.offset == 4592
    assert replay.broker.roles() == hosted(source.image(), 2)
    (only,) = BrokerReplay(source, 2, None, 3037).steps()
    assert only.offset == 3037
    for begin in (0, 3038):
        with pytest.raises(OffsetError, match=f"can't tell all changes after offset {begin - 1} up to 5736"):
            BrokerReplay(source, 2, begin, lenient=begin > 0)


def test_a_snapshot_file_is_one_step():
    (step,) = BrokerReplay(kraftlake.open(DIRECTORY / "00000000000000004593-0000000002.checkpoint"), 2).steps()
    assert step.offset == 4592


def test_a_snapshot_ahead_of_the_log_is_loaded_as_a_change(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for name in ("00000000000000000000.log", "00000000000000004593-0000000002.checkpoint"):
        (folder / name).write_bytes((DIRECTORY / name).read_bytes())
    replay = BrokerReplay(kraftlake.open(folder), 2)
    steps = list(replay.steps())
    assert steps[-1].offset == 4592
    assert steps[-2].offset == 2026
    assert replay.broker.roles() == hosted(kraftlake.open(DIRECTORY).image(4592), 2)
    assert K.LOG_DELETED in [t.kind for t, _ in steps[-1].transitions]


def test_a_record_that_cannot_be_replayed_stops_a_strict_replay_and_is_skipped_by_a_lenient_one():
    source = made([topic(), partition(leader=1)], [change(7, leader=2)], [change(0, leader=2)])
    with pytest.raises(ReplayError, match="6"):
        list(BrokerReplay(source, 1).steps())
    replay = BrokerReplay(source, 1, lenient=True)
    list(replay.steps())
    assert [skipped.offset for skipped in replay.skipped] == [6]
    assert replay.broker.roles() == ([], [("foo", 0)])


def test_a_range_that_runs_backwards_and_an_offset_past_the_end_are_refused():
    source = kraftlake.open(DIRECTORY)
    with pytest.raises(UsageError):
        BrokerReplay(source, 1, 9, 8)
    with pytest.raises(OffsetError):
        BrokerReplay(source, 1, None, 9_999)
    with pytest.raises(OffsetError):
        BrokerReplay(source, 1, 9_999)


def test_the_listener_is_the_first_that_all_brokers_have_or_the_requested_one():
    replay = BrokerReplay(kraftlake.open(DIRECTORY), 2, 100, 101)
    assert {fetcher.leader.port for fetcher in replay.broker.fetchers()} == {19100, 19104}
    replay = BrokerReplay(kraftlake.open(DIRECTORY), 2, 100, 101, inter_broker_listener="SASL_PLAINTEXT")
    assert {fetcher.leader.port for fetcher in replay.broker.fetchers()} == {19101, 19105}
