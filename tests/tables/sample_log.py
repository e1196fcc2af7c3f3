"""The sample log as batches, and lakes made of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.directory import open_directory
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.metadata_log.maintenance.trimming import set_properties, trim
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.fold import image_at, loader_at
from kraftlake.replay.reading.open_reader import LakeReader

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SAMPLE = SAMPLES / "kafka-4.4" / "log" / "__cluster_metadata-0"
LAST_OFFSET = 5736


@cache
def sample_batches() -> tuple[RecordBatch, ...]:
    return tuple(open_directory(SAMPLE).batches())


def batches_between(first: int, last: int) -> list[RecordBatch]:
    """The batches whose offsets lie in [first, last]."""
    return [batch for batch in sample_batches() if first <= batch.base_offset and batch.last_offset <= last]


def append_in(log: MetadataLog, commits: int, batches: Sequence[RecordBatch]) -> None:
    """Append in so many commits of about as many batches each."""
    cuts = [len(batches) * number // commits for number in range(commits + 1)]
    for start, end in pairwise(cuts):
        log.append(batches[start:end])


def lake_of(path: Path, *, commits: int, last: int = LAST_OFFSET) -> MetadataLog:
    """A lake with the sample up to `last` and no snapshots."""
    log = MetadataLog.create(path)
    append_in(log, commits, batches_between(0, last))
    return log


def image_without_spark(lake: Path) -> MetadataImage:
    """The last image of a lake, from its log alone."""
    log = MetadataLog.open(lake)
    from_snapshot = None if log.start_offset else False
    return image_at(LakeReader(log), log.end_offset - 1, from_snapshot=from_snapshot).image


def trim_to_a_snapshot(log: MetadataLog, before: int) -> None:
    """Write a snapshot with the end offset `before`, and remove the files of the log that lie before it."""
    loader = loader_at(LakeReader(log), before - 1)
    keep_snapshot(log, loader.take_image(), loader.quorum)
    set_properties(Disk(), read_table(log.path / LOG_TABLE), {"kraftlake.max_stream_lag_ms": "0"})
    trim(log.path / LOG_TABLE, Disk(), before, [before])
    log.refresh()
