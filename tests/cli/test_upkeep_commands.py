from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import OffsetError
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.metrics.cluster_metrics import ClusterMetricsWriter
from tests.cli.running import DIRECTORY, fault, run, run_json
from tests.server.lake_of_days import first_of_day, lake_of_days
from tests.tables.folding import fold_into


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that was imported segment by segment, so that its log has several files."""
    folder = tmp_path_factory.mktemp("imported")
    directory = folder / "__cluster_metadata-0"
    directory.mkdir()
    for file in sorted(DIRECTORY.glob("*.log")):
        shutil.copy(file, directory)
        run("import", directory, folder / "lake")
    run("import", DIRECTORY, folder / "lake")
    return folder / "lake"


@pytest.fixture
def lake(imported: Path, tmp_path: Path) -> Path:
    """A copy of that lake, to be changed."""
    return shutil.copytree(imported, tmp_path / "lake")


def test_compacting_changes_no_answer(lake: Path) -> None:
    before = run("log", lake).stdout
    printed = run("log", "compact", lake).stdout
    assert "small files into 1 file" in printed
    assert "log at version" in printed
    assert run("log", lake).stdout == before
    again = run("log", "compact", lake).stdout
    assert "compacted    nothing to do" in again
    form = run_json("log", "compact", lake)
    assert (form["filesCompacted"], form["checkpoints"]) == (0, {})


def test_trimming_moves_the_start_behind_a_snapshot(lake: Path) -> None:
    end = run_json("import", DIRECTORY, lake)["endOffset"]
    assert "stream lag" in fault("log", "trim", lake, "--before", 4593)
    assert "4593 is the most" in fault("log", "trim", lake, "--before", end)
    assert "nothing" in run("log", "trim", lake, "--before", 10, "--stream-lag", 0).stdout
    form = run_json("log", "trim", lake, "--before", 4593)
    assert form["oldStartOffset"] == 0
    start = form["startOffset"]
    assert 0 < start <= 4593
    assert f"offsets {start} to" in fault("log", lake, "--from", 0)
    assert run_json("image", lake)["offset"] == end - 1
    assert run("verify", lake)
    assert "already up to date" in run("import", DIRECTORY, lake).stdout
    printed = run("log", "vacuum", lake, "--dry-run").stdout
    assert "would delete" in printed


def test_compacting_takes_the_tables_of_the_jobs_along(lake: Path) -> None:
    description = ClusterMetricsWriter.description
    table = LakeTable(description, lake)
    table.create(read_table(lake / "log").metadata.id)
    for offset in range(3):
        values = [offset, 1, None, *[0] * (len(description.schema) - 3)]
        rows = pa.table([[value] for value in values], names=description.schema.names)
        table.append(rows, offset)
    assert "3 small files into 1 file of cluster_metrics/" in run("log", "compact", lake).stdout
    assert run_json("log", "compact", lake)["derived"] == {"cluster_metrics": {"filesCompacted": 0, "filesMade": 0}}


def test_trimming_what_a_jobs_table_has_still_to_read_takes_force(lake: Path) -> None:
    table = LakeTable(ClusterMetricsWriter.description, lake)
    table.create(read_table(lake / "log").metadata.id)
    table.append(ClusterMetricsWriter.description.schema.empty_table(), 100)
    sentence = fault("log", "trim", lake, "--before", 4593, "--stream-lag", 0)
    assert "cluster_metrics/ (which ends at offset 100)" in sentence
    assert "--force" in sentence
    assert run_json("log", "trim", lake, "--before", 4593, "--stream-lag", 0, "--force")["startOffset"] > 100
    with pytest.raises(OffsetError, match="delete the folder cluster_metrics/"):
        fold_into(MetadataLog.open(lake), [ClusterMetricsWriter()], 100)


def test_vacuum_tells_orphans_from_what_may_be_in_flight(lake: Path) -> None:
    orphan = lake / "log" / "orphan.parquet"
    orphan.write_bytes(b"PAR1")
    assert run_json("log", "vacuum", lake)["keptAsTooYoung"] == 1
    os.utime(orphan, (1, 1))
    assert run_json("log", "vacuum", lake, "--dry-run")["orphans"] == 1
    assert orphan.exists()
    assert "1 orphan" in run("log", "vacuum", lake).stdout
    assert not orphan.exists()
    assert "not in the range x>=15" in fault("log", "vacuum", lake, "--older-than", 1, code=2)


@pytest.mark.parametrize("words", [("compact",), ("vacuum",), ("trim", "--before", "5")])
def test_upkeep_of_what_is_no_lake_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert "nowhere" in fault("log", words[0], tmp_path / "nowhere", *words[1:])
    assert not (tmp_path / "nowhere").exists()


def test_a_source_that_is_called_like_an_upkeep_command_is_still_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "trim does not exist" in fault("log", "./trim")
    for name in ("trim", "vacuum", "compact"):
        (tmp_path / name).symlink_to(DIRECTORY)
        assert run("log", name, "--to", 3).stdout == run("log", DIRECTORY, "--to", 3).stdout
    assert "--before" in fault("log", "trim", "--before", 5, code=2)


def test_upkeep_declares_a_policy_lists_what_would_go_and_removes_it(tmp_path: Path) -> None:
    lake = lake_of_days(tmp_path / "lake", 10)
    assert "the lake declares no policy" in run("upkeep", lake).stdout
    assert "give --keep as well" in fault("upkeep", lake, "--newest", 2, code=2)
    options = ("--keep", "4d", "--newest", 2, "--daily", 5)
    would = run_json("upkeep", lake, *options, "--dry-run")
    assert "declares no policy" in run("upkeep", lake).stdout, "a dry run declares nothing"
    done = run_json("upkeep", lake, *options)
    assert done["policy"] == {"keepMs": 4 * 86_400_000, "newestSnapshots": 2, "dailyDays": 5}
    assert done["trimmed"] == {"fromOffset": 0, "startOffset": first_of_day(6)}
    assert done["snapshots"]
    assert {name: would[name] for name in ("policy", "trimmed", "snapshots", "heldBack")} == {
        name: done[name] for name in ("policy", "trimmed", "snapshots", "heldBack")
    }
    again = run("upkeep", lake).stdout
    assert "nothing: all is within what the lake keeps" in again
    assert run_json("upkeep", lake, "--keep", "forever")["policy"]["keepMs"] is None
    assert run_json("upkeep", lake, "--newest", 1)["policy"] == {
        "keepMs": None, "newestSnapshots": 1, "dailyDays": 5,
    }  # fmt: skip
    assert run("verify", lake)


def test_upkeep_says_in_lines_what_went(tmp_path: Path) -> None:
    lake = lake_of_days(tmp_path / "lake", 8)
    lines = run("upkeep", lake, "--keep", "2d", "--newest", 1, "--daily", 3).stdout.splitlines()
    assert lines[0] == f"removed    offsets 0 to {first_of_day(6) - 1} of the log"
    assert any(line.startswith("removed    snapshot 0") for line in lines)
    assert any(line.startswith("freed") for line in lines)


@pytest.mark.parametrize("wrong", ["90", "-3d", "never", ""])
def test_a_window_that_is_no_length_of_time_is_refused(tmp_path: Path, wrong: str) -> None:
    lake = lake_of_days(tmp_path / "lake", 1)
    assert "length of time" in fault("upkeep", lake, f"--keep={wrong}", code=2)
