"""The logs of a broker and their directories, independent of the kind of storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import KafkaStorageError, LogDirNotFoundError
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

_RESERVED_IDS = 100
"""Directory ids below this number stand for no directory. Source: org.apache.kafka.common.DirectoryId."""

LogT_co = TypeVar("LogT_co", bound=PartitionLog, covariant=True)


def _copied(directories: Mapping[str, Uuid]) -> dict[str, Uuid]:
    return dict(directories)


@attrs.define(eq=False, repr=False)
class LogManager(ABC, Generic[LogT_co]):
    """A broker's logs, without their creation and deletion, which a subclass implements.

    A *future* log is the copy of a replica that moves to another log directory. `directories` has the ids of the online
    directories by name. `defaults` applies where a topic sets no config; `topic_configs` returns a topic's configs in
    the newest metadata. Source: org.apache.kafka.storage.internals.log.LogManager.
    """

    directories: dict[str, Uuid] = attrs.field(converter=_copied)
    _defaults: LogConfig = attrs.field(factory=LogConfig)
    _topic_configs: Callable[[str], Mapping[str, str]] = lambda _: {}
    offline: dict[str, Uuid] = attrs.field(factory=dict, init=False)
    _logs: dict[TopicPartition, LogT_co] = attrs.field(factory=dict, init=False)
    _future_logs: dict[TopicPartition, LogT_co] = attrs.field(factory=dict, init=False)
    _checkpoints: dict[str, dict[TopicPartition, int]] = attrs.field(factory=dict, init=False)
    """The high watermarks last written for each directory."""
    _preferred: dict[TopicPartition, str] = attrs.field(factory=dict, init=False)

    @abstractmethod
    def _make(self, name: TopicPartition, topic_id: Uuid, directory: str, *, is_future: bool) -> LogT_co:
        """Create a log, or open the existing one."""

    @abstractmethod
    def _discard(self, log: LogT_co) -> None:  # type: ignore[misc]  # its own logs only
        """Delete the storage of a removed log."""

    @abstractmethod
    def _make_current(self, future: LogT_co) -> None:  # type: ignore[misc]  # its own logs only
        """Turn a future log, and its start, into the log that a restart finds as the replica's."""

    def recover_abandoned_future_logs(self, broker_id: int, topics: TopicsImage) -> None:
        """Promote the future logs that have the replica's records, and whose directory the metadata assigns to it.

        A broker that died between the controller's answer and the promotion leaves such logs. The replica may meanwhile
        have grown, or been truncated; then the move continues.
        """
        for name, future in list(self._future_logs.items()):
            current = self._logs.get(name)
            if current is not None and _last_record(current) != _last_record(future):
                continue
            state = None if future.topic_id is None else topics.get_partition(future.topic_id, name.partition)
            here = self.directories.get(future.directory)
            if state is not None and here is not None and state.directory(broker_id) == here:
                self._promote(name)

    def logs(self) -> Mapping[TopicPartition, LogT_co]:
        """All logs, including those that no partition uses."""
        return self._logs

    def get_log(self, topic_partition: TopicPartition, *, is_future: bool = False) -> LogT_co | None:
        """The log of a replica, None without one."""
        return (self._future_logs if is_future else self._logs).get(topic_partition)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        *,
        is_new: bool,
        is_future: bool,
        topic_id: Uuid,
        target_directory_id: Uuid | None,
    ) -> LogT_co:
        """Return the log of a replica, created if missing.

        A log is created in the preferred directory, else in the target directory, else in the directory with the fewest
        logs; a future log only in the preferred directory. With `is_new`, the broker did not host the partition before,
        so a log may be created while other directories are offline. Raises KafkaStorageError if the directory has
        failed.
        """
        logs = self._future_logs if is_future else self._logs
        log = logs.get(topic_partition)
        if log is not None:
            if log.directory in self.offline:
                raise KafkaStorageError(f"The log of {topic_partition} lies in {log.directory}, which is offline.")
            log.assign_topic_id(topic_id)
            return log
        if not is_new and not is_future and self.offline:
            offline = ", ".join(sorted(self.offline))
            raise KafkaStorageError(f"No log of {topic_partition} is made: it may lie in {offline}, which is offline.")
        preferred = self._preferred.get(topic_partition)
        assert preferred is not None or not is_future, "a future log has a preferred directory"
        if preferred is not None and preferred not in self.directories:
            raise KafkaStorageError(f"No log of {topic_partition} is made in {preferred}, which is offline.")
        directory = preferred or self._directory_for(target_directory_id)
        log = self._make(topic_partition, topic_id, directory, is_future=is_future)
        self._preferred.pop(topic_partition, None)
        logs[topic_partition] = log
        return log

    def config_of(self, topic: str) -> LogConfig:
        """The configuration of a topic's logs."""
        configs = self._topic_configs(topic)
        return self._defaults.overridden(configs) if configs else self._defaults

    def update_defaults(self, defaults: LogConfig) -> None:
        """Apply `defaults` to all logs, below the configs of their topics."""
        self._defaults = defaults
        for logs in (self._logs, self._future_logs):
            for name, log in list(logs.items()):
                log.update_config(self.config_of(name.topic))

    def update_topic_config(self, topic: str, configs: Mapping[str, str]) -> None:
        """Apply `configs` over the broker's defaults to all logs of a topic, future logs included."""
        config = self._defaults.overridden(configs)
        for logs in (self._logs, self._future_logs):
            for name, log in list(logs.items()):
                if name.topic == topic:
                    log.update_config(config)

    def prefer_directory(self, topic_partition: TopicPartition, directory: str) -> None:
        """Create the next log or future log of a replica in `directory`, unless it already has one there."""
        logs = (self._logs.get(topic_partition), self._future_logs.get(topic_partition))
        if not any(log is not None and log.directory == directory for log in logs):
            self._preferred[topic_partition] = directory

    def _directory_for(self, wanted: Uuid | None) -> str:
        """Return the directory with the wanted id, else the one with the fewest logs, ties broken by name."""
        if not self.directories:
            raise KafkaStorageError("No log directory is online.")
        if wanted is not None and not is_reserved(wanted):
            for name, id_ in self.directories.items():
                if id_ == wanted:
                    return name
        counts = dict.fromkeys(sorted(self.directories), 0)
        for log in self._logs.values():
            if log.directory in counts:
                counts[log.directory] += 1
        return min(counts, key=counts.__getitem__)

    def is_directory_online(self, directory_id: Uuid) -> bool:
        """Whether a directory with this id exists and has not failed."""
        return directory_id in self.directories.values()

    def is_log_dir_online(self, directory: str) -> bool:
        """Whether the directory at a path has not failed. Raises LogDirNotFoundError for an unknown path."""
        if directory not in self.directories and directory not in self.offline:
            raise LogDirNotFoundError(f"There is no log directory {directory}.")
        return directory in self.directories

    def has_offline_directories(self) -> bool:
        """Whether any configured directory has failed."""
        return bool(self.offline)

    def directory_id(self, directory: str) -> Uuid | None:
        """The id of a directory, as in its meta.properties; None if it is offline."""
        return self.directories.get(directory)

    def handle_log_dir_failure(self, directory: str) -> Uuid:
        """Take a directory offline, unless it is: its logs are inaccessible until the restart, its future logs gone.

        Returns its id, UNASSIGNED if the id could not be read.
        """
        if directory in self.directories:
            self.offline[directory] = self.directories.pop(directory)
        for name in [name for name, future in self._future_logs.items() if future.directory == directory]:
            del self._future_logs[name]
        return self.offline[directory]

    def delete_logs(
        self, partitions: Iterable[TopicPartition], on_error: Callable[[TopicPartition, Exception], None]
    ) -> None:
        """Delete the logs and future logs of replicas; failures go to `on_error` and the others are deleted."""
        for partition in partitions:
            for logs in (self._logs, self._future_logs):
                log = logs.pop(partition, None)
                if log is None:
                    continue
                try:
                    if log.directory in self.offline:
                        raise KafkaStorageError(f"The log of {partition} lies in {log.directory}, which is offline.")
                    self._discard(log)
                except KafkaStorageError as error:
                    on_error(partition, error)
            for checkpoint in self._checkpoints.values():
                checkpoint.pop(partition, None)

    def delete_future_log(self, topic_partition: TopicPartition) -> None:
        """Delete the future log of a replica."""
        if topic_partition in self._future_logs:
            self._discard(self._future_logs.pop(topic_partition))

    def replace_current_with_future(self, topic_partition: TopicPartition) -> None:
        """Replace the log of a replica by its future log, and delete the old log."""
        current, future = self._logs.get(topic_partition), self._future_logs.get(topic_partition)
        for which, log in (("replica", current), ("copy", future)):
            if log is None or log.directory in self.offline:
                raise KafkaStorageError(f"The {which} of {topic_partition} can't be exchanged: it is offline.")
        assert current is not None
        assert future is not None
        self._promote(topic_partition)

    def _promote(self, name: TopicPartition) -> None:
        """Replace the log by the future log, if one exists, and delete the replaced log.

        If the old log's directory fails at the end of the move, the replica has still left that directory.
        """
        future, current = self._future_logs[name], self._logs.get(name)
        if current is not None:
            future.update_high_watermark(current.high_watermark)
            future.maybe_increment_log_start_offset(current.log_start_offset)
        self._make_current(future)
        self._logs[name] = future
        self._future_logs.pop(name, None)
        if current is not None and current.directory not in self.offline:
            try:
                self._discard(current)
            except KafkaStorageError as error:
                _log.error("replaced_log_not_deleted", partition=str(name), error=str(error))

    def checkpointed_high_watermark(self, directory: str, topic_partition: TopicPartition) -> int | None:
        """The high watermark in a directory's replication-offset-checkpoint, None without an entry."""
        return self._checkpoints.get(directory, {}).get(topic_partition)

    def write_high_watermarks(self, directory: str, high_watermarks: dict[TopicPartition, int]) -> None:
        """Replace the checkpoint file of a directory. Raises KafkaStorageError when it can't be written."""
        if directory in self.offline:
            raise KafkaStorageError(f"The log directory {directory} is offline.")
        self._checkpoints[directory] = dict(high_watermarks)


def _last_record(log: PartitionLog) -> tuple[int, int | None]:
    """The end offset and latest epoch of a log: two logs of a replica with the same pair have the same content."""
    return log.log_end_offset, log.latest_epoch


def is_reserved(directory_id: Uuid) -> bool:
    """Whether an id belongs to no directory: unassigned, lost, migrating or reserved by Kafka."""
    return int.from_bytes(directory_id, "big") < _RESERVED_IDS
