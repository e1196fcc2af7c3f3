"""Lakes that were written to for many days: a change and a few no-op records each day, and a snapshot after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.trimming import declare_stream_lag
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.fold import loader_at
from kraftlake.replay.reading.open_reader import LakeReader

DAY_MS = 86_400_000
BEGIN_MS = 1_735_732_800_000
"""2025-01-01T12:00:00Z."""
RECORDS_A_DAY = 2


def lake_of_days(path: Path, days: int, *, snapshots_a_day: int = 1) -> Path:
    """A lake whose last record is as old as now; streams over it lag behind by nothing."""
    log = MetadataLog.create(path, durability="os")
    level = r.FeatureLevelRecord(name="metadata.version", feature_level=25)
    log.append([RecordBatch.of(0, 1, BEGIN_MS - DAY_MS, [ApiMessageAndVersion(level, 0)])])
    declare_stream_lag(path / "log", log.disk, 0)
    log.refresh()
    for day in range(days):
        add_day(log, BEGIN_MS + day * DAY_MS, f"day-{day}", snapshots=snapshots_a_day)
    return path


def add_day(log: MetadataLog, time_ms: int, value: str, *, snapshots: int = 1) -> None:
    """Records of a day from a time on, and snapshots within it."""
    config = r.ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value=value)
    for part in range(snapshots):
        records = [ApiMessageAndVersion(config, 0), *[ApiMessageAndVersion(r.NoOpRecord(), 0)] * (RECORDS_A_DAY - 1)]
        time = time_ms + part * DAY_MS // (2 * snapshots)
        for one in records:
            log.append([RecordBatch.of(log.end_offset, 1, time, [one])])
        loader = loader_at(LakeReader(log), log.end_offset - 1)
        keep_snapshot(log, loader.take_image())


def answers(lake: Path, first: int) -> list[Any]:
    """The images of a lake from an offset on, and its records from there on."""
    source = kraftlake.open(lake)
    images = [source.image(offset) for offset in range(first, source.end_offset)]
    values = [dict(image.configs.config_map(resource)) for image in images for resource in image.configs.resource_data]
    return [values, [(record.offset, record.type) for record in source.records(from_offset=first + 1)]]


def first_of_day(day: int) -> int:
    """The offset of the first record of a day, of a lake with one snapshot a day."""
    return 1 + day * RECORDS_A_DAY


def last_time_ms(days: int) -> int:
    """The time of the newest record."""
    return BEGIN_MS + (days - 1) * DAY_MS
