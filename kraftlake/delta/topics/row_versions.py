"""The versions of partitions that a bulk change has made, by record. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def row_versions(columns: Sequence[Any], others: Sequence[Any], are_removed: Callable[[Any], Any]) -> RowVersions:
    """Versions from the columns of a journal, and what else `compiled.replay` has passed on (int64[n, 2] each).

    `are_removed` says of the numbers of records (int64[n]) which of them removed a topic.
    """
    records, places, before, after, did = map(np.asarray, columns)
    topics = np.concatenate([np.empty((0, 2), np.int64), *others])
    topics = topics[topics[:, 1] >= 0]
    removed = are_removed(topics[:, 0])
    return RowVersions(
        records=records, places=places, before=before, after=after, did=did, created=topics[~removed],
        removed=topics[removed],
    )  # fmt: skip
