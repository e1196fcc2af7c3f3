"""A log directory of a broker that is down: its owner, and the end of each replica's log.

Source: org.apache.kafka.storage.internals.log.LogManager, CleanShutdownFileHandler and OffsetIndex.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import attrs

from kraftlake.kafka_files.faults import unreadable
from kraftlake.kafka_files.file_names import (
    META_PROPERTIES,
    METADATA_DIRECTORY,
    partition_of,
    segment_base_offset,
)
from kraftlake.kafka_files.node.meta_properties import MAX_SIZE, read_properties
from kraftlake.kafka_files.node.partition_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    read_leader_epochs,
    read_topic_id,
)
from kraftlake.kafka_files.segments.batch_walk import Damage, walk
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, NotASourceError
from kraftlake.runtime.words import shown

LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_INDEX_ENTRY = 8


@attrs.frozen(kw_only=True)
class ReplicaLog:
    """The log of one replica as its files show it.

    `last_epoch` is the leader epoch of its last record, −1 if it never had one, and `end_offset` the offset after that
    record. `highest_epoch` is the highest leader epoch that the replica knew, with records or without.
    """

    topic_id: Uuid
    topic: str
    partition: int
    last_epoch: int
    end_offset: int
    highest_epoch: int

    @property
    def name(self) -> str:
        """The name of the partition, such as `foo-3`."""
        return f"{self.topic}-{self.partition}"

    @property
    def position(self) -> tuple[int, int]:
        """The last epoch and the end offset: logs with the same pair are the same.

        A leader epoch has one leader, and a follower has a prefix of the leader's log.
        """
        return self.last_epoch, self.end_offset

    @property
    def rank(self) -> tuple[int, int, int]:
        """The highest epoch, last epoch and end offset: the larger of two replicas' ranks has all committed records.

        A leader records its epoch before its first record, and the records committed under it may all have earlier
        epochs; a log outside the ISR may then end with a record of an epoch in between.
        """
        return self.highest_epoch, *self.position


@attrs.frozen(kw_only=True)
class BrokerDirectory:
    """One log directory of a broker.

    `clean_epoch` is the broker epoch of the broker's orderly shutdown, None without one. `metadata_log` is the folder
    of its copy of the metadata log, None if this directory has none.
    """

    path: Path
    cluster_id: str
    node_id: int
    directory_id: Uuid | None
    clean_epoch: int | None
    metadata_log: Path | None
    replicas: tuple[ReplicaLog, ...] = attrs.field(repr=False)


def read_broker_directory(path: Path) -> BrokerDirectory:
    """Read a log directory of a broker that is down.

    Raises NotASourceError if the folder is not a log directory, or is locked by a running node; CorruptDataError for a
    partition's files with which Kafka does not start.
    """
    try:
        names = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
        content = (path / META_PROPERTIES).read_bytes()[:MAX_SIZE]
    except FileNotFoundError as error:
        if path.is_dir():
            raise NotASourceError(
                f"{path} holds no {META_PROPERTIES}, so it is no log directory of a broker: name what log.dirs names"
            ) from None
        raise unreadable(str(path), error) from None
    except OSError as error:
        raise unreadable(str(path), error) from None
    properties = read_properties(content)
    if properties.cluster_id is None or properties.node_id is None:
        raise NotASourceError(f"{path / META_PROPERTIES} names no cluster.id and node.id")
    _check_not_running(path)
    return BrokerDirectory(
        path=path,
        cluster_id=properties.cluster_id,
        node_id=properties.node_id,
        directory_id=properties.directory_id,
        clean_epoch=_clean_epoch(path / CLEAN_SHUTDOWN),
        metadata_log=path / METADATA_DIRECTORY if METADATA_DIRECTORY in names else None,
        replicas=tuple(_replicas(path, names)),
    )


def _check_not_running(path: Path) -> None:
    """Check that no node runs on the directory: a running node holds an exclusive lock on this file.

    A copy of a directory has it unlocked.
    """
    with contextlib.suppress(FileNotFoundError, PermissionError), (path / LOCK).open("rb") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotASourceError(f"a node runs on {path}: stop it, its logs still change") from None
        except OSError:
            return  # a file system without locks


def _clean_epoch(file: Path) -> int | None:
    try:
        epoch = json.loads(file.read_bytes()[:MAX_SIZE]).get("brokerEpoch")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None  # as Kafka, which takes any other content for none
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None


def _replicas(path: Path, names: list[str]) -> Iterator[ReplicaLog]:
    for name in names:
        if partition_of(name) is None or not (path / name / PARTITION_METADATA).exists():
            continue  # no partition, or one whose folder was made without a record following
        try:
            yield _read_replica(path / name)
        except CorruptDataError as error:
            raise CorruptDataError(f"{shown(str(path / name))}: a file there {error}") from None


def _read_replica(folder: Path) -> ReplicaLog:
    topic, _, partition = folder.name.rpartition("-")
    epochs_file = folder / LEADER_EPOCHS
    epochs = read_leader_epochs(epochs_file) if epochs_file.exists() else ()
    last_epoch, end_offset = _log_end(folder)
    if last_epoch < 0:  # no record is left: an epoch that began below the end had some
        last_epoch = max((epoch for epoch, start in epochs if start < end_offset), default=-1)
    return ReplicaLog(
        topic_id=read_topic_id(folder / PARTITION_METADATA),
        topic=topic,
        partition=int(partition),
        last_epoch=last_epoch,
        end_offset=end_offset,
        highest_epoch=max((last_epoch, *(epoch for epoch, _ in epochs))),
    )


def _log_end(folder: Path) -> tuple[int, int]:
    """Return the leader epoch of the last whole record and the offset after it; epoch −1 without a record."""
    found = ((segment_base_offset(entry.name), entry) for entry in folder.iterdir())
    segments = sorted(((base, file) for base, file in found if base is not None), reverse=True)
    for _, file in segments:
        last = _last_batch(file)
        if last is not None:
            return last[0], max(last[1], segments[0][0])
    return -1, segments[0][0] if segments else 0


def _last_batch(file: Path) -> tuple[int, int] | None:
    """Return the leader epoch of the last whole batch with a correct CRC, and the offset after it; None without any.

    A crashed broker truncates its log there when it restarts. The index locates the end approximately; if it does not
    fit the segment, as after a crash, the segment is read from its start.
    """
    log = DiskFile.at(file)
    for start in dict.fromkeys((_last_indexed(file.with_suffix(".index")), 0)):
        last: tuple[int, int] | None = None
        for step in walk(log, start=start):
            if isinstance(step, Damage):
                break
            last = step.header.epoch, step.header.last_offset + 1
        if last is not None:
            return last
    return None


def _last_indexed(index: Path) -> int:
    """Return the position of the last batch in an offset index, 0 without one.

    The index of an active segment ends in zeros.
    """
    try:
        with index.open("rb") as stream:
            low, high = 0, index.stat().st_size // _INDEX_ENTRY

            def position(entry: int) -> int:
                stream.seek(entry * _INDEX_ENTRY + 4)
                return int.from_bytes(stream.read(4), "big")

            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if position(middle) else (low, middle)
            return position(low - 1) if low else 0
    except OSError:
        return 0
