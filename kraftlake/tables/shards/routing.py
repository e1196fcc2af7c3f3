"""Routes rows of a log's table to shards by topic id. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.kernels import compiled
from kraftlake.records.batch import NO_TIMESTAMP
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kraftlake.records.record_ids import TOPIC_ID_AT
from kraftlake.records.rows import from_rows
from kraftlake.records.varint import MalformedError, read_uvarint
from kraftlake.replay.log.effective_records import EffectiveRecords, ShardRecords, records_of
from kraftlake.tables.shards.chunks import Chunk, Part

_CHUNKS_AT = 16 << 20
_OF_EVERY_IMAGE = (
    FeatureLevelRecord.API_KEY,
    *(cls.API_KEY for cls in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)),
)
_OF_BROKERS = (RegisterBrokerRecord.API_KEY, UnregisterBrokerRecord.API_KEY)
_OF_ALL_SHARDS = (ClearElrRecord.API_KEY, *_OF_BROKERS, *_OF_EVERY_IMAGE[1:])
_OF_REST_TOO = (TopicRecord.API_KEY, RemoveTopicRecord.API_KEY)


class Router:
    """Gathers rows in offset order and yields them as chunks, one for each shard that has rows, and for the rest.

    Shard numbers depend on topic ids and `shards` alone, so that all processes route alike. Records of a topic go to
    its shard; marks of transactions, ClearElrRecords and registrations of brokers, whose racks the rows of partitions
    show, to all shards and to the rest, whose number is `shards`; records that create or remove a topic to the rest
    too; no-ops nowhere, all else to the rest alone. The rest also has the first batch of each epoch, whether
    or not it gets records of it. Rows of whole batches make chunks of whole batches.

    With `topics_only` the rest gets only the records that decide whether an image exists: records of features, which
    may set a metadata.version that can't be replayed, and the marks.
    """

    def __init__(self, shards: int, part: Part, topics_only: bool = False) -> None:
        assert shards >= 1, "there is at least one shard"
        self._shards = shards
        self._part = part
        self._topics_only = topics_only
        self._held: list[pa.Table] = []
        self._bytes = 0

    def take(self, rows: pa.Table) -> Iterator[Chunk]:
        """Take rows with BATCH_COLUMNS; yields chunks when enough bytes are gathered."""
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
        offsets, bases, keys, control = (rows[name].to_numpy() for name in ("offset", "batch", "api_key", "control"))
        begun = rows.set_column(rows.schema.get_field_index("batch"), "batch", [np.maximum(bases, offsets[0])])
        payloads = rows["payload"].cast(pa.large_binary()).combine_chunks()
        shards = shards_of(records_of(*values_in(payloads), offsets, offsets), self._shards)
        shards[control] = self._shards
        begins = np.flatnonzero(np.diff(bases, prepend=bases[0] - 1))
        times = rows["timestamp"].cast(pa.int64()).fill_null(NO_TIMESTAMP * 1000).to_numpy() // 1000
        epochs = rows["epoch"].to_numpy()[begins]
        batches = {
            "base_offsets": bases[begins],
            "last_offsets": offsets[np.append(begins[1:], len(offsets)) - 1],
            "epochs": epochs,
            "timestamps": np.maximum.reduceat(times, begins),
            "noop": np.logical_and.reduceat(shards == self._shards + 2, begins),
        }
        for shard in range(self._shards + 1):
            chosen, held = (shards == self._shards + 1) | (shards == shard), np.zeros(len(begins), np.bool_)
            if shard == self._shards:
                chosen |= np.isin(keys, _OF_REST_TOO) & ~control
                if self._topics_only:
                    chosen &= ~control & np.isin(keys, _OF_EVERY_IMAGE)
                held = np.diff(epochs, prepend=epochs[0] - 1) != 0
            held[np.searchsorted(begins, np.flatnonzero(chosen), side="right") - 1] = True
            if not held.any():
                continue
            places = np.flatnonzero(chosen & ~control)
            data, starts, stops = values_in(payloads.take(pa.array(places)))
            records = ShardRecords(
                offsets=offsets[places],
                data=data[: stops[-1]] if len(places) else data[:0],
                sizes=(stops - starts).astype(np.int32),
                control=tuple(from_rows(begun.filter(pa.array(chosen & control)))),
                **{name: column[held] for name, column in batches.items()},
            )
            # Not the first batch's offset: where a batch is divided among pieces, several chunks would have the same.
            yield Chunk.of(shard, self._part, records, int(offsets[0]))


def values_in(payloads: pa.LargeBinaryArray) -> tuple[Any, Any, Any]:
    """The bytes of all values (uint8), and where each begins and ends in them (int64)."""
    _, bounds, data = payloads.buffers()
    places = np.frombuffer(bounds, np.int64)[payloads.offset : payloads.offset + len(payloads) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), places[:-1], places[1:]


def shards_of(records: EffectiveRecords, shards: int) -> Any:
    """The shards (int64[n]) of records.

    A record of a topic has a shard below `shards`. `shards` means a record of no topic, `shards + 1` a record for all
    shards and for `shards`, `shards + 2` a no-op.
    """
    found, ids = np.full(len(records), shards, np.int64), np.full(len(records), -1, np.int64)
    found[records.are_of(_OF_ALL_SHARDS)] = shards + 1
    found[records.are_no_ops()] = shards + 2
    for api_key, at in TOPIC_ID_AT.items():
        ids[records.are_of((api_key,))] = at
    for place in np.flatnonzero(records.are_of((TopicRecord.API_KEY,))).tolist():
        ids[place] = _end_of_name(records.value(place))
    of_topics = np.flatnonzero((ids >= 0) & (ids + 16 <= records.stops - records.starts))
    begins = records.starts[of_topics] + ids[of_topics]
    halves = records.data[begins[:, None] + np.arange(16)].view(">u8").astype(np.uint64)
    dealt = np.empty(len(of_topics), np.int64)
    compiled.deal_ids(halves, shards, dealt)
    found[of_topics] = dealt
    return found


def _end_of_name(value: bytes) -> int:
    """The end of the name in a TopicRecord's value; -1 if there is none."""
    try:
        length, start = read_uvarint(value, 3)
    except (IndexError, MalformedError):
        return -1
    return start + length - 1 if length else -1
