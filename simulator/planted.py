"""Faults planted into production code, each of which the simulation of the whole cluster has to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from kraftlake.controller.cluster import brokers
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.replication import alter_partition, leader_and_isr, partition_change
from kraftlake.controller.replication.partition_change import Election
from kraftlake.metadata_log.append import log_commit
from kraftlake.metadata_log.append.group_commit import GroupCommit
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.disk import ObjectStoreDisk, is_probe
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.errors import OffsetOutOfRangeError
from kraftlake.replica_manager.logs import partition_log
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.disk import disk_log_manager
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.logs.partition_log import PartitionLog, readable_end
from kraftlake.replica_manager.logs.producer_state import ProducerStates
from kraftlake.replica_manager.partition import leader
from kraftlake.replica_manager.partition.in_sync_replicas import InSyncReplicas
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.partition.partition_state import PendingShrinkIsr
from kraftlake.replica_manager.requests import delayed_answers
from kraftlake.server.broker.serving import fetch
from kraftlake.server.controller import topic_handlers
from simulator import planted_liveness
from simulator.forgetful_disk import ForgetfulDisk
from simulator.planted_fault import Change, PlantedFault
from simulator.specification import (
    CONSISTENT_READ,
    LEADER_CANDIDATE_COMPLETENESS,
    LEADER_COMPLETENESS,
    LOG_MATCHING,
    METADATA_LOG_MATCHING,
    MIN_ISR_RECOVERY_QUORUM,
    NO_COMMITTED_RECORD_LOST,
    REPLICATION_QUORUM_SUPERSET,
)


def _high_watermark_at_log_end() -> list[Change]:
    def increment(self: InSyncReplicas, log: Any, now_ms: int) -> bool:
        return log.maybe_increment_high_watermark(log.log_end_offset) is not None

    return [(InSyncReplicas, "maybe_increment_high_watermark", increment)]


def _high_watermark_below_min_isr() -> list[Change]:
    return [(InSyncReplicas, "is_under_min_isr", lambda self, log: False)]


def _followers_ahead() -> list[Change]:
    update = PartitionLog.update_high_watermark

    def update_to_end(self: PartitionLog, offset: int) -> int:
        return update(self, self.log_end_offset)

    return [(PartitionLog, "update_high_watermark", update_to_end)]


def _no_truncation() -> list[Change]:
    partition = vars(fetch)["_partition"]

    def partition_without_epoch(one: Any, topic_id: Any) -> Any:
        # A leader that sees where its follower diverges, and does not say so, is asked again at once, for ever.
        return attrs.evolve(partition(one, topic_id), last_fetched_epoch=None)

    return [(fetch, "_partition", partition_without_epoch)]


def _truncation_at_election() -> list[Change]:
    lead = Partition.make_leader

    def truncate_and_lead(self: Partition, registration: Any, **more: Any) -> bool:
        log = self.log
        if log is not None and registration.leader_epoch > self.leader_epoch:
            log.truncate_to(log.high_watermark)
        return lead(self, registration, **more)

    return [(Partition, "make_leader", truncate_and_lead)]


def _acknowledged_at_once() -> list[Change]:
    return [(delayed_answers, "check_enough_replicas_reach_offset", lambda partition, offset: (True, ErrorCode.NONE))]


def _duplicates_appended() -> list[Change]:
    return [(ProducerStates, "check", lambda self, batches, origin: ([], None))]


def _producers_not_replayed() -> list[Change]:
    return [(ProducerStates, "replay", lambda self, batches: None)]


def _producers_expired_early() -> list[Change]:
    expire = ProducerStates.remove_expired

    def expire_early(self: ProducerStates, now_ms: int, expiration_ms: int) -> None:
        expire(self, now_ms, expiration_ms // 2)

    return [(ProducerStates, "remove_expired", expire_early)]


def _uncommitted_read() -> list[Change]:
    return [(partition_log, "readable_end", lambda log, isolation: log.log_end_offset)]


def _uncommitted_read_of_followers() -> list[Change]:
    read = vars(leader)["_read"]

    def read_all(partition: Partition, log: Any, fetch: Any, limit: int, isolation: Any, **more: Any) -> Any:
        return read(partition, log, fetch, limit, isolation if partition.is_leader else FetchIsolation.LOG_END, **more)

    return [(leader, "_read", read_all)]


def _unclean_shutdown_ignored() -> list[Change]:
    return [(brokers, "_shut_down", lambda state, broker_id, *, clean: [])]


def _elections_unclean() -> list[Change]:
    return [(leader_and_isr, "election_of", lambda state, topic: Election.UNCLEAN)]


def _election_of_any_replica() -> list[Change]:
    def is_valid(self: Any, replica: int) -> bool:
        return bool(self._context.is_acceptable_leader(replica))

    return [(partition_change._Change, "_is_valid_leader", is_valid)]


def _elr_kept_in_sync() -> list[Change]:
    populate = partition_change._Change._populate_elr

    def populate_or_keep(self: Any) -> None:
        if len(self._isr) < self._context.min_isr:
            populate(self)

    return [(partition_change._Change, "_populate_elr", populate_or_keep)]


def _isr_kept_after_session() -> list[Change]:
    return [(brokers, "_fence", lambda state, broker: [brokers._change(broker, 0, fenced=brokers.FENCE)])]


def _fenced_writer_goes_on() -> list[Change]:
    append = MetadataLog.append

    def append_anyway(self: MetadataLog, rows: Any, *, epoch: int | None = None, **more: Any) -> None:
        self.refresh()
        if epoch is not None and epoch < self.epoch:
            more["expected_end_offset"] = self.end_offset
            epoch = self.epoch
        append(self, rows, epoch=epoch, **more)

    return [(MetadataLog, "append", append_anyway), (log_commit, "check_batches", lambda *_, **__: None)]


def _stale_controller_answers() -> list[Change]:
    return [(GroupCommit, "is_newest", lambda self: True)]


def _commits_overwrite() -> list[Change]:
    # A store that overwrites probes, too, is refused before the first record.
    return [(ObjectStoreDisk, "_put", lambda self, path, data: path.put(data, create=is_probe(path.name)))]


def _lake_names_not_synced() -> list[Change]:
    fsync = ForgetfulDisk.fsync

    def fsync_files(self: ForgetfulDisk, path: Path) -> None:
        if not path.is_dir():
            fsync(self, path)

    return [(ForgetfulDisk, "fsync", fsync_files)]


def _committed_before_durable() -> list[Change]:
    execute = ActiveController.execute

    def execute_and_commit(self: ActiveController, command: Any) -> Any:
        executed = execute(self, command)
        if executed.answer_at >= 0:
            self.committed_up_to(executed.answer_at)
        return executed

    return [(ActiveController, "execute", execute_and_commit)]


def _isr_of_stale_leaders() -> list[Change]:
    problem = alter_partition._problem

    def problem_but_staleness(state: Any, broker_id: int, partition: Any, change: Any) -> Any:
        epochs = {
            "leader_epoch": max(change.leader_epoch, partition.leader_epoch),
            "partition_epoch": max(change.partition_epoch, partition.partition_epoch),
        }
        return problem(state, partition.leader, partition, attrs.evolve(change, **epochs))

    return [(alter_partition, "_problem", problem_but_staleness)]


def _isr_of_old_partition_epochs() -> list[Change]:
    problem = alter_partition._problem

    def problem_but_age(state: Any, broker_id: int, partition: Any, change: Any) -> Any:
        epoch = max(change.partition_epoch, partition.partition_epoch)
        return problem(state, broker_id, partition, attrs.evolve(change, partition_epoch=epoch))

    return [(alter_partition, "_problem", problem_but_age)]


def _shrink_taken_as_committed() -> list[Change]:
    left = lambda self: self.last_committed.isr - self.out_of_sync_replicas  # noqa: E731
    return [(PendingShrinkIsr, "maximal_isr", property(left))]


def _last_leader_forgotten() -> list[Change]:
    return [(partition_change._Change, "_set_last_known_leader", lambda self: None)]


def _no_eligible_leaders() -> list[Change]:
    names = ("_set_elr", "_set_last_known_leader")
    return [(partition_change._Change, name, lambda self: None) for name in names]


def _no_fsync() -> list[Change]:
    return [(LogSegment, "sync", lambda self: None)]


def _recovery_keeps_torn_ends() -> list[Change]:
    recover = LogSegment.recover

    def recover_all(self: LogSegment, index_interval_bytes: int, *, cut: bool) -> Any:
        return recover(self, index_interval_bytes, cut=False)

    return [(LogSegment, "recover", recover_all)]


def _logs_begin_at_recovery_points() -> list[Change]:
    load: Callable[..., DiskPartitionLog] = vars(disk_log_manager)["load_log"]

    def load_durable(*arguments: Any, stored: StoredState, **more: Any) -> DiskPartitionLog:
        return load(*arguments, stored=attrs.evolve(stored, log_start_offset=stored.recovery_point), **more)

    return [(disk_log_manager, "load_log", load_durable)]


def _another_topic_deleted() -> list[Change]:
    delete = vars(topic_handlers)["delete_topics"]

    def delete_more(state: Any, ids: Any, **more_options: Any) -> Any:
        done, other = delete(state, ids, **more_options), state.image.topics.get_topic("one")
        more = [] if not done.records or other is None else delete(state, [other.id]).records
        return attrs.evolve(done, records=[*done.records, *more])

    return [(topic_handlers, "delete_topics", delete_more)]


def _out_of_range_above_high_watermark() -> list[Change]:
    read = PartitionLog.read

    def read_committed(self: PartitionLog, offset: int, max_bytes: int, isolation: Any, **more: Any) -> Any:
        if offset > readable_end(self, isolation):
            raise OffsetOutOfRangeError("not committed yet")
        return read(self, offset, max_bytes, isolation, **more)

    return [(PartitionLog, "read", read_committed)]


def _last_records_removed() -> list[Change]:
    choose = OffsetMap.choose

    def choose_less(self: OffsetMap, *arguments: Any, **options: Any) -> Any:
        whole, self.table = self.table, memoryview(bytearray(self.table)).cast("Q")
        for at in range(2, len(whole), 3):  # a record at the latest offset of its key is not above this one
            self.table[at] += bool(whole[at])
        try:
            return choose(self, *arguments, **options)
        finally:
            self.table = whole

    return [(OffsetMap, "choose", choose_less)]


def _tombstones_removed_at_once() -> list[Change]:
    choose = OffsetMap.choose
    return [
        (OffsetMap, "choose", lambda self, header, records, *, keeps_tombstones: choose(
            self, header, records, keeps_tombstones=False
        )),
    ]  # fmt: skip


PLANTED = {
    "high-watermark-at-log-end": PlantedFault(
        "a leader commits what no other replica has", _high_watermark_at_log_end, breaks=LEADER_CANDIDATE_COMPLETENESS
    ),
    "high-watermark-below-min-isr": PlantedFault("a leader commits alone", _high_watermark_below_min_isr),
    "followers-ahead": PlantedFault("a follower takes all that it has for committed", _followers_ahead),
    "no-truncation": PlantedFault(
        "a follower keeps what its leader does not have", _no_truncation, breaks=LOG_MATCHING, seed=6
    ),
    "truncation-at-election": PlantedFault(
        "a new leader removes what it does not know to be committed", _truncation_at_election,
        breaks=LEADER_COMPLETENESS, seed=2
    ),
    "acknowledged-at-once": PlantedFault("acks=all waits for nobody", _acknowledged_at_once),
    "duplicates-appended": PlantedFault("a producer's retry is appended again", _duplicates_appended),
    "producers-not-replayed": PlantedFault(
        "a broker that has crashed knows of producers what their last snapshot says", _producers_not_replayed
    ),
    "producers-expired-early": PlantedFault(
        "a broker forgets producers that have not been idle for long", _producers_expired_early
    ),
    "uncommitted-read": PlantedFault(
        "consumers read above the high watermark", _uncommitted_read, breaks=CONSISTENT_READ, seed=7
    ),
    "uncommitted-read-of-followers": PlantedFault(
        "consumers of followers read above the high watermark", _uncommitted_read_of_followers,
        breaks=CONSISTENT_READ, seed=3,
    ),
    "unclean-shutdown-ignored": PlantedFault(
        "a broker that lost data may lead", _unclean_shutdown_ignored, breaks=LEADER_CANDIDATE_COMPLETENESS, seed=5
    ),
    "elections-unclean": PlantedFault(
        "where no replica has all records, any other is elected", _elections_unclean,
        breaks=LEADER_CANDIDATE_COMPLETENESS, seed=6,
    ),
    "election-of-any-replica": PlantedFault("replicas out of sync are elected", _election_of_any_replica),
    "elr-kept-in-sync": PlantedFault(
        "replicas stay eligible with enough in sync", _elr_kept_in_sync, breaks=REPLICATION_QUORUM_SUPERSET, seed=7
    ),
    "isr-kept-after-session": PlantedFault("a broker without a session stays leader", _isr_kept_after_session),
    "fenced-writer-goes-on": PlantedFault("a fenced controller goes on committing", _fenced_writer_goes_on),
    "stale-controller-answers": PlantedFault(
        "a controller answers without a look at the lake", _stale_controller_answers, seed=4
    ),
    "commits-overwrite": PlantedFault("the lake's commits are no compare-and-set", _commits_overwrite),
    "lake-names-not-synced": PlantedFault("commits are shown before they are durable", _lake_names_not_synced, seed=7),
    "committed-before-durable": PlantedFault(
        "a controller shows what it has not committed", _committed_before_durable, breaks=METADATA_LOG_MATCHING
    ),
    "isr-of-stale-leaders": PlantedFault("a leader of an old epoch changes the ISR", _isr_of_stale_leaders),
    "isr-of-old-partition-epochs": PlantedFault("a late request changes a newer ISR", _isr_of_old_partition_epochs),
    "shrink-taken-as-committed": PlantedFault(
        "a leader waits no more for a follower that the controller still has in sync", _shrink_taken_as_committed,
        breaks=REPLICATION_QUORUM_SUPERSET,
    ),
    "no-eligible-leaders": PlantedFault(
        "a controller writes down neither the eligible leaders of a partition nor the last one", _no_eligible_leaders,
        breaks=MIN_ISR_RECOVERY_QUORUM
    ),
    "last-leader-forgotten": PlantedFault(
        "a partition that has lost all replicas in sync does not know who led it", _last_leader_forgotten,
        breaks=MIN_ISR_RECOVERY_QUORUM,
    ),
    "no-fsync": PlantedFault("segments are not made durable", _no_fsync),
    "torn-ends-kept": PlantedFault("a torn end of a log is not cut off", _recovery_keeps_torn_ends),
    "logs-begin-at-recovery-points": PlantedFault(
        "a restarted replica begins at a wrong log start", _logs_begin_at_recovery_points
    ),
    "another-topic-deleted": PlantedFault(
        "with a topic, another one is deleted", _another_topic_deleted,
        breaks=NO_COMMITTED_RECORD_LOST, hours=0.4,
    ),
    "out-of-range-above-high-watermark": PlantedFault(
        "consumers ahead of a new leader's high watermark start again", _out_of_range_above_high_watermark, seed=2
    ),
    "last-records-removed": PlantedFault("compaction removes the last record of a key", _last_records_removed),
    "tombstones-removed-at-once": PlantedFault(
        "compaction removes tombstones before their time", _tombstones_removed_at_once
    ),
    **planted_liveness.FAULTS,
}  # fmt: skip


@contextmanager
def plant(name: str | None) -> Iterator[None]:
    """Break production code for a while; None breaks nothing."""
    changes = [] if name is None else PLANTED[name].changes()
    before = [(where, attribute, vars(where)[attribute]) for where, attribute, _ in changes]
    try:
        for where, attribute, value in changes:
            setattr(where, attribute, value)
        yield
    finally:
        for where, attribute, value in before:
            setattr(where, attribute, value)
