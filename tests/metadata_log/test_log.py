from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kraftlake.metadata_log.append.log_commit import commit_groups
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.errors import (
    CorruptDataError,
    ImportConflictError,
    KraftlakeError,
    LakeError,
    OffsetError,
    UsageError,
)
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, leader_change, noop_batch
from tests.metadata_log.unsealed import unseal


def new_log(path: Path, start_offset: int = 0) -> MetadataLog:
    return MetadataLog.create(path, "cluster", start_offset=start_offset, disk=UnsyncedDisk())


def test_what_was_appended_is_there_for_the_next_who_opens(tmp_path: Path) -> None:
    batches = [leader_change(0, epoch=3), data_batch(1, 4, epoch=3), noop_batch(5, epoch=3, time=-1)]
    new_log(tmp_path / "lake").append(batches, committed_to=1)
    log = MetadataLog.open(str(tmp_path / "lake"))
    assert (log.start_offset, log.end_offset, log.epoch, log.committed_to) == (0, 6, 3, 1)
    assert (log.cluster_id, log.role, log.version, log.path) == ("cluster", "imported", 1, tmp_path / "lake")
    assert list(log.batches()) == batches
    assert log.rows().equals(to_rows(batches))


def test_an_empty_log_has_no_epoch_and_no_rows(tmp_path: Path) -> None:
    new_log(tmp_path / "lake", start_offset=12)
    log = MetadataLog.open(tmp_path / "lake")
    assert (log.start_offset, log.end_offset, log.epoch, log.committed_to) == (12, 12, -1, 12)
    assert log.cluster_id == "cluster"
    assert list(log.batches()) == []
    assert log.rows().equals(LOG_SCHEMA.empty_table())
    assert log.snapshots() == ()


def test_a_log_may_start_above_0(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake", start_offset=100)
    with pytest.raises(ImportConflictError, match="offsets 100 to 100 are missing"):
        log.append([data_batch(101)])
    log.append([data_batch(100, 3)])
    assert [batch.base_offset for batch in MetadataLog.open(tmp_path / "lake").batches(0, 1000)] == [100]


def test_the_cluster_may_be_unknown(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake")
    assert MetadataLog.open(tmp_path / "lake").cluster_id is None


@pytest.mark.parametrize(
    ("batches", "sentence"),
    [
        ([data_batch(12)], "offsets 10 to 11 are missing"),
        ([data_batch(9)], "holds offsets up to 9 already; offset 9 can't be appended"),
        ([data_batch(10), data_batch(12)], "Offset 10 is followed by 12"),
        ([data_batch(10, 2), data_batch(11)], "Offset 11 is followed by 11"),
        ([data_batch(10, epoch=4)], "epoch goes down from 5 to 4 at offset 10"),
        ([data_batch(10, epoch=7), data_batch(11, epoch=6)], "epoch goes down from 7 to 6 at offset 11"),
    ],
)
def test_what_does_not_continue_the_log_is_refused_by_offset(tmp_path: Path, batches: list, sentence: str) -> None:  # type: ignore[type-arg]
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0, 10, epoch=5)])
    with pytest.raises(ImportConflictError, match=sentence):
        log.append(batches)
    assert (log.version, MetadataLog.open(tmp_path / "lake").version) == (1, 1)
    assert len(list((tmp_path / "lake" / "log").glob("*.parquet"))) == 1


def test_batches_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    rows = to_rows([data_batch(0, 3), data_batch(3, 2)])
    with pytest.raises(LakeError, match="Offset 0 lies inside of a batch"):
        log.append(rows.set_column(3, LOG_SCHEMA.field("batch"), pa.array([-1, -1, -1, 3, 3], pa.int64())))
    with pytest.raises(LakeError, match="Offset 4 neither begins a batch"):
        log.append(rows.set_column(3, LOG_SCHEMA.field("batch"), pa.array([0, 0, 0, 3, 2], pa.int64())))
    with pytest.raises(LakeError, match="epoch changes inside of a batch at offset 1"):
        log.append(rows.set_column(1, LOG_SCHEMA.field("epoch"), pa.array([1, 2, 2, 2, 2], pa.int32())))
    log.append(rows.slice(0, 3))
    with pytest.raises(LakeError, match="Offset 3 lies inside of a batch"):
        log.append(rows.slice(3).set_column(3, LOG_SCHEMA.field("batch"), pa.array([0, 0], pa.int64())))


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    rows = to_rows([data_batch(0, 2)])
    with pytest.raises(LakeError, match="haven't the columns"):
        log.append(rows.drop_columns(["payload"]))
    with pytest.raises(LakeError, match="haven't the columns"):
        log.append(rows.set_column(0, "offset", pa.array(["a", "b"])))
    with pytest.raises(LakeError, match="lack a value in column payload"):
        log.append(rows.set_column(8, "payload", pa.array([b"", None], pa.binary())))
    assert log.version == 0


def test_committed_to_only_grows_and_never_beyond_the_end(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0, 5)], committed_to=3)
    log.append([data_batch(5, 5)])
    assert MetadataLog.open(tmp_path / "lake").committed_to == 3
    log.append([data_batch(10, 5)], committed_to=1)
    assert MetadataLog.open(tmp_path / "lake").committed_to == 3
    log.append([], committed_to=99)
    reopened = MetadataLog.open(tmp_path / "lake")
    assert (reopened.committed_to, reopened.version, reopened.end_offset, reopened.epoch) == (15, 4, 15, 1)


def test_an_append_without_news_makes_no_version(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0)], committed_to=1)
    log.append([])
    log.append([], committed_to=1)
    log.append(LOG_SCHEMA.empty_table(), committed_to=0)
    assert (log.version, MetadataLog.open(tmp_path / "lake").version) == (1, 1)


def test_reading_opens_only_the_files_of_the_range(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    for offset in range(0, 50, 10):
        log.append([data_batch(offset, 10)])
    for path in (tmp_path / "lake" / "log").glob("*.parquet"):
        if not path.name.startswith(f"{20:020d}"):
            path.unlink()
    assert log.rows(20, 29, ["offset"]).column("offset").to_pylist() == list(range(20, 30))
    assert list(log.batches(23, 24)) == [data_batch(20, 10)]
    with pytest.raises(CorruptDataError, match=r"0000030-.*parquet is missing"):
        log.rows(25, 30)


def test_columns_come_as_asked_for(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0, 3)])
    assert log.rows(1, 1, ["type", "epoch"]).to_pylist() == [{"type": "TOPIC_RECORD", "epoch": 1}]
    assert log.rows(5, 9, ["type"]).schema.names == ["type"]
    with pytest.raises(UsageError, match="no column data"):
        log.rows(columns=["data"])


def test_the_last_offset_at_a_time_is_that_of_its_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0, 2, time=1000), data_batch(2, 3, time=2000)])
    log.append([data_batch(5, 2, time=1500)])
    log.append([noop_batch(7, time=-1), data_batch(8, 2, time=3000)])
    log.append([noop_batch(10, time=-1)])
    for time, offset in ((1000, 1), (1499, 1), (1500, 6), (2999, 6), (3000, 9), (10**15, 9)):
        assert MetadataLog.open(tmp_path / "lake").offset_at_time(time) == offset
    with pytest.raises(OffsetError, match="no batch of the time 999"):
        log.offset_at_time(999)


def test_a_missing_lake_and_what_is_none_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"There is no lake at .*missing; `kraftlake import"):
        MetadataLog.open(tmp_path / "missing")
    with pytest.raises(LakeError, match="is an empty folder: `kraftlake import SOURCE LAKE` makes a lake in"):
        MetadataLog.open(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(LakeError, match="is no lake: `kraftlake import SOURCE LAKE` makes a lake in"):
        MetadataLog.open(tmp_path)
    with pytest.raises(LakeError, match=r"notes\.txt is no lake: "):
        MetadataLog.open(tmp_path / "notes.txt")
    write_deltalake(tmp_path / "other" / "log", pa.table({"offset": [1], "city": ["Oslo"]}))
    with pytest.raises(LakeError, match="Delta table of another schema"):
        MetadataLog.open(tmp_path / "other")
    write_deltalake(tmp_path / "alike" / "log", to_rows([data_batch(0)]))
    with pytest.raises(LakeError, match="not made by kraftlake"):
        MetadataLog.open(tmp_path / "alike")


def test_a_lake_is_not_made_in_a_table_whose_clean_up_might_delete_it(tmp_path: Path) -> None:
    MetadataLog.create(str(tmp_path / "lake"))
    for inside in (tmp_path / "lake" / "log" / "inner", tmp_path / "lake" / "log" / "_delta_log" / "inner"):
        with pytest.raises(LakeError, match=r"lies in the Delta table .*log, whose clean-up"):
            MetadataLog.create(str(inside))
        assert not inside.exists()


def test_a_lake_is_made_neither_over_another_nor_over_something_else(tmp_path: Path) -> None:
    new_log(tmp_path / "lake").append([data_batch(0)])
    with pytest.raises(LakeError, match=r"There is a lake at .* already"):
        new_log(tmp_path / "lake")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("...")
    with pytest.raises(LakeError, match="is in the way"):
        new_log(tmp_path / "full")
    with pytest.raises(LakeError, match="is in the way"):
        new_log(tmp_path / "full" / "thesis.txt")
    (tmp_path / "bundle" / "log" / "__cluster_metadata-0").mkdir(parents=True)
    with pytest.raises(LakeError, match="is in the way"):
        new_log(tmp_path / "bundle")
    assert (tmp_path / "bundle").stat().st_mode & 0o077
    with pytest.raises(LakeError, match=r"no/parent can't be made: .*/no is no folder; make it first"):
        new_log(tmp_path / "no" / "parent")
    with pytest.raises(UsageError):
        MetadataLog.create(tmp_path / "x", role="king")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "full", "lake"]


def test_a_lake_whose_first_version_was_cleaned_up_is_still_one(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0)])
    DeltaTable(tmp_path / "lake" / "log").create_checkpoint()
    (tmp_path / "lake" / "log" / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(LakeError, match="There is a lake"):
        new_log(tmp_path / "lake")
    assert MetadataLog.open(tmp_path / "lake").end_offset == 1


@pytest.mark.parametrize("name", ["log", "log/_delta_log", "log/_delta_log/.x.tmp"])
def test_a_new_lake_follows_no_symbolic_link_in_its_folder(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / "lake" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(LakeError, match="is in the way: a new lake needs an empty folder"):
        new_log(tmp_path / "lake")
    assert list(elsewhere.iterdir()) == []


def test_what_a_crashed_creation_left_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "lake" / "log" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "log" / "_delta_log" / ".00000000000000000000.json.x.tmp").write_text('{"commitIn')
    assert new_log(tmp_path / "lake").end_offset == 0


def test_orphans_of_a_crash_are_harmless(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0)])
    (tmp_path / "lake" / "log" / f"{1:020d}-crashed.zstd.parquet").write_bytes(b"PAR1 torn")
    (tmp_path / "lake" / "log" / "_delta_log" / f".{2:020d}.json.crashed.tmp").write_text('{"add')
    again = MetadataLog.open(tmp_path / "lake")
    again.append([data_batch(1)])
    assert again.rows().num_rows == 2
    assert DeltaTable(tmp_path / "lake" / "log").to_pyarrow_table().num_rows == 2


def test_another_handle_goes_on_apart_from_the_first(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0)])
    checkpoint_if_due(log.path / "log", UnsyncedDisk(), UpkeepPolicy(), force=True)
    log = MetadataLog.open(log.path, disk=UnsyncedDisk())
    log.append([data_batch(1)])
    other = log.another_handle()
    other.append([data_batch(2)])
    assert (log.end_offset, log.rows().num_rows) == (2, 2)
    assert (other.end_offset, other.rows().num_rows) == (3, 3)
    assert log.refresh() == 1
    log.append([data_batch(3)])
    assert (log.rows().num_rows, other.rows().num_rows) == (4, 3)


def test_of_two_writers_one_appends_and_the_other_is_refused(tmp_path: Path) -> None:
    first = new_log(tmp_path / "lake")
    second = MetadataLog.open(tmp_path / "lake")
    first.append([data_batch(0, who="-first")])
    with pytest.raises(LakeError, match="Another writer appended"):
        second.append([data_batch(0, who="-second")])
    with pytest.raises(ImportConflictError, match="holds offsets up to 0 already"):
        second.append([data_batch(0, who="-second")])
    second.append([data_batch(1)])
    assert first.end_offset == 1
    assert first.refresh() == 1
    assert list(first.batches()) == [data_batch(0, who="-first"), data_batch(1)]


def test_a_writer_that_slept_through_a_clean_up_cannot_append_into_the_past(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    sleeper = MetadataLog.open(tmp_path / "lake", disk=UnsyncedDisk())
    for offset in range(5):
        log.append([data_batch(offset)])
    DeltaTable(tmp_path / "lake" / "log").create_checkpoint()
    for version in range(5):
        (tmp_path / "lake" / "log" / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(LakeError, match="Another writer appended"):
        sleeper.append([data_batch(0)])
    assert not (tmp_path / "lake" / "log" / "_delta_log" / f"{1:020d}.json").exists()
    with pytest.raises(ImportConflictError, match="holds offsets up to 4 already"):
        sleeper.append([data_batch(0)])
    sleeper.append([data_batch(5)])
    assert MetadataLog.open(tmp_path / "lake").rows().num_rows == 6


def test_a_compaction_in_between_is_no_conflict(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    for offset in range(5):
        log.append([data_batch(offset)])
    DeltaTable(tmp_path / "lake" / "log").optimize.compact()
    log.append([data_batch(5)])
    assert (log.version, log.end_offset) == (7, 6)
    assert MetadataLog.open(tmp_path / "lake").rows().equals(log.rows())


def test_a_reader_goes_on_when_files_are_compacted_and_vacuumed_under_it(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    for offset in range(5):
        log.append([data_batch(offset)])
    reader = MetadataLog.open(tmp_path / "lake")
    assert reader.rows(0, 0).num_rows == 1
    table = DeltaTable(tmp_path / "lake" / "log")
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(list((tmp_path / "lake" / "log").glob("*.parquet"))) == 1
    assert list(reader.batches()) == [data_batch(offset) for offset in range(5)]
    assert reader.version == table.version() == log.version + 3


def test_rows_that_something_else_wrote_are_noticed(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0, 2)])
    write_deltalake(tmp_path / "lake" / "log", to_rows([data_batch(2, 2)]), mode="append")
    with pytest.raises(CorruptDataError, match="holds offset 3, but its log ends before 2"):
        MetadataLog.open(tmp_path / "lake").rows()
    with pytest.raises(LakeError, match="Another writer appended"):
        log.append([data_batch(2)])


def test_rows_that_were_lost_or_doubled_are_named(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    for offset in range(3):
        log.append([data_batch(offset)])
    unseal(tmp_path / "lake" / "log")
    log_folder = tmp_path / "lake" / "log" / "_delta_log"
    shutil.copytree(tmp_path / "lake", tmp_path / "doubled")
    middle = log_folder / f"{2:020d}.json"
    kept = [line for line in middle.read_text().splitlines() if '"add"' not in line]
    middle.write_text("\n".join(kept))
    with pytest.raises(CorruptDataError, match="lacks offset 1"):
        MetadataLog.open(tmp_path / "lake").rows()
    write_deltalake(tmp_path / "doubled" / "log", to_rows([data_batch(1)]), mode="append")
    with pytest.raises(CorruptDataError, match="holds offset 1 twice"):
        MetadataLog.open(tmp_path / "doubled").rows()


def test_a_damaged_data_file_is_named(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0, 50)])
    (path,) = (tmp_path / "lake" / "log").glob("*.parquet")
    data = path.read_bytes()
    for torn in (b"", data[:-9], data[: len(data) // 2] + bytes(len(data) // 2), data[:300] + bytes(200) + data[500:]):
        path.write_bytes(torn)
        with pytest.raises(CorruptDataError, match=path.name):
            list(MetadataLog.open(tmp_path / "lake").batches())


def test_a_table_that_asks_for_more_than_we_write_is_read_only(tmp_path: Path) -> None:
    log = new_log(tmp_path / "lake")
    log.append([data_batch(0)])
    commit = tmp_path / "lake" / "log" / "_delta_log" / f"{2:020d}.json"
    commit.write_text('{"protocol":{"minReaderVersion":1,"minWriterVersion":4}}')
    log = MetadataLog.open(tmp_path / "lake")
    assert log.rows().num_rows == 1
    with pytest.raises(LakeError, match="asks its writers for Delta protocol 4"):
        log.append([data_batch(1)])


def test_a_large_import_is_cut_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftlake.metadata_log.append.log_commit.MAX_COMMIT_ROWS", 10)
    batches = [data_batch(0, 4), data_batch(4, 6), data_batch(10, 1), data_batch(11, 30), data_batch(41, 2)]
    assert [[batch.base_offset for batch in group] for group in commit_groups(batches)] == [[0, 4], [10], [11], [41]]
    monkeypatch.setattr("kraftlake.metadata_log.append.log_commit.MAX_COMMIT_BYTES", 1)
    assert [len(group) for group in commit_groups(batches)] == [1] * 5
    assert list(commit_groups([])) == []


def test_a_commit_of_an_import_may_have_exactly_the_bytes_and_rows_of_the_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches = [data_batch(offset) for offset in range(10, 16)]
    size = batches[0].payload_bytes
    assert {batch.payload_bytes for batch in batches} == {size}

    def groups() -> list[int]:
        return [len(group) for group in commit_groups(batches)]

    monkeypatch.setattr("kraftlake.metadata_log.append.log_commit.MAX_COMMIT_BYTES", 3 * size)
    assert groups() == [3, 3]
    monkeypatch.setattr("kraftlake.metadata_log.append.log_commit.MAX_COMMIT_BYTES", 3 * size - 1)
    assert groups() == [2, 2, 2]
    monkeypatch.setattr("kraftlake.metadata_log.append.log_commit.MAX_COMMIT_ROWS", 1)
    assert groups() == [1] * 6


def test_every_refusal_is_ours(tmp_path: Path) -> None:
    (tmp_path / "lake" / "log" / "_delta_log").mkdir(parents=True)
    first = tmp_path / "lake" / "log" / "_delta_log" / f"{0:020d}.json"
    for content in (
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"17",
        b'{"metaData":{}}',
        b'{"protocol":[]}',
        b'{"add":{"path":7}}',
    ):
        first.write_bytes(content)
        with pytest.raises(KraftlakeError, match=r"Delta table|0000.json"):
            MetadataLog.open(tmp_path / "lake")


def test_the_room_opens_its_door_without_pyarrow() -> None:
    code = "import sys, kraftlake.metadata_log; print('pyarrow' in sys.modules, 'structlog' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        "False",
        "False",
    ]
