"""Batches that came over the network, decoded."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.protocol import RawBatch
from kraftlake.records.batch import RecordBatch, read_batches


def decoded(batches: Sequence[RawBatch]) -> list[RecordBatch]:
    """The same batches with their records. Raises CorruptDataError for what is no batch of a metadata log."""
    return [batch for raw in batches for batch in read_batches(raw.data, file="the quorum's log")]
