"""The images of a lake's large snapshots as columns, made by an import for `loader.image_cache`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
from kraftlake.records.metadata_records import PartitionRecord, TopicRecord
from kraftlake.records.serde import read_frame
from kraftlake.replay.loader.fold import snapshot_image
from kraftlake.replay.loader.image_cache import load_cached, save_columns
from kraftlake.runtime.errors import KraftlakeError, ReplayError
from kraftlake.runtime.log import get_logger

WORTH_CACHING: Final = 20_000
"""The number of records below which a snapshot's records are read about as fast as its columns."""

_IN_COLUMNS = frozenset({TopicRecord.API_KEY, PartitionRecord.API_KEY})
"""The records that the columns hold."""


def fill_cache(lake: Path, snapshots: tuple[LakeSnapshot, ...]) -> None:
    """Cache the images of large snapshots that are not cached yet; a fault is logged, not raised."""
    for snapshot in snapshots:
        if snapshot.bootstrap or snapshot.record_count < WORTH_CACHING or load_cached(lake, snapshot) is not None:
            continue
        try:
            save_to_cache(lake, snapshot)
        except (OSError, KraftlakeError) as fault:
            get_logger(__name__).warning("image_not_cached", snapshot=snapshot.name, lake=str(lake), reason=str(fault))


def save_to_cache(lake: Path, snapshot: LakeSnapshot) -> None:
    """Replay a snapshot, check that columns give the same image, and cache them.

    Raises OSError, or the errors of the replay.
    """
    from kraftlake.replay.loader.image_columns import image_from_arrow, image_to_arrow

    replay = snapshot_image(snapshot)
    values = (value for batch in snapshot.batches() if not batch.control for value in batch.values)
    columns = image_to_arrow(replay.image, [value for value in values if read_frame(value)[0] not in _IN_COLUMNS])
    if image_from_arrow(columns, replay.image.provenance) != replay.image:
        raise ReplayError(f"The columns of {snapshot.name} give another image than its records.")
    save_columns(lake, snapshot, columns, replay.quorum)
