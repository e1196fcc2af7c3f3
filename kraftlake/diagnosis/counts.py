"""Kafka's controller counts after each record of a log. Imports numpy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from kraftlake.image import MetadataImage
from kraftlake.replay import LogReader, chunks_of, readable_batches
from kraftlake.replay.log.other_records import OtherRecords
from kraftlake.tables import (
    ClusterCounter,
    EffectiveRecords,
    LogBegin,
    PartitionStore,
    TransactionReader,
    standing_alone,
    topic_counts,
)


class CountsAfter(NamedTuple):
    """Offsets (int64[n], ascending) at which records change a count, their times (epoch ms, -1 for none), and the
    counts after each (int64[n, 7], as ClusterCounts).
    """

    offsets: Any
    times: Any
    counts: Any


def count_changes(
    reader: LogReader, begin: MetadataImage, at: int, *, without: Collection[int] | None = None
) -> Iterator[CountsAfter]:
    """The changes of the counts after an image, up to and including the offset `at`; the first is the image's own.

    A record within a metadata transaction counts from the transaction's end on. With `without`, the offsets of records
    that a lenient replay skips, these are left out, and what can't be read is passed over. Raises ReplayError,
    UnknownRecordError or CorruptDataError, naming the offset, for a record that can't be replayed.
    """
    start = begin.provenance
    log_begin = LogBegin(image=begin)
    counter, store, transactions = ClusterCounter(log_begin), PartitionStore(begin.topics), TransactionReader()
    others = OtherRecords(begin)
    yield CountsAfter(np.array([start.offset]), np.array([start.timestamp]), counter.counts[None])
    if start.offset >= at:
        return

    def lost(*_: object) -> None:
        nonlocal transactions
        transactions = TransactionReader()  # the open one may have ended there

    first = start.offset + 1
    for chunk in chunks_of(reader, first, at) if without is None else readable_batches(reader, first, at, lost):
        alone = standing_alone(chunk)
        left_out = np.isin(alone.offsets, [*(without or ())])
        alone = alone.where((alone.offsets >= first) & (alone.offsets <= at) & ~left_out)
        if not len(alone):
            continue
        for records in transactions.take(alone):
            yield from _counted(records, store, others, counter)


def _counted(
    records: EffectiveRecords, store: PartitionStore, others: OtherRecords, counter: ClusterCounter
) -> Iterator[CountsAfter]:
    """The changes that records make, each offset at which some take effect counting as a delta of its own."""
    if not len(records):
        return
    begins = np.diff(records.effective, prepend=-1) != 0
    offsets, times, deltas = records.effective[begins], records.times[begins], np.cumsum(begins) - 1
    first = of_first = 0
    for last, changes in store.fold(records, deltas):
        of_last = len(offsets) if last == len(records) else int(deltas[last])
        if of_last > of_first:
            growth = topic_counts(changes.counted_from(of_first, first), of_last - of_first)
            of_brokers, fault = others.replay(records.part(first, last), deltas[first:last].tolist(), {}, None)
            if fault is not None:
                raise fault[1]
            changed, counts = counter.take(offsets[of_first:of_last], growth, of_brokers, with_first=False)
            yield CountsAfter(offsets[of_first + changed], times[of_first + changed], counts[:, : len(counter.counts)])
        first, of_first = last, of_last
