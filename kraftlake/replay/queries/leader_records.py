"""The leaders that records name for given partitions, read from batches or from large chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.reading.chunks import Chunk

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_CHANGE: Final = PartitionChangeRecord.API_KEY
_WITH_LEADER: Final = (PartitionRecord.API_KEY, _CHANGE)
_KEY: Final = slice(3, 23)
"""Where both records have the partition's number and the topic's id: behind a frame of three bytes."""
_SIZE: Final = _KEY.stop - _KEY.start
_HEAD: Final = 8

_ISR_TAG, _LEADER_TAG = 0, 1
"""The first tagged fields of a PartitionChangeRecord; tags ascend."""
_FRAME: Final = 1
_NEWEST: Final = PartitionChangeRecord.VERSIONS.high
_LONG: Final = 0x80
"""From here on a number takes more than a byte."""
_UNCHANGED, _ODD = -2, -3

_Told: TypeAlias = tuple[int, int, bytes | None, int]
"""Offset, time, and a partition's key with its leader; or None with the api key of a transaction mark."""


def key_of(topic_id: Uuid, partition: int) -> bytes:
    """The key of a partition: its number and its topic's id, as records have them."""
    return partition.to_bytes(4, "big", signed=True) + bytes(topic_id)


class Keys:
    """The keys of the requested partitions, at least one."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self.all = frozenset(keys)

    @cached_property
    def heads(self) -> Any:
        """What keys begin with (uint64, ascending): the number, and four bytes of the id."""
        import numpy as np

        return np.unique(np.frombuffer(b"".join(key[:_HEAD] for key in self.all), np.uint64))


def leaders_named(parts: Iterable[Chunk], keys: Keys) -> Iterator[tuple[bytes, int, int, int]]:
    """(key, leader, offset, time in epoch ms) of every record of one of the partitions that names a leader, or none.

    Those of a metadata transaction come at its end, with its offset and time; those of an aborted one never. A mark
    that contradicts those before it is taken as it stands, for a lenient replay has left it out.
    """
    within: list[tuple[bytes, int]] | None = None
    for part in parts:
        told = _of_batch(part, keys) if isinstance(part, RecordBatch) else _of_values(part, keys)
        for offset, time, key, number in told:
            if key is not None:
                if within is None:
                    yield key, number, offset, time
                else:
                    within.append((key, number))
            elif number == BeginTransactionRecord.API_KEY:
                within = []
            else:
                if number == EndTransactionRecord.API_KEY:
                    yield from ((key, leader, offset, time) for key, leader in within or ())
                within = None


def _of_batch(batch: RecordBatch, keys: Keys) -> Iterator[_Told]:
    for index, value in enumerate(() if batch.control else batch.values):
        kind = value[1] if len(value) > 1 else -1
        if kind in _WITH_LEADER and (key := value[_KEY]) in keys.all:
            leader = _leader_of(value)
            if leader is not None:
                yield batch.base_offset + index, batch.timestamps[index], key, leader
        elif BeginTransactionRecord.API_KEY <= kind <= AbortTransactionRecord.API_KEY:
            yield batch.base_offset + index, batch.timestamps[index], None, kind


def _leader_of(value: bytes) -> int | None:
    """The leader that a record names, None where it does not change it."""
    message = decode_value(value).message
    if not isinstance(message, (PartitionRecord, PartitionChangeRecord)) or message.leader < NO_LEADER:
        return None
    return message.leader


def _of_values(values: BatchValues, keys: Keys) -> Iterator[_Told]:
    """As `_of_batch`, for many batches: only records of the partitions are looked at one by one."""
    import numpy as np

    data, lengths = values.data, values.stops - values.starts
    framed = np.flatnonzero(lengths > 1)
    kinds = data[values.starts[framed] + 1]
    marks = framed[(kinds >= BeginTransactionRecord.API_KEY) & (kinds <= AbortTransactionRecord.API_KEY)]
    named = framed[np.isin(kinds, _WITH_LEADER) & (lengths[framed] >= _KEY.stop)]
    heads = _bytes_at(data, values.starts[named] + _KEY.start, _HEAD).view(np.uint64).reshape(-1)
    named = named[keys.heads[np.minimum(np.searchsorted(keys.heads, heads), len(keys.heads) - 1)] == heads]
    leaders = _leaders_of(data, values.starts[named], values.stops[named])
    named, leaders = named[leaders != _UNCHANGED], leaders[leaders != _UNCHANGED]

    found = _bytes_at(data, values.starts[named] + _KEY.start, _SIZE).tobytes()
    places = np.concatenate((marks, named))
    order = np.argsort(places)
    columns = (places, np.concatenate((data[values.starts[marks] + 1], leaders)), np.arange(len(places)) - len(marks))
    for place, number, index in zip(*(column[order].tolist() for column in columns), strict=True):
        key = None if index < 0 else found[_SIZE * index : _SIZE * (index + 1)]
        if key is not None and key not in keys.all:
            continue
        told = _leader_of(values.value(place)) if key is not None and number == _ODD else number
        if told is not None:
            yield values.base_offset + place, int(values.times[place]), key, told


def _leaders_of(data: Any, starts: Any, stops: Any) -> Any:
    """The leaders (int64[n]) that records of partitions name; _UNCHANGED for none, _ODD to be decoded.

    That of a PartitionRecord lies behind lists, and so does that of a change whose ISR has more than 31 members.
    """
    import numpy as np

    def byte(places: Any) -> Any:
        return data[np.minimum(places, stops - 1)].astype(np.int64)

    fields, at = byte(starts + _KEY.stop), starts + _KEY.stop + 1
    plain = (data[starts] == _FRAME) & (data[starts + 1] == _CHANGE) & (data[starts + 2] <= _NEWEST)
    plain &= stops - starts > _KEY.stop
    isr_first = (fields > 0) & (byte(at) == _ISR_TAG)
    plain &= ~isr_first | (byte(at + 1) < _LONG)
    at = np.where(isr_first, at + 2 + byte(at + 1), at)
    fields -= isr_first
    leaders = np.full(len(starts), _ODD, np.int64)
    leaders[plain & ((fields == 0) | (byte(at) > _LEADER_TAG))] = _UNCHANGED
    names = np.flatnonzero(plain & (fields > 0) & (byte(at) == _LEADER_TAG) & (at + 6 <= stops))
    named = _bytes_at(data, at[names] + 2, 4).view(">i4").reshape(-1)
    leaders[names] = np.where(named < NO_LEADER, _UNCHANGED, named)
    return leaders


def _bytes_at(data: Any, places: Any, count: int) -> Any:
    """`count` bytes from each place on (uint8[n, count])."""
    import numpy as np

    return data[places[:, None] + np.arange(count)]
