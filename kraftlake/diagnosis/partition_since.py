"""The start of the present states of many partitions, by columns. Imports numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.diagnosis.image_columns import pair_keys
from kraftlake.diagnosis.thing_changes import image_after
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kernels.partition_row import PARTITION_EPOCH
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.replay.queries.source import LogSource
from kraftlake.tables.events.distinct_changes import event_columns

_FIELDS: Final = 3


def partitions_since(
    source: LogSource, topics: Mapping[str, Any], begin: int, at: int
) -> list[tuple[str, str, tuple[dict[str, Any], ...], int | None]] | None:
    """Each partition with the SINCE of its leader, its ISR and its whole state, as `since_of` has them.

    And with its leader before the present one, None where it had none or that is not known.

    `topics` is that of an image's JSON form at the offset `at`, or a part of it; a partition is the topic's name and
    its number as they are there. The log is replayed from the image at the offset `begin`, one that `begins_of` gives.
    None where one metadata transaction has changed a partition more than once: columns have what it was before and
    after alone, and it may have been something else in between. Raises what replaying the log raises.
    """
    image = image_after(source, begin)
    since = _Since(topics, begin, image.provenance.timestamp)
    deltas = LogReplay()
    deltas.begin(image)
    for chunk in deltas.read(source.reader, at):
        if not since.take(chunk.partitions):
            return None
    return since.found()


class _Since:
    """The offset and time from which each field of the wanted partitions has its value, after the added changes."""

    def __init__(self, topics: Mapping[str, Any], begin: int, time: int) -> None:
        """Initialize all fields with the offset and time of the image before the changes: values hold since then."""
        self._names = [(name, number) for name, topic in topics.items() for number in topic["partitions"]]
        self._ids = pa.array([topic["id"] for topic in topics.values()], pa.string())
        numbers = np.array([int(number) for _, number in self._names], np.int64)
        sizes = [len(topic["partitions"]) for topic in topics.values()]
        keys = pair_keys(np.repeat(np.arange(len(sizes)), sizes), numbers)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        shape = (_FIELDS, len(keys))
        self._offsets, self._times = np.full(shape, begin, np.int64), np.full(shape, time, np.int64)
        self._or_earlier = np.ones(shape, np.bool_)
        self._led_by = np.full(len(keys), NO_LEADER, np.int64)

    def take(self, changes: PartitionChanges) -> bool:
        """Add the changes that follow the earlier ones; false where one of them may be more than one change."""
        if not len(changes):
            return True
        topics = pc.index_in(changes.names.ids, self._ids).fill_null(-1).to_numpy()[changes.topics]
        changed = np.flatnonzero((topics >= 0) & (changes.flags & HAS != 0) & changes.altered)
        keys = pair_keys(topics[changed], changes.partitions[changed])
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        wanted = self._keys[places] == keys
        changes, places = changes.take(changed[wanted]), self._order[places[wanted]]
        before, after = event_columns(changes, changes.before), event_columns(changes, changes.after)
        is_new = changes.flags & HAD == 0
        epochs = changes.after[:, PARTITION_EPOCH] - changes.before[:, PARTITION_EPOCH]  # one more by each change
        if not (is_new | (epochs == 1)).all():
            return False
        for field, differ in enumerate((before.leader != after.leader, before.isr.differ_from(after.isr), True)):
            rows = np.flatnonzero(is_new | differ)
            self._offsets[field, places[rows]] = changes.offsets[rows]  # of several of one partition the last stays
            self._times[field, places[rows]] = changes.times[rows]
            self._or_earlier[field, places[rows]] = False
            if field == 0:
                self._led_by[places[rows]] = np.where(is_new, NO_LEADER, before.leader)[rows]
        return True

    def found(self) -> list[tuple[str, str, tuple[dict[str, Any], ...], int | None]]:
        """The result of `partitions_since`."""
        columns = (self._offsets, self._times, self._or_earlier)
        by_field = [
            [
                {"offset": offset, "timestamp": None if time < 0 else time} | ({"orEarlier": True} if earlier else {})
                for offset, time, earlier in zip(*(column[field].tolist() for column in columns), strict=True)
            ]
            for field in range(_FIELDS)
        ]
        led_by = [None if leader == NO_LEADER else leader for leader in self._led_by.tolist()]
        return [(*of, *rest) for of, *rest in zip(self._names, zip(*by_field, strict=True), led_by, strict=True)]
