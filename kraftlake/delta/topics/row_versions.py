"""The versions of partitions that a bulk change has made, by record. Imports numpy."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels.replay.journal import Journal


@attrs.frozen(kw_only=True, eq=False)
class RowVersions:
    """The versions of partitions, in the order of the records.

    `records` (int64[n]): numbers of the records. `places` (int64[n]): the partitions, by place. `before` and `after`
    (int32[n, 14]): their rows around the record, all zeros where there is no partition. `did` (uint8[n]): flags of
    `Journal`. `created` and `removed` (int64[m, 2]): the records that created or removed topics, with the topics'
    numbers.
    """

    records: Any
    places: Any
    before: Any
    after: Any
    did: Any
    created: Any
    removed: Any


def room_for_versions(size: int, old: Journal | None = None) -> Journal:
    """A journal with room for a number of versions, and those of an old one at its beginning."""
    numbers, rows = np.empty((2, size), np.int64), [np.empty((size, COLUMNS), np.int32) for _ in range(2)]
    journal = Journal._make([*numbers, *rows, np.empty(size, np.uint8)])
    if old is not None:
        for array, known in zip(journal, old, strict=True):
            array[: len(known)] = known
    return journal


NO_JOURNAL = room_for_versions(0)
