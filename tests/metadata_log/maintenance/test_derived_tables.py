from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
from kraftlake.runtime.errors import LakeError
from kraftlake.tables.lake_table import LakeTable, TableDescription
from tests.metadata_log.maintenance.test_upkeep import grown, upkeep, with_snapshot

ROWS = pa.table({"offset": pa.array([0], pa.int64())})


def made_of(log: MetadataLog, name: str, covers: int | None) -> LakeTable:
    """A derived table as the Spark jobs make them."""
    table = LakeTable(TableDescription(name, "Of a test.", ((pa.field("offset", pa.int64()), "where"),)), log.path)
    table.create(read_table(log.path / "log").metadata.id)
    if covers is not None:
        table.append(ROWS, covers)
    return table


def test_they_are_found_with_the_offset_that_they_cover(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 3)
    made_of(log, "events", 4)
    made_of(log, "empty", None)
    with_snapshot(log, 1)
    (log.path / "_spark").mkdir()
    (log.path / "image_cache").mkdir()
    DeltaTable.create(log.path / "somebody_s", schema=ROWS.schema)
    LakeTable(TableDescription("of_another_log", "x", ((pa.field("offset", pa.int64()), "x"),)), log.path).create("no")
    (log.path / "damaged" / "_delta_log").mkdir(parents=True)
    (log.path / "damaged" / "_delta_log" / f"{0:020d}.json").write_text("{")
    with capture_logs() as said:
        found = derived_tables(log.path, read_table(log.path / "log"))
    assert [(table.name, table.covers, table.grows_by_offset) for table in found] == [
        ("empty", None, True), ("events", 4, True)
    ]  # fmt: skip
    assert [line["event"] for line in said] == ["derived_table_unreadable"]


def test_a_trim_waits_for_the_tables_that_have_still_to_read_what_goes(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 17)
    behind, level = made_of(log, "events", 15), made_of(log, "records", 16)
    made_of(log, "empty", None)
    version = read_table(log.path / "log").version
    with pytest.raises(
        LakeError, match=r"before offset 17: .* from offset 16 at least, and events/ \(which ends at offset 15\) could"
    ):
        upkeep(log).trim(17, stream_lag_ms=5)
    assert read_table(log.path / "log").version == version, "no lag was declared either"
    behind.append(ROWS, 16)
    assert upkeep(log).trim(17).new_start > 0
    assert level.last_offset() == 16


def test_a_forced_trim_leaves_them_behind_and_they_are_in_nobodys_way_then(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 9)
    with_snapshot(log, 17)
    made_of(log, "events", 2)
    assert upkeep(log).trim(9, force=True).new_start > 2
    assert upkeep(log).trim(17).files > 0


def test_a_trim_that_takes_nothing_away_asks_nobody(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 17)
    made_of(log, "events", 0)
    assert upkeep(log).trim(0).files == 0
