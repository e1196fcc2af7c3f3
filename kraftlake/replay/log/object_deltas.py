"""Metadata deltas as objects: for records that no compiled code takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.replay.log.effective_records import EffectiveRecords


def object_deltas(
    records: EffectiveRecords, deltas: Any, kinds: Collection[int], image: Callable[[], MetadataImage]
) -> Iterator[tuple[int, MetadataDelta]]:
    """The metadata deltas of records, with the records of some kinds replayed; `deltas` (int64) are their numbers.

    `image` is asked for the image in front of each when it is its turn. Raises ReplayError or CorruptDataError, naming
    the offset, for a record that contradicts what is there.
    """
    edges = [0, *(np.flatnonzero(np.diff(deltas)) + 1).tolist(), len(records)] if len(records) else []
    for first, last in pairwise(edges):
        delta = MetadataDelta(image(), of_log=True)
        for index in range(first, last):
            replay_into(delta, records, index, kinds)
        yield int(deltas[first]), delta


def replay_into(delta: MetadataDelta, records: EffectiveRecords, index: int, kinds: Collection[int]) -> None:
    """Replay one of the records, where it is of one of the kinds; raises as `object_deltas`."""
    offset = int(records.offsets[index])
    message = decode_record(records.value(index), offset)
    if getattr(message, "API_KEY", None) in kinds:
        delta.replay(message, offset)
