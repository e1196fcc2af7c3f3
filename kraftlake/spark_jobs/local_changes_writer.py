"""The writer of `local_changes/`, as the streams over a lake's log take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kraftlake.replay.fold import loader_at, snapshot_image
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.history.effective_records import (
    ABORT,
    BEGIN,
    TransactionReader,
    joined,
    parts_of_rows,
    standing_alone,
)
from kraftlake.spark_jobs.history.partition_states import TOPIC_KINDS
from kraftlake.spark_jobs.local_change_states import LocalChangeStates, rows_of_image
from kraftlake.spark_jobs.local_changes import LOCAL_CHANGES
from kraftlake.spark_jobs.log_fold import oldest_snapshot
from kraftlake.spark_jobs.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.open_reader import LakeReader
    from kraftlake.spark_jobs.lake_table import LakeTable

_WANTED: Final = (*TOPIC_KINDS, *range(BEGIN, ABORT + 1))


class LocalChangesWriter(TableWriter):
    """Makes the rows of `local_changes/` of the log's rows; the images are made beside it, by whoever runs it."""

    description = LOCAL_CHANGES
    wants_rows = True
    wants_changes = False
    wants_images = True

    def __init__(self, *, bulk: bool | None = None) -> None:
        """`bulk` says whether to use compiled code, None: where there is enough to do for it."""
        super().__init__()
        self._bulk = bulk
        self._states = LocalChangeStates(bulk=bulk)
        self._transactions = TransactionReader()

    def open(self, reader: LakeReader, table: LakeTable) -> None:
        """Become the state at the offset that the table covers.

        Where it covers nothing that is the snapshot that covers the start of a log which starts above 0, told to the
        brokers as the first metadata delta.
        """
        covers = table.last_offset()
        if covers is None:
            if reader.start_offset > 0:
                image = snapshot_image(oldest_snapshot(reader)).image
                at = image.provenance
                self.rows.add_table(rows_of_image(image.topics, DeltaHeads.single(at.offset, at.epoch, at.timestamp)))
                self._states = LocalChangeStates(image.topics, bulk=self._bulk)
            return
        loader = loader_at(reader, covers)
        self._states = LocalChangeStates(loader.take_image().topics, bulk=self._bulk)
        begins = loader.transaction_begin_offset
        if begins is not None:
            self._transactions.go_on(reader.batches(begins, covers), begins)

    def take_rows(self, rows: pa.Table) -> None:
        """Add what the rows' metadata deltas tell, by delta, broker, topic, partition and change."""
        if self._transactions.open_since is None and not np.isin(rows.column("api_key").to_numpy(), _WANTED).any():
            return
        for part in parts_of_rows(rows):
            in_transaction = self._transactions.open_since is not None
            records = standing_alone(part)
            taken = [*self._transactions.take(records)]
            if taken:
                heads = DeltaHeads.of_part(part, records, in_transaction=in_transaction)
                for table in self._states.take(joined(taken), heads):
                    self.rows.add_table(table)
