"""Routes rows of a log's table to shards by topic id. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
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
from kraftlake.records.no_ops import are_no_ops
from kraftlake.records.record_ids import TOPIC_ID_AT
from kraftlake.records.serde import with_short_frame
from kraftlake.records.varint import MalformedError, read_uvarint
from kraftlake.replay.log.shard_records import NO_CONTROL, ShardRecords
from kraftlake.tables.shards.chunks import Chunk

_CHUNKS_AT = 16 << 20
_OF_EVERY_IMAGE = (
    FeatureLevelRecord.API_KEY,
    *(cls.API_KEY for cls in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)),
)
_OF_BROKERS = (RegisterBrokerRecord.API_KEY, UnregisterBrokerRecord.API_KEY)
_OF_ALL_SHARDS = (ClearElrRecord.API_KEY, *_OF_BROKERS, *_OF_EVERY_IMAGE[1:])
_OF_DRIVER_TOO = (TopicRecord.API_KEY, RemoveTopicRecord.API_KEY)


class Router:
    """Gathers rows in offset order and yields them as chunks, one for each shard that has rows, and for the driver.

    Shard numbers depend on topic ids and `shards` alone, so that all processes route alike. Records of a topic go to
    its shard; marks of transactions, ClearElrRecords and registrations of brokers, whose racks the rows of partitions
    show, to all shards and to the driver, whose number is `shards`; records that create or remove a topic to the driver
    too; no-ops nowhere, all else to the driver alone. The driver also learns of the first batch of each epoch, whether
    or not it gets records of it. Rows of whole batches make chunks of whole batches.

    With `topics_only` the driver gets only the records that decide whether an image exists: records of features, which
    may set a metadata.version that can't be replayed, and the marks.
    """

    def __init__(self, shards: int, part: int, *, topics_only: bool = False) -> None:
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
        offsets, keys = rows["offset"].to_numpy(), rows["api_key"].to_numpy()
        control = rows["control"].to_numpy()
        payloads = rows["payload"].cast(pa.large_binary()).combine_chunks()
        shards = shards_of(*_values(payloads), control, self._shards)
        batches = _Batches.of(rows, shards == self._shards + 2)
        # Not the first batch's offset: where a batch is divided among pieces, several chunks would have the same.
        of_all, first = shards == self._shards + 1, int(offsets[0])
        for shard in range(self._shards + 1):
            chosen = of_all | (shards == shard)
            if shard == self._shards:
                chosen |= np.isin(keys, _OF_DRIVER_TOO) & ~control
                if self._topics_only:
                    chosen &= ~control & np.isin(keys, _OF_EVERY_IMAGE)
            places = np.flatnonzero(chosen)
            known = batches.holding(places, with_epochs=shard == self._shards)
            if not len(known):
                continue
            data, starts, stops = _values(payloads.take(pa.array(places)))
            records = ShardRecords(
                offsets=offsets[places],
                data=data,
                starts=starts,
                stops=stops,
                control_types=np.where(control[places], keys[places], NO_CONTROL).astype(np.int32),
                **batches.where(known),
            )
            yield Chunk(shard=shard, part=self._part, first=first, **records.cells(first))


@attrs.frozen(kw_only=True, eq=False)
class _Batches:
    """The batches of rows, as ShardRecords have them; `begins` are the places of their first rows."""

    begins: Any
    base_offsets: Any
    last_offsets: Any
    epochs: Any
    timestamps: Any
    noop: Any

    @classmethod
    def of(cls, rows: pa.Table, noop: Any) -> _Batches:
        offsets, bases = rows["offset"].to_numpy(), rows["batch"].to_numpy()
        begins = np.flatnonzero(np.diff(bases, prepend=bases[0] - 1))
        times = rows["timestamp"].cast(pa.int64()).fill_null(NO_TIMESTAMP * 1000).to_numpy() // 1000
        return cls(
            begins=begins,
            base_offsets=bases[begins],
            last_offsets=offsets[np.append(begins[1:], len(offsets)) - 1],
            epochs=rows["epoch"].to_numpy()[begins],
            timestamps=np.maximum.reduceat(times, begins),
            noop=np.logical_and.reduceat(noop, begins),
        )

    def holding(self, places: Any, *, with_epochs: bool) -> Any:
        """The numbers of the batches of rows at places (int64, ascending), and of the first batch of each epoch."""
        held = np.zeros(len(self.begins), np.bool_)
        held[np.searchsorted(self.begins, places, side="right") - 1] = True
        if with_epochs:
            held[np.flatnonzero(np.diff(self.epochs, prepend=self.epochs[0] - 1))] = True
        return np.flatnonzero(held)

    def where(self, numbers: Any) -> dict[str, Any]:
        """Some batches, as the columns of ShardRecords."""
        columns = attrs.asdict(self, recurse=False)
        return {name: column[numbers] for name, column in columns.items() if name != "begins"}


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
    for place in framed[~plain].tolist():
        value = data[starts[place] : stops[place]].tobytes()
        short = np.frombuffer(with_short_frame(value), np.uint8)
        if len(short) < len(value):
            begin, end, is_control = np.array([0]), np.array([len(short)]), np.array([False])
            found[place] = shards_of(short, begin, end, is_control, shards)[0]
    framed, keys = framed[plain], heads[plain, 1]
    found[framed[np.isin(keys, _OF_ALL_SHARDS)]] = shards + 1
    found[are_no_ops(data, starts, stops) & ~control] = shards + 2
    ids = np.full(len(framed), -1, np.int64)
    for api_key, at in TOPIC_ID_AT.items():
        ids[keys == api_key] = at
    for place in np.flatnonzero(keys == TopicRecord.API_KEY).tolist():
        ids[place] = _end_of_name(data[starts[framed[place]] : stops[framed[place]]].tobytes())
    whole = (ids >= 0) & (ids + 16 <= (stops - starts)[framed])
    of_topics = framed[whole]
    halves = data[(starts[of_topics] + ids[whole])[:, None] + np.arange(16)].view(">u8").astype(np.uint64)
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
