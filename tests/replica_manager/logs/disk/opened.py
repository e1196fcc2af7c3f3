"""Logs on disk for tests: opened with small segments, by a clock of the test."""

from __future__ import annotations

from pathlib import Path

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.files import DiskFiles, Files
from kraftlake.replica_manager.logs.disk.log_loader import StoredState, load_log
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.clock import ManualClock
from tests.replica_manager.brokers import FOO

PARTITION = TopicPartition("foo", 0)
CRASHED = StoredState()
CLEAN = StoredState(clean=True)
SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)


def opened(
    folder: Path,
    config: LogConfig = SMALL,
    *,
    stored: StoredState = CRASHED,
    clock: ManualClock | None = None,
    files: Files | None = None,
) -> DiskPartitionLog:
    folder.mkdir(exist_ok=True)
    return load_log(
        files or DiskFiles(), str(folder), PARTITION, config, clock or ManualClock(1_000), topic_id=FOO, stored=stored
    )


def loaded(files: Files, config: LogConfig = SMALL, *, stored: StoredState = CRASHED) -> DiskPartitionLog:
    """A log in the folder `d` of files that are not on a disk."""
    files.make_folder("d")
    files.sync_folder("")
    log = load_log(files, "d", PARTITION, config, ManualClock(1_000), topic_id=FOO, stored=stored)
    files.sync_folder("d")
    return log


def reopened(log: DiskPartitionLog, folder: Path, *, clean: bool = True) -> DiskPartitionLog:
    """The log after its broker has shut down in order, or was killed."""
    if clean:
        log.flush()
        log.close()
    else:
        log.close_files()
    stored = StoredState(clean=clean, recovery_point=log.recovery_point, log_start_offset=log.log_start_offset)
    return opened(folder, log.config, stored=stored)
