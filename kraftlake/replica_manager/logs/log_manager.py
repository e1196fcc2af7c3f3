"""The interface of a broker's logs and log directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.partition_log import PartitionLog


class LogManager(Protocol):
    """A broker's logs. A *future* log is the copy of a replica that moves to another log directory.

    Source: org.apache.kafka.storage.internals.log.LogManager.
    """

    def get_log(self, topic_partition: TopicPartition, *, is_future: bool = False) -> PartitionLog | None:
        """The log of a replica, None without one."""

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        *,
        is_new: bool,
        is_future: bool,
        topic_id: Uuid,
        target_directory_id: Uuid | None,
    ) -> PartitionLog:
        """Return the log of a replica, created if missing.

        A log is created in the preferred directory, else in the target directory, else in the directory with the fewest
        logs; a future log only in the preferred directory. With `is_new`, the broker did not host the partition before,
        so a log may be created while other directories are offline. Raises KafkaStorageError if the directory has
        failed.
        """

    def update_topic_config(self, topic: str, configs: Mapping[str, str]) -> None:
        """Apply `configs` over the broker's defaults to all logs of a topic, future logs included."""

    def is_directory_online(self, directory_id: Uuid) -> bool:
        """Whether a directory with this id exists and has not failed."""

    def is_log_dir_online(self, directory: str) -> bool:
        """Whether the directory at a path has not failed. Raises LogDirNotFoundError for an unknown path."""

    def prefer_directory(self, topic_partition: TopicPartition, directory: str) -> None:
        """Create the next log or future log of a replica in `directory`, unless it already has one there."""

    def has_offline_directories(self) -> bool:
        """Whether any configured directory has failed."""

    def directory_id(self, directory: str) -> Uuid | None:
        """The id of a directory, as in its meta.properties; None if it is offline."""

    def handle_log_dir_failure(self, directory: str) -> Uuid:
        """Take a directory offline, unless it is: its logs are inaccessible until the broker restarts.

        Returns its id, UNASSIGNED if the id could not be read.
        """

    def delete_logs(
        self, partitions: Iterable[TopicPartition], on_error: Callable[[TopicPartition, Exception], None]
    ) -> None:
        """Delete the logs and future logs of replicas; failures go to `on_error` and the others are deleted."""

    def delete_future_log(self, topic_partition: TopicPartition) -> None:
        """Delete the future log of a replica."""

    def replace_current_with_future(self, topic_partition: TopicPartition) -> None:
        """Replace the log of a replica by its future log, and delete the old log."""

    def checkpointed_high_watermark(self, directory: str, topic_partition: TopicPartition) -> int | None:
        """The high watermark in a directory's replication-offset-checkpoint, None without an entry."""

    def write_high_watermarks(self, directory: str, high_watermarks: dict[TopicPartition, int]) -> None:
        """Replace the checkpoint file of a directory. Raises KafkaStorageError when it can't be written."""
