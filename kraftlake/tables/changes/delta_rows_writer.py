"""A writer whose rows are of metadata deltas, made of the log's rows: many deltas at once, none of them an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.replay.loader.fold import loader_at, snapshot_image
from kraftlake.tables.catch_up.log_fold import oldest_snapshot
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.effective_records import (
    EffectiveRecords,
    TransactionReader,
    joined,
    parts_of_rows,
    refuse_newer,
    standing_alone,
)
from kraftlake.tables.changes.transactions import marks_among
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.batch_values import BatchValues
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.lake_table import LakeTable


class DeltaRowsWriter(TableWriter):
    """Takes the log's rows apart into metadata deltas; images are made beside it, by whoever runs it.

    `kinds` are the api keys of the records that a table asks about; deltas without any are left out unless the writer
    `waits` for one.
    """

    wants_rows = True
    wants_changes = False
    wants_images = True
    kinds: ClassVar[tuple[int, ...]]
    waits = False

    def __init__(self) -> None:
        super().__init__()
        self._transactions = TransactionReader()

    def open(self, reader: LakeReader, table: LakeTable) -> None:
        """Become the state at the offset that the table covers.

        Where it covers nothing that is the snapshot that covers the start of a log which starts above 0, told as the
        first metadata delta.
        """
        covers = table.last_offset()
        if covers is None:
            if reader.start_offset > 0:
                begin = snapshot_image(oldest_snapshot(reader))
                at = begin.image.provenance
                self._tell_load(begin.image, DeltaBoundaries.single(at.offset, at.epoch, at.timestamp))
                self._go_on(begin.image, told=True)
                self._know_leader(begin.quorum.leader_id, at.epoch)
            return
        loader = loader_at(reader, covers)
        begins, quorum = loader.transaction_begin_offset, loader.quorum
        image = loader.take_image()
        self._go_on(image, told=begins != 0)
        self._know_leader(quorum.leader_id, image.provenance.epoch)
        if begins is not None:
            self._know_leader(quorum.leader_id, loader_at(reader, begins - 1).provenance.epoch)
            self._transactions.go_on(reader.batches(begins, covers), begins)

    def take_rows(self, rows: pa.Table) -> None:
        """Tell the rows' metadata deltas."""
        if self._transactions.open_since is None and not self.waits and not self._asks_about(rows):
            return
        for part in parts_of_rows(rows):
            self.take_part(part)

    def take_part(self, part: BatchValues | RecordBatch) -> None:
        """Tell the metadata deltas of a part of the log, which follows those before.

        Raises UnknownRecordError, with the offset, for a known type of record in a version that this release lacks.
        """
        in_transaction = self._transactions.open_since is not None
        records = standing_alone(part)
        refuse_newer(records)
        taken = [*self._transactions.take(records)]
        if self._asks_about_part(part) or taken:
            heads = DeltaBoundaries.of_part(part, records, in_transaction=in_transaction)
            self._tell(joined(taken) if taken else records.where(np.s_[:0]), heads)

    def _asks_about(self, rows: pa.Table) -> bool:
        keys = rows.column("api_key").to_numpy()
        return any((keys == kind).any() for kind in self.kinds) or len(marks_among(keys)) > 0

    def _asks_about_part(self, part: BatchValues | RecordBatch) -> bool:  # noqa: ARG002 - of use to others
        """Whether the deltas of a part count, be there no record in it that takes effect."""
        return self.waits

    def _know_leader(self, leader: int | None, epoch: int) -> None:
        """Who leads the quorum where the writer begins, None where that is not told, and since which epoch."""

    def _go_on(self, image: MetadataImage, *, told: bool) -> None:
        """Go on from an image, which the table covers or was told as a whole; `told`: a delta has led to it."""
        raise NotImplementedError

    def _tell_load(self, image: MetadataImage, heads: DeltaBoundaries) -> None:
        """Add the rows of the delta that makes an image of the empty one."""
        raise NotImplementedError

    def _tell(self, records: EffectiveRecords, heads: DeltaBoundaries) -> None:
        """Add the rows of deltas; a record is of the first whose offset is at or behind the one where it takes effect.

        Records of other kinds may be among them.
        """
        raise NotImplementedError
