"""What records mean to all brokers, one metadata delta after the other: a pure function of them and of a first image.

Most records go through compiled code, as columns; what is odd about a record makes the rest of its piece go by objects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake import kernels
from kraftlake.delta import TopicsDelta
from kraftlake.image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.tables.changes.object_deltas import object_deltas
from kraftlake.tables.changes.topics_state import TopicsInTurn
from kraftlake.tables.history.partition_states import TOPIC_KINDS
from kraftlake.tables.local_changes.table import SCHEMA, local_change_rows
from kraftlake.tables.table_writer import RowBuffer


class LocalChangeStates:
    """The topics after a metadata delta; `take` moves them on over further deltas.

    What comes out depends on the records and deltas alone, not on how they are cut into pieces: between two deltas.
    """

    def __init__(self, topics: TopicsImage = TopicsImage.EMPTY, *, bulk: bool | None = None) -> None:
        """Begin with an image; `bulk` says whether to use compiled code, None: where there is enough to do for it."""
        self._topics = TopicsInTurn(topics, bulk=bulk)

    @property
    def in_columns(self) -> bool:
        """Whether compiled code is at work."""
        return self._topics.in_places

    def take(self, records: EffectiveRecords, heads: DeltaBoundaries) -> list[pa.Table]:
        """Replay the records of whole deltas, which follow those before; the rows of `local_changes/`, in order.

        A record is of the first delta whose last offset is at or behind the one at which it takes effect. Records of
        other kinds than `TOPIC_KINDS` are left out. Raises ReplayError or CorruptDataError, naming the offset, for a
        record that contradicts what is there.
        """
        records = records.of_kinds((*TOPIC_KINDS, UNKNOWN_KIND))
        if not len(records):
            return []
        deltas = np.searchsorted(heads.offsets, records.effective)
        rows: list[pa.Table] = []
        done, places = 0, self._topics.places(len(records))
        if places is not None:
            from kraftlake.tables.local_changes.bulk_local_changes import bulk_local_changes

            done, table = bulk_local_changes(places, records, deltas, heads)
            rows.append(table)
        if done < len(records):
            rows.append(self._take_objects(records.where(np.s_[done:]), deltas[done:], heads))
        return rows

    def _take_objects(self, records: EffectiveRecords, deltas: Any, heads: DeltaBoundaries) -> pa.Table:
        rows = RowBuffer(SCHEMA)
        for number, delta in object_deltas(
            records, deltas, TOPIC_KINDS, lambda: MetadataImage(topics=self._topics.image())
        ):
            topics = delta.topics_delta
            if topics is not None:
                rows.extend(local_change_rows(topics, heads.row(number)))
                self._topics.become(topics.apply())
        return rows.take()


def rows_of_image(topics: TopicsImage, heads: DeltaBoundaries) -> pa.Table:
    """The rows of one metadata delta that makes a whole image of the empty one."""
    if topics.is_empty():
        return SCHEMA.empty_table()
    if kernels.available():
        from kraftlake.tables.changes.partition_store import fits
        from kraftlake.tables.local_changes.bulk_local_changes import changes_as_new

        if fits(topics):
            return changes_as_new(topics, heads)
    delta = TopicsDelta(TopicsImage.EMPTY)
    delta.take_all_of(topics)
    rows = RowBuffer(SCHEMA)
    rows.extend(local_change_rows(delta, heads.row(0)))
    return rows.take()
