"""Opens the log of a replica, and repairs it after a crash.

Source: org.apache.kafka.storage.internals.log.LogLoader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final, TypeVar

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.node.partition_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    parse_leader_epochs,
    parse_topic_id,
)
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import (
    CorruptRecordError,
    UnexpectedAppendOffsetError,
    UnsupportedForMessageFormatError,
)
from kraftlake.replica_manager.logs.disk.disk_log import CLEANED, DELETED, SWAP, DiskPartitionLog
from kraftlake.replica_manager.logs.disk.files import Files
from kraftlake.replica_manager.logs.disk.log_segment import LOG, LogSegment, batches_in
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.partition_folder import folder_name
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.whole_file import PART

_log = get_logger(__name__)
T = TypeVar("T")

_SEGMENT_FILE: Final = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex)")


@attrs.frozen(kw_only=True)
class StoredState:
    """The state of a log according to its directory's checkpoints.

    `clean` means an orderly shutdown of the broker, after which nothing needs recovery; otherwise all data from
    `recovery_point` on is checked.
    """

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0


def load_log(
    files: Files,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    clock: Clock,
    *,
    folder: str | None = None,
    topic_id: Uuid | None = None,
    stored: StoredState = StoredState(),
    random: Random | None = None,
) -> DiskPartitionLog:
    """Open the log of a replica in a `directory`, created if missing; `folder` is `foo-0` by default.

    After a crash every batch from the recovery point on is checked, the log is truncated at the first incomplete one,
    and indexes, leader epochs and producers' states are rebuilt from the batches. Raises InconsistentTopicIdError if
    partition.metadata names another topic, CorruptDataError for a text file with which Kafka does not start,
    UnsupportedForMessageFormatError for a log that begins with records of format 0 or 1, or in which recovery finds
    some.
    """
    path = f"{directory}/{folder or folder_name(topic_partition)}"
    files.make_folder(path)
    _finish_exchanges(files, path)
    log = DiskPartitionLog(
        topic_partition,
        _stored_topic_id(files, path),
        directory,
        config,
        folder=path,
        files=files,
        clock=clock,
        random=random or Random(),  # noqa: S311 - jitter
    )
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    log.load_epochs(_stored_epochs(files, path))
    log.log_start_offset = stored.log_start_offset
    _open_segments(log)
    oldest = next((segment for segment in log.segments if segment.size), None)
    if oldest is not None:
        with _damage_named(oldest):
            oldest.check_format()
    if log.segments and stored.clean:  # else the indexes are made again
        log.active.drop_stale_entries()
    first_unflushed = len(log.segments) if stored.clean else log.segment_at(stored.recovery_point)
    for at, segment in enumerate(log.segments):
        if at >= first_unflushed:
            if _recover(log, segment, cut=True):
                log.remove_after(segment)
                break
        elif not _is_sound(log, segment):
            _recover(log, segment, cut=False)
            segment.sync()
    _settle(log, stored)
    return log


def _is_sound(log: DiskPartitionLog, segment: LogSegment) -> bool:
    """Whether a segment that was durable needs no recovery; the last one ends with a whole batch, too."""
    with _damage_named(segment):
        return segment.is_sound and (segment is not log.active or segment.ends_whole)


def _recover(log: DiskPartitionLog, segment: LogSegment, *, cut: bool) -> bool:
    """Rebuild a segment's indexes, and the log's state, from its batches; returns whether the segment was truncated."""
    size = segment.size
    log.reload_producers(segment.base_offset)
    end = segment.base_offset
    with _damage_named(segment):
        for run in segment.recover(log.config.index_interval_bytes, cut=cut):
            log.replay(run, segment)
            end = run.last_offset + 1
    log.note_producers(end)
    if segment.size < size:
        _log.warning("log_is_cut", file=segment.path(LOG), bytes=size - segment.size, offset=end)
    return segment.size < size


def _settle(log: DiskPartitionLog, stored: StoredState) -> None:
    """Set the log's offsets from its segments, and adapt epochs and producers to them."""
    if not log.segments:
        log.begin_segment(stored.log_start_offset)
    with _damage_named(log.active):
        end = log.active.next_offset()
        log.active.find_largest_timestamp()
    if end < stored.log_start_offset:
        _log.warning("log_ends_before_its_start", folder=log.folder, end=end, start=stored.log_start_offset)
        log.truncate_fully_and_start_at(stored.log_start_offset)
        end = stored.log_start_offset
    log.log_end_offset = end
    log.high_watermark = log.log_start_offset = max(stored.log_start_offset, log.segments[0].base_offset)
    log.recovery_point = end if stored.clean else min(stored.recovery_point, end)
    log.fit_epochs()
    log.snapshots.keep([segment.base_offset for segment in log.segments])
    log.reload_producers(end)
    if not stored.clean:
        log.make_durable()  # else a power cut may bring back what was removed when the process was killed


@contextmanager
def _damage_named(segment: LogSegment) -> Iterator[None]:
    try:
        yield
    except UnsupportedForMessageFormatError as error:
        raise UnsupportedForMessageFormatError(f"{segment.path(LOG)} is too old: {error}") from None
    except (CorruptRecordError, UnexpectedAppendOffsetError) as error:
        raise CorruptDataError(
            f"{segment.path(LOG)} is damaged in what was durable: {error} Restore the file, or delete the partition's "
            f"folder so that it is copied from its leader again."
        ) from None


def _finish_exchanges(files: Files, folder: str) -> None:
    """Delete files marked for deletion and incomplete files, and finish or undo an exchange of segments."""
    names = files.names(folder)
    cleaned = [name for name in names if name.endswith(CLEANED)]
    first_cleaned = min((name[:20] for name in cleaned), default="~")
    for name in names:
        is_torn_swap = name.endswith(SWAP) and name[:20] >= first_cleaned
        if name.endswith((DELETED, PART)) or name in cleaned or is_torn_swap:
            files.delete(f"{folder}/{name}")
    swaps = [name for name in files.names(folder) if name.endswith(SWAP)]
    logs = sorted(name[:20] for name in swaps if name.endswith(LOG + SWAP))
    if logs:
        end = _end_of_swap(files, folder, logs[-1])
        for name in files.names(folder):
            if name not in swaps and _SEGMENT_FILE.fullmatch(name) and int(logs[0]) <= int(name[:20]) < end:
                files.delete(f"{folder}/{name}")
    for name in swaps:
        files.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP)}")


def _end_of_swap(files: Files, folder: str, base: str) -> int:
    file = files.open(f"{folder}/{base}{LOG}{SWAP}")
    try:
        return max((batch.last_offset + 1 for _, batch in batches_in(file)), default=int(base))
    finally:
        file.close()


def _stored_topic_id(files: Files, folder: str) -> Uuid | None:
    path = f"{folder}/{PARTITION_METADATA}"
    return _parsed(files, path, parse_topic_id) if files.exists(path) else None


def _stored_epochs(files: Files, folder: str) -> tuple[tuple[int, int], ...]:
    path = f"{folder}/{LEADER_EPOCHS}"
    return _parsed(files, path, parse_leader_epochs) if files.exists(path) else ()


def _parsed(files: Files, path: str, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(files.read(path))
    except CorruptDataError as error:
        raise CorruptDataError(f"{path} {error}") from None


def _open_segments(log: DiskPartitionLog) -> None:
    """Open the existing segments; indexes without a log are deleted."""
    found = [name for name in map(_SEGMENT_FILE.fullmatch, log.files.names(log.folder)) if name is not None]
    logs = sorted(int(name[1]) for name in found if name[2] == LOG)
    for name in found:
        if int(name[1]) not in logs:
            log.files.delete(f"{log.folder}/{name[0]}")
    for base in logs:
        log.begin_segment(base)
