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
from kraftlake.replica_manager.logs.base_log import BasePartitionLog
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

_RESERVED_IDS = 100
"""Directory ids below this number stand for no directory. Source: org.apache.kafka.common.DirectoryId."""

LogT = TypeVar("LogT", bound=BasePartitionLog)


def _copied(directories: Mapping[str, Uuid]) -> dict[str, Uuid]:
    return dict(directories)


@attrs.define(eq=False, repr=False)
class BaseLogManager(ABC, Generic[LogT]):
    """A `LogManager` without the creation and deletion of logs, which a subclass implements.

    `directories` has the ids of the online directories by name. `defaults` applies where a topic sets no config;
    `topic_configs` returns a topic's configs in the newest metadata. Source:
    org.apache.kafka.storage.internals.log.LogManager.
    """

    directories: dict[str, Uuid] = attrs.field(converter=_copied)
    _defaults: LogConfig = attrs.field(factory=LogConfig)
    _topic_configs: Callable[[str], Mapping[str, str]] = lambda _: {}
    offline: dict[str, Uuid] = attrs.field(factory=dict, init=False)
    _logs: dict[TopicPartition, LogT] = attrs.field(factory=dict, init=False)
    _future_logs: dict[TopicPartition, LogT] = attrs.field(factory=dict, init=False)
    _checkpoints: dict[str, dict[TopicPartition, int]] = attrs.field(factory=dict, init=False)
    """The high watermarks last written for each directory."""
    _preferred: dict[TopicPartition, str] = attrs.field(factory=dict, init=False)

    @abstractmethod
    def _make(self, name: TopicPartition, topic_id: Uuid, directory: str, *, is_future: bool) -> LogT:
        """Create a log, or open the existing one."""

    @abstractmethod
    def _discard(self, log: LogT) -> None:
        """Delete the storage of a removed log."""

    @abstractmethod
    def _make_current(self, future: LogT) -> None:
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

    def logs(self) -> Mapping[TopicPartition, LogT]:
        """All logs, including those that no partition uses."""
        return self._logs

    def get_log(self, topic_partition: TopicPartition, *, is_future: bool = False) -> LogT | None:
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
    ) -> LogT:
        """Return the log of a replica, created if missing."""
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
        """Apply `configs` over the defaults to all logs of a topic."""
        config = self._defaults.overridden(configs)
        for logs in (self._logs, self._future_logs):
            for name, log in list(logs.items()):
                if name.topic == topic:
                    log.update_config(config)

    def prefer_directory(self, topic_partition: TopicPartition, directory: str) -> None:
        """Create the next log of a replica in `directory`."""
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
        """Whether a directory with that id is online."""
        return directory_id in self.directories.values()

    def is_log_dir_online(self, directory: str) -> bool:
        """Whether a directory is online."""
        if directory not in self.directories and directory not in self.offline:
            raise LogDirNotFoundError(f"There is no log directory {directory}.")
        return directory in self.directories

    def has_offline_directories(self) -> bool:
        """Whether any directory has failed."""
        return bool(self.offline)

    def directory_id(self, directory: str) -> Uuid | None:
        """The id of an online directory."""
        return self.directories.get(directory)

    def handle_log_dir_failure(self, directory: str) -> Uuid:
        """Take a directory offline; its logs are kept, except future logs. Returns its id."""
        if directory in self.directories:
            self.offline[directory] = self.directories.pop(directory)
        for name in [name for name, future in self._future_logs.items() if future.directory == directory]:
            del self._future_logs[name]
        return self.offline[directory]

    def delete_logs(
        self, partitions: Iterable[TopicPartition], on_error: Callable[[TopicPartition, Exception], None]
    ) -> None:
        """Delete the logs of replicas; a log in an offline directory is reported and forgotten."""
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
        """Replace the log by the future log, which takes over the high watermark and the start."""
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
        """The high watermark last written for a directory."""
        return self._checkpoints.get(directory, {}).get(topic_partition)

    def write_high_watermarks(self, directory: str, high_watermarks: dict[TopicPartition, int]) -> None:
        """Replace the checkpoint of a directory."""
        if directory in self.offline:
            raise KafkaStorageError(f"The log directory {directory} is offline.")
        self._checkpoints[directory] = dict(high_watermarks)


def _last_record(log: BasePartitionLog) -> tuple[int, int | None]:
    """The end offset and latest epoch of a log: two logs of a replica with the same pair have the same content."""
    return log.log_end_offset, log.latest_epoch


def is_reserved(directory_id: Uuid) -> bool:
    """Whether an id belongs to no directory: unassigned, lost, migrating or reserved by Kafka."""
    return int.from_bytes(directory_id, "big") < _RESERVED_IDS
