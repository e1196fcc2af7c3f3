"""The sums of stretches by topic, partition or broker. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from kraftlake.diagnosis.availability.broker_losses import Cause
from kraftlake.diagnosis.availability.stretches import Stretches, Trouble
from kraftlake.diagnosis.availability.timeline import NONE

Names: TypeAlias = Callable[[Any], Sequence[str]]
"""Gives the names of partitions by their keys (int64)."""

_SECONDS: Final = {
    Trouble.OFFLINE: "offline_seconds",
    Trouble.LED_BY_FENCED: "led_by_fenced_seconds",
    Trouble.UNDER_MIN_ISR: "under_min_isr_seconds",
    Trouble.ONE_IN_SYNC: "one_in_sync_seconds",
}

MEASURES: Final = pa.schema(
    [
        ("partitions", pa.int64()),
        ("seconds", pa.float64()),
        *((name, pa.float64()) for name in _SECONDS.values()),
        ("any_offline_seconds", pa.float64()),
        ("available_percent", pa.float64()),
        ("longest_trouble", pa.string()),
        ("longest_seconds", pa.float64()),
        ("longest_partition", pa.string()),
        ("longest_begin_timestamp", pa.int64()),
        ("longest_end_timestamp", pa.int64()),
        ("cause", pa.string()),
        ("cause_broker", pa.int32()),
        ("cause_offset", pa.int64()),
    ]
)
"""The columns of a row that measure; those of the longest stretch are null without one."""


def summed(stretches: Stretches, groups: Any, count: int, names: Names, *, exists: int | None = None) -> pa.Table:
    """A row of MEASURES for each of `count` groups, the worst first, with the number of each as the column `group`.

    `groups` (int64) are those of the stretches. The time of a group is that in which its partitions exist, or for each
    that of `exists` (ms).
    """
    is_trouble, lengths = stretches.troubles != Trouble.EXISTS, stretches.lengths
    sums = {
        trouble: np.bincount(groups[some], lengths[some], count)
        for trouble in Trouble
        for some in [stretches.troubles == trouble]
    }
    existed = sums[Trouble.EXISTS] if exists is None else np.full(count, exists, np.float64)
    offline = stretches.troubles == Trouble.OFFLINE
    available = np.full(count, np.nan)
    np.divide(100 * (existed - sums[Trouble.OFFLINE]), existed, out=available, where=existed > 0)
    columns = {
        "group": pa.array(np.arange(count)),
        "partitions": pa.array(_distinct(groups, stretches.keys, count)),
        "seconds": pa.array(existed / 1000),
        **{name: pa.array(sums[trouble] / 1000) for trouble, name in _SECONDS.items()},
        "any_offline_seconds": pa.array(_union(stretches.take(offline), groups[offline], count) / 1000),
        "available_percent": pa.array(available, mask=existed <= 0),
        **_longest(stretches.take(is_trouble), groups[is_trouble], count, names),
    }
    made = pa.table(columns, pa.schema([("group", pa.int64()), *MEASURES]))
    worst = np.lexsort((np.arange(count), *(-sums[trouble] for trouble in reversed(_SECONDS))))
    return made.take(worst)


def _distinct(groups: Any, keys: Any, count: int) -> Any:
    """The number of different keys in each group."""
    order = np.lexsort((keys, groups))
    groups, keys = groups[order], keys[order]
    is_new = np.append(np.ones(min(len(keys), 1), np.bool_), (np.diff(groups) != 0) | (np.diff(keys) != 0))
    return np.bincount(groups[is_new], minlength=count)


def _union(stretches: Stretches, groups: Any, count: int) -> Any:
    """The time (ms) of each group in which any of its stretches is."""
    order = np.lexsort((stretches.begins, groups))
    groups = groups[order]
    times, ranks = np.unique(np.append(stretches.begins[order], stretches.ends[order]), return_inverse=True)
    begins, ends = ranks.reshape(2, -1) + groups * len(times)  # so that no group reaches into the next
    reached = np.append(0, np.maximum.accumulate(ends)[:-1])[: len(ends)]
    begins = np.minimum(np.maximum(begins, reached), ends)
    return np.bincount(groups, (times[ends - groups * len(times)] - times[begins - groups * len(times)]), count)


def _longest(stretches: Stretches, groups: Any, count: int, names: Names) -> Mapping[str, pa.Array]:
    """The columns of each group's longest stretch: of its worst trouble, and of several as long the first."""
    order = np.lexsort((stretches.keys, stretches.begins, -stretches.lengths, stretches.troubles, groups))
    kept, first = np.unique(groups[order], return_index=True)
    found = stretches.take(order[first])
    columns: dict[str, Any] = {
        "longest_trouble": [Trouble(one).name.lower() for one in found.troubles.tolist()],
        "longest_seconds": found.lengths / 1000,
        "longest_partition": names(found.keys),
        "longest_begin_timestamp": found.begins,
        "longest_end_timestamp": pa.array(found.ends, mask=found.goes_on),
        "cause": [Cause(one).name.lower() for one in found.causes.tolist()],
        "cause_broker": pa.array(found.brokers.astype(np.int32), mask=found.brokers < 0),
        "cause_offset": pa.array(found.offsets, mask=found.offsets < 0),
    }
    places = np.full(count, NONE)
    places[kept] = np.arange(len(kept))
    rows = pa.array(places, mask=places < 0)
    return {name: pa.array(values, MEASURES.field(name).type).take(rows) for name, values in columns.items()}
