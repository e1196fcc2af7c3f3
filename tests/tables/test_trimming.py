"""A trimmed table answers every later question as an untrimmed one does."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import kraftlake
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import CorruptDataError, LakeError, OffsetError, UsageError
from kraftlake.tables import trimming
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.history.state_at import state_at
from kraftlake.tables.jobs import HISTORY, JOBS
from kraftlake.tables.trimming import first_offsets, known_offset_since, trim_tables
from tests.at_least_one import at_least_one
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of

BEFORE = 2000
COVERED = 3500
TABLES = tuple(dict.fromkeys(table for job in JOBS.values() for table in job.tables))
Rows = list[dict[str, Any]]


def rows_of(lake: Path, table: str) -> Rows:
    return sorted(DeltaTable(lake / table).to_pyarrow_table().to_pylist(), key=str)


@pytest.fixture(scope="module")
def untrimmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose tables have a file for each of three runs."""
    lake = tmp_path_factory.mktemp("untrimmed") / "lake"
    log = lake_of(lake, commits=1, last=1200)
    update_tables(lake, TABLES)
    for last in (2600, 3500):
        append_in(log, 1, batches_between(log.end_offset, last))
        update_tables(lake, TABLES)
    assert log.end_offset == COVERED + 1
    return lake


def copied(lake: Path, folder: Path) -> Path:
    shutil.copytree(lake, folder / "lake")
    return folder / "lake"


def kept(rows: Rows, table: str, before: int) -> Rows:
    """The rows that a trim leaves."""
    if table in HISTORY.tables:
        return [row for row in rows if row["valid_to_offset"] is None or row["valid_to_offset"] > before]
    least = before
    if table == "cluster_metrics":
        least = max(row["offset"] for row in rows if row["offset"] <= before)
    return [row for row in rows if row["offset"] >= least]


def test_later_questions_have_the_same_answers(untrimmed: Path, tmp_path: Path) -> None:
    lake = copied(untrimmed, tmp_path)
    removed = trim_tables(lake, BEFORE)
    for table in TABLES:
        before, after = rows_of(untrimmed, table), rows_of(lake, table)
        assert after == kept(before, table, BEFORE), table
        assert removed[table] == len(before) - len(after)
        assert read_table(lake / table).metadata.configuration["delta.appendOnly"] == (
            "false" if table in HISTORY.tables else "true"
        )
    assert min(removed["events"], removed["partition_history"], removed["cluster_metrics"]) > 0
    assert {first for table, first in first_offsets(lake).items() if table in HISTORY.tables} == {BEFORE}
    for offset in (BEFORE, BEFORE + 1, 2599, COVERED):
        for table in HISTORY.tables:
            answers = [sorted(state_at(each, offset, table).to_pylist(), key=str) for each in (untrimmed, lake)]
            assert answers[0] == answers[1], (table, offset)
    with pytest.raises(
        OffsetError, match=r"broker_history/ of .* begins at offset 2000: what was before was trimmed\."
    ):
        state_at(lake, BEFORE - 1, "broker_history")
    assert sum(trim_tables(lake, BEFORE).values()) == 0
    assert sum(trim_tables(lake, 100).values()) == 0

    both = [lake, copied(untrimmed, tmp_path / "other")]
    for each in both:
        log = MetadataLog.open(each)
        append_in(log, 1, batches_between(log.end_offset, LAST_OFFSET))
        update_tables(each)
    for table in at_least_one(TABLES):
        assert rows_of(both[0], table) == kept(rows_of(both[1], table), table, BEFORE), table


def test_a_trim_that_is_killed_leaves_the_table_whole(
    untrimmed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(untrimmed, tmp_path)
    rows = rows_of(lake, "events")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trimming, "_replacements", killed)
        with pytest.raises(KeyboardInterrupt):
            trim_tables(lake, BEFORE, ["events"])
    assert rows_of(lake, "events") == rows
    assert read_table(lake / "events").metadata.configuration["delta.appendOnly"] == "false"
    update_tables(lake, ["events"])
    assert read_table(lake / "events").metadata.configuration["delta.appendOnly"] == "true"
    assert trim_tables(lake, BEFORE, ["events"])["events"] > 0


def test_tables_know_the_offset_at_a_time_that_the_log_has_no_more(untrimmed: Path, tmp_path: Path) -> None:
    events = rows_of(untrimmed, "events")
    times = sorted(row["timestamp"] for row in events if row["offset"] in range(BEFORE - 300, BEFORE))
    for number, time in enumerate({times[0], times[-1], times[-1] + timedelta(milliseconds=1)}):
        lakes = [copied(untrimmed, tmp_path / f"{number}" / name) for name in ("log", "tables")]
        offsets = (kraftlake.open(untrimmed).offset_since(time), known_offset_since(untrimmed, time))
        removed = [trim_tables(lake, offset) for lake, offset in zip(lakes, offsets, strict=True)]
        assert removed[0] == removed[1]
        assert removed[0]["events"] > 0
    assert known_offset_since(untrimmed, times[0] - timedelta(days=1)) == 0


def test_what_can_not_be_trimmed_is_refused(untrimmed: Path, tmp_path: Path) -> None:
    lake = copied(untrimmed, tmp_path)
    with pytest.raises(OffsetError, match=r"covers offsets up to 3500, so it can be trimmed before 3501 at most"):
        trim_tables(lake, COVERED + 2)
    with pytest.raises(UsageError, match="'event' is no derived table"):
        trim_tables(lake, 5, ["event"])
    shutil.rmtree(lake / "events")
    with pytest.raises(LakeError, match="has no events/"):
        trim_tables(lake, 5, ["events"])
    assert "events" not in trim_tables(lake, COVERED + 1)


def test_a_damaged_file_stops_a_trim_and_leaves_the_table_as_it_was(untrimmed: Path, tmp_path: Path) -> None:
    lake = copied(untrimmed, tmp_path)
    before = read_table(lake / "events")
    first = min(before.files, key=lambda name: before.files[name].statistics.min_values["offset"])
    (lake / "events" / first).write_bytes(b"PAR1")
    with pytest.raises(CorruptDataError, match=r"is missing or damaged, so .*events was not trimmed"):
        trim_tables(lake, BEFORE, ["events"])
    after = read_table(lake / "events")
    assert after.files == before.files
    assert after.metadata.configuration == before.metadata.configuration
