"""The leaders that records name for given partitions, read from batches or from large chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records import with_short_frame
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.open_transaction import TRANSACTION_MARKS, OpenTransaction
from kraftlake.replay.reading.chunks import Chunk

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_WITH_LEADER: Final = (PartitionRecord.API_KEY, PartitionChangeRecord.API_KEY)
_MARKS: Final = tuple(mark.API_KEY for mark in TRANSACTION_MARKS)
_KEY: Final = slice(3, 23)
"""Where both records have the partition's number and the topic's id: behind a frame of three bytes."""
_HEAD: Final = 8


def key_of(topic_id: Uuid, partition: int) -> bytes:
    """The key of a partition: its number and its topic's id, as records have them."""
    return partition.to_bytes(4, "big", signed=True) + bytes(topic_id)


class Keys:
    """The keys of the requested partitions, at least one."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self.all = frozenset(keys)

    @cached_property
    def heads(self) -> Any:
        """The first eight bytes of each key (uint64): the number, and four bytes of the id."""
        import numpy as np

        return np.frombuffer(b"".join(key[:_HEAD] for key in self.all), np.uint64)


def leaders_named(chunks: Iterable[Chunk], keys: Keys) -> Iterator[tuple[bytes, int, int, int]]:
    """(key, leader, offset, time in epoch ms) of every record of one of the partitions that names a leader, or none.

    Those of a metadata transaction come at its end, with its offset and time; those of an aborted one never. A mark
    that contradicts those before it is left out, as a lenient replay does.
    """
    transaction = OpenTransaction[tuple[bytes, int]]()
    for chunk in chunks:
        for offset, time, value in _of_batch(chunk) if isinstance(chunk, RecordBatch) else _of_values(chunk, keys):
            kind, key = value[1] if len(value) > 1 else -1, value[_KEY]
            if kind in _MARKS:
                if transaction.fault_of(kind, offset) is None:
                    yield from ((*held, offset, time) for held in transaction.mark(kind, offset))
            elif kind in _WITH_LEADER and key in keys.all:
                leader = _leader_of(value[: _KEY.start], value[_KEY.stop :])
                if leader is None:
                    continue
                if transaction.begin_offset is None:
                    yield key, leader, offset, time
                else:
                    transaction.hold((key, leader))


@lru_cache(maxsize=1 << 14)
def _leader_of(frame: bytes, fields: bytes) -> int | None:
    """The leader that a record names, None where it does not change it: by its bytes before and after the key.

    Many partitions have records of the same ISR and leader, so that few of them are decoded.
    """
    message = decode_value(frame + bytes(_KEY.stop - _KEY.start) + fields).message
    if not isinstance(message, (PartitionRecord, PartitionChangeRecord)) or message.leader < NO_LEADER:
        return None
    return message.leader


def _of_batch(batch: RecordBatch) -> Iterator[tuple[int, int, bytes]]:
    """Offset, time and value of each record."""
    values = () if batch.control else map(with_short_frame, batch.values)
    return zip(count(batch.base_offset), batch.timestamps, values, strict=False)


def _of_values(values: BatchValues, keys: Keys) -> Iterator[tuple[int, int, bytes]]:
    """As `_of_batch`, of the transaction marks and the records whose keys begin as one of `keys` does."""
    import numpy as np

    data, lengths = values.data, values.stops - values.starts
    framed = np.flatnonzero(lengths > 2)
    kinds = data[values.starts[framed] + 1]
    odd = framed[(data[values.starts[framed][:, None] + np.arange(3)] >= 0x80).any(axis=1)]  # of a longer frame
    named = framed[np.isin(kinds, _WITH_LEADER) & (lengths[framed] >= _KEY.stop)]
    heads = data[values.starts[named][:, None] + np.arange(_KEY.start, _KEY.start + _HEAD)].view(np.uint64).reshape(-1)
    found = np.concatenate((framed[np.isin(kinds, _MARKS)], named[np.isin(heads, keys.heads)], odd))
    for index in np.unique(found).tolist():
        yield values.base_offset + index, int(values.times[index]), with_short_frame(values.value(index))
