"""What is left of a batch when its log is cleaned.

Source: org.apache.kafka.storage.internals.log.Cleaner.cleanInto, org.apache.kafka.common.record.internal.MemoryRecords.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs

from kraftlake.records.batch_header import header_at
from kraftlake.replica_manager.logs.cleaning.batch_content import (
    chosen_records,
    delete_horizon,
    emptied,
    rebuilt,
    records_of,
)
from kraftlake.replica_manager.logs.cleaning.cleaned_transactions import CleanedTransactions
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.log_batch import NO_PRODUCER_ID, LogBatch


class LastRecord(NamedTuple):
    """The last data record of a producer that is known, None where only a marker is left, and the producer's epoch."""

    last_data_offset: int | None
    producer_epoch: int


@attrs.define(eq=False, kw_only=True)
class BatchFilter:
    """Takes the batches of a log in order; times in epoch ms."""

    offset_map: OffsetMap
    transactions: CleanedTransactions
    last_records: Mapping[int, LastRecord]
    """By producer id, of the producers whose next batch has to continue a sequence."""
    now_ms: int
    delete_retention_ms: int

    def filtered(self, batch: LogBatch) -> bytes | memoryview | None:
        """What is left of the next batch, itself or a new one; None for nothing.

        Raises CorruptRecordError for a batch with a wrong checksum or records that can't be read.
        """
        may_discard = self.transactions.may_discard(batch)
        header = header_at(batch.data)
        horizon = delete_horizon(header)
        is_due = horizon is not None and horizon <= self.now_ms
        discards = may_discard and (is_due or not batch.control)
        stays_empty = self._is_last_of_producer(batch)
        if discards or not batch.count:
            return emptied(header) if stays_empty else None
        records = records_of(batch.data, header)
        if batch.control:
            choice = chosen_records(records, header, self.offset_map.table)
        else:
            choice = self.offset_map.choose(header, records, keeps_tombstones=not is_due)
        if not choice.kept:
            return emptied(header) if stays_empty else None
        sets_horizon = horizon is None and (choice.has_tombstones or (may_discard and batch.control))
        if choice.kept == batch.count and not sets_horizon:
            return batch.data
        return rebuilt(header, records, choice, self.now_ms + self.delete_retention_ms if sets_horizon else horizon)

    def _is_last_of_producer(self, batch: LogBatch) -> bool:
        last = self.last_records.get(batch.producer_id)
        if last is None or batch.producer_id == NO_PRODUCER_ID:
            return False
        if last.last_data_offset is None:
            return batch.control and batch.producer_epoch == last.producer_epoch
        return batch.last_offset == last.last_data_offset
