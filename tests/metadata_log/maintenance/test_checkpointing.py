from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest
from deltalake import DeltaTable, TableFeatures
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table import table_state
from kraftlake.metadata_log.delta_table.actions import AddFile, RemoveFile
from kraftlake.metadata_log.delta_table.checkpoint_writer import write_checkpoint
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.table_state import LiveFiles, TableState, Tombstones, commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due, clean_up_commits
from kraftlake.metadata_log.maintenance.upkeep_policy import MAX_STREAM_LAG, UpkeepPolicy, max_stream_lag_ms
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import LakeError
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, snapshot_batches

POLICY = UpkeepPolicy(checkpoint_after=10, keep_commits=3)
DISK = UnsyncedDisk()


def grown(path: Path, commits: int) -> MetadataLog:
    log = MetadataLog.create(path, "cluster", disk=DISK)
    for offset in range(commits):
        log.append([data_batch(offset)], committed_to=offset)
    return log


def age_commits(table: Path) -> None:
    for path in (table / "_delta_log").glob("*.json"):
        os.utime(path, (1, 1))


def versions(table: Path) -> list[int]:
    return sorted(int(path.stem) for path in (table / "_delta_log").glob("*.json"))


def state_of(state: TableState) -> tuple[object, ...]:
    files = {file.path: (file.size, file.stats, file.modification_time) for file in state.files.values()}
    return state.version, files, state.transactions, state.metadata, state.protocol, state.tombstones.since(0)


def test_a_checkpoint_keeps_the_table_features_that_others_have_added(tmp_path: Path) -> None:
    table = grown(tmp_path / "lake", 2).path / "log"
    DeltaTable(table).alter.add_feature([TableFeatures.AppendOnly], allow_protocol_versions_increase=True)
    expected = DeltaTable(table).protocol()
    assert expected.writer_features == ["appendOnly"]
    state = read_table(table)
    write_checkpoint(DISK, state, removed_since=0)
    for version in versions(table)[:-1]:
        commit_path(table, version).unlink()
    assert DeltaTable(table).protocol() == expected
    assert state_of(read_table(table)) == state_of(state)


def test_a_checkpoint_says_what_the_commits_say(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 12)
    DeltaTable(log.path / "log").optimize.compact()
    log.refresh()
    log.append([data_batch(12)])
    from_commits = read_table(log.path / "log")
    assert len(from_commits.tombstones.since(0)) == 12
    write_checkpoint(DISK, from_commits, removed_since=0)
    assert (from_commits.version, len(from_commits.files)) == (14, 2)
    for version in range(14):
        commit_path(log.path / "log", version).unlink()
    from_checkpoint = read_table(log.path / "log")
    assert from_checkpoint.checkpoint_version == 14
    assert state_of(from_checkpoint) == state_of(from_commits)
    assert MetadataLog.open(log.path).rows().equals(log.rows())


def test_delta_rs_reads_and_goes_on_from_our_checkpoint(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 20)
    assert checkpoint_if_due(log.path / "log", DISK, POLICY) is not None
    age_commits(log.path / "log")
    clean_up_commits(log.path / "log", DISK, POLICY)
    table = DeltaTable(log.path / "log")
    assert (table.version(), len(table.file_uris())) == (20, 20)
    assert table.to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset").equals(log.rows())
    assert table.transaction_version("kraftlake.end_offset") == 20
    assert table.metadata().configuration["kraftlake.cluster_id"] == "cluster"
    assert table.optimize.compact()["numFilesRemoved"] == 20
    table.create_checkpoint()
    assert MetadataLog.open(log.path).rows().equals(log.rows())


def test_a_checkpoint_is_made_when_it_is_due_and_not_before(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 9)
    assert checkpoint_if_due(log.path / "log", DISK, POLICY) is None
    log.append([data_batch(9)])
    assert checkpoint_if_due(log.path / "log", DISK, POLICY) == 10
    assert checkpoint_if_due(log.path / "log", DISK, POLICY, force=True) is None
    log.append([data_batch(10)])
    assert checkpoint_if_due(log.path / "log", DISK, POLICY) is None
    assert checkpoint_if_due(log.path / "log", DISK, POLICY, force=True) == 11


def test_checkpoints_come_further_apart_the_more_files_there_are() -> None:
    policy = UpkeepPolicy()
    assert policy.checkpoint_is_due(100, 0)
    assert not policy.checkpoint_is_due(100, 200_000)
    assert policy.checkpoint_is_due(1_100, 200_000)


def test_opening_behind_a_checkpoint_lists_nothing_and_reads_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grown(tmp_path / "lake", 15)
    checkpoint_if_due(log.path / "log", DISK, POLICY)
    log.append([data_batch(15)])

    def refuse(*_: object) -> None:
        raise AssertionError("a listing, or a look at the files")

    monkeypatch.setattr("kraftlake.metadata_log.delta_table.delta_log.list_log", refuse)
    monkeypatch.setattr("kraftlake.metadata_log.delta_table.checkpoint._read_columns", refuse)
    again = MetadataLog.open(log.path)
    assert (again.end_offset, again.epoch, again.cluster_id, again.role, again.committed_to) == (
        16, 1, "cluster", "imported", 14,
    )  # fmt: skip


def test_a_handle_lists_before_its_first_append_only_and_looks_at_the_files_again_after_commits_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grown(tmp_path / "lake", 15)
    checkpoint_if_due(log.path / "log", DISK, POLICY)
    other = MetadataLog.open(log.path, disk=DISK)
    log = MetadataLog.open(log.path, disk=DISK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kraftlake.metadata_log.log.check_none_lost", lambda *_: pytest.fail("a listing"))
        with pytest.raises(pytest.fail.Exception):
            log.append([data_batch(15)])
    log.append([data_batch(15)])

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a listing, or a look at the files")

    monkeypatch.setattr("kraftlake.metadata_log.delta_table.delta_log.list_log", refuse)
    monkeypatch.setattr(MetadataLog, "misplaced_rows", refuse)
    log.append([data_batch(16)])
    log.refresh()
    log.append([data_batch(17)])
    monkeypatch.undo()
    other.refresh()
    other.append([data_batch(18)])
    looked: list[MetadataLog] = []

    def looked_at(log: MetadataLog) -> None:
        looked.append(log)

    monkeypatch.setattr("kraftlake.metadata_log.delta_table.delta_log.list_log", refuse)
    monkeypatch.setattr(MetadataLog, "misplaced_rows", looked_at)
    log.refresh()
    log.append([data_batch(19)])
    assert len(looked) == 1, "another writer's rows are looked at"
    assert MetadataLog.open(log.path).end_offset == 20


def test_old_commits_go_oldest_first_and_some_stay(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 30)
    table = log.path / "log"
    assert clean_up_commits(table, DISK, POLICY).commits == 0
    checkpoint_if_due(table, DISK, POLICY)
    assert clean_up_commits(table, DISK, POLICY).commits == 0, "they are too young"
    age_commits(table)
    os.utime(commit_path(table, 20))
    assert clean_up_commits(table, DISK, POLICY).commits == 20
    assert versions(table) == list(range(20, 31))
    age_commits(table)
    assert clean_up_commits(table, DISK, POLICY).commits == 7
    assert versions(table) == [27, 28, 29, 30]
    assert MetadataLog.open(log.path).rows().equals(log.rows())
    for offset in range(30, 60):
        log.append([data_batch(offset)])
        checkpoint_if_due(table, DISK, POLICY)
    age_commits(table)
    assert clean_up_commits(table, DISK, POLICY).checkpoints == 2
    assert len(list((table / "_delta_log").glob("*.parquet"))) == 2
    assert MetadataLog.open(log.path).end_offset == 60


def test_a_reader_that_lags_behind_a_clean_up_goes_on_at_the_checkpoint(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 5)
    reader = MetadataLog.open(log.path)
    for offset in range(5, 20):
        log.append([data_batch(offset)])
    checkpoint_if_due(log.path / "log", DISK, POLICY)
    age_commits(log.path / "log")
    clean_up_commits(log.path / "log", DISK, POLICY)
    assert reader.refresh() == 15
    assert reader.rows().num_rows == 20


@pytest.mark.parametrize("hint", [b"", b"{}", b'{"version":12}', b'{"version":20,"parts":3}', b'{"version":-4}'])
def test_a_wrong_hint_still_opens_the_newest_version(tmp_path: Path, hint: bytes) -> None:
    log = grown(tmp_path / "lake", 20)
    checkpoint_if_due(log.path / "log", DISK, POLICY)
    log.append([data_batch(20)])
    (log.path / "log" / "_delta_log" / "_last_checkpoint").write_bytes(hint)
    assert MetadataLog.open(log.path).end_offset == 21


def test_a_hint_that_is_behind_a_clean_up_is_found_out(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 12)
    table = log.path / "log"
    checkpoint_if_due(table, DISK, POLICY)
    old = (table / "_delta_log" / "_last_checkpoint").read_bytes()
    for offset in range(12, 30):
        log.append([data_batch(offset)])
    checkpoint_if_due(table, DISK, POLICY)
    age_commits(table)
    clean_up_commits(table, DISK, POLICY)
    (table / "_delta_log" / "_last_checkpoint").write_bytes(old)
    assert MetadataLog.open(log.path).end_offset == 30


def test_a_version_that_is_missing_behind_the_hint_is_named(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 12)
    checkpoint_if_due(log.path / "log", DISK, POLICY)
    for offset in range(12, 16):
        log.append([data_batch(offset)])
    commit_path(log.path / "log", 14).unlink()
    with pytest.raises(LakeError, match=r"Version 14 of the Delta table .* is missing although a later one exists"):
        MetadataLog.open(log.path)


def test_two_who_write_the_same_checkpoint_both_succeed(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 5)
    states = [read_table(log.path / "log") for _ in range(2)]
    for state in states:
        write_checkpoint(DISK, state, removed_since=0)
    assert MetadataLog.open(log.path).end_offset == 5


def test_the_snapshots_table_is_checkpointed_too(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 1)
    for end in range(1, 12):
        log.add_snapshot(
            SnapshotFacts(end_offset=end, epoch=1, last_contained_log_timestamp=1, size_in_bytes=end),
            snapshot_batches(end),
        )
    before = [(kept.name, list(kept.batches())) for kept in log.snapshots()]
    assert checkpoint_if_due(log.path / "snapshots", DISK, POLICY) is not None
    age_commits(log.path / "snapshots")
    assert clean_up_commits(log.path / "snapshots", DISK, POLICY).commits == 8
    assert [(kept.name, list(kept.batches())) for kept in MetadataLog.open(log.path).snapshots()] == before


def test_the_declared_stream_lag_is_a_number() -> None:
    assert max_stream_lag_ms({MAX_STREAM_LAG: "5"}) == 5
    assert max_stream_lag_ms({}) == 6 * 3600 * 1000
    with pytest.raises(LakeError, match="must be a number"):
        max_stream_lag_ms({MAX_STREAM_LAG: "soon"})


def add_of(number: int, stats: bool) -> AddFile:
    text = None
    if stats:
        text = (
            f'{{"numRecords":2,"minValues":{{"offset":{number * 2},"epoch":1,"batch":{number * 2},"type":"A"}},'
            f'"maxValues":{{"offset":{number * 2 + 1},"epoch":1}},"nullCount":{{}}}}'
        )
    return AddFile(path=f"f{number}", size=number, modification_time=number, stats=text)


@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.booleans()), max_size=40),
    loaded=st.sets(st.integers(0, 12)),
    low=st.integers(-1, 26),
    length=st.integers(0, 5),
)
def test_files_as_columns_are_the_same_as_a_dictionary_of_them(
    steps: list[tuple[bool, int, bool]], loaded: set[int], low: int, length: int
) -> None:
    def load() -> object:
        rows = LiveFiles()
        for number in sorted(loaded):
            rows.add(add_of(number, stats=True))
        return rows.to_table()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_state, "FOLD_AT", 3)
        files = LiveFiles(load)
        model = {f"f{number}": add_of(number, stats=True) for number in sorted(loaded)}
        for is_add, number, stats in steps:
            # Only a commit that changes no data brings a path back.
            add = attrs.evolve(add_of(number, stats), data_change=False)
            if is_add:
                files.add(add)
                model[add.path] = add
            else:
                files.remove(add.path)
                model.pop(add.path, None)
            assert number % 3 or len(files) == len(model)
        high = low + length
        overlapping = {path for path, file in model.items() if table_state.offset_span(file).overlaps(low, high)}
        assert {span.file.path for span in files.overlapping(low, high)} == overlapping
        spans = [table_state.offset_span(file) for file in model.values()]
        assert files.highest_offset() == max((span.high for span in spans if span.high is not None), default=-1)
        ends = [span.high for span in spans if span.first_batch <= low]
        assert files.last_offset_of(low) == (None if None in ends else max([-1, *ends]))  # type: ignore[type-var]
        assert {file.path: (file.size, file.stats) for file in files.values()} == {
            path: (file.size, file.stats) for path, file in model.items()
        }
        assert set(files) == set(model)
        assert len(files) == len(model)


def test_a_file_that_came_back_has_no_tombstone() -> None:
    tombstones = Tombstones()
    tombstones.add(RemoveFile(path="a", deletion_timestamp=5))
    tombstones.add(RemoveFile(path="b", deletion_timestamp=None))
    tombstones.add(RemoveFile(path="c", deletion_timestamp=9))
    tombstones.discard("c")
    assert set(tombstones.since(5)) == {"a", "b"}
    assert set(tombstones.since(6)) == {"b"}
