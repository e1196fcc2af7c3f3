"""One log directory of a broker: its identity, its lock and its checkpoints, in Kafka's format.

Source: org.apache.kafka.storage.internals.log.LogManager, CleanShutdownFileHandler and
org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from typing import Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.file_names import META_PROPERTIES
from kraftlake.kafka_files.node.broker_directory import CLEAN_SHUTDOWN, LOCK
from kraftlake.kafka_files.node.meta_properties import meta_properties, read_properties
from kraftlake.kafka_files.node.partition_files import offsets_content, parse_offsets
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.disk.files import Files, LogFile
from kraftlake.replica_manager.logs.partition_folder import PartitionFolder
from kraftlake.runtime.errors import CorruptDataError, UsageError
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.whole_file import PART

_log = get_logger(__name__)

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANED_TO: Final = "cleaner-offset-checkpoint"
_WRITTEN: Final = (META_PROPERTIES, CLEAN_SHUTDOWN, RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED_TO)


@attrs.define(eq=False, kw_only=True)
class LogDirectory:
    """A log directory that this process has locked."""

    path: str
    files: Files = attrs.field(repr=False)
    directory_id: Uuid
    was_clean: bool
    """Whether the last broker that used the directory shut down in order."""
    broker_epoch: int
    """The epoch of that broker, −1 if unknown or after a disorderly shutdown."""
    _lock: LogFile = attrs.field(repr=False)
    is_in_use: bool = attrs.field(default=False, init=False)
    """Whether logs may have been loaded, and so changed since the last broker shut down."""
    is_loaded: bool = attrs.field(default=False, init=False)
    """Whether all logs in the directory are known, so that a checkpoint of the known ones is complete."""

    @classmethod
    def open(cls, path: str, files: Files, *, cluster_id: str, node_id: int, new_id: Uuid) -> LogDirectory:
        """Lock a directory; one without an identity gets the id `new_id`.

        Raises UsageError for a directory of another cluster or node, and for one locked by a running node.
        """
        _make(path, files)
        lock = files.open(f"{path}/{LOCK}")
        try:
            if not lock.lock():
                raise UsageError(f"{path} is held by a running node: a log directory has one at a time.")
            directory_id = _identity(path, files, cluster_id, node_id, new_id)
            marker = f"{path}/{CLEAN_SHUTDOWN}"
            was_clean = files.exists(marker)
            epoch = _epoch_in(files.read(marker)) if was_clean else -1
            for name in files.names(path):
                if name.startswith(_WRITTEN) and name.endswith(PART):
                    files.delete(f"{path}/{name}")
            files.sync_folder(path)
        except BaseException:
            lock.close()
            raise
        return cls(
            path=path, files=files, directory_id=directory_id, was_clean=was_clean, broker_epoch=epoch, lock=lock
        )

    def begin_use(self) -> None:
        """Delete the clean-shutdown marker, durably, before any log is loaded.

        A broker that ends earlier has changed no log, so the next one may still rely on the marker. Source:
        kafka.log.LogManager.loadLogs.
        """
        self.is_in_use = True
        self.files.delete(f"{self.path}/{CLEAN_SHUTDOWN}")
        self.files.sync_folder(self.path)

    def partitions(self) -> list[PartitionFolder]:
        """The partitions' folders, by name."""
        found = map(PartitionFolder.parse, self.files.names(self.path))
        return [folder for folder in found if folder is not None and self.files.is_folder(f"{self.path}/{folder.name}")]

    def offsets(self, checkpoint: str) -> dict[TopicPartition, int]:
        """The offsets in a checkpoint; none for a missing or damaged file, so that all data is checked."""
        path = f"{self.path}/{checkpoint}"
        if not self.files.exists(path):
            return {}
        try:
            return {TopicPartition(topic, number): at for topic, number, at in parse_offsets(self.files.read(path))}
        except CorruptDataError as error:
            _log.warning("checkpoint_is_damaged", file=path, why=str(error))
            return {}

    def write_offsets(self, checkpoint: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint, durably."""
        rows = [(name.topic, name.partition, offset) for name, offset in offsets.items()]
        self.files.write_whole(f"{self.path}/{checkpoint}", offsets_content(rows))

    def close(self, *, broker_epoch: int | None) -> None:
        """Release the lock; with `broker_epoch` all logs are durable and closed, and the next start checks none."""
        if broker_epoch is not None:
            content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
            self.files.write_whole(f"{self.path}/{CLEAN_SHUTDOWN}", content.encode())
        self._lock.close()


def _make(path: str, files: Files) -> None:
    """Create a folder and its missing parents."""
    if not files.exists(path):
        parent = posixpath.dirname(path)
        if parent not in ("", path):
            _make(parent, files)
        files.make_folder(path)
        files.sync_folder(parent or ".")


def _epoch_in(marker: bytes) -> int:
    """Return the broker epoch in a clean-shutdown marker.

    −1 for a marker without one, as written by Kafka before 4.0.
    """
    try:
        return int(json.loads(marker)["brokerEpoch"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return -1


def _identity(path: str, files: Files, cluster_id: str, node_id: int, new_id: Uuid) -> Uuid:
    file = f"{path}/{META_PROPERTIES}"
    if not files.exists(file):
        files.write_whole(file, meta_properties(cluster_id=cluster_id, node_id=node_id, directory_id=new_id))
        return new_id
    found = read_properties(files.read(file))
    for what, wanted, there in (("cluster", cluster_id, found.cluster_id), ("node", node_id, found.node_id)):
        if there != wanted:
            raise UsageError(f"{file} is of {what} {there}, not {wanted}: name a directory of this broker.")
    if found.directory_id is None:
        raise UsageError(f"{file} has no directory.id: format the directory with kafka-storage.")
    return found.directory_id
