"""Rows of a log's table, dealt out to the shards of a fold by topic id. Imports numpy; knows no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake import kernels
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.spark_jobs.fold.chunks import Chunk

COLUMNS = ("offset", "api_key", "control", "payload")
"""The columns of the log that routing reads."""

_CHUNKS_AT = 16 << 20
_OF_EVERY_IMAGE = (
    FeatureLevelRecord.API_KEY,
    *range(BeginTransactionRecord.API_KEY, AbortTransactionRecord.API_KEY + 1),
)
_MASK = (1 << 64) - 1


class Router:
    """Gathers rows in offset order and gives them as chunks, one for each shard that has any, again and again.

    Shard numbers depend on topic ids and `shards` alone, so that every process deals alike. The marks of transactions
    and ClearElrRecords go to all shards; no-ops to none; records that are of no topic, marks too, to the number
    `shards`. With `topics_only` that one gets what decides whether there can be an image: records of features, in
    which a metadata.version may be that is not replayed, and the marks.
    """

    def __init__(self, shards: int, part: int, *, topics_only: bool = False) -> None:
        assert shards >= 1, "somebody folds"
        self._shards = shards
        self._part = part
        self._topics_only = topics_only
        self._held: list[pa.Table] = []
        self._bytes = 0

    def take(self, rows: pa.Table) -> Iterator[Chunk]:
        """Take rows with COLUMNS; gives chunks when enough has come together."""
        if rows.num_rows:
            self._held.append(rows)
            self._bytes += rows.nbytes
        if self._bytes >= _CHUNKS_AT:
            yield from self.flush()

    def flush(self) -> Iterator[Chunk]:
        """What is still held."""
        held, self._held, self._bytes = self._held, [], 0
        for rows in held if len(held) < 2 else [pa.concat_tables(held)]:
            yield from self._dealt(rows.combine_chunks())

    def _dealt(self, rows: pa.Table) -> Iterator[Chunk]:
        offsets = rows["offset"].to_numpy()
        control = rows["control"].cast(pa.uint8()).to_numpy()
        data, starts, stops = _values(rows["payload"])
        counts, sizes = np.zeros(self._shards + 1, np.int64), np.zeros(self._shards + 1, np.int64)
        routes = np.empty(len(offsets), np.int32)
        into: Any
        if kernels.available():
            from kraftlake.kernels.batches.shard_routing import route, scatter

            route(data, starts, stops, control, self._shards, routes, counts, sizes)
            begins, places = _begins(sizes), _begins(counts)
            into = np.empty(int(sizes.sum()), np.uint8)
            ends, sources = np.empty(int(counts.sum()), np.int32), np.empty(int(counts.sum()), np.int32)
            scatter(data, starts, stops, routes, self._shards, begins[:-1].copy(), places[:-1].copy(), into, ends,
                    sources)  # fmt: skip
        else:
            lists = _dealt_slowly(data, starts, stops, control, self._shards)
            counts = np.array([len(places) for places in lists], np.int64)
            sources = np.array([place for places in lists for place in places], np.int32)
            ends = (stops - starts)[sources].astype(np.int32)
            sizes = np.array([int((stops - starts)[places].sum()) if places else 0 for places in lists], np.int64)
            into = np.frombuffer(b"".join(data[starts[i] : stops[i]].tobytes() for i in sources.tolist()), np.uint8)
            begins, places = _begins(sizes), _begins(counts)
        first = int(offsets[0])
        relative = (offsets - first).astype(np.int32)
        keys = rows["api_key"].to_numpy()
        kinds = np.where(control.astype(bool), keys.astype(np.int32), np.int32(-1))
        for shard in np.flatnonzero(counts).tolist():
            if shard == self._shards and self._topics_only:
                chosen = sources[places[shard] :]
                chosen = chosen[(kinds[chosen] < 0) & np.isin(keys[chosen], _OF_EVERY_IMAGE)]
                if not len(chosen):
                    continue
                payload = b"".join(data[starts[place] : stops[place]].tobytes() for place in chosen.tolist())
                lengths = (stops - starts)[chosen].astype(np.int32)
            else:
                chosen = sources[places[shard] : places[shard + 1]]
                payload = into[begins[shard] : begins[shard + 1]].tobytes()
                lengths = ends[places[shard] : places[shard + 1]]
            yield Chunk(
                shard=shard,
                part=self._part,
                first=first,
                payload=payload,
                sizes=lengths.tobytes(),
                offsets=relative[chosen].tobytes(),
                kinds=kinds[chosen].tobytes() if shard == self._shards else b"",
            )


def _begins(sizes: Any) -> Any:
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def _values(column: pa.ChunkedArray) -> tuple[Any, Any, Any]:
    """The bytes of all payloads, and where each lies in them."""
    array = column.cast(pa.large_binary()).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    _, bounds, data = array.buffers()
    places = np.frombuffer(bounds, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), places[:-1].copy(), places[1:].copy()


def _dealt_slowly(data: Any, starts: Any, stops: Any, control: Any, shards: int) -> list[list[int]]:
    """As `kernels.batches.shard_routing`, without compiled code: the places of each shard's records, and the rest."""
    lists: list[list[int]] = [[] for _ in range(shards + 1)]
    ends = zip(starts.tolist(), stops.tolist(), control.tolist(), strict=True)
    for place, (start, stop, is_control) in enumerate(ends):
        value = data[start:stop].tobytes()
        for shard in _shards_of(value, shards) if not is_control else (shards,):
            lists[shard].append(place)
    return lists


def _shards_of(value: bytes, shards: int) -> tuple[int, ...] | range:
    if len(value) < 3 or value[0] != 1 or value[1] >= 0x80 or value[2] >= 0x80:
        return (shards,)
    key = value[1]
    at = _id_place(value)
    if 0 <= at <= len(value) - 16:
        return (shard_of(value[at : at + 16], shards),)
    if BeginTransactionRecord.API_KEY <= key <= AbortTransactionRecord.API_KEY or key == ClearElrRecord.API_KEY:
        return range(shards + 1)
    is_no_op = key == NoOpRecord.API_KEY and len(value) == 4 and value[2] == value[3] == 0
    return () if is_no_op else (shards,)


def _id_place(value: bytes) -> int:
    """Where the topic id begins; -1 where there is none."""
    match value[1]:
        case PartitionRecord.API_KEY | PartitionChangeRecord.API_KEY:
            return 7
        case RemoveTopicRecord.API_KEY:
            return 3
        case TopicRecord.API_KEY:
            length = 0
            for count, byte in enumerate(value[3:7]):
                length |= (byte & 0x7F) << 7 * count
                if byte < 0x80:
                    return 3 + count + length if length else -1
    return -1


def shard_of(topic_id: bytes, shards: int) -> int:
    """The shard of a topic."""
    high, low = int.from_bytes(topic_id[:8], "big"), int.from_bytes(topic_id[8:], "big")
    mixed = high * 0x9E3779B97F4A7C15 & _MASK ^ low
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & _MASK
    return ((mixed ^ mixed >> 32) >> 1) % shards
