"""Lakes that an earlier release made: their tables go on, and lose no row."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.history.state_at import schema_of, state_at
from kraftlake.tables.jobs import ALL, JOBS
from tests.tables.sample_log import LAST_OFFSET, SAMPLE, SAMPLES

OLD = ("whole", "trimmed")
COVERED = 5487
"""The last offset that the tables of the old lakes cover."""

OF_ANOTHER_SHAPE = {"partition_history": "leader_rack", "cluster_metrics": "under_min_isr_partitions"}
"""The tables that have columns since then, each with the first of these."""
TABLES = tuple(dict.fromkeys(table for job in JOBS.values() for table in job.tables))
NEW = ("controller_history", "token_history", "quorum_history", "voter_history", "directory_history")
"""Tables that the old lakes lack."""
Tables = dict[str, list[dict[str, Any]]]


def old_lake(name: str, folder: Path) -> Path:
    with tarfile.open(SAMPLES / "lakes" / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name


def tables_of(lake: Path) -> Tables:
    tables = (name for name in TABLES if (lake / name).exists())
    return {name: sorted(DeltaTable(lake / name).to_pyarrow_table().to_pylist(), key=str) for name in tables}


def says_nothing(event: dict[str, Any]) -> bool:
    """Whether an event, of the first release, says that no directory is cordoned where none was."""
    is_empty = {event["before"], event["after"]} == {None, "[]"}
    return is_empty and event["field"] == "cordonedDirectories" and event["offset"] <= COVERED


def is_of_voters(event: dict[str, Any]) -> bool:
    """Whether the release that made the old lakes had no such event."""
    is_new = event["kind"].startswith("voter_") or event["field"] == "kraft.version"
    return is_new and event["offset"] <= COVERED


@pytest.fixture(scope="module")
def made_afresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the same log, whose tables this release has made."""
    lake = tmp_path_factory.mktemp("afresh") / "lake"
    kraftlake.import_source(kraftlake.open(SAMPLE), lake)
    update_tables(lake, TABLES)
    return lake


@pytest.mark.parametrize("name", OLD)
def test_tables_of_an_old_lake_go_on_and_lose_no_row(name: str, tmp_path: Path, made_afresh: Path) -> None:
    lake = old_lake(name, tmp_path)
    before = tables_of(lake)
    kraftlake.import_source(kraftlake.open(SAMPLE), lake)
    for table, column in OF_ANOTHER_SHAPE.items():
        with pytest.raises(LakeError, match=rf"{column} .*delete .* run `kraftlake tables {lake} {table}`"):
            update_tables(lake, [table])
        shutil.rmtree(lake / table)
    update_tables(lake, [*OF_ANOTHER_SHAPE, *NEW])
    done = update_tables(lake)
    assert (done.base_offset, done.offset) == (COVERED, LAST_OFFSET)
    assert {*done.rows} == {*ALL.tables, "records"}
    after, expected = tables_of(lake), tables_of(made_afresh)
    assert {*after} - {*before} == {*NEW}
    if name == "trimmed":  # these, and new tables, begin with the oldest snapshot
        for tables in (before, after, expected):
            for table in (*OF_ANOTHER_SHAPE, *NEW):
                tables.pop(table, None)
    expected["events"] = [event for event in expected["events"] if not is_of_voters(event)]
    assert after | {"events": [event for event in after["events"] if not says_nothing(event)]} == expected
    for table, rows in before.items():
        if table == "cluster_metrics":  # a row for each change of a count, and there are more counts
            continue
        columns = [*rows[0]]
        kept = {str({column: row[column] for column in columns}) for row in after[table]}
        ended = [row for row in rows if "valid_to_offset" not in row or row["valid_to_offset"] is not None]
        assert {str(row) for row in ended} <= kept, table


def test_the_trimmed_lake_has_in_its_tables_what_its_log_no_longer_has(tmp_path: Path, made_afresh: Path) -> None:
    lake = old_lake("trimmed", tmp_path)
    start = MetadataLog.open(lake).start_offset
    assert start == 3532
    with pytest.raises(OffsetError):
        kraftlake.open(lake).image(start - 2)
    for offset in (100, start - 2, COVERED):
        for table in ("partition_history", "config_history"):
            columns = [name for name in schema_of(table).names if name != "leader_rack"]
            states = sorted(state_at(lake, offset, table, columns=columns).to_pylist(), key=str)
            known = sorted(state_at(made_afresh, offset, table, columns=columns).to_pylist(), key=str)
            keys = [name for name in states[0] if not name.startswith("valid_to")]
            assert [{key: row[key] for key in keys} for row in states] == [
                {key: row[key] for key in keys} for row in known
            ]
    with pytest.raises(LakeError, match=r"partition_history has no column leader_rack: .* run `kraftlake tables"):
        state_at(lake, COVERED)
