"""The `.snapshot` files of a partition: the producers' states before an offset, which is the file's name.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager and ProducerSnapshot.json.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from struct import Struct
from typing import Final

import attrs

from kraftlake.records.crc32c import crc32c
from kraftlake.replica_manager.logs.disk.files import Files
from kraftlake.replica_manager.logs.disk.log_segment import file_name
from kraftlake.replica_manager.logs.producer_state import BatchMetadata, ProducerState
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

SNAPSHOT: Final = ".snapshot"
_HEAD: Final = Struct(">hI")
"""Version, and CRC-32C of the rest."""
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
"""A producer: producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset
of the open transaction."""
_VERSION: Final = 1
_NAME: Final = re.compile(r"([0-9]{20})\.snapshot")
_SEQUENCES: Final = 1 << 31


def encode_snapshot(states: Collection[ProducerState]) -> bytes:
    """Encode a `.snapshot` file; each producer has only its last batch."""
    parts = [_COUNT.pack(len(states))]
    for state in states:
        last = state.batches[-1] if state.batches else None
        parts.append(
            _ENTRY.pack(
                state.producer_id,
                state.producer_epoch,
                state.last_sequence,
                -1 if last is None else last.last_offset,
                0 if last is None else last.last_offset - last.first_offset,
                state.last_timestamp,
                state.coordinator_epoch,
                -1 if state.transaction_first_offset is None else state.transaction_first_offset,
            )
        )
    entries = b"".join(parts)
    return _HEAD.pack(_VERSION, crc32c(entries)) + entries


def decode_snapshot(data: bytes) -> list[ProducerState]:
    """Decode the states in a `.snapshot` file; raises CorruptDataError for invalid content."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptDataError(f"has {len(data)} bytes, fewer than any producer snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptDataError(f"is a producer snapshot of version {version}, not {_VERSION}")
    entries = data[_HEAD.size :]
    if crc32c(entries) != crc:
        raise CorruptDataError("has a CRC that does not match its bytes")
    (count,) = _COUNT.unpack_from(entries)
    if len(entries) != _COUNT.size + count * _ENTRY.size:
        raise CorruptDataError(f"does not have the {count} producers that it says")
    return [_state(_ENTRY.unpack_from(entries, _COUNT.size + at * _ENTRY.size)) for at in range(count)]


def _state(entry: tuple[int, ...]) -> ProducerState:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, transaction = entry
    batches: tuple[BatchMetadata, ...] = ()
    if offset >= 0:
        first_sequence = (sequence - delta) % _SEQUENCES if sequence >= 0 else -1
        batches = (BatchMetadata(first_sequence, sequence, offset - delta, offset, timestamp),)
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        transaction_first_offset=transaction if transaction >= 0 else None,
        batches=batches,
    )


@attrs.define(eq=False)
class ProducerSnapshots:
    """The snapshot files of one partition's folder."""

    _files: Files
    folder: str
    offsets: list[int] = attrs.field(init=False)
    """The offsets of the snapshots, ascending."""

    def __attrs_post_init__(self) -> None:
        names = map(_NAME.fullmatch, self._files.names(self.folder))
        self.offsets = [int(name[1]) for name in names if name is not None]

    def write(self, offset: int, states: Collection[ProducerState]) -> None:
        """Write the states before `offset`."""
        self._files.write_whole(self._path(offset), encode_snapshot(states))
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def latest(self) -> tuple[int, list[ProducerState]] | None:
        """Return the offset and the states of the last snapshot; a damaged snapshot is deleted."""
        while self.offsets:
            offset = self.offsets[-1]
            try:
                return offset, decode_snapshot(self._files.read(self._path(offset)))
            except CorruptDataError as error:
                _log.warning("producer_snapshot_is_damaged", file=self._path(offset), why=str(error))
                self.delete([offset])
        return None

    def delete(self, offsets: Iterable[int]) -> None:
        """Delete the snapshots at these offsets."""
        for offset in offsets:
            self._files.delete(self._path(offset))
            self.offsets.remove(offset)

    def keep(self, base_offsets: Collection[int]) -> None:
        """Delete the snapshots without a segment, except the last one after all segments' base offsets."""
        newest = max(base_offsets, default=-1)
        strays = [offset for offset in self.offsets if offset not in base_offsets]
        self.delete(offset for offset in strays if offset != strays[-1] or offset < newest)

    def _path(self, offset: int) -> str:
        return f"{self.folder}/{file_name(offset, SNAPSHOT)}"
