"""What records mean to all brokers, one metadata delta after the other: a pure function of them and of a first image.

Most records go through compiled code, as columns; what is odd about a record makes the rest of its piece go by objects.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kraftlake import kernels
from kraftlake.delta import MetadataDelta, TopicsDelta
from kraftlake.image import MetadataImage
from kraftlake.image.topics_image import TopicsImage
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.history.partition_states import BULK_FROM, TOPIC_KINDS
from kraftlake.spark_jobs.local_changes import SCHEMA, Row, local_change_rows
from kraftlake.spark_jobs.record_messages import message_at
from kraftlake.spark_jobs.table_writer import RowBuffer

if TYPE_CHECKING:
    from kraftlake.spark_jobs.bulk_local_changes import BulkLocalChanges

_KINDS = 128


class LocalChangeStates:
    """The topics after a metadata delta; `take` moves them on over further deltas.

    What comes out depends on the records and deltas alone, not on how they are cut into pieces: between two deltas.
    """

    def __init__(self, topics: TopicsImage = TopicsImage.EMPTY, *, bulk: bool | None = None) -> None:
        """Begin with an image; `bulk` says whether to use compiled code, None: where there is enough to do for it."""
        self._bulk_wanted = bulk
        self._bulk: BulkLocalChanges | None = None
        self._objects = topics

    @property
    def in_columns(self) -> bool:
        """Whether compiled code is at work."""
        return self._bulk is not None

    def take(self, records: EffectiveRecords, heads: DeltaHeads) -> list[pa.Table]:
        """Replay the records of whole deltas, which follow those before; the rows of `local_changes/`, in order.

        A record is of the first delta whose last offset is at or behind the one at which it takes effect. Records of
        other kinds than `TOPIC_KINDS` are left out. Raises ReplayError or CorruptDataError, naming the offset, for a
        record that contradicts what is there.
        """
        chosen = np.zeros(_KINDS + 1, np.bool_)
        chosen[[*TOPIC_KINDS, -1]] = True  # the last place is that of odd frames, which may hold anything
        records = records.where(chosen[records.kinds])
        if not len(records):
            return []
        deltas = np.searchsorted(heads.offsets, records.effective)
        if self._bulk is not None and self._bulk.places.is_worn:
            self._objects, self._bulk = self._bulk.places.topics(), None
        if self._bulk is None and self._wants_bulk(len(records)):
            self._become_bulk()
        rows: list[pa.Table] = []
        done = 0
        if self._bulk is not None:
            done, table = self._bulk.take(records, deltas, heads)
            rows.append(table)
            if done < len(records):
                self._objects, self._bulk = self._bulk.places.topics(), None
        if done < len(records):
            rows.append(self._take_objects(records.where(np.s_[done:]), deltas[done:], heads))
        return rows

    def _take_objects(self, records: EffectiveRecords, deltas: Any, heads: DeltaHeads) -> pa.Table:
        rows = RowBuffer(SCHEMA)
        edges = [0, *(np.flatnonzero(np.diff(deltas)) + 1).tolist(), len(records)]
        for first, last in pairwise(edges):
            delta = MetadataDelta(MetadataImage(topics=self._objects), of_log=True)
            for index in range(first, last):
                message = message_at(records, index)
                if getattr(message, "API_KEY", None) in TOPIC_KINDS:
                    delta.replay(message, int(records.offsets[index]))
            topics = delta.topics_delta
            if topics is not None:
                rows.extend(local_change_rows(topics, _head(heads, int(deltas[first]))))
                self._objects = topics.apply()
        return rows.take()

    def _wants_bulk(self, count: int) -> bool:
        if self._bulk_wanted is None:
            return count >= BULK_FROM and kernels.available()
        return self._bulk_wanted

    def _become_bulk(self) -> None:
        from kraftlake.spark_jobs.bulk_local_changes import BulkLocalChanges  # imports numba
        from kraftlake.spark_jobs.partition_places import fits

        if fits(self._objects):
            self._bulk, self._objects = BulkLocalChanges(self._objects), TopicsImage.EMPTY


def rows_of_image(topics: TopicsImage, heads: DeltaHeads) -> pa.Table:
    """The rows of one metadata delta that makes a whole image of the empty one."""
    if topics.is_empty():
        return SCHEMA.empty_table()
    if kernels.available():
        from kraftlake.spark_jobs.bulk_local_changes import BulkLocalChanges
        from kraftlake.spark_jobs.partition_places import fits

        if fits(topics):
            return BulkLocalChanges(topics).as_new(heads)
    delta = TopicsDelta(TopicsImage.EMPTY)
    delta.take_all_of(topics)
    rows = RowBuffer(SCHEMA)
    rows.extend(local_change_rows(delta, _head(heads, 0)))
    return rows.take()


def _head(heads: DeltaHeads, delta: int) -> Row:
    time = int(heads.times[delta])
    return int(heads.offsets[delta]), int(heads.epochs[delta]), None if time < 0 else time * 1000
