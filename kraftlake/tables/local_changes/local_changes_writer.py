"""The writer of `local_changes/`."""

from __future__ import annotations

from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
from kraftlake.replay.log.partition_changes import changes_of_image
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.local_changes.local_changes_columns import local_change_table
from kraftlake.tables.local_changes.local_changes_table import LOCAL_CHANGES


class LocalChangesWriter(ChangesWriter):
    """Makes the rows of `local_changes/`, by delta, broker, topic, partition and change."""

    description = LOCAL_CHANGES
    encodes = True
    of_topics = True

    def begin_deltas(self, begin: LogBegin) -> None:
        """Initialize at the end of the table; the rows of a load are added."""
        if begin.is_load and begin.image.topics.partition_count:
            self.rows.add_table(local_change_table(changes_of_image(begin.image.topics), begin.boundaries))

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Add the rows of deltas."""
        if len(chunk.partitions):
            self.rows.add_table(local_change_table(chunk.partitions, chunk.boundaries))
