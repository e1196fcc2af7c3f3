"""The logs of a broker in its log directories, in Kafka's layout."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from random import Random
from threading import RLock

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.directory_id import UNASSIGNED
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.files import DiskFiles, Files
from kraftlake.replica_manager.logs.disk.guarded_files import GuardedFiles
from kraftlake.replica_manager.logs.disk.log_directory import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LogDirectory,
)
from kraftlake.replica_manager.logs.disk.log_loader import StoredState, load_log
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.logs.partition_folder import (
    DELETE,
    FUTURE,
    STRAY,
    PartitionFolder,
    folder_name,
    marked_name,
)
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


@attrs.define(eq=False, repr=False)
class DiskLogManager(LogManager[DiskPartitionLog]):
    """A `LogManager` of directories on a disk, which `open_log_manager` opens.

    The manager has no thread: the broker's driver calls `flush_logs`, `checkpoint`, `clean_logs` and `delete_files`
    periodically. `on_failure` gets the path of a directory that has failed, which is offline from then on. The callback
    runs with the locks of the failed call: another thread has to call `ReplicaManager.handle_log_dir_failure`.
    """

    _opened: dict[str, LogDirectory] = attrs.field(factory=dict, init=False)
    _clock: Clock = attrs.field(kw_only=True)
    _random: Random = attrs.field(kw_only=True)
    stray_folders: list[str] = attrs.field(factory=list, init=False)
    """The stray folders found by `startup`, now or earlier. Strays are renamed, and never deleted."""
    _doomed: list[tuple[int, str, str]] = attrs.field(factory=list, init=False)
    """Folders to delete: time of deletion (epoch ms), directory and folder."""
    _cleaned: dict[str, dict[TopicPartition, int]] = attrs.field(factory=dict, init=False)
    """The ends of the last cleaning of logs, as in each directory's checkpoint."""
    _checkpointing: RLock = attrs.field(factory=RLock, init=False)
    """Held while a checkpoint is built and written, by any thread: an older checkpoint must not replace a newer one."""
    guard: Callable[[TopicPartition], AbstractContextManager[object]] = attrs.field(
        default=lambda _: nullcontext(), init=False
    )
    """Blocks other threads from a replica's logs during their maintenance."""

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of all directories' last orderly shutdown; −1 without a common one.

        Source: kafka.log.LogManager.readBrokerEpochFromCleanShutdownFiles (KIP-966).
        """
        epochs = {directory.broker_epoch for directory in self._opened.values()}
        return epochs.pop() if len(epochs) == 1 and not self.offline else -1

    def add(self, directory: LogDirectory) -> None:
        """Add an opened directory."""
        self.directories[directory.path] = directory.directory_id
        self._opened[directory.path] = directory

    def startup(self, topics: Collection[str], is_stray: Callable[[Uuid | None, int], bool]) -> None:  # noqa: ARG002
        """Load all logs; logs of partitions that this broker should not have are set aside as strays.

        `is_stray` decides by topic id and partition number. Raises CorruptDataError if a replica has a log in two
        directories, and as `load_log`.
        """
        self._in_each_directory(lambda directory: self._load_all(directory, is_stray))

    def _load_all(self, directory: LogDirectory, is_stray: Callable[[Uuid | None, int], bool]) -> None:
        directory.begin_use()
        recovery_points, starts = directory.offsets(RECOVERY_POINTS), directory.offsets(LOG_STARTS)
        for folder in directory.partitions():
            name = folder.topic_partition
            if folder.mark == DELETE:
                directory.files.delete_folder(f"{directory.path}/{folder.name}")
            elif folder.mark == STRAY:
                self.stray_folders.append(f"{directory.path}/{folder.name}")
            else:
                stored = StoredState(
                    clean=directory.was_clean,
                    recovery_point=recovery_points.get(name, 0),
                    log_start_offset=starts.get(name, 0),
                )
                self._load(directory, folder, stored, is_stray)
        directory.files.sync_folder(directory.path)  # a killed broker may have left folders that are not durable
        directory.is_loaded = True
        self._checkpoints[directory.path] = directory.offsets(HIGH_WATERMARKS)
        self._cleaned[directory.path] = directory.offsets(CLEANED_TO)
        known = self._checkpoints[directory.path].keys() | self._cleaned[directory.path].keys()
        self._forget(directory, known - self._logs.keys())

    def _in_each_directory(self, work: Callable[[LogDirectory], None]) -> None:
        """Run a function in each online directory; a directory that fails becomes offline and is skipped."""
        for directory in list(self._opened.values()):
            try:
                work(directory)
            except KafkaStorageError as error:
                _log.error("log_directory_failed", directory=directory.path, error=str(error))

    def _load(
        self,
        directory: LogDirectory,
        folder: PartitionFolder,
        stored: StoredState,
        is_stray: Callable[[Uuid | None, int], bool],
    ) -> None:
        name = folder.topic_partition
        log = self._open(directory, folder.name, name, None, stored)
        if is_stray(log.topic_id, name.partition):
            log.close_files()
            self._rename(log, STRAY)
            self.stray_folders.append(log.folder)
            _log.warning("stray_log", folder=log.folder, topic_id=str(log.topic_id))
            return
        logs = self._future_logs if folder.mark == FUTURE else self._logs
        if name in logs:
            raise CorruptDataError(
                f"{log.folder} and {logs[name].folder} are logs of one replica: a move between directories was broken "
                f"off, or one was made while the directory of the other was offline. Remove the one in the directory "
                f"that has failed, else the one that ends earlier."
            )
        logs[name] = log

    def _open(
        self, directory: LogDirectory, folder: str, name: TopicPartition, topic_id: Uuid | None, stored: StoredState
    ) -> DiskPartitionLog:
        log = load_log(
            directory.files,
            directory.path,
            name,
            self.config_of(name.topic),
            self._clock,
            folder=folder,
            topic_id=topic_id,
            stored=stored,
            random=self._random,
        )
        log.on_lowered = lambda: self._checkpoint(directory)
        log.on_cut = lambda offset: self._lower_cleaned(directory, name, offset)
        return log

    def _make(self, name: TopicPartition, topic_id: Uuid, directory: str, *, is_future: bool) -> DiskPartitionLog:
        folder = marked_name(name, self._unique(), FUTURE) if is_future else folder_name(name)
        log = self._open(self._opened[directory], folder, name, topic_id, StoredState(clean=True))
        log.is_new_folder = True
        return log

    def _unique(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def _rename(self, log: DiskPartitionLog, mark: str) -> None:
        log.move_to(f"{log.directory}/{marked_name(log.topic_partition, self._unique(), mark)}")

    def _discard(self, log: DiskPartitionLog) -> None:
        """Rename the folder, and delete it after file.delete.delay.ms: a reader may use its files."""
        log.close_files()
        self._rename(log, DELETE)
        due = self._clock.milliseconds() + log.config.file_delete_delay_ms
        self._doomed.append((due, log.directory, log.folder))

    def delete_logs(
        self, partitions: Iterable[TopicPartition], on_error: Callable[[TopicPartition, Exception], None]
    ) -> None:
        """Delete the logs of replicas."""
        names = list(partitions)
        with self._checkpointing:
            self._in_each_directory(lambda directory: self._forget(directory, names))
            super().delete_logs(names, on_error)

    def _forget(self, directory: LogDirectory, names: Collection[TopicPartition]) -> None:
        """Rewrite the checkpoints without these logs: a new log of the same name must not inherit their offsets."""
        self._checkpoint(directory, without=names)
        marks = self._checkpoints.get(directory.path, {})
        if not marks.keys().isdisjoint(names):
            self.write_high_watermarks(
                directory.path, {name: mark for name, mark in marks.items() if name not in names}
            )
        self._forget_cleaned(directory, names)

    def delete_future_log(self, topic_partition: TopicPartition) -> None:
        """Delete the future log of a replica."""
        super().delete_future_log(topic_partition)
        self.checkpoint()  # the replica's next log in the directory must not be taken for as durable as this one

    def _promote(self, name: TopicPartition) -> None:
        left = self._logs.get(name)
        cleaned_to = None if left is None else self.cleaned_to(left)
        super()._promote(name)
        if cleaned_to is not None and left is not None:
            self.note_cleaned(self._logs[name], cleaned_to)
            if left.directory in self._opened:
                self._forget_cleaned(self._opened[left.directory], [name])
        self.checkpoint()  # the same for the directory that the replica has left

    def _make_current(self, future: DiskPartitionLog) -> None:
        future.flush()  # what is durable of the log stays so
        directory = self._opened.get(future.directory)
        if directory is not None:  # else it fails below
            self._checkpoint(directory)  # while the log is there, which has the start too
        future.move_to(f"{future.directory}/{folder_name(future.topic_partition)}")

    def handle_log_dir_failure(self, directory: str) -> Uuid:
        """Take a directory offline; nothing more is written to it."""
        self._opened.pop(directory, None)
        self._cleaned.pop(directory, None)
        return super().handle_log_dir_failure(directory)

    def write_high_watermarks(self, directory: str, high_watermarks: dict[TopicPartition, int]) -> None:
        """Replace the checkpoint of a directory, durably."""
        super().write_high_watermarks(directory, high_watermarks)
        self._opened[directory].write_offsets(HIGH_WATERMARKS, high_watermarks)

    def cleaned_to(self, log: DiskPartitionLog) -> int | None:
        """The end of a log's last cleaning, None for a log that was not cleaned."""
        return self._cleaned.get(log.directory, {}).get(log.topic_partition)

    def note_cleaned(self, log: DiskPartitionLog, offset: int) -> None:
        """Write the end of a log's last cleaning to its directory's checkpoint, durably."""
        with self._checkpointing:
            held = self._cleaned.get(log.directory, {})
            self._write_cleaned(self._opened[log.directory], held | {log.topic_partition: offset})

    def _lower_cleaned(self, directory: LogDirectory, name: TopicPartition, offset: int) -> None:
        """Lower the end of the last cleaning before records below it are removed: others may follow in their place."""
        with self._checkpointing:
            held = self._cleaned.get(directory.path, {})
            if held.get(name, 0) > offset:
                self._write_cleaned(directory, held | {name: offset})

    def _forget_cleaned(self, directory: LogDirectory, names: Collection[TopicPartition]) -> None:
        with self._checkpointing:
            held = self._cleaned.get(directory.path, {})
            if not held.keys().isdisjoint(names):
                self._write_cleaned(directory, {name: offset for name, offset in held.items() if name not in names})

    def _write_cleaned(self, directory: LogDirectory, cleaned: dict[TopicPartition, int]) -> None:
        directory.write_offsets(CLEANED_TO, cleaned)
        self._cleaned[directory.path] = cleaned

    def flush_logs(self) -> None:
        """Make the logs durable whose flush.ms have passed."""
        self._with_logs(DiskPartitionLog.flush_if_due)

    def _with_logs(self, work: Callable[[DiskPartitionLog], object]) -> None:
        def of_directory(directory: LogDirectory) -> None:
            for log in self._logs_in(directory):
                with self.guard(log.topic_partition):
                    if self.has(log):
                        work(log)

        self._in_each_directory(of_directory)

    def checkpoint(self) -> None:
        """Write the checkpoints of recovery points and start offsets, so that a restart checks only later records.

        Kafka does so once a minute. Directories whose logs are not all loaded yet keep their checkpoints.
        """
        self._in_each_directory(self._checkpoint)

    def _checkpoint(self, directory: LogDirectory, without: Collection[TopicPartition] = ()) -> None:
        if not directory.is_loaded:
            return
        with self._checkpointing:
            held = (log for log in self._logs_in(directory) if log.topic_partition not in without)
            logs = {log.topic_partition: log for log in held}  # no replica has its log and a future log in one place
            directory.write_offsets(RECOVERY_POINTS, {name: log.recovery_point for name, log in logs.items()})
            starts = {name: log.log_start_offset for name, log in logs.items() if not log.starts_with_segment}
            directory.write_offsets(LOG_STARTS, starts)

    def clean_logs(self) -> None:
        """Delete segments by retention, and files that are due for deletion. Kafka does so every 5 minutes."""
        self._with_logs(DiskPartitionLog.delete_old_segments)
        self.delete_files()

    def delete_files(self) -> None:
        """Delete files and folders that are due for deletion."""
        self._with_logs(DiskPartitionLog.delete_files)
        now = self._clock.milliseconds()

        def delete_folders(directory: LogDirectory) -> None:
            for doomed in list(self._doomed):
                due, path, folder = doomed
                if due <= now and path == directory.path:
                    directory.files.delete_folder(folder)
                    self._doomed.remove(doomed)

        self._in_each_directory(delete_folders)

    def has(self, log: DiskPartitionLog) -> bool:
        """Whether a log still exists, neither deleted nor replaced."""
        name = log.topic_partition
        return log in (self._logs.get(name), self._future_logs.get(name)) and log.directory in self._opened

    def _logs_in(self, directory: LogDirectory) -> list[DiskPartitionLog]:
        every = (*self._logs.values(), *self._future_logs.values())
        return [log for log in every if log.directory == directory.path]

    def shutdown(self, broker_epoch: int) -> None:
        """Make all logs durable and close them; a directory whose logs are all durable needs no recovery.

        A directory that the last broker left so, and of which no log was loaded since, is marked with this broker's
        epoch. Kafka 4.4 leaves the earlier epoch there, and removes such a broker from all ELRs at its next start.
        """

        def close(directory: LogDirectory) -> None:
            for log in self._logs_in(directory):
                log.flush()
                log.close()
            self._checkpoint(directory)
            is_unused = directory.was_clean and not directory.is_in_use and broker_epoch >= 0
            directory.close(broker_epoch=broker_epoch if directory.is_loaded or is_unused else None)

        self._in_each_directory(close)

    def abandon(self) -> None:
        """Close all files without writing, as if the process were killed."""

        def close(directory: LogDirectory) -> None:
            for log in self._logs_in(directory):
                log.close_files()
            directory.close(broker_epoch=None)

        self._in_each_directory(close)


def open_log_manager(
    directories: Collection[str],
    *,
    cluster_id: str,
    node_id: int,
    clock: Clock,
    defaults: LogConfig,
    topic_configs: Callable[[str], Mapping[str, str]],
    on_failure: Callable[[str, OSError], None],
    files: Files | None = None,
    random: Random | None = None,
) -> DiskLogManager:
    """Open log directories; new ones are created with an identity. `startup` loads the logs.

    An unusable directory is offline from the start. Raises UsageError for a directory of another cluster or node, and
    for one locked by a running node, KafkaStorageError if no directory is usable.
    """
    random = random or Random()  # noqa: S311 - jitter and names
    manager = DiskLogManager({}, defaults, topic_configs, clock=clock, random=random)

    def failed(directory: str, error: OSError) -> None:
        if directory not in manager.offline:
            manager.offline[directory] = UNASSIGNED  # until its id is known
            manager.handle_log_dir_failure(directory)
            on_failure(directory, error)

    problem: KafkaStorageError | None = None
    files = files or DiskFiles()
    for path in directories:
        guarded = GuardedFiles(files, path, failed)
        try:
            directory = LogDirectory.open(path, guarded, cluster_id=cluster_id, node_id=node_id, new_id=Uuid.random())
        except KafkaStorageError as error:
            problem = error
            continue
        manager.add(directory)
    if problem is not None and not manager.directories:
        raise problem
    return manager
