from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import attrs
import pytest
from deltalake import DeltaTable
from google_crc32c import value as crc32c
from structlog.testing import capture_logs

import kraftlake
from kraftlake.api import open_source
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts, SnapshotPart, write_part
from kraftlake.metadata_log.snapshots.snapshot_table import SnapshotTable, _SnapshotFile
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError, LakeError
from tests.metadata_log.log_batches import TIME, UnsyncedDisk, snapshot_batches
from tests.metadata_log.unsealed import unseal


def add(log: MetadataLog, end_offset: int, batches: list[RecordBatch], epoch: int = 1) -> bool:
    return log.add_snapshot(
        SnapshotFacts(end_offset=end_offset, epoch=epoch, last_contained_log_timestamp=TIME, size_in_bytes=77), batches
    )


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())


def test_a_snapshot_comes_back_as_it_was(log: MetadataLog) -> None:
    batches = snapshot_batches(5)
    assert add(log, 40, batches, epoch=2)
    (snapshot,) = MetadataLog.open(log.path).snapshots()
    assert snapshot.name == "00000000000000000040-0000000002.checkpoint"
    assert (snapshot.end_offset, snapshot.epoch, snapshot.last_contained_log_timestamp) == (40, 2, TIME)
    assert (snapshot.size_in_bytes, snapshot.record_count) == (77, 7)
    assert (snapshot.finished, snapshot.named, snapshot.bootstrap) == (True, True, False)
    assert list(snapshot.batches()) == batches
    assert list(snapshot.batches()) == batches


def test_snapshots_come_by_end_offset_and_the_bootstrap_one_is_marked(log: MetadataLog) -> None:
    for end_offset in (30, 0, 9):
        add(log, end_offset, snapshot_batches(end_offset + 1), epoch=0)
    assert [(found.end_offset, found.bootstrap) for found in log.snapshots()] == [(0, True), (9, False), (30, False)]


def test_the_statistics_of_the_files_are_parsed_once_for_all_snapshots(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end_offset in range(1, 21):
        add(log, end_offset, snapshot_batches(2))
    parsed, of = [], _SnapshotFile.of
    monkeypatch.setattr(_SnapshotFile, "of", lambda file: parsed.append(file) or of(file))
    found = MetadataLog.open(log.path).snapshots()
    assert len(found) == 20
    assert [snapshot.damage() for snapshot in found] == [None] * 20
    assert len(parsed) == 20


def test_the_same_snapshot_twice_is_one(log: MetadataLog) -> None:
    assert add(log, 10, snapshot_batches(2))
    assert not add(log, 10, snapshot_batches(2))
    assert not add(MetadataLog.open(log.path), 10, snapshot_batches(2))
    assert DeltaTable(log.path / "snapshots").version() == 1


def test_another_snapshot_of_the_same_end_is_refused(log: MetadataLog) -> None:
    add(log, 10, snapshot_batches(2))
    with pytest.raises(ImportConflictError, match="before offset 10 with epoch 1, but this one has epoch 2"):
        add(log, 10, snapshot_batches(2), epoch=2)
    with pytest.raises(ImportConflictError, match=r"00000000000000000010-0000000001\.checkpoint with other records"):
        add(log, 10, snapshot_batches(3))
    with pytest.raises(LakeError, match="holds no records"):
        add(log, 11, [])
    assert len(log.snapshots()) == 1


def test_two_who_add_at_the_same_time_both_get_theirs_in(log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:
    add(log, 10, snapshot_batches(2))
    write = UnsyncedDisk.write
    others = [20, 30]

    def write_after_another(disk: UnsyncedDisk, path: Path, data: bytes | memoryview) -> None:
        if path.suffix == ".parquet" and others:
            end = others.pop()
            add(MetadataLog.open(log.path, disk=UnsyncedDisk()), end, snapshot_batches(end))
        write(disk, path, data)

    monkeypatch.setattr(UnsyncedDisk, "write", write_after_another)
    assert add(log, 20, snapshot_batches(20)) is False
    assert others == []
    assert [found.end_offset for found in log.snapshots()] == [10, 20, 30]


def test_a_snapshot_that_lost_its_file_is_skipped_with_a_warning(log: MetadataLog) -> None:
    add(log, 10, snapshot_batches(2))
    add(log, 20, snapshot_batches(3))
    (path,) = (log.path / "snapshots").glob(f"{20:020d}-*.parquet")
    path.write_bytes(path.read_bytes()[:100])
    with capture_logs() as logs:
        assert [found.end_offset for found in log.snapshots()] == [10]
    path.unlink()
    with capture_logs() as logs:
        assert [found.end_offset for found in log.snapshots()] == [10]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("snapshot_skipped", "warning")]
    assert logs[0]["snapshot"] == "00000000000000000020-0000000001.checkpoint"
    assert "is missing" in logs[0]["reason"]


def test_a_snapshot_whose_count_is_not_what_its_commit_states_is_skipped(log: MetadataLog) -> None:
    add(log, 10, snapshot_batches(2))
    unseal(log.path / "snapshots")
    (whole,) = log.snapshots()
    path = log.path / "snapshots" / "_delta_log" / f"{1:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("txn", {}).get("appId", "").endswith("record_count"):
            line["txn"]["version"] = 5
    path.write_text("\n".join(map(json.dumps, lines)))
    with capture_logs() as logs:
        assert log.snapshots() == ()
    assert "it has 5 records, but 4 are there" in logs[0]["reason"]
    assert len(list(whole.batches())) == 3
    (log.path / "snapshots" / next((log.path / "snapshots").glob("*.parquet")).name).unlink()
    with pytest.raises(CorruptDataError, match="is missing"):
        list(whole.batches())


def test_snapshots_survive_compaction_checkpoint_and_cleaning_by_delta_rs(log: MetadataLog) -> None:
    for end_offset in (10, 20, 30):
        add(log, end_offset, snapshot_batches(end_offset))
    table = DeltaTable(log.path / "snapshots")
    assert table.optimize.compact()["numFilesRemoved"] == 3
    table.create_checkpoint()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    for version in range(4):
        (log.path / "snapshots" / "_delta_log" / f"{version:020d}.json").unlink()
    assert [list(found.batches()) for found in MetadataLog.open(log.path).snapshots()] == [
        snapshot_batches(end_offset) for end_offset in (10, 20, 30)
    ]
    assert add(log, 40, snapshot_batches(1))
    assert not add(log, 20, snapshot_batches(20))


def test_a_listing_asks_each_file_for_its_own_snapshot_alone(log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for end_offset in range(10, 40, 10):
        add(log, end_offset, snapshot_batches(2))
    DeltaTable(log.path / "snapshots").optimize.compact()  # which leaves files of several snapshots
    for end_offset in range(40, 240, 10):
        add(log, end_offset, snapshot_batches(2))
    may_hold, asked = _SnapshotFile.may_hold, list[int]()

    def noted(file: _SnapshotFile, end_offset: int) -> bool:
        asked.append(end_offset)
        return may_hold(file, end_offset)

    monkeypatch.setattr(_SnapshotFile, "may_hold", noted)
    assert [found.end_offset for found in log.snapshots()] == [*range(10, 240, 10)]
    assert len(asked) <= 2 * 23


def test_a_table_of_another_schema_in_the_place_of_the_snapshots_is_named(log: MetadataLog) -> None:
    MetadataLog.create(log.path.parent / "other")
    (log.path.parent / "other" / "log").rename(log.path / "snapshots")
    unseal(log.path / "snapshots")
    with pytest.raises(LakeError, match="another schema, not the snapshots of a lake"):
        log.snapshots()


def spoil_fact(log: MetadataLog, version: int, fact: str) -> None:
    unseal(log.path / "snapshots")
    path = log.path / "snapshots" / "_delta_log" / f"{version:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("txn", {}).get("appId", "").endswith(fact):
            line["txn"]["version"] ^= 1
    path.write_text("\n".join(map(json.dumps, lines)))


def test_a_snapshot_knows_the_checksum_of_its_records(log: MetadataLog) -> None:
    batches = snapshot_batches(5)
    add(log, 40, batches)
    (snapshot,) = log.snapshots()
    assert snapshot.checksum == crc32c(b"".join(value for batch in batches for value in batch.values))
    assert snapshot.damage() is None


def test_a_snapshot_whose_records_are_not_those_it_was_kept_with_is_damaged(log: MetadataLog) -> None:
    add(log, 40, snapshot_batches(5))
    spoil_fact(log, 1, "crc32c")
    (snapshot,) = log.snapshots()
    assert snapshot.damage() is not None
    with pytest.raises(CorruptDataError, match=r"checksum is .* not .* as when it was kept"):
        list(snapshot.batches())


def test_a_snapshot_without_a_checksum_of_an_early_release_is_believed(log: MetadataLog) -> None:
    add(log, 40, snapshot_batches(5))
    unseal(log.path / "snapshots")
    path = log.path / "snapshots" / "_delta_log" / f"{1:020d}.json"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "crc32c" not in line))
    (snapshot,) = MetadataLog.open(log.path).snapshots()
    assert (snapshot.checksum, snapshot.damage()) == (None, None)
    assert list(snapshot.batches()) == snapshot_batches(5)


def in_parts(log: MetadataLog, batches: list[RecordBatch], end_offset: int) -> list[SnapshotPart]:
    """The files of a snapshot, one of each batch."""
    disk, rows = UnsyncedDisk(), to_rows(batches)
    ends = [0, *(batch.last_offset + 1 for batch in batches)]
    return [
        write_part(disk, log.path / "snapshots", rows.slice(low, high - low), end_offset, 1)
        for low, high in pairwise(ends)
    ]


def add_parts(log: MetadataLog, parts: list[SnapshotPart], end_offset: int) -> bool:
    table = SnapshotTable.open_or_create(log.path / "snapshots", UnsyncedDisk())
    return table.add_parts(parts, SnapshotFacts(end_offset=end_offset, epoch=1, last_contained_log_timestamp=TIME))


def named_otherwise(batches: list[RecordBatch]) -> list[RecordBatch]:
    """The same offsets and sizes with other values."""
    return [attrs.evolve(b, values=tuple(value.replace(b"topic-", b"other-") for value in b.values)) for b in batches]


def test_a_snapshot_of_several_parts_is_held_to_the_checksum_of_all_of_them(log: MetadataLog) -> None:
    batches = snapshot_batches(5)
    payload = b"".join(value for batch in batches for value in batch.values)
    log.add_snapshot(SnapshotFacts(end_offset=10, epoch=1, last_contained_log_timestamp=TIME), batches)
    parts = in_parts(log, batches, 40)
    assert [part.record_count for part in parts] == [1, 5, 1]
    assert add_parts(log, parts, 40)
    assert not add_parts(log, in_parts(log, batches, 40), 40), "the same one is there already"
    whole, snapshot = MetadataLog.open(log.path).snapshots()
    assert snapshot.checksum == whole.checksum == crc32c(payload)
    assert len(snapshot.data_files) == 3
    assert snapshot.damage() is None
    assert list(snapshot.batches()) == batches


def test_parts_with_another_checksum_are_not_the_snapshot_that_is_there(log: MetadataLog) -> None:
    batches = snapshot_batches(5)
    add(log, 10, batches)
    assert add_parts(log, in_parts(log, batches, 40), 40)
    files = sorted((log.path / "snapshots").glob("*.parquet"))
    for others in (named_otherwise(batches), [batches[0], *named_otherwise(batches[1:])]):
        with pytest.raises(ImportConflictError, match="with other records"):
            add_parts(log, in_parts(log, others, 40), 40)
    assert sorted((log.path / "snapshots").glob("*.parquet")) == files


def test_a_snapshot_with_a_part_of_another_one_is_damaged(log: MetadataLog) -> None:
    batches = snapshot_batches(5)
    add(log, 10, batches)
    parts = in_parts(log, batches, 40)
    assert add_parts(log, parts, 40)
    foreign = log.path / "snapshots" / in_parts(log, named_otherwise(batches), 40)[1].file.path
    content = foreign.read_bytes()
    unseal(log.path / "snapshots")
    _, snapshot = MetadataLog.open(log.path).snapshots()
    name = parts[1].file.path.partition(".")[0]
    (place,) = (log.path / "snapshots" / file for file, _ in snapshot.data_files if file.startswith(name))
    place.write_bytes(content)
    assert snapshot.record_count == 7
    assert "checksum is" in (snapshot.damage() or "sound")
    for read in (snapshot.batches, snapshot.bulk_batches):
        with pytest.raises(CorruptDataError, match=r"checksum is .* not .* as when it was kept"):
            list(read())
    report = kraftlake.open(log.path).verify()
    assert any("checksum is" in problem.message and problem.file == snapshot.name for problem in report.problems)


def test_a_damaged_snapshot_is_passed_over_for_the_one_before_it(tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[3] / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
    import_source(sample, tmp_path / "lake")
    source = open_source(tmp_path / "lake")
    older, newest = source.snapshots[-2:]
    sound = source.replay()
    assert sound.base == newest.name
    log = MetadataLog.open(tmp_path / "lake")
    versions = range(1, 1 + len(log.snapshots()))
    for version in versions:
        path = log.path / "snapshots" / "_delta_log" / f"{version:020d}.json"
        if newest.name in path.read_text():
            spoil_fact(log, version, "crc32c")
    with capture_logs() as logs:
        replayed = open_source(tmp_path / "lake").replay()
    assert replayed.base == older.name
    assert replayed.image == sound.image
    assert [(entry["event"], entry["snapshot"]) for entry in logs] == [("snapshot_skipped", newest.name)]
