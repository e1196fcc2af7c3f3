"""The latest offset of each key in a part of a log, in memory of a fixed size.

Source: org.apache.kafka.storage.internals.log.SkimpyOffsetMap.
"""

from __future__ import annotations

from typing import Final

from kraftlake.kernels import compiled
from kraftlake.records.batch_header import BatchHeader
from kraftlake.replica_manager.logs.cleaning.batch_content import BatchRecords, Choice, chosen_records, unreadable

SLOT_SIZE: Final = 24
"""The bytes of a key, however long it is: 16 of its hash, 8 of its offset."""
_NUMBERS: Final = 3
_FIRST_SLOTS: Final = 1 << 12
_GROWTH: Final = 4


class OffsetMap:
    """Keys by their SipHash-2-4 of 128 bits under a secret: no producer can find two keys that are taken for one."""

    def __init__(self, slots: int, load_factor: float, secret: tuple[int, int]) -> None:
        """Create a map of up to `load_factor` times `slots` keys, at least one; `secret` are two numbers of 64 bits."""
        self._secret = secret
        self._slots = max(slots, 2)
        self._load_factor = load_factor
        self.table = _table(min(self._slots, _FIRST_SLOTS))
        """The slots, three numbers each (uint64): the two halves of the hash, and the latest offset + 1, or 0."""
        self.size = 0
        """The number of keys."""
        self.latest_offset = -1
        """The offset up to which the map has all keys."""

    @property
    def utilization(self) -> float:
        """The used part of the memory that the map may have."""
        return self.size / self._slots

    def put(self, header: BatchHeader, records: BatchRecords, first_offset: int) -> bool:
        """Put the keys of a batch's records from `first_offset` on; returns False where the map is full before the end.

        Raises CorruptRecordError for records that can't be read.
        """
        while True:
            slots = len(self.table) // _NUMBERS
            limit = max(1, min(int(slots * self._load_factor), slots - 1))
            self.size, latest, state = compiled.put_keys(
                *records, header.record_count, header.base_offset, first_offset, self.table, self.size, limit,
                *self._secret,
            )  # fmt: skip
            if state < 0:
                raise unreadable(header)
            self.note_offset(latest)
            if state == 0 or slots == self._slots:
                return state == 0
            larger = _table(min(self._slots, _GROWTH * slots))
            compiled.move_keys(self.table, larger)
            self.table = larger

    def note_offset(self, offset: int) -> None:
        """Note that the map has all keys up to an offset."""
        self.latest_offset = max(self.latest_offset, offset)

    def choose(self, header: BatchHeader, records: BatchRecords, *, keeps_tombstones: bool) -> Choice:
        """The records of a batch that stay: the last ones of their keys, and all above the latest offset.

        Raises CorruptRecordError for records that can't be read.
        """
        return chosen_records(
            records,
            header,
            self.table,
            latest_offset=self.latest_offset,
            secret=self._secret,
            keeps_tombstones=keeps_tombstones,
        )


def _table(slots: int) -> memoryview:
    return memoryview(bytearray(SLOT_SIZE * slots)).cast("Q")
