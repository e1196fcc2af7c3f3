"""The images of the sample logs, replayed here with nothing but records, images and deltas."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import TornBatchError, read_batches
from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from kraftlake.records.schema import Message

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
REPLAYABLE = ("kafka-4.4", "crash-torn")


@attrs.frozen
class Step:
    """One offset and the records that take effect there (those of a transaction at its end)."""

    provenance: MetadataProvenance
    messages: tuple[Message, ...]


@cache
def steps(sample: str) -> tuple[Step, ...]:
    return tuple(_steps(sample))


def _steps(sample: str) -> Iterator[Step]:
    open_transaction: list[Message] | None = None
    for file in sorted((SAMPLES / sample / "log" / "__cluster_metadata-0").glob("*.log")):
        batches = read_batches(file.read_bytes(), file=file.name)
        while (batch := _next_whole(batches)) is not None:
            for offset, record in enumerate(batch.messages(), start=batch.base_offset):
                effective: tuple[Any, ...] = ()
                if batch.control:
                    pass
                elif isinstance(record.message, BeginTransactionRecord):
                    open_transaction = []
                elif isinstance(record.message, EndTransactionRecord):
                    effective, open_transaction = tuple(open_transaction or ()), None
                elif isinstance(record.message, AbortTransactionRecord):
                    open_transaction = None
                elif open_transaction is not None:
                    open_transaction.append(record.message)
                else:
                    effective = (record.message,)
                aligned = offset == batch.last_offset
                yield Step(MetadataProvenance(offset=offset, epoch=batch.epoch, batch_aligned=aligned), effective)


def _next_whole(batches: Iterator[Any]) -> Any:
    try:
        return next(batches, None)
    except TornBatchError:
        return None


@cache
def images(sample: str) -> dict[int, MetadataImage]:
    """The image at every offset, one delta an offset; -1 is the empty one."""
    result = {-1: MetadataImage.EMPTY}
    image = MetadataImage.EMPTY
    for step in steps(sample):
        delta = MetadataDelta(image)
        for message in step.messages:
            delta.replay(message, step.provenance.offset)
        image = result[step.provenance.offset] = delta.apply(step.provenance)
    return result


def one_delta(sample: str, base: int, last: int) -> MetadataDelta:
    """One delta of the offsets (base, last]."""
    delta = MetadataDelta(images(sample)[base])
    for step in steps(sample):
        if base < step.provenance.offset <= last:
            for message in step.messages:
                delta.replay(message, step.provenance.offset)
    return delta


def expected(sample: str, pattern: str) -> dict[tuple[int, ...], Any]:
    """The expected results whose file name matches, by the numbers in the name."""
    found = {}
    for file in (SAMPLES / sample / "expected").glob("*.json.gz"):
        match = re.fullmatch(pattern + r"\.json\.gz", file.name)
        if match:
            found[tuple(int(number) for number in match.groups())] = json.loads(gzip.decompress(file.read_bytes()))
    return found
