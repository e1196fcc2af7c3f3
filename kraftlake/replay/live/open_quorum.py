"""Opens a live quorum as a source: copies everything that it has committed at this moment, as Kafka's own files."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory, open_directory
from kraftlake.kafka_files.file_names import METADATA_DIRECTORY, segment_name, snapshot_name
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import connector_of
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import DivergedLogError, ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotGoneError, SnapshotNeededError
from kraftlake.protocol.observer.raw_batch import RawBatch
from kraftlake.records.batch import RecordBatch, read_batches
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.replay.reading.progress import Progress, no_progress
from kraftlake.runtime.arguments import path_text, text
from kraftlake.runtime.log import get_logger

_WAITS_AT_MOST = 20.0
"""The seconds that a request waits for a quorum without a leader; an election takes a few."""


def observer_of(
    addresses: str,
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    warn: Callable[[str], None] | None = None,
) -> QuorumObserver:
    """An observer of the quorum whose controllers have these addresses; it connects on first use.

    `warn` gets a sentence on each unsafe setting in the properties file. Raises UsageError for addresses or a file that
    can't be read.
    """
    addresses = text(addresses, "the addresses of a quorum")
    path = None if command_config is None else path_text(command_config)
    connect = connector_of(path, warn=warn or get_logger(__name__).warning)
    return QuorumObserver(parse_addresses(addresses), connect=connect, cluster_id=cluster_id)


def open_quorum(
    addresses: str,
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> MetadataDirectory:
    """The committed log of a quorum, copied into a folder that is removed when the process ends.

    Raises as `observer_of`, and NodeError where the quorum does not answer, OtherClusterError for a cluster other than
    `cluster_id`.
    """
    folder = tempfile.mkdtemp(prefix="kraftlake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with observer_of(addresses, cluster_id=cluster_id, command_config=command_config, warn=warn) as observer:
        patience = RetryPolicy(wait=time.sleep, limit=_WAITS_AT_MOST)
        return mirror_quorum(
            observer, Path(folder), name=addresses, patience=patience, progress=progress or no_progress
        )


_ATTEMPTS: Final = 8
_EPOCHS_TRIED: Final = 64
"""The number of epochs that are tried to find that of the oldest snapshot, which no answer contains."""


class _BeginningGoneError(Exception):
    """A snapshot at which the copy was to begin no longer exists."""


def mirror_quorum(
    observer: QuorumObserver, folder: Path, *, name: str, patience: RetryPolicy, progress: Progress = no_progress
) -> MetadataDirectory:
    """Write everything that the quorum has committed to files in `folder`, and open them; `name` is for messages.

    The metadata directory there holds one segment, and the snapshots without which its log has no images. Raises
    NodeError where the quorum does not answer for longer than `patience` allows, or repeatedly deletes files while they
    are copied.
    """
    directory = folder / METADATA_DIRECTORY
    directory.mkdir(mode=0o700)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _mirror(observer, directory, patience, progress)
            return attrs.evolve(open_directory(directory), name=name, cluster_id=observer.cluster_id)
        except (SnapshotNeededError, _BeginningGoneError) as gone:
            fault = NodeError(f"{name} has deleted what was being copied: {str(gone).rstrip('.')}.")
            for file in directory.iterdir():
                file.unlink()
            if patience.pause(attempt):
                break
    raise fault


def _mirror(observer: QuorumObserver, directory: Path, patience: RetryPolicy, progress: Progress) -> None:
    beginning = patience.call(lambda: _begin(observer))
    for snapshot in beginning.snapshots:
        path = directory / snapshot_name(snapshot.offset, snapshot.epoch)
        patience.call(lambda to=path, id_=snapshot: _fetch_snapshot(observer, id_, to))  # type: ignore[misc]
    _write_log(observer, beginning, directory, patience, progress)


def _fetch_snapshot(observer: QuorumObserver, id_: OffsetAndEpoch, path: Path) -> None:
    try:
        with path.open("wb") as file:
            observer.fetch_snapshot(id_, file.write)
    except SnapshotGoneError as gone:  # a second question for it would get the same answer
        raise _BeginningGoneError(str(gone)) from None


def _write_log(
    observer: QuorumObserver, beginning: _Beginning, directory: Path, patience: RetryPolicy, progress: Progress
) -> None:
    log, batches = beginning.log, beginning.batches
    segment: BinaryIO | None = None
    end = -1
    try:
        while True:
            if batches and segment is None:
                segment = (directory / segment_name(batches[0].base_offset)).open("wb")
            if segment is not None:
                segment.writelines(batch.data for batch in batches)
            end = log.high_watermark if end < 0 else end
            if 0 <= end <= log.next_offset:
                return
            if end >= 0:
                progress("fetching", log.next_offset, end)
            batches = patience.call(lambda: fetch_log(observer, log))
    finally:
        if segment is not None:
            segment.close()


@attrs.frozen(kw_only=True)
class _Beginning:
    """The quorum's log from its first offset on; `batches` came already, `snapshots` are still to be fetched."""

    log: ObservedLog
    batches: list[RawBatch]
    snapshots: tuple[OffsetAndEpoch, ...] = ()


def _begin(observer: QuorumObserver) -> _Beginning:
    """Find the first offset that the leader still has.

    A leader with a snapshot answers a Fetch at offset 0 with its newest one, also where its log starts at 0; there the
    first batch is asked for by its second offset, so a first batch of one record is lost. A log that starts later does
    so where its oldest snapshot ends; that is only given to who knows its epoch. Raises as `QuorumObserver.fetch`.
    """
    log = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
    try:
        return _Beginning(log=log, batches=observer.fetch(log, wait_ms=0))
    except SnapshotNeededError as answer:
        newest, start = answer.snapshot, answer.log_start_offset
    if start <= 0:
        return _from(observer, OffsetAndEpoch(offset=1, epoch=-1), (newest,))
    for epoch in range(newest.epoch, max(newest.epoch - _EPOCHS_TRIED, -1), -1):
        oldest = OffsetAndEpoch(offset=start, epoch=epoch)
        try:
            return _from(observer, oldest, tuple(dict.fromkeys((oldest, newest))))
        except (SnapshotNeededError, DivergedLogError):
            continue
    return _from(observer, newest, (newest,))


def _from(observer: QuorumObserver, start: OffsetAndEpoch, snapshots: tuple[OffsetAndEpoch, ...]) -> _Beginning:
    log = ObservedLog(start)
    return _Beginning(log=log, batches=observer.fetch(log, wait_ms=0), snapshots=snapshots)


def fetch_log(observer: QuorumObserver, log: ObservedLog, *, wait_ms: int = 500) -> list[RawBatch]:
    """Fetch as `QuorumObserver.fetch`; SnapshotNeededError only where the leader's log has no offset to go on from.

    A leader also sends a snapshot to a caller at an earlier epoch than that of its oldest one, even where its log
    starts at offset 0: see ReplicatedLog.validateOffsetAndEpoch of Kafka.
    """
    try:
        return observer.fetch(log, wait_ms=wait_ms)
    except SnapshotNeededError as answer:
        start = answer.log_start_offset
        # A snapshot at the log's start of a later epoch than that of the record after it is of another history.
        is_other = 0 < start == log.next_offset - 1 and log.committed.epoch >= 0
        if is_other or start >= log.next_offset:
            raise
        log.pass_by(answer.snapshot)
        return observer.fetch(log, wait_ms=wait_ms)


def decoded(batches: Sequence[RawBatch]) -> list[RecordBatch]:
    """The same batches with their records. Raises CorruptDataError for what is no batch of a metadata log."""
    return [batch for raw in batches for batch in read_batches(raw.data, file="the quorum's log")]
