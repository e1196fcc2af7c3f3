from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import OffsetSpan
from kraftlake.metadata_log.delta_table.delta_log import read_commit, read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance import compaction, trimming
from kraftlake.metadata_log.maintenance.compaction import compact, groups_to_compact
from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepThread
from kraftlake.metadata_log.maintenance.upkeep_policy import LONGEST_COMMIT_MS, MAX_STREAM_LAG, UpkeepPolicy
from kraftlake.metadata_log.maintenance.vacuum import vacuum
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import LakeError, OffsetError, UsageError
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, snapshot_batches
from tests.metadata_log.unsealed import unseal

DISK = UnsyncedDisk()
POLICY = UpkeepPolicy(checkpoint_after=10, keep_commits=3, compact_from=4, orphan_age_ms=0, exclusive=True)


def grown(path: Path, commits: int, *, lag_ms: int = 0) -> MetadataLog:
    log = MetadataLog.create(path, "cluster", disk=DISK)
    for _ in range(commits):
        log.append([data_batch(log.end_offset, 1 + log.end_offset % 3)])
    trimming.declare_stream_lag(path / "log", DISK, lag_ms)
    return MetadataLog.open(path, disk=DISK)


def upkeep(log: MetadataLog) -> Upkeep:
    return Upkeep(log.path, POLICY, disk=DISK)


def assert_readers_agree(log: MetadataLog, before: object, low: int = 0) -> None:
    """Our reader, and delta-rs, see the rows that were there before."""
    fresh = MetadataLog.open(log.path)
    assert fresh.rows(low).equals(before)
    table = DeltaTable(log.path / "log")
    assert table.to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset").equals(fresh.rows())


def span(low: int, rows: int, size: int = 1000) -> OffsetSpan:
    file = AddFile(path=f"{low}", size=size, modification_time=low)
    return OffsetSpan(file=file, low=low, high=low + rows - 1, first_batch=low, rows=rows)


def test_small_files_become_one_and_every_reader_sees_the_same(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    before = log.rows()
    times = [file.modification_time for file in read_table(log.path / "log").files.values()]
    done = compact(log.path / "log", DISK, POLICY)
    assert (done.files, done.made) == (20, 1)
    assert_readers_agree(log, before)
    state = read_table(log.path / "log")
    (file,) = state.files.values()
    assert file.statistics is not None
    assert file.statistics.min_values["offset"] == 0
    assert file.statistics.max_values["offset"] == log.end_offset - 1
    assert file.modification_time == max(times)
    rows = pq.read_table(log.path / "log" / file.path)
    assert rows.column("offset").to_pylist() == list(range(log.end_offset))
    commit = read_commit(log.path / "log", state.version)
    assert commit is not None
    assert (commit.changes_data, commit.transactions, commit.protocol, commit.metadata) == (False, {}, None, None)
    assert compact(log.path / "log", DISK, POLICY).made == 0, "nothing is left to do"
    assert list(log.batches()) == list(MetadataLog.open(log.path).batches())


def test_a_row_is_rewritten_a_few_times_only_however_long_the_log_gets() -> None:
    files: list[OffsetSpan] = []
    written = 0
    policy = UpkeepPolicy(compact_from=8)
    for offset in range(4096):
        files.append(span(offset, 1))
        for group in list(groups_to_compact(files, policy)):
            high = group[-1].high
            assert high is not None
            rows = high - group[0].low + 1
            written += rows
            files = [file for file in files if file not in group] + [span(group[0].low, rows)]
    assert written <= 4096 * 12
    assert len(files) < 40


def test_large_files_and_unknown_ones_are_left_alone() -> None:
    policy = UpkeepPolicy(compact_from=2, small_bytes=10_000, small_rows=100)
    assert list(groups_to_compact([span(0, 1, size=5_000), span(1, 1), span(2, 60), span(62, 1)], policy)) == []
    unknown = attrs.evolve(span(2, 1), high=None)
    assert list(groups_to_compact([span(0, 1), span(1, 1), unknown], policy)) == [[span(0, 1), span(1, 1)]]
    holes = [span(0, 1), span(2, 1), span(4, 1)]
    assert list(groups_to_compact(holes, policy)) == []
    many = [span(offset, 1, size=4_000) for offset in range(5)]
    assert [len(group) for group in groups_to_compact(many, policy)] == [2, 2]


@given(sizes=st.lists(st.integers(1, 60), max_size=40), compact_from=st.integers(2, 5))
def test_groups_are_neighbours_in_order_and_no_file_is_in_two(sizes: list[int], compact_from: int) -> None:
    policy = UpkeepPolicy(compact_from=compact_from, small_rows=100)
    files: list[OffsetSpan] = []
    for rows in sizes:
        files.append(span(sum(sizes[: len(files)]), rows))
    groups = list(groups_to_compact(files[::-1], policy))
    flat = [file for group in groups for file in group]
    assert len({file.file.path for file in flat}) == len(flat)
    for group in groups:
        assert len(group) > 1
        assert files[files.index(group[0]) : files.index(group[0]) + len(group)] == group
        assert sum(file.high - file.low + 1 for file in group if file.high is not None) <= 100


def test_a_compaction_beside_a_writer_costs_neither_anything(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 10)
    reader = MetadataLog.open(log.path)
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(60):
                log.append([data_batch(log.end_offset, 2)])
        except BaseException as fault:
            failed.append(fault)

    writer = threading.Thread(target=write)
    writer.start()
    made = 0
    while writer.is_alive():
        made += compact(log.path / "log", DISK, POLICY).made
        reader.refresh()
        assert reader.rows(columns=["offset"]).num_rows == reader.end_offset
    writer.join()
    assert failed == []
    assert made > 0
    before = log.rows()
    compact(log.path / "log", DISK, POLICY)
    assert_readers_agree(log, before)
    assert before.num_rows == log.end_offset


def after_another(monkeypatch: pytest.MonkeyPatch, module: object, name: str, act: Callable[[], object]) -> None:
    """Have something happen right after the first call of a function."""
    real = getattr(module, name)
    acts = [act]

    def wrapped(*arguments: object, **named: object) -> object:
        found = real(*arguments, **named)
        if acts:
            acts.pop()()
        return found

    monkeypatch.setattr(module, name, wrapped)


def test_a_compaction_that_lost_its_files_to_another_gives_up_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grown(tmp_path / "lake", 12)
    before = log.rows()
    after_another(monkeypatch, compaction, "write_data_file", DeltaTable(log.path / "log").optimize.compact)
    assert compact(log.path / "log", DISK, POLICY).made == 0
    assert_readers_agree(log, before)
    live = {Path(uri).name for uri in DeltaTable(log.path / "log").file_uris()}
    assert len(live) == 1
    assert vacuum(log.path / "log", DISK, POLICY).orphans == 0


def test_an_append_in_between_is_retried_by_the_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = grown(tmp_path / "lake", 12)
    end = log.end_offset
    after_another(monkeypatch, compaction, "write_data_file", lambda: log.append([data_batch(end)]))
    assert compact(log.path / "log", DISK, POLICY).made == 1
    assert MetadataLog.open(log.path).end_offset == end + 1
    log.append([data_batch(end + 1)])
    assert_readers_agree(log, log.rows())


def test_upkeep_checkpoints_and_cleans_up_and_vacuum_takes_what_is_left(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 30)
    log.add_snapshot(SnapshotFacts(end_offset=1, epoch=1, last_contained_log_timestamp=1), snapshot_batches(1))
    before = log.rows()
    for path in (log.path / "log" / "_delta_log").glob("*.json"):
        os.utime(path, (1, 1))
    report = upkeep(log).run()
    assert report.compaction.files == 30
    assert report.checkpoints == {"log": 32}
    assert report.cleaned_up.commits == 29
    (log.path / "log" / "crashed.parquet").write_bytes(b"PAR1")
    (log.path / "log" / "_delta_log" / ".00000000000000000033.json.x.tmp").write_bytes(b"{")
    (log.path / "log" / "notes.txt").write_bytes(b"mine")
    assert upkeep(log).vacuum(dry_run=True).orphans == 32
    done = upkeep(log).vacuum()
    assert (done.removed, done.orphans, done.kept) == (0, 32, 0), "the checkpoint forgot what nobody is promised"
    assert len(list((log.path / "log").glob("*.parquet"))) == 1
    assert (log.path / "log" / "notes.txt").exists()
    assert_readers_agree(log, before)
    assert [kept.damage() for kept in MetadataLog.open(log.path).snapshots()] == [None]


def test_vacuum_keeps_what_a_commit_or_a_stream_may_still_need(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 10, lag_ms=3_600_000)
    orphan = log.path / "log" / "perhaps-in-flight.parquet"
    orphan.write_bytes(b"PAR1")
    compact(log.path / "log", DISK, POLICY)
    careful = attrs.evolve(POLICY, orphan_age_ms=3_600_000, exclusive=False)
    assert vacuum(log.path / "log", DISK, careful).kept == 11
    os.utime(orphan, (1, 1))
    done = vacuum(log.path / "log", DISK, careful)
    assert (done.removed, done.orphans, done.kept) == (0, 1, 10)
    trimming.declare_stream_lag(log.path / "log", DISK, 0)
    assert vacuum(log.path / "log", DISK, POLICY).removed == 10
    assert vacuum(log.path / "log", DISK, POLICY) == vacuum(log.path / "log", DISK, POLICY)


def test_an_age_at_which_a_commit_may_be_under_way_is_refused_unless_nobody_else_writes(tmp_path: Path) -> None:
    UpkeepPolicy(orphan_age_ms=LONGEST_COMMIT_MS)
    with pytest.raises(UsageError, match="less than 15 minutes may belong to a commit that is being made"):
        UpkeepPolicy(orphan_age_ms=LONGEST_COMMIT_MS - 1)
    UpkeepPolicy(orphan_age_ms=0, exclusive=True)
    with pytest.raises(UsageError, match="can't be -1"):
        UpkeepPolicy(orphan_age_ms=-1, exclusive=True)
    with pytest.raises(UsageError, match="beside a writer"):
        UpkeepThread(upkeep(grown(tmp_path / "lake", 1)))


def with_snapshot(log: MetadataLog, end_offset: int) -> None:
    log.add_snapshot(
        SnapshotFacts(end_offset=end_offset, epoch=1, last_contained_log_timestamp=1), snapshot_batches(end_offset)
    )


def test_a_trim_takes_whole_files_behind_a_snapshot_and_nothing_else(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    before = log.rows()
    with_snapshot(log, 17)
    files = sorted(path.name for path in (log.path / "log").glob("*.parquet"))
    done = upkeep(log).trim(17)
    assert done.old_start == 0
    assert 14 <= done.new_start <= 17
    trimmed = MetadataLog.open(log.path)
    assert trimmed.start_offset == done.new_start
    assert trimmed.end_offset == log.end_offset
    assert_readers_agree(log, before.slice(done.new_start), done.new_start)
    assert sorted(path.name for path in (log.path / "log").glob("*.parquet")) == files, "vacuum's work"
    configuration = DeltaTable(log.path / "log").metadata().configuration
    assert configuration["delta.appendOnly"] == "true"
    assert upkeep(log).trim(done.new_start).files == 0
    log.append([data_batch(log.end_offset)])
    assert log.start_offset == done.new_start
    assert MetadataLog.open(log.path).end_offset == log.end_offset


def test_offsets_before_the_start_name_the_first_available_one(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 17)
    lagging = log.tail(3, timeout=60)
    reader = MetadataLog.open(log.path)
    reading = reader.batches(0)
    start = upkeep(log).trim(17).new_start
    upkeep(log).vacuum()
    with pytest.raises(OffsetError, match=f"first available offset is {start}"):
        log.tail(3)
    with pytest.raises(OffsetError, match=f"first available offset is {start}"):
        list(reading)
    with pytest.raises(OffsetError, match=f"first available offset is {start}"):
        next(lagging)


@pytest.mark.parametrize(
    "case",
    [
        (17, 16, 0, LakeError, "--before 16 is the most"),
        (17, None, 0, LakeError, "there is none that covers anything"),
        (17, 17, 60_000, LakeError, r"declared maximum stream lag of 1 minutes.*Trim --before 0 at most"),
        (999, 17, 0, OffsetError, "holds offsets 0 to"),
        (-1, 17, 0, OffsetError, "holds offsets 0 to"),
    ],
)
def test_a_trim_that_would_lose_something_is_refused(
    tmp_path: Path, case: tuple[int, int | None, int, type[Exception], str]
) -> None:
    before, snapshot, lag_ms, fault, sentence = case
    log = grown(tmp_path / "lake", 20, lag_ms=lag_ms)
    if snapshot is not None:
        with_snapshot(log, snapshot)
    version = read_table(log.path / "log").version
    with pytest.raises(fault, match=sentence):
        upkeep(log).trim(before)
    assert read_table(log.path / "log").version == version


def test_a_trim_that_no_snapshot_covers_declares_no_stream_lag_either(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 4, lag_ms=5)
    version = log.version
    with pytest.raises(LakeError, match="there is none that covers anything"):
        upkeep(log).trim(3, stream_lag_ms=0)
    assert MetadataLog.open(log.path).version == version
    assert upkeep(log).trim(0, stream_lag_ms=0).files == 0
    assert read_table(log.path / "log").metadata.configuration[MAX_STREAM_LAG] == "0"


def test_a_snapshot_that_is_damaged_covers_no_trim(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 10)
    with_snapshot(log, 17)
    spoil_checksum(log.path, 17)
    with pytest.raises(LakeError, match="--before 10 is the most"):
        upkeep(log).trim(17)


def spoil_checksum(lake: Path, end_offset: int) -> None:
    """A commit that states another checksum than its snapshot has."""
    unseal(lake / "snapshots")
    for path in (lake / "snapshots" / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            name = line.get("txn", {}).get("appId", "")
            if f"{end_offset:020d}-" in name and name.endswith("crc32c"):
                line["txn"]["version"] ^= 1
        path.write_text("\n".join(map(json.dumps, lines)))


def test_a_batch_that_a_foreign_compaction_cut_is_trimmed_whole_or_not_at_all(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", disk=DISK)
    log.append([data_batch(0, 3), data_batch(3, 6), data_batch(9, 3)])
    trimming.declare_stream_lag(log.path / "log", DISK, 0)
    rows = log.rows()
    state = read_table(log.path / "log")
    (whole,) = state.files.values()
    actions: list[dict[str, object]] = [{"remove": {"path": whole.path, "dataChange": False}}]
    for low, high in ((0, 2), (3, 5), (6, 11)):
        piece = rows.slice(low, high - low + 1)
        pq.write_table(piece, log.path / "log" / f"part-{low}.parquet")
        batches = piece.column("batch").to_pylist()
        stats = {
            "numRecords": high - low + 1,
            "minValues": {"offset": low, "batch": min(batches)},
            "maxValues": {"offset": high, "batch": max(batches)},
        }
        add = {"path": f"part-{low}.parquet", "size": 1, "modificationTime": 1, "dataChange": False}
        actions.append({"add": {**add, "partitionValues": {}, "stats": json.dumps(stats)}})
    path = log.path / "log" / "_delta_log" / f"{state.version + 1:020d}.json"
    path.write_text("\n".join(map(json.dumps, actions)))
    with_snapshot(log, 8)
    assert upkeep(log).trim(8).new_start == 3
    assert next(MetadataLog.open(log.path).batches()) == data_batch(3, 6)


def test_a_trim_that_was_killed_half_way_is_finished_by_the_next_upkeep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 17)

    class KilledError(Exception):
        pass

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(trimming, "restore_append_only", die)
        with pytest.raises(KilledError):
            upkeep(log).trim(17)
    assert DeltaTable(log.path / "log").metadata().configuration["delta.appendOnly"] == "false"
    end = log.end_offset
    log.append([data_batch(end)])
    assert MetadataLog.open(log.path).rows().num_rows == end + 1 - log.start_offset
    upkeep(log).run()
    assert DeltaTable(log.path / "log").metadata().configuration["delta.appendOnly"] == "true"


def test_a_writer_goes_on_over_a_trim_and_a_declaration(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    with_snapshot(log, 17)
    end = log.end_offset
    start = upkeep(log).trim(17).new_start
    log.append([data_batch(end)])
    trimming.declare_stream_lag(log.path / "log", DISK, 5)
    log.append([data_batch(end + 1)])
    assert (log.start_offset, log.end_offset) == (start, end + 2)


def test_the_upkeep_thread_keeps_a_growing_log_in_order(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 1)
    careful = attrs.evolve(POLICY, orphan_age_ms=3_600_000, exclusive=False)
    with UpkeepThread(Upkeep(log.path, careful, disk=DISK), interval=0.01):
        while (
            len(read_table(log.path / "log").files) + 8 > log.version - 5
            or read_table(log.path / "log").checkpoint_version < 1
        ):
            log.append([data_batch(log.end_offset)])
            assert log.version < 2_000, "no upkeep was done"
    assert_readers_agree(log, log.rows())


@pytest.mark.parametrize("fault", [LakeError("the disk is full"), OSError("the disk is full")])
def test_an_upkeep_round_that_fails_is_logged_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    log = grown(tmp_path / "lake", 1)
    kept = Upkeep(log.path, disk=DISK)
    rounds = threading.Semaphore(0)

    def fail() -> None:
        rounds.release()
        raise fault

    monkeypatch.setattr(kept, "run", fail)
    with capture_logs() as logs, UpkeepThread(kept, interval=0.001):
        assert rounds.acquire(timeout=60)
        assert rounds.acquire(timeout=60)
    assert {entry["reason"] for entry in logs} == {"the disk is full"}


def test_a_round_that_is_not_due_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Upkeep(grown(tmp_path / "lake", 1).path, disk=DISK)
    asked: list[bool] = []
    ran = threading.Event()
    monkeypatch.setattr(kept, "run", ran.set)

    def due() -> bool:
        asked.append(ran.is_set())
        return len(asked) > 3

    with UpkeepThread(kept, interval=0.001, due=due):
        assert ran.wait(timeout=60)
    assert asked[:4] == [False] * 4


def test_what_is_no_lake_gets_no_upkeep(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="There is no lake"):
        Upkeep(tmp_path / "nowhere")
