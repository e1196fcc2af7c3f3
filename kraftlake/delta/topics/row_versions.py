"""The versions of partitions that a bulk change has made, by record. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np


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


def row_versions(columns: Sequence[Any], created: list[list[int]], removed: list[list[int]]) -> RowVersions:
    """Versions from the columns of a journal."""
    records, places, before, after, did = map(np.asarray, columns)
    topics = {"created": created, "removed": removed}
    numbers = {name: np.array(some, np.int64).reshape(-1, 2) for name, some in topics.items()}
    return RowVersions(records=records, places=places, before=before, after=after, did=did, **numbers)
