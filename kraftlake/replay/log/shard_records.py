"""Some records of a log, which need not follow each other, with the batches that they are of. Imports numpy."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.records.batch import RecordBatch


@attrs.frozen(kw_only=True, eq=False)
class ShardRecords:
    """Records in offset order, of batches that are known as a whole though some of their records are not among these.

    Record i stands at `offsets[i]` (int64); the values, of `sizes` (int32) bytes, lie back to back in `data` (uint8).
    By batch, in order, `base_offsets` and `last_offsets` (int64), `epochs` (int32) and `timestamps` (int64, the largest
    of their records', epoch ms, -1 for none); `noop` (bool) is true where all records of a batch, these or not, are
    no-op records. There may be batches of which none of the records are here. `control` are the batches of control
    records, which are not among the records.
    """

    offsets: Any = attrs.field(repr=False)
    data: Any = attrs.field(repr=False)
    sizes: Any = attrs.field(repr=False)
    base_offsets: Any = attrs.field(repr=False)
    last_offsets: Any = attrs.field(repr=False)
    epochs: Any = attrs.field(repr=False)
    timestamps: Any = attrs.field(repr=False)
    noop: Any = attrs.field(repr=False)
    control: tuple[RecordBatch, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def base_offset(self) -> int:
        """The first offset of the first batch."""
        return int(self.base_offsets[0])
