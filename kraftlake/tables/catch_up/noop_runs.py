"""Stretches of the log in which nothing happens: batches of no-op records, most of what an idle cluster writes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image import MetadataProvenance
from kraftlake.records.batch import NO_TIMESTAMP
from kraftlake.records.metadata_records import NoOpRecord

_NO_OP: Final = NoOpRecord.API_KEY


class NoOpRun(NamedTuple):
    """Batches of nothing but no-op records, at least one; `rows` are theirs."""

    rows: pa.Table

    @property
    def first_epoch(self) -> int:
        """The epoch of the first batch; epochs don't go down within a run."""
        epoch: int = self.rows.column("epoch")[0].as_py()
        return epoch

    @property
    def batches(self) -> int:
        """How many batches there are."""
        count: int = pc.count_distinct(self.rows.column("batch")).as_py()
        return count

    @property
    def end(self) -> MetadataProvenance:
        """Where the run ends: the provenance of an image at its last offset."""
        last = self.rows.num_rows - 1
        of_batch = pc.equal(self.rows.column("batch"), self.rows.column("batch")[last])
        latest = pc.max(self.rows.column("timestamp").cast(pa.int64()).filter(of_batch)).as_py()
        return MetadataProvenance(
            offset=self.rows.column("offset")[last].as_py(),
            epoch=self.rows.column("epoch")[last].as_py(),
            timestamp=NO_TIMESTAMP if latest is None else latest // 1000,
        )

    def size_from(self, offset: int) -> int:
        """The bytes of the records from an offset on."""
        first: int = self.rows.column("offset")[0].as_py()
        payloads = self.rows.column("payload").slice(max(offset - first, 0))
        return int(pc.sum(pc.binary_length(payloads)).as_py() or 0)


def parts(rows: pa.Table) -> Iterator[NoOpRun | pa.Table]:
    """Rows of whole batches, sorted by offset, cut into quiet runs and what lies between them."""
    if not rows.num_rows:
        return
    bases, epochs = rows.column("batch").to_numpy(), rows.column("epoch").to_numpy()
    no_ops = pc.and_(pc.equal(rows.column("api_key"), _NO_OP), pc.invert(rows.column("control"))).to_numpy()
    begins = np.flatnonzero(np.diff(bases, prepend=bases[0] - 1))
    quiet = np.logical_and.reduceat(no_ops, begins)
    falls = np.diff(epochs[begins], prepend=epochs[0]) < 0
    turns = np.flatnonzero((np.diff(quiet, prepend=quiet[0]) != 0) | falls)
    edges = [0, *turns.tolist(), len(begins)]
    for first, last in pairwise(edges):
        if first == last:
            continue
        start = int(begins[first])
        stop = int(begins[last]) if last < len(begins) else rows.num_rows
        part = rows.slice(start, stop - start)
        yield NoOpRun(part) if quiet[first] else part
