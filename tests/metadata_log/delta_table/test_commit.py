from __future__ import annotations

import contextlib
import errno
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kraftlake.metadata_log.append.log_file import FIRST_HASH, hash_of_rows
from kraftlake.metadata_log.delta_table.commit import CommitConflictError, append_info, commit
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.compaction import compact
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.storage.disk import ConcurrentDisk, Disk
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import LakeError
from tests.metadata_log.log_batches import TIME, data_batch, leader_change

ROOT = Path(__file__).parents[3]


def data_files(table: Path) -> set[str]:
    return {path.name for path in table.glob("*.parquet")}


def actions(lake: Path, version: int) -> list[dict[str, Any]]:
    lines = (lake / "log" / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def one(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (fields,) = [action[kind] for action in found if kind in action]
    return fields


class RecordingDisk(Disk):
    """A disk that notes what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self.asked.append(("write", path.suffix))
        super().write(path, data)

    def fsync(self, path: Path) -> None:
        self.asked.append(("fsync", path.suffix if path.is_file() else path.name))
        super().fsync(path)

    def link(self, source: Path, target: Path) -> None:
        self.asked.append(("link", target.suffix))
        super().link(source, target)

    def unlink(self, path: Path) -> None:
        self.asked.append(("unlink", path.suffix))
        super().unlink(path)


class RefusingDisk(Disk):
    """A disk that refuses its `at`th operation, before or after doing it."""

    def __init__(self, at: int, *, done: bool) -> None:
        self.left = at
        self.done = done
        self.refused = ""

    def _do(self, name: str, *arguments: Any) -> None:
        self.left -= 1
        if self.left or self.done:
            getattr(Disk, name)(self, *arguments)
        if self.left == 0:
            self.refused = name
            raise OSError(errno.ENOSPC, "No space left on device")

    def make_folder(self, path: Path) -> None:
        self._do("make_folder", path)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._do("write", path, data)

    def fsync(self, path: Path) -> None:
        self._do("fsync", path)

    def link(self, source: Path, target: Path) -> None:
        self._do("link", source, target)

    def unlink(self, path: Path) -> None:
        self._do("unlink", path)


def test_version_0_states_protocol_schema_and_properties(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake", "MkU3OEVBNTcwNTJENDM2Qk", start_offset=7)
    found = actions(tmp_path / "lake", 0)
    assert one(found, "protocol") == {"minReaderVersion": 1, "minWriterVersion": 2}
    metadata = one(found, "metaData")
    assert metadata["partitionColumns"] == []
    assert metadata["format"] == {"provider": "parquet", "options": {}}
    assert metadata["configuration"] == {
        "delta.appendOnly": "true",
        "delta.dataSkippingStatsColumns": "offset,epoch,timestamp,batch,type",
        "kraftlake.cluster_id": "MkU3OEVBNTcwNTJENDM2Qk",
        "kraftlake.role": "imported",
        "kraftlake.log_start_offset": "7",
    }
    fields = json.loads(metadata["schemaString"])["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [
        ("offset", "long"),
        ("epoch", "integer"),
        ("timestamp", "timestamp"),
        ("batch", "long"),
        ("type", "string"),
        ("api_key", "short"),
        ("version", "short"),
        ("control", "boolean"),
        ("payload", "binary"),
    ]
    info = one(found, "commitInfo")
    assert info["operation"] == "CREATE TABLE"
    assert all(isinstance(value, str) for value in info["operationParameters"].values())


def test_an_append_adds_one_file_with_statistics_and_its_transactions(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    batches = [leader_change(0, epoch=2), data_batch(1, 3, epoch=2)]
    log.append(batches, committed_to=1)
    found = actions(tmp_path / "lake", 1)
    add = one(found, "add")
    assert (tmp_path / "lake" / "log" / add["path"]).stat().st_size == add["size"]
    assert add["partitionValues"] == {}
    assert add["dataChange"] is True
    assert add["modificationTime"] > TIME
    assert json.loads(add["stats"]) == {
        "numRecords": 4,
        "minValues": {
            "offset": 0,
            "epoch": 2,
            "timestamp": "2023-11-14T22:13:20.000Z",
            "batch": 0,
            "type": "LEADER_CHANGE",
        },
        "maxValues": {
            "offset": 3,
            "epoch": 2,
            "timestamp": "2023-11-14T22:13:20.001Z",
            "batch": 1,
            "type": "TOPIC_RECORD",
        },
        "nullCount": {"offset": 0, "epoch": 0, "timestamp": 0, "batch": 0, "type": 0},
    }
    transactions = {action["txn"]["appId"]: action["txn"]["version"] for action in found if "txn" in action}
    assert transactions == {
        "kraftlake.end_offset": 4,
        "kraftlake.epoch": 2,
        "kraftlake.committed_to": 1,
        "kraftlake.chain": hash_of_rows(to_rows(batches), FIRST_HASH),
        "kraftlake.chain_start": 0,
        "kraftlake.chain_end": 4,
    }
    info = one(found, "commitInfo")
    assert (info["operation"], info["isBlindAppend"]) == ("WRITE", True)
    assert info["txnId"] != one(actions(tmp_path / "lake", 0), "commitInfo")["txnId"]


def test_everything_is_synced_before_it_is_visible_and_again_before_it_is_acknowledged(tmp_path: Path) -> None:
    disk = RecordingDisk()
    log = MetadataLog.create(tmp_path / "lake", disk=disk)
    disk.asked.clear()
    log.append([data_batch(0)])
    assert disk.asked == [
        ("write", ".parquet"),
        ("write", ".tmp"),
        ("fsync", ".parquet"),
        ("fsync", "log"),
        ("fsync", ".tmp"),
        ("link", ".json"),
        ("fsync", "_delta_log"),
        ("unlink", ".tmp"),
    ]


def test_several_fsyncs_at_once_are_all_made_and_a_fault_of_any_is_raised(tmp_path: Path) -> None:
    class Watching(ConcurrentDisk):
        def __init__(self) -> None:
            super().__init__()
            self.synced: list[str] = []
            self.bad = ""

        def fsync(self, path: Path) -> None:
            super().fsync(path)
            self.synced.append(path.name)
            if path.name == self.bad:
                raise OSError(errno.EIO, "Input/output error")

    disk = Watching()
    paths = [tmp_path / name for name in ("a", "b", "c", "d", "e", "f", "g")]
    for path in paths:
        disk.write(path, b"something")
    disk.fsync_all(paths)
    assert sorted(disk.synced) == [path.name for path in paths]
    for bad in ("a", "g"):
        disk.bad = bad
        disk.synced.clear()
        with pytest.raises(OSError, match="Input/output error"):
            disk.fsync_all(paths)
        assert sorted(disk.synced) == [path.name for path in paths]


def test_a_lake_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir(mode=0o755)
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data_batch(0)])
    log.add_snapshot(SnapshotFacts(end_offset=1, epoch=1, last_contained_log_timestamp=TIME), [data_batch(0)])
    for path in (tmp_path / "lake", *(tmp_path / "lake").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_version_is_made_once(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake")
    first, second = (read_table(tmp_path / "lake" / "log") for _ in range(2))
    commit(Disk(), first, [append_info()])
    before = actions(tmp_path / "lake", 1)
    with pytest.raises(CommitConflictError, match=r"Version 1 of .*log was made by another writer"):
        commit(Disk(), second, [append_info()])
    assert actions(tmp_path / "lake", 1) == before
    assert second.version == 0
    assert [path.name for path in (tmp_path / "lake/log/_delta_log").iterdir() if path.suffix == ".tmp"] == []


def test_a_link_that_reports_a_fault_although_it_was_made_counts_as_made(tmp_path: Path) -> None:
    class LostReplyDisk(Disk):
        def link(self, source: Path, target: Path) -> None:
            super().link(source, target)
            raise FileExistsError(errno.EEXIST, "File exists")

    MetadataLog.create(tmp_path / "lake")
    log = MetadataLog.open(tmp_path / "lake", disk=LostReplyDisk())
    log.append([data_batch(0)])
    assert MetadataLog.open(tmp_path / "lake").end_offset == 1


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
def test_a_disk_that_refuses_leaves_the_log_whole_and_the_next_append_goes_on(
    tmp_path: Path, at: int, done: bool
) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data_batch(0, 2)])
    disk = RefusingDisk(at, done=done)
    log = MetadataLog.open(tmp_path / "lake", disk=disk)
    visible = 2
    try:
        log.append([data_batch(2, 2)])
        visible = 4
        assert disk.refused in ("", "unlink") or (disk.refused == "link" and done)
    except LakeError as fault:
        assert "No space left on device" in str(fault)  # noqa: PT017
        if "was not confirmed" in str(fault):
            visible = 4
    assert data_files(tmp_path / "lake" / "log") == set(read_table(tmp_path / "lake" / "log").files)
    assert MetadataLog.open(tmp_path / "lake").end_offset == visible
    log.refresh()
    assert log.end_offset == visible
    log.append([data_batch(visible)])
    found = [batch.base_offset for batch in MetadataLog.open(tmp_path / "lake").batches()]
    assert found == list(range(0, visible + 1, 2))


@pytest.mark.parametrize("at", range(1, 8))
def test_a_snapshot_that_a_disk_refuses_leaves_no_file_behind(tmp_path: Path, at: int) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data_batch(0, 2)])
    log.add_snapshot(SnapshotFacts(end_offset=1, epoch=1, last_contained_log_timestamp=TIME), [data_batch(0)])
    log = MetadataLog.open(tmp_path / "lake", disk=RefusingDisk(at, done=False))
    with contextlib.suppress(LakeError):
        log.add_snapshot(SnapshotFacts(end_offset=2, epoch=1, last_contained_log_timestamp=TIME), [data_batch(0)])
    table = tmp_path / "lake" / "snapshots"
    assert data_files(table) == set(read_table(table).files)


def test_a_compaction_that_a_disk_refuses_leaves_no_file_behind(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    for offset in range(4):
        log.append([data_batch(offset)])
    table = tmp_path / "lake" / "log"
    policy = UpkeepPolicy(compact_from=2)
    for at in range(1, 7):
        with pytest.raises(LakeError, match="No space left on device"):
            compact(table, RefusingDisk(at, done=at == 1), policy)
        assert data_files(table) == set(read_table(table).files)


@pytest.mark.parametrize("refused", ["write", "fsync", "rename"])
def test_a_replacement_that_a_disk_refuses_leaves_the_old_file_alone(tmp_path: Path, refused: str) -> None:
    class Refusing(Disk):
        def write(self, path: Path, data: bytes | memoryview) -> None:
            super().write(path, data[:1] if refused == "write" else data)
            self.refuse("write")

        def fsync(self, path: Path) -> None:
            self.refuse("fsync")

        def rename(self, source: Path, target: Path) -> None:
            self.refuse("rename")

        def refuse(self, what: str) -> None:
            if what == refused:
                raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match="No space"):
        Refusing().replace(tmp_path / "file", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_thread_appends_with_fsync_after_the_main_thread_has_returned(tmp_path: Path) -> None:
    code = """
import sys, threading
from kraftlake.metadata_log.log import MetadataLog
from tests.metadata_log.log_batches import data_batch
log = MetadataLog.create(sys.argv[1])
log.append([data_batch(offset) for offset in range(int(sys.argv[2]))])
def serve():
    threading.main_thread().join()
    for _ in range(3):
        log.append([data_batch(log.end_offset)])
threading.Thread(target=serve).start()
"""
    for before in (0, 1):  # what runs the fsyncs is not there yet, or it is
        lake = tmp_path / str(before)
        ran = subprocess.run(
            [sys.executable, "-c", code, lake, str(before)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ran.stderr == ""
        assert MetadataLog.open(lake).end_offset == before + 3


@pytest.mark.parametrize("at", range(1, 11))
def test_a_disk_that_refuses_a_new_lake_is_named_and_creating_it_again_works(tmp_path: Path, at: int) -> None:
    with pytest.raises(LakeError, match=str(tmp_path)) as fault:
        MetadataLog.create(tmp_path / "lake", disk=RefusingDisk(at, done=False))
    if "was not confirmed" not in str(fault.value):
        assert MetadataLog.create(tmp_path / "lake").end_offset == 0
    log = MetadataLog.open(tmp_path / "lake")
    log.append([data_batch(0)])
    assert list(MetadataLog.open(tmp_path / "lake").batches()) == [data_batch(0)]
