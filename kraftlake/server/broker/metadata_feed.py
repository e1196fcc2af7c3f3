"""Feeds a broker's metadata loader with the committed records of the quorum."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Final

from kraftlake.kafka_files.file_names import snapshot_name
from kraftlake.kafka_files.snapshots.snapshot import read_snapshot
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.live.open_quorum import decoded
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.errors import QueueFullError, sentence_of
from kraftlake.runtime.event_order import EventQueueClosedError
from kraftlake.runtime.log import get_logger

_WAIT_MS: Final = 500
_BACKOFF: Final = Backoff(base=0.1, cap=5.0)
_QUEUE_FULL_SECONDS: Final = 0.05


class MetadataFeed:
    """Observes the quorum in a thread, from `start` to `close`: its log from the beginning, or its newest snapshot.

    An unreachable quorum is retried without a time limit. `fail` gets any other error as a sentence, such as the loss
    of committed records, and the thread ends. `abort` is passed to the observer's connections. Source: KIP-595
    (observers).
    """

    def __init__(self, observer: QuorumObserver, fail: Callable[[str], object], abort: Abort) -> None:
        self._observer = observer
        self._fail = fail
        self._abort = abort
        self._observed = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
        self._loader: MetadataLoader | None = None
        self._closing = Event()
        self._thread = Thread(target=self._run, name="metadata-feed", daemon=True)
        self._log = get_logger(__name__)

    def high_watermark(self) -> int | None:
        """The offset below which all records are committed; None until a leader has sent it."""
        offset = self._observed.high_watermark
        return offset if offset >= 0 else None

    @property
    def controller(self) -> Address | None:
        """The address of the active controller; None while unknown."""
        return self._observer.leader.address

    def start(self, loader: MetadataLoader) -> None:
        """Begin to feed the loader with committed records."""
        self._loader = loader
        self._thread.start()

    def close(self) -> None:
        """End the feed, including a pending wait for a controller."""
        self._closing.set()
        self._abort.set()
        if self._thread.is_alive():
            self._thread.join()
        self._observer.close()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                self._step()
                failures = 0
            except NodeError as fault:
                failures += 1
                if failures & (failures - 1) == 0 and not self._closing.is_set():  # ever more rarely
                    self._log.warning("quorum_not_reached", failures=failures, cause=str(fault))
                self._closing.wait(_BACKOFF.pause(failures, 0.5))
            except EventQueueClosedError:
                return
            except Exception as fault:  # without this thread the broker would go on with old metadata
                self._fail(f"the metadata log can't be followed: {sentence_of(fault).rstrip('.')}")
                return

    def _step(self) -> None:
        assert self._loader is not None, "it was started"
        try:
            batches = decoded(self._observer.fetch(self._observed, wait_ms=_WAIT_MS))
        except SnapshotNeededError as answer:
            self._load_snapshot(self._loader, answer.snapshot)
            return
        while batches and not self._closing.is_set():
            try:
                self._loader.handle_commit(batches)
                return
            except QueueFullError:
                self._closing.wait(_QUEUE_FULL_SECONDS)

    def _load_snapshot(self, loader: MetadataLoader, id_: OffsetAndEpoch) -> None:
        with tempfile.TemporaryDirectory(prefix="kraftlake-") as folder:
            path = Path(folder) / snapshot_name(id_.offset, id_.epoch)
            with path.open("wb") as file:
                self._observer.fetch_snapshot(id_, file.write)
            self._log.info("snapshot_fetched", offset=id_.offset, epoch=id_.epoch, bytes=path.stat().st_size)
            loader.handle_load_snapshot(read_snapshot(DiskFile.at(path))).result()
        high_watermark = self._observed.high_watermark
        self._observed = ObservedLog(id_)
        self._observed.high_watermark = high_watermark
