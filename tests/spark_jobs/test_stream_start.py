from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.delta_table.table_state import commit_path, read_table
from kraftlake.runtime.errors import UsageError
from kraftlake.spark_jobs.stream_start import StreamStart, choose_start, discard, resumable
from tests.tables.sample_log import lake_of

COMMITS = 5


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return lake_of(tmp_path / "lake", commits=COMMITS, last=600)


def ends(log: MetadataLog) -> list[int]:
    """The log's end after each version: version 0 makes the empty table, each one after it appends."""
    firsts = [json.loads(add["stats"])["minValues"]["offset"] for add in adds(log)]
    return [*sorted(firsts), log.end_offset]


def adds(log: MetadataLog) -> list[dict[str, str]]:
    lines = [
        line
        for version in range(1, COMMITS + 1)
        for line in commit_path(log.path / "log", version).read_text().splitlines()
    ]
    return [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]


def start_for(log: MetadataLog, needed: int) -> StreamStart:
    return choose_start(read_table(log.path / "log"), end_offset=log.end_offset, needed=needed)


def test_a_first_run_streams_every_commit(log: MetadataLog) -> None:
    assert start_for(log, 0) == StreamStart(version=0, end_offset=0)


def test_a_later_run_streams_from_the_commit_that_holds_what_it_needs(log: MetadataLog) -> None:
    for version, end in enumerate(ends(log)):
        assert start_for(log, end) == StreamStart(version=version, end_offset=end)
        if version:
            assert start_for(log, end - 1) == StreamStart(version=version - 1, end_offset=ends(log)[version - 1])


def test_a_compaction_changes_nothing_while_the_old_files_are_there(log: MetadataLog) -> None:
    DeltaTable(log.path / "log").optimize.compact()
    assert read_table(log.path / "log").version == COMMITS + 1
    assert start_for(log, 0) == StreamStart(version=0, end_offset=0)
    assert start_for(log, log.end_offset) == StreamStart(version=COMMITS + 1, end_offset=log.end_offset)


def test_what_was_vacuumed_is_read_from_the_table_itself(log: MetadataLog) -> None:
    DeltaTable(log.path / "log").optimize.compact()
    DeltaTable(log.path / "log").vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    end_offset = log.end_offset
    start = start_for(log, 0)
    assert start.end_offset == end_offset
    assert start.version >= COMMITS


def test_commits_that_were_cleaned_up_are_read_from_the_table_itself(log: MetadataLog) -> None:
    DeltaTable(log.path / "log").create_checkpoint()
    commit_path(log.path / "log", 0).unlink()
    commit_path(log.path / "log", 1).unlink()
    commit_path(log.path / "log", 2).unlink()
    assert start_for(log, 0) == StreamStart(version=2, end_offset=ends_after_cleanup(log))


def ends_after_cleanup(log: MetadataLog) -> int:
    lines = commit_path(log.path / "log", 3).read_text().splitlines()
    (stats,) = (json.loads(line)["add"]["stats"] for line in lines if line.startswith('{"add"'))
    first: int = json.loads(stats)["minValues"]["offset"]
    return first


def checkpoint_at(folder: Path, table_id: str, version: int, *, finished: bool = True) -> Path:
    """The parts of a stream's checkpoint that say where it stands, as Spark 4.2 and Delta 4.4 write them."""
    for part in ("offsets", "commits"):
        (folder / part).mkdir(parents=True)
    offset = {"sourceVersion": 1, "reservoirId": table_id, "reservoirVersion": version, "index": -1}
    (folder / "offsets" / "0").write_text("v1\n{}\n" + json.dumps(offset))
    if finished:
        (folder / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def can_resume(log: MetadataLog, checkpoint: Path, needed: int) -> bool:
    return resumable(checkpoint, read_table(log.path / "log"), end_offset=log.end_offset, needed=needed)


def test_a_checkpoint_is_resumed_where_the_targets_hold_what_it_has_passed(log: MetadataLog, tmp_path: Path) -> None:
    table_id = read_table(log.path / "log").metadata.id
    checkpoint = checkpoint_at(tmp_path / "checkpoint", table_id, 3)
    passed = ends(log)[2]
    assert can_resume(log, checkpoint, passed)
    assert can_resume(log, checkpoint, log.end_offset)
    assert not can_resume(log, checkpoint, passed - 1)


def test_a_checkpoint_of_another_table_is_not_resumed(log: MetadataLog, tmp_path: Path) -> None:
    assert not can_resume(log, checkpoint_at(tmp_path / "checkpoint", "another", 3), log.end_offset)


def test_a_checkpoint_without_a_finished_micro_batch_is_not_resumed(log: MetadataLog, tmp_path: Path) -> None:
    table_id = read_table(log.path / "log").metadata.id
    assert not can_resume(log, checkpoint_at(tmp_path / "a", table_id, 3, finished=False), log.end_offset)
    assert not can_resume(log, tmp_path / "missing", log.end_offset)


def test_a_checkpoint_whose_commits_are_gone_is_not_resumed(log: MetadataLog, tmp_path: Path) -> None:
    table_id = read_table(log.path / "log").metadata.id
    checkpoint = checkpoint_at(tmp_path / "checkpoint", table_id, 2)
    assert can_resume(log, checkpoint, log.end_offset)
    DeltaTable(log.path / "log").create_checkpoint()
    for version in range(4):
        commit_path(log.path / "log", version).unlink()
    assert not can_resume(log, checkpoint, log.end_offset)


def test_only_a_checkpoint_is_ever_discarded(tmp_path: Path) -> None:
    checkpoint = checkpoint_at(tmp_path / "checkpoint", "any", 1)
    discard(checkpoint)
    assert not checkpoint.exists()
    discard(checkpoint)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match=r"holds 'thesis\.txt', which is no part"):
        discard(tmp_path / "home")
    assert (tmp_path / "home" / "thesis.txt").exists()
    with pytest.raises(UsageError, match="is a file"):
        discard(tmp_path / "home" / "thesis.txt")
