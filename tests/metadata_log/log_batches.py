"""Batches for the tests of the log: real records whose content shows their offset."""

from __future__ import annotations

from pathlib import Path

from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord
from kraftlake.records.metadata_records import NoOpRecord, TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

TIME = 1_700_000_000_000


class UnsyncedDisk(Disk):
    """A disk without fsync, where a test isn't about power cuts."""

    def fsync(self, path: Path) -> None:
        pass


def data_batch(offset: int, count: int = 1, *, epoch: int = 1, time: int | None = None, who: str = "") -> RecordBatch:
    """`count` topics named after their offset (and `who` wrote them)."""
    topics = [
        ApiMessageAndVersion(TopicRecord(name=f"topic-{offset + i}{who}", topic_id=Uuid.ZERO), 0) for i in range(count)
    ]
    return RecordBatch.of(offset, epoch, TIME + offset if time is None else time, topics)


def noop_batch(offset: int, *, epoch: int = 1, time: int | None = None) -> RecordBatch:
    """One no-op, as an idle controller writes two a second."""
    time = TIME + offset if time is None else time
    return RecordBatch.of(offset, epoch, time, [ApiMessageAndVersion(NoOpRecord(), 0)])


def leader_change(offset: int, *, epoch: int) -> RecordBatch:
    """The control batch that a leader's epoch begins with."""
    return RecordBatch.control_of(offset, epoch, TIME + offset, [LeaderChangeMessage(version=0, leader_id=epoch)])


def snapshot_batches(topics: int, *, epoch: int = 1, time: int = TIME) -> list[RecordBatch]:
    """A snapshot: header, `topics` topics, footer; offsets count from 0."""
    return [
        RecordBatch.control_of(0, epoch, time, [SnapshotHeaderRecord(version=0, last_contained_log_timestamp=time)]),
        data_batch(1, topics, epoch=epoch, time=time),
        RecordBatch.control_of(topics + 1, epoch, time, [SnapshotFooterRecord(version=0)]),
    ]
