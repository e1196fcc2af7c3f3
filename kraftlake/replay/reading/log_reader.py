"""The readers of a metadata log: of Kafka's own files, or of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kraftlake.kafka_files.directory import MetadataDirectory
    from kraftlake.kafka_files.snapshots.snapshot import Snapshot
    from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
    from kraftlake.replay.reading.open_reader import LakeReader

LogReader: TypeAlias = "MetadataDirectory | LakeReader"
"""A metadata log and the snapshots beside it. Offsets are Kafka's; `end_offset` is exclusive.

Both have `name` (for messages), `cluster_id` (None if unknown), `start_offset`, `end_offset`, `snapshots` (all of them,
by end offset) and `batches(from_offset, to_offset)`: the whole batches that hold any offset of the range, in order.
"""

SnapshotReader: TypeAlias = "Snapshot | LakeSnapshot"
"""A snapshot: the image after the offsets below `end_offset`, as records.

Both have the attributes that `Snapshot` documents; offsets inside of a snapshot count from 0. `size_in_bytes` is that
of the file as Kafka wrote it, 0 where there never was one. `damage()` is the reason why a snapshot must not be used,
None for a sound one.
"""
