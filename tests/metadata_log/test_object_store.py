"""The same log in an object store, behind a server with the S3 API."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import obstore
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.metadata_log.delta_table.commit import UnknownOutcomeError, VacuumedFileError, now_ms
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance import trimming
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import LONGEST_COMMIT_MS, UpkeepPolicy
from kraftlake.metadata_log.maintenance.vacuum import vacuum
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.storage.disk import ObjectStoreDisk, probe_name
from kraftlake.metadata_log.storage.location import folders_of
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import FencedEpochError, LakeError, UsageError
from tests.cli.running import DIRECTORY, fault, run_json
from tests.metadata_log.delta_protocol import check_commits
from tests.metadata_log.log_batches import TIME, data_batch, snapshot_batches
from tests.metadata_log.object_store import BUCKET, CARELESS, LONG
from tests.metadata_log.strategies import groupings, logs
from tests.metadata_log.test_crashes import APPENDS, RACERS, ROOT, started_together

pytestmark = pytest.mark.xdist_group("object_store")
_numbers = itertools.count()


@pytest.fixture
def lake(server: dict[str, str]) -> str:
    return f"s3://{BUCKET}/kraft/lake{next(_numbers)}"


class Unreliable(ObjectStoreDisk):
    """A store whose next `faults` puts of a commit report a time-out, after they landed or without."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = 0
        self.lands = False

    def _put(self, path: ObjectPath, data: bytes) -> None:
        failing = path.suffix == ".json" and self.faults > 0
        if not failing or self.lands:
            super()._put(path, data)
        if failing:
            self.faults -= 1
            raise OSError(110, "Connection timed out")


@pytest.mark.skipif(LONG, reason="MinIO heeds preconditions in each of its buckets")
def test_a_store_that_overwrites_is_refused_before_the_first_record(server: dict[str, str], lake: str) -> None:
    place = f"s3://{CARELESS}/lake"
    store = ObjectPath.parse(place).store
    message = fault("import", DIRECTORY, place)
    assert message.startswith(f"The object store of {place}/log/_delta_log overwrites an object")
    assert [entry["path"] for chunk in obstore.list(store) for entry in chunk] == []
    MetadataLog.create(lake, "cluster", role="controlled")
    for path in ObjectPath.parse(lake).walk():
        obstore.put(store, path.key.replace(lake.rpartition("/")[2], "copied"), path.read_bytes())
    copied = MetadataLog.open(f"s3://{CARELESS}/kraft/copied")
    with pytest.raises(LakeError, match="ignores If-None-Match"):
        copied.claim(1)
    assert copied.refresh() == 0
    assert copied.end_offset == 0


def test_what_a_killed_check_of_the_store_left_is_in_nobodys_way(lake: str) -> None:
    (ObjectPath.parse(lake) / "log" / "_delta_log" / probe_name()).put(b"1", create=True)
    assert MetadataLog.create(lake, "cluster").end_offset == 0


@settings(max_examples=settings().max_examples if LONG else 6)
@given(data=st.data())
def test_any_grouping_into_commits_reads_as_it_was_appended(server: dict[str, str], data: st.DataObject) -> None:
    place = f"s3://{BUCKET}/any{next(_numbers)}"
    batches = data.draw(logs())
    log = MetadataLog.create(place, "cluster")
    for group in data.draw(groupings(batches)):
        log.append(group)
    found = MetadataLog.open(place)
    assert list(found.batches()) == batches
    assert (found.end_offset, found.epoch) == (batches[-1].last_offset + 1, batches[-1].epoch)


def test_delta_rs_reads_the_same_table(lake: str, server: dict[str, str]) -> None:
    log = MetadataLog.create(lake, "cluster")
    log.append([data_batch(0, 5)])
    log.append([data_batch(5, 2)])
    table = DeltaTable(f"{lake}/log", storage_options={**server, "AWS_ALLOW_HTTP": "true"})
    assert table.to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset").equals(log.rows())


def test_snapshots_lie_beside_the_log(lake: str) -> None:
    log = MetadataLog.create(lake)
    log.append([data_batch(0, 5)])
    kept = SnapshotFacts(end_offset=5, epoch=1, last_contained_log_timestamp=TIME)
    assert log.add_snapshot(kept, snapshot_batches(3))
    assert not log.add_snapshot(kept, snapshot_batches(3))
    (snapshot,) = MetadataLog.open(lake).snapshots()
    assert list(snapshot.batches()) == snapshot_batches(3)


def test_of_racing_appenders_exactly_one_wins_each_version(lake: str) -> None:
    MetadataLog.create(lake)
    said = started_together(1, *(("race", lake, f"-racer{racer}", APPENDS) for racer in range(RACERS)))
    won = {int(base): (int(end), racer) for racer, lines in enumerate(said) for base, end in lines}
    log = MetadataLog.open(lake)
    assert log.version == len(won) == RACERS * APPENDS
    for batch in log.batches():
        end, racer = won.pop(batch.base_offset)
        assert batch.last_offset + 1 == end
        assert f"-racer{racer}".encode() in batch.values[0]
    assert not won
    assert check_commits(ObjectPath.parse(lake) / "log") == 1 + RACERS * APPENDS


def test_every_commit_is_correct_at_every_stage_of_a_lakes_life(lake: str) -> None:
    log = MetadataLog.create(lake, role="controlled")
    for node in (1, 2):
        epoch = log.claim(node)
        for _ in range(5):
            log.append([data_batch(log.end_offset, 2, epoch=epoch)], epoch=epoch)
    assert check_commits(ObjectPath.parse(lake) / "log") == 13
    log.add_snapshot(SnapshotFacts(end_offset=11, epoch=1, last_contained_log_timestamp=TIME), snapshot_batches(3))
    assert {folder.name for folder in folders_of(ObjectPath.parse(lake))} == {"log", "snapshots"}
    trimming.declare_stream_lag(ObjectPath.parse(lake) / "log", ObjectStoreDisk(), 0)
    upkeep = Upkeep(
        lake, UpkeepPolicy(checkpoint_after=5, keep_commits=100, compact_from=3, orphan_age_ms=0, exclusive=True)
    )
    assert upkeep.trim(11).new_start == 11
    assert check_commits(ObjectPath.parse(lake) / "log") == 17
    assert upkeep.run(force_checkpoint=True).compaction.made > 0
    upkeep.vacuum()
    MetadataLog.open(lake).claim(3)
    assert check_commits(ObjectPath.parse(lake) / "log") == 19
    policy = UpkeepPolicy(checkpoint_after=5, keep_commits=2, compact_from=3, orphan_age_ms=0, exclusive=True)
    assert Upkeep(lake, policy).run(force_checkpoint=True).cleaned_up.commits > 0
    assert check_commits(ObjectPath.parse(lake) / "log") < 10
    assert check_commits(ObjectPath.parse(lake) / "snapshots") == 2


def test_a_tail_follows_and_a_checkpoint_is_opened(lake: str, server: dict[str, str]) -> None:
    log = MetadataLog.create(lake, role="controlled")
    epoch = log.claim(1)
    with MetadataLog.open(lake).tail(0, timeout=0) as tail:
        assert [batch.base_offset for batch in tail] == [0]
    for offset in range(1, 6):
        log.append([data_batch(offset, epoch=epoch)], epoch=epoch)
    assert Upkeep(lake).run(force_checkpoint=True).checkpoints == {"log": 6}
    log.append([data_batch(6, epoch=epoch)], epoch=epoch)
    assert [batch.base_offset for batch in MetadataLog.open(lake).tail(0, timeout=0)] == list(range(7))
    table = DeltaTable(f"{lake}/log", storage_options={**server, "AWS_ALLOW_HTTP": "true"})
    assert (table.version(), table.to_pyarrow_table().num_rows) == (7, 7)


@pytest.mark.skipif(not LONG, reason="Hadoop's S3 client is a download of 700 MB")
def test_spark_reads_and_streams_the_same_table_over_s3a(lake: str) -> None:
    log = MetadataLog.create(lake, role="controlled")
    epoch = log.claim(1)
    for offset in range(1, 8):
        log.append([data_batch(offset, epoch=epoch)], epoch=epoch)
    Upkeep(lake).run(force_checkpoint=True)
    log.append([data_batch(8, epoch=epoch)], epoch=epoch)
    command = [sys.executable, "-m", "tests.metadata_log.spark_over_s3a", lake.replace("s3://", "s3a://")]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(said) == {"read": list(range(9)), "streamed": list(range(9))}


def test_a_fenced_writer_is_refused(lake: str) -> None:
    log = MetadataLog.create(lake, role="controlled")
    epoch = log.claim(1)
    MetadataLog.open(lake).claim(2)
    with pytest.raises(FencedEpochError, match="Epoch 1 is fenced: epoch 2"):
        log.append([data_batch(1, epoch=epoch)], epoch=epoch, expected_end_offset=1)
    assert MetadataLog.open(lake).end_offset == 2


@pytest.mark.parametrize(("faults", "lands"), [(1, True), (1, False), (2, False)])
def test_a_retry_that_meets_its_own_object_counts_as_made(lake: str, faults: int, lands: bool) -> None:
    MetadataLog.create(lake)
    disk = Unreliable()
    log = MetadataLog.open(lake, disk=disk)
    disk.faults, disk.lands = faults, lands
    log.append([data_batch(0)])
    log.append([data_batch(1)])
    assert (disk.faults, MetadataLog.open(lake).version) == (0, 2)


def test_a_put_that_may_land_later_is_of_unknown_outcome_until_its_version_is_taken(lake: str) -> None:
    MetadataLog.create(lake)
    disk = Unreliable()
    log = MetadataLog.open(lake, disk=disk)
    disk.faults = 100
    with pytest.raises(UnknownOutcomeError, match="may have been written") as caught:
        log.append([data_batch(0)])
    assert log.outcome(caught.value) is None
    disk.faults = 0
    log.append([data_batch(0)])
    assert log.outcome(caught.value) is False


class Sleepy(ObjectStoreDisk):
    """A store whose writer sleeps for an hour behind its next data file."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = self.hands = ManualClock(now_ms())
        self.sleeps = False

    def write(self, path: ObjectPath, data: bytes | memoryview) -> None:  # type: ignore[override]
        super().write(path, data)
        if self.sleeps:
            self.sleeps = False
            self.hands.advance(3_600_000)
            assert vacuum(path.parent, self, UpkeepPolicy(orphan_age_ms=LONGEST_COMMIT_MS)).orphans == 1


def test_a_writer_that_slept_while_a_vacuum_took_its_object_commits_nothing(lake: str) -> None:
    MetadataLog.create(lake)
    disk = Sleepy()
    log = MetadataLog.open(lake, disk=disk)
    log.append([data_batch(0)])
    disk.sleeps = True
    with pytest.raises(VacuumedFileError, match="is gone: it was written 60 minutes ago"):
        log.append([data_batch(1)])
    log.append([data_batch(1)])
    assert [batch.base_offset for batch in MetadataLog.open(lake).batches()] == [0, 1]


def test_a_file_of_another_writer_is_never_overwritten(lake: str) -> None:
    place = ObjectPath.parse(lake) / "file"
    disk = ObjectStoreDisk()
    disk.put_if_absent(place, b"mine")
    disk.put_if_absent(place, b"mine")
    with pytest.raises(FileExistsError):
        disk.put_if_absent(place, b"another's")
    assert place.read_bytes() == b"mine"
    disk.unlink(place)
    disk.unlink(place)
    assert not place.exists()


class Refusing(ObjectStoreDisk):
    """A store whose token expires while a put is tried again: it may have landed before it is refused."""

    def __init__(self, *, lands: bool) -> None:
        super().__init__()
        self.lands = lands

    def _put(self, path: ObjectPath, data: bytes) -> None:
        if self.lands:
            super()._put(path, data)
        raise PermissionError(13, "the object store denies access")


def test_a_put_that_is_refused_at_last_has_been_made_where_it_can_be_read_back(lake: str) -> None:
    place = ObjectPath.parse(lake) / "file"
    with pytest.raises(PermissionError):
        Refusing(lands=False).put_if_absent(place, b"mine")
    assert not place.exists()
    Refusing(lands=True).put_if_absent(place, b"mine")
    assert place.read_bytes() == b"mine"
    with pytest.raises(FileExistsError):
        Refusing(lands=False).put_if_absent(place, b"another's")


def test_of_racing_puts_of_one_object_exactly_one_wins(lake: str) -> None:
    racers = 8

    def put(place: ObjectPath, racer: int, start: threading.Barrier) -> bool:
        start.wait()
        try:
            obstore.put(place.store, place.key, b"%d" % racer, mode="create")
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(racers) as pool:
        for number in range(10):
            place, start = ObjectPath.parse(lake) / f"{number}.json", threading.Barrier(racers)
            won = list(pool.map(partial(put, place, start=start), range(racers)))
            assert won.count(True) == 1
            assert place.read_bytes() == b"%d" % won.index(True)


def test_a_new_lake_needs_a_prefix_that_holds_nothing(lake: str) -> None:
    MetadataLog.create(lake)
    with pytest.raises(LakeError, match="There is a lake at s3://"):
        MetadataLog.create(lake)
    place = ObjectPath.parse(f"{lake}-other")
    ObjectStoreDisk().put_if_absent(place / "file", b"something")
    with pytest.raises(LakeError, match="is in the way: a new lake needs a prefix that holds nothing"):
        MetadataLog.create(place)


def test_what_is_no_lake_is_refused(server: dict[str, str]) -> None:
    with pytest.raises(LakeError, match=f"There is no lake at s3://{BUCKET}/nothing"):
        MetadataLog.open(f"s3://{BUCKET}/nothing")
    with pytest.raises(LakeError, match=r"can't be read: the object store answers: .*404 Not Found"):
        MetadataLog.open("s3://no-such-bucket/lake")
    with pytest.raises(UsageError, match="give a folder, or s3://BUCKET/PREFIX"):
        MetadataLog.open("s3:///lake")


def test_a_log_is_imported_and_asked_where_it_lies(lake: str) -> None:
    report = import_source(str(DIRECTORY), lake, cluster_id=None)
    assert (report.created, report.records) == (True, 5737)
    assert import_source(str(DIRECTORY), lake, cluster_id=None).records == 0
    assert run_json("image", lake, "--at-offset", 4639) == run_json("image", DIRECTORY, "--at-offset", 4639)
    assert open_source(lake).end_offset == 5737
    assert os.fspath(report.lake) == lake
