"""A log's partitions, brokers and configs within a window, and what they amount to. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.diagnosis.availability.broker_losses import BrokerLosses
from kraftlake.diagnosis.availability.clock import WindowClock
from kraftlake.diagnosis.availability.min_isr import MinIsrHistory
from kraftlake.diagnosis.availability.partition_states import PartitionStateLog
from kraftlake.diagnosis.availability.stretches import Stretches, Trouble, find_stretches
from kraftlake.diagnosis.availability.summary import summed
from kraftlake.diagnosis.availability.timeline import NONE
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.open_reader import LogReader


class WindowLog:
    """The parts of a log that availability depends on, by metadata deltas; a position is the number of a delta."""

    def __init__(
        self, image: MetadataImage, first: int | None, begin: int | None, is_wanted: Callable[[str], bool]
    ) -> None:
        """Begin with an image; the window begins with the offset `first`, None for the image's, or at a time."""
        time = image.provenance.timestamp
        self.clock = WindowClock(begin if first is not None else None if time < 0 else time, first)
        self.skipped: list[SkippedRecord] = []
        self._image = image
        self._partitions = PartitionStateLog(image, is_wanted)
        self._brokers = BrokerLosses(image)
        self._min_isr = MinIsrHistory(image)
        self._end = 1
        """A position after all deltas; the image has the position 0."""

    def read(self, reader: LogReader, to_offset: int, *, lenient: bool = False) -> None:
        """Add the deltas after the image up to an offset. Raises as `LogReplay.read`."""
        replay = LogReplay(lenient=lenient)
        replay.begin(self._image)
        for chunk in replay.read(reader, to_offset):
            self.take(chunk)
        self.skipped = replay.skipped
        self.clock.end(replay.time)

    def take(self, chunk: DeltaChunk) -> None:
        """Add deltas that follow the earlier ones."""
        times = self.clock.take(chunk.boundaries)
        self._partitions.take(chunk.partitions, self._end, times)
        self._brokers.take(chunk.others, self._end, times)
        self._min_isr.take(chunk.others, self._end, times)
        self._end += len(times)

    def stretches(self, begin: int, end: int) -> Stretches:
        """All stretches between two times."""
        topics = np.array([self._min_isr.numbers.get(name, 0) for name, _ in self._partitions.topics], np.int64)
        window = begin, end, self._end
        timeline = self._min_isr.timeline(self._end)
        return find_stretches(self._partitions.states(), self._brokers, topics, timeline, window)

    def summary(self, by: str, begin: int, end: int) -> tuple[dict[str, Any], pa.Table]:
        """The total of all partitions between two times, and the rows by topic, partition or broker."""
        found = self.stretches(begin, end)
        (total,) = summed(found, np.zeros(len(found.keys), np.int64), 1, self._names).drop(["group"]).to_pylist()
        if by == "broker":
            return total, self._by_broker(found, begin, end)
        keys, groups = np.unique(found.keys if by == "partition" else found.keys >> 32, return_inverse=True)
        rows = summed(found, groups, len(keys), self._names)
        of_rows = keys[rows["group"].to_numpy()]
        topics = self._partitions.topics
        numbers = (of_rows >> 32 if by == "partition" else of_rows).tolist()
        columns = {
            place: pa.array([topics[one][at] for one in numbers], pa.string()) for at, place in enumerate(_TOPIC)
        }
        if by == "partition":
            columns["partition"] = pa.array((of_rows & _PARTITION).astype(np.int32))
        return total, _with_columns(rows, columns)

    def _by_broker(self, stretches: Stretches, begin: int, end: int) -> pa.Table:
        is_trouble = stretches.troubles != Trouble.EXISTS
        exists = int(stretches.lengths[~is_trouble].sum())
        stretches = stretches.take(is_trouble)
        unknown = [NONE] if (stretches.brokers < 0).any() else []
        brokers = np.array(sorted({*self._brokers.ids, *stretches.brokers.tolist(), *unknown}), np.int64)
        rows = summed(stretches, np.searchsorted(brokers, stretches.brokers), len(brokers), self._names, exists=exists)
        ids = brokers[rows["group"].to_numpy()]
        fenced, losses = self._brokers.fenced_within(self._end, begin, end)
        numbers = [self._brokers.ids.get(id_, len(self._brokers.ids)) for id_ in ids.tolist()]
        columns = {
            "broker": pa.array(ids.astype(np.int32), mask=ids < 0),
            "losses": pa.array(np.append(losses, 0)[numbers]),
            "fenced_seconds": pa.array(np.append(fenced, 0)[numbers] / 1000),
        }
        return _with_columns(rows, columns)

    def _names(self, keys: Any) -> list[str]:
        """The names of partitions: `foo-3`."""
        topics, pairs = self._partitions.topics, zip((keys >> 32).tolist(), (keys & _PARTITION).tolist(), strict=True)
        return [f"{topics[topic][0]}-{partition}" for topic, partition in pairs]


_TOPIC = ("topic", "topic_id")
_PARTITION = 0xFFFF_FFFF


def _with_columns(rows: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """The rows with columns in place of the first one, `group`."""
    rows = rows.drop(["group"])
    return pa.table({**columns, **dict(zip(rows.column_names, rows.columns, strict=True))})
