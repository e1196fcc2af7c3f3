"""The metadata log as served to fetches: its batches and snapshots in Kafka's format, from the lake.

Source: org.apache.kafka.raft.internals (ReplicatedLog.validateOffsetAndEpoch), KIP-595, KIP-630.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Final, TypeVar

import attrs
import numpy as np

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.tail import EACH_TIME, TailCursor
from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import CorruptDataError, OffsetError
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue
from kraftlake.runtime.log import get_logger

T = TypeVar("T")
_LARGEST: Final = 8 * 1024 * 1024
"""The maximum size of an answer in bytes, except for a single batch (KafkaRaftClient.MAX_FETCH_SIZE_BYTES)."""
_NEWEST_BYTES: Final = 1024 * 1024
"""The size of the batches that are kept for the followers, which read at the end of the log."""


@attrs.frozen(kw_only=True)
class LogRead:
    """The result of a fetch: records, the offset and epoch at which the logs diverge, or the snapshot to load instead.

    `epoch` is the last one of the log, or −1.
    """

    start_offset: int
    end_offset: int
    epoch: int
    records: bytes = attrs.field(default=b"", repr=False)
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the fetch has no result yet."""
        return not self.records and self.diverging is None and self.snapshot is None


class ServedLog:
    """Reads the lake on a thread of its own, from the first `read` or `snapshot` until `close`.

    All records in a lake's log are committed, so its end is the high watermark.
    """

    def __init__(self, path: str | Location, clock: Clock) -> None:
        self._opened = MetadataLog.open(path)
        self.start_offset = self._opened.start_offset
        """The first offset of the lake, if known."""
        self.queue = KafkaEventQueue(clock, "served-log")
        self._epochs: list[OffsetAndEpoch] = []
        """The epochs of the log, each with its first offset."""
        self._known_to = self.start_offset
        self._cursor: TailCursor | None = None
        self._newest: deque[tuple[int, int, bytes]] = deque()
        """The newest batches, encoded, without a gap, each after its first and its last offset."""
        self._newest_bytes = 0
        self._snapshot: tuple[OffsetAndEpoch, bytes] | None = None

    def read(self, at: OffsetAndEpoch, *, max_bytes: int) -> Future[LogRead]:
        """Read the log after `at`, the end of a follower's log: at least one batch, if any exists.

        The future has LakeError, or EventQueueClosedError after `close`.
        """
        return self._on_thread(lambda: self._read(at, max_bytes))

    def snapshot(self, id_: OffsetAndEpoch) -> Future[bytes | None]:
        """The file of a snapshot in Kafka's format; None if the lake does not have it. Raises as `read`."""
        return self._on_thread(lambda: self._snapshot_file(id_))

    def close(self) -> None:
        """End the thread."""
        self.queue.close()

    def _on_thread(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self.queue.append(FunctionEvent(lambda: future.set_result(work()), future.set_exception))
        return future

    def _log(self) -> MetadataLog:
        """Return the log at its newest version, with its epochs."""
        log, cursor = self._opened, self._cursor
        self._cursor = None  # after a failed read another one begins at the end of the log
        try:
            while cursor is not None and (batches := cursor.step()):
                for batch in batches:
                    self._take(batch)
        except OffsetError:  # the log was trimmed past the cursor
            cursor = None
        if cursor is None:
            self._newest.clear()
            self._newest_bytes = 0
            log.refresh()
            self._note_epochs(log)
            cursor = TailCursor(log, log.end_offset, EACH_TIME)
        self._cursor, self.start_offset = cursor, log.start_offset
        return log

    def _take(self, batch: RecordBatch) -> None:
        """Note the next batch of the log."""
        if not self._epochs or batch.epoch != self._epochs[-1].epoch:
            self._epochs.append(OffsetAndEpoch(offset=batch.base_offset, epoch=batch.epoch))
        self._known_to = batch.last_offset + 1
        encoded = encode_batch(batch)
        self._newest.append((batch.base_offset, batch.last_offset, encoded))
        self._newest_bytes += len(encoded)
        while self._newest_bytes > _NEWEST_BYTES:
            self._newest_bytes -= len(self._newest.popleft()[2])

    def _note_epochs(self, log: MetadataLog) -> None:
        """Note the epochs of what was not read as batches."""
        if log.end_offset > self._known_to and (not self._epochs or log.epoch != self._epochs[-1].epoch):
            rows = log.rows(self._known_to, log.end_offset - 1, ["offset", "epoch"])
            offsets, epochs = (rows.column(name).to_numpy() for name in ("offset", "epoch"))
            before = self._epochs[-1].epoch if self._epochs else -1
            for row in np.flatnonzero(np.diff(epochs, prepend=before)):
                self._epochs.append(OffsetAndEpoch(offset=int(offsets[row]), epoch=int(epochs[row])))
        self._known_to = log.end_offset

    def _encoded_from(self, log: MetadataLog, offset: int) -> Iterator[bytes]:
        """The batches of the log from the one on that holds an offset."""
        if self._newest and self._newest[0][0] <= offset:
            return (encoded for _, last, encoded in self._newest if last >= offset)
        return map(encode_batch, log.batches(offset))

    def _read(self, at: OffsetAndEpoch, max_bytes: int) -> LogRead:
        log = self._log()
        start, end, epoch = log.start_offset, log.end_offset, log.epoch
        snapshots = [one for one in log.snapshots() if one.end_offset >= start > 0] if at.offset < start else []
        for newest in reversed(snapshots):
            if self._encoded(newest) is not None:
                found = OffsetAndEpoch(offset=newest.end_offset, epoch=newest.epoch)
                return LogRead(start_offset=start, end_offset=end, epoch=epoch, snapshot=found)
        common = self._end_of_epoch(at.epoch, end)
        if at.offset > 0 and (common.epoch != at.epoch or common.offset < at.offset):
            return LogRead(start_offset=start, end_offset=end, epoch=epoch, diverging=common)
        parts: list[bytes] = []
        size = 0
        if at.offset < end:
            for encoded in self._encoded_from(log, at.offset):
                if parts and size + len(encoded) > min(max_bytes, _LARGEST):
                    break
                parts.append(encoded)
                size += len(encoded)
        return LogRead(start_offset=start, end_offset=end, epoch=epoch, records=b"".join(parts))

    def _end_of_epoch(self, epoch: int, end_offset: int) -> OffsetAndEpoch:
        """Return the largest epoch of the log that is not above the given one, and its end."""
        index = bisect_right(self._epochs, epoch, key=lambda one: one.epoch)
        if index == 0:
            return OffsetAndEpoch(offset=0, epoch=0)
        end = self._epochs[index].offset if index < len(self._epochs) else end_offset
        return OffsetAndEpoch(offset=end, epoch=self._epochs[index - 1].epoch)

    def _snapshot_file(self, id_: OffsetAndEpoch) -> bytes | None:
        if self._snapshot is not None and self._snapshot[0] == id_:
            return self._snapshot[1]
        for snapshot in self._log().snapshots():
            if (snapshot.end_offset, snapshot.epoch) == (id_.offset, id_.epoch) and not snapshot.bootstrap:
                return self._encoded(snapshot)
        return None

    def _encoded(self, snapshot: LakeSnapshot) -> bytes | None:
        """Return the file of a snapshot, None for a damaged one.

        The file is cached, since a client that learns of a snapshot requests it next.
        """
        id_ = OffsetAndEpoch(offset=snapshot.end_offset, epoch=snapshot.epoch)
        if self._snapshot is None or self._snapshot[0] != id_:
            try:
                self._snapshot = (id_, b"".join(encode_batch(batch) for batch in snapshot.batches()))
            except CorruptDataError as fault:
                get_logger(__name__).warning("snapshot_skipped", snapshot=snapshot.name, reason=str(fault))
                return None
        return self._snapshot[1]
