"""The job `replay`: a structured stream from a lake's log into images, local changes and snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from kraftlake.image import MetadataImage
from kraftlake.spark_jobs import run_job
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions
from kraftlake.tables.catch_up.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES
from kraftlake.tables.catch_up.table_run import Progress
from kraftlake.tables.local_changes.table import LOCAL_CHANGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@attrs.frozen(kw_only=True)
class ReplayResult:
    """What a run did.

    `image` is the newest image and `offset` the last offset taken in (its own offset is lower only where a metadata
    transaction is open at the end). `batches` log batches made `deltas` metadata deltas, which made
    `local_change_rows` rows; `snapshots` are the end offsets of the snapshots written. All of them count this run
    alone. `micro_batches` counts those of the stream, `base_offset` is where the run began: the last offset that an
    earlier run had published, -1 for none. `unwritable` says why the newest image has no snapshot, if it has none.
    """

    image: MetadataImage
    offset: int
    base_offset: int
    batches: int
    deltas: int
    local_change_rows: int
    snapshots: tuple[int, ...]
    micro_batches: int
    unwritable: str | None = None


def run_replay(
    lake: str | Path,
    *,
    spark: SparkSession | None = None,
    trigger: str = AVAILABLE_NOW,
    max_files_per_trigger: int | None = None,
    checkpoint: str | Path | None = None,
    on_progress: Progress | None = None,
    until_offset: int | None = None,
    snapshot_every_bytes: int = DEFAULT_SNAPSHOT_BYTES,
) -> ReplayResult:
    """Replay what the lake's log holds beyond what was replayed before, into `local_changes/` and `snapshots/`.

    One metadata delta for each log batch, one for a metadata transaction; the result depends on the log alone, not on
    how the stream cuts it, nor on runs that were killed. The options are those of `StreamOptions`, the rest, and what
    is raised, is as `run_tables` has it.
    """
    done = run_job(
        "replay",
        lake,
        options=StreamOptions.of(
            trigger=trigger, max_files=max_files_per_trigger, checkpoint=checkpoint, until_offset=until_offset
        ),
        snapshot_every_bytes=snapshot_every_bytes,
        spark=spark,
        on_progress=on_progress,
    )
    return ReplayResult(
        image=done.image,
        offset=done.offset,
        base_offset=done.base_offset,
        batches=done.batches,
        deltas=done.deltas,
        local_change_rows=done.rows[LOCAL_CHANGES.name],
        snapshots=done.snapshots,
        micro_batches=done.micro_batches,
        unwritable=done.unwritable,
    )
