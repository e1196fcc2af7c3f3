"""The writer of `local_changes/`, as the streams over a lake's log take it."""

from __future__ import annotations

from kraftlake.image import MetadataImage
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.delta_rows_writer import DeltaRowsWriter
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.history.partition_states import TOPIC_KINDS
from kraftlake.tables.local_changes.states import LocalChangeStates, rows_of_image
from kraftlake.tables.local_changes.table import LOCAL_CHANGES


class LocalChangesWriter(DeltaRowsWriter):
    """Makes the rows of `local_changes/`, by delta, broker, topic, partition and change."""

    description = LOCAL_CHANGES
    kinds = TOPIC_KINDS
    encodes = True

    def __init__(self, *, bulk: bool | None = None) -> None:
        """`bulk` says whether to use compiled code, None: where there is enough to do for it."""
        super().__init__()
        self._bulk = bulk
        self._states = LocalChangeStates(bulk=bulk)

    def _go_on(self, image: MetadataImage, *, told: bool) -> None:  # noqa: ARG002 - of use to others
        self._states = LocalChangeStates(image.topics, bulk=self._bulk)

    def _tell_load(self, image: MetadataImage, heads: DeltaBoundaries) -> None:
        self.rows.add_table(rows_of_image(image.topics, heads))

    def _tell(self, records: EffectiveRecords, heads: DeltaBoundaries) -> None:
        for table in self._states.take(records, heads):
            self.rows.add_table(table)
