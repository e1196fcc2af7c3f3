"""Routes rows of a log's table to the shards of a fold by topic id. Imports numpy, but not Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.kernels.replay.indexes import mix
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.serde import encode_value
from kraftlake.records.varint import MalformedError, read_uvarint
from kraftlake.spark_jobs.fold.chunks import Chunk

COLUMNS = ("offset", "api_key", "control", "payload")
"""The columns of the log that routing reads."""

_CHUNKS_AT = 16 << 20
_TRANSACTION_MARKS = tuple(
    cls.API_KEY for cls in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
)
_OF_EVERY_IMAGE = (FeatureLevelRecord.API_KEY, *_TRANSACTION_MARKS)
_OF_ALL_SHARDS = (ClearElrRecord.API_KEY, *_TRANSACTION_MARKS)
_NO_OP = np.frombuffer(encode_value(NoOpRecord(), 0), np.uint8)


class Router:
    """Gathers rows in offset order and yields them as chunks, one for each shard that has rows.

    Shard numbers depend on topic ids and `shards` alone, so that all processes route alike. Marks of transactions and
    ClearElrRecords go to all shards, no-ops to none; records of no topic, and the marks, go to the number `shards`.
    With `topics_only` that number gets only the records that decide whether an image exists: records of features,
    which may set a metadata.version that can't be replayed, and the marks.
    """

    def __init__(self, shards: int, part: int, *, topics_only: bool = False) -> None:
        assert shards >= 1, "a fold has at least one shard"
        self._shards = shards
        self._part = part
        self._topics_only = topics_only
        self._held: list[pa.Table] = []
        self._bytes = 0

    def take(self, rows: pa.Table) -> Iterator[Chunk]:
        """Take rows with COLUMNS; yields chunks when enough bytes are gathered."""
        if rows.num_rows:
            self._held.append(rows)
            self._bytes += rows.nbytes
        if self._bytes >= _CHUNKS_AT:
            yield from self.flush()

    def flush(self) -> Iterator[Chunk]:
        """The chunks of the rows that are still held."""
        held, self._held, self._bytes = self._held, [], 0
        if held:
            yield from self._routed(pa.concat_tables(held).combine_chunks())

    def _routed(self, rows: pa.Table) -> Iterator[Chunk]:
        offsets, keys = rows["offset"].to_numpy(), rows["api_key"].to_numpy()
        control = rows["control"].to_numpy()
        payloads = rows["payload"].cast(pa.large_binary()).combine_chunks()
        shards = shards_of(*_values(payloads), control, self._shards)
        first = int(offsets[0])
        relative = (offsets - first).astype(np.int32)
        kinds = np.where(control, keys, -1).astype(np.int32)
        for shard in range(self._shards + 1):
            chosen = np.flatnonzero((shards == shard) | (shards == self._shards + 1))
            if shard == self._shards and self._topics_only:
                chosen = chosen[~control[chosen] & np.isin(keys[chosen], _OF_EVERY_IMAGE)]
            if not len(chosen):
                continue
            data, starts, stops = _values(payloads.take(pa.array(chosen)))
            yield Chunk(
                shard=shard,
                part=self._part,
                first=first,
                payload=data[: stops[-1]].tobytes(),
                sizes=(stops - starts).astype(np.int32).tobytes(),
                offsets=relative[chosen].tobytes(),
                kinds=kinds[chosen].tobytes() if shard == self._shards else b"",
            )


def _values(payloads: pa.LargeBinaryArray) -> tuple[Any, Any, Any]:
    """The bytes of all payloads (uint8), and where each begins and ends in them (int64)."""
    _, bounds, data = payloads.buffers()
    places = np.frombuffer(bounds, np.int64)[payloads.offset : payloads.offset + len(payloads) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), places[:-1], places[1:]


def shards_of(data: Any, starts: Any, stops: Any, control: Any, shards: int) -> Any:
    """The shards (int64[n]) of the records with the values data[starts[i]:stops[i]].

    A record of a topic has a shard below `shards`. `shards` means a record of no topic, `shards + 1` a record for all
    shards and for `shards`, `shards + 2` a no-op. `control` (bool[n]) is true for control records.
    """
    found = np.full(len(starts), shards, np.int64)
    framed = np.flatnonzero((stops - starts >= 3) & ~control)
    heads = data[starts[framed, None] + np.arange(3)]
    plain = (heads[:, 0] == 1) & (heads[:, 1] < 0x80) & (heads[:, 2] < 0x80)
    framed, keys = framed[plain], heads[plain, 1]
    found[framed[np.isin(keys, _OF_ALL_SHARDS)]] = shards + 1
    short = framed[(keys == NoOpRecord.API_KEY) & ((stops - starts)[framed] == len(_NO_OP))]
    no_ops = (data[starts[short, None] + np.arange(len(_NO_OP))] == _NO_OP).all(axis=1)
    found[short[no_ops]] = shards + 2
    ids = np.full(len(framed), -1, np.int64)
    ids[np.isin(keys, (PartitionRecord.API_KEY, PartitionChangeRecord.API_KEY))] = 7
    ids[keys == RemoveTopicRecord.API_KEY] = 3
    for place in np.flatnonzero(keys == TopicRecord.API_KEY).tolist():
        ids[place] = _end_of_name(data[starts[framed[place]] : stops[framed[place]]].tobytes())
    whole = (ids >= 0) & (ids + 16 <= (stops - starts)[framed])
    of_topics = framed[whole]
    halves = data[(starts[of_topics] + ids[whole])[:, None] + np.arange(16)].view(">u8").astype(np.uint64)
    found[of_topics] = mix(halves[:, 0], halves[:, 1]) % np.uint64(shards)
    return found


def _end_of_name(value: bytes) -> int:
    """Where the name in a TopicRecord's value ends; -1 where there is none."""
    try:
        length, start = read_uvarint(value, 3)
    except (IndexError, MalformedError):
        return -1
    return start + length - 1 if length else -1
