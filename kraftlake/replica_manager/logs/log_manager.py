"""All logs of a broker and the directories that they lie in, as the replica manager sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kraftlake.delta import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.partition_log import PartitionLog


class LogManager(Protocol):
    """A broker's logs. A *future* log is the copy that a replica is being moved to, in another directory.

    Source: org.apache.kafka.storage.internals.log.LogManager.
    """

    def get_log(self, topic_partition: TopicPartition, *, is_future: bool = False) -> PartitionLog | None:
        """The log of a replica, None where there is none."""

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        *,
        is_new: bool,
        is_future: bool,
        topic_id: Uuid,
        target_directory_id: Uuid | None,
    ) -> PartitionLog:
        """The log of a replica, made where there is none.

        In the preferred directory, else the one asked for, else where it fits best; a future one in the preferred only.

        `is_new` says that the broker knows of no earlier log, so that one may be made while other directories are
        offline. KafkaStorageError when the directory has failed.
        """

    def update_topic_config(self, topic: str, configs: Mapping[str, str]) -> None:
        """Have all logs of a topic, future ones too, heed `configs` over the broker's defaults."""

    def is_directory_online(self, directory_id: Uuid) -> bool:
        """Whether a directory with that id is there and has not failed."""

    def is_log_dir_online(self, directory: str) -> bool:
        """Whether the directory at that path has not failed; LogDirNotFoundError when there is no such directory."""

    def prefer_directory(self, topic_partition: TopicPartition, directory: str) -> None:
        """Have the next log of a replica, or its next future one, in that directory, unless it has one there."""

    def has_offline_directories(self) -> bool:
        """Whether any configured directory has failed."""

    def directory_id(self, directory: str) -> Uuid | None:
        """The id in a directory's meta.properties; None when it is offline."""

    def handle_log_dir_failure(self, directory: str) -> None:
        """Stop using a directory: its logs are gone until the broker restarts."""

    def delete_logs(
        self, partitions: Iterable[TopicPartition], on_error: Callable[[TopicPartition, Exception], None]
    ) -> None:
        """Delete the logs of replicas, future ones too; what fails is told and the others go on."""

    def delete_future_log(self, topic_partition: TopicPartition) -> None:
        """Delete the copy that a replica was being moved to."""

    def replace_current_with_future(self, topic_partition: TopicPartition) -> None:
        """The copy has caught up: it becomes the replica's log, and the old one is deleted."""

    def checkpointed_high_watermark(self, directory: str, topic_partition: TopicPartition) -> int | None:
        """What replication-offset-checkpoint of that directory says, None where it says nothing."""

    def write_high_watermarks(self, directory: str, high_watermarks: dict[TopicPartition, int]) -> None:
        """Replace the checkpoint file of a directory; KafkaStorageError when it can't be written."""
