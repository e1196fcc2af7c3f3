from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.append.log_file import FIRST_HASH, hash_of_rows
from kraftlake.metadata_log.delta_table import delta_log
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, advance, read_commits, read_table
from kraftlake.metadata_log.delta_table.table_state import TableState, commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import CorruptDataError, LakeError
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch

VERSIONS = 12


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return grown(tmp_path / "lake")


def grown(lake: Path) -> Path:
    """A log table of `VERSIONS` appends of one record."""
    log = MetadataLog.create(lake, "cluster", disk=UnsyncedDisk())
    for offset in range(VERSIONS):
        log.append([data_batch(offset)], committed_to=offset)
    return lake / "log"


def checkpoint(table: Path, version: int = VERSIONS) -> Path:
    """Have delta-rs write a checkpoint."""
    DeltaTable(table, version=version).create_checkpoint()
    return table / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def remove_commits(table: Path, upto: int) -> None:
    for version in range(upto + 1):
        commit_path(table, version).unlink()


def add_commit(table: Path, version: int, *actions: dict[str, object]) -> None:
    commit_path(table, version).write_text("\n".join(map(json.dumps, actions)))


def assert_whole(state: TableState) -> None:
    assert state.version == VERSIONS
    assert len(state.files) == VERSIONS
    assert all(file.statistics is not None for file in state.files.values())
    assert state.transactions == {
        "kraftlake.end_offset": VERSIONS,
        "kraftlake.epoch": 1,
        "kraftlake.committed_to": VERSIONS - 1,
        "kraftlake.chain": hash_of_rows(to_rows([data_batch(offset) for offset in range(VERSIONS)]), FIRST_HASH),
        "kraftlake.chain_start": 0,
        "kraftlake.chain_end": VERSIONS,
    }
    assert state.metadata.configuration["kraftlake.cluster_id"] == "cluster"
    assert (state.protocol.min_reader_version, state.protocol.min_writer_version) == (1, 2)


def test_commits_alone_are_enough(table: Path) -> None:
    assert_whole(read_table(table))


def test_a_checkpoint_says_the_same_as_the_commits_it_stands_for(table: Path) -> None:
    from_commits = read_table(table)
    checkpoint(table)
    remove_commits(table, VERSIONS)
    from_checkpoint = read_table(table)
    assert_whole(from_checkpoint)
    assert from_checkpoint.metadata == from_commits.metadata
    assert {path: file.stats for path, file in from_checkpoint.files.items()} == {
        path: file.stats for path, file in from_commits.files.items()
    }


def test_commits_after_a_checkpoint_are_taken_in(table: Path) -> None:
    checkpoint(table, 7)
    remove_commits(table, 7)
    assert_whole(read_table(table))


def test_a_checkpoint_of_several_parts_is_read(table: Path) -> None:
    whole = checkpoint(table)
    rows = pq.read_table(whole)
    for part, (start, end) in enumerate(((0, 5), (5, 9), (9, rows.num_rows)), 1):
        name = f"{VERSIONS:020d}.checkpoint.{part:010d}.{3:010d}.parquet"
        pq.write_table(rows.slice(start, end - start), whole.with_name(name))
    whole.unlink()
    hint = whole.with_name("_last_checkpoint")
    hint.write_text(json.dumps({"version": VERSIONS, "size": rows.num_rows, "parts": 3}))
    remove_commits(table, VERSIONS)
    assert_whole(read_table(table))
    hint.unlink()
    assert_whole(read_table(table))


DEEP = b"[" * 100_000
"""What recursive readers of JSON do not get through."""


@pytest.mark.parametrize(
    "hint",
    [None, b"", b'{"vers', b"[]", b'{"version":"x"}', b'{"version":3}', b'{"version":99}', DEEP],
    ids=["none", "empty", "torn", "a list", "a text", "old", "new", "deep"],
)
def test_a_hint_that_is_missing_torn_or_old_costs_nothing_but_a_listing(table: Path, hint: bytes | None) -> None:
    path = checkpoint(table, 9).with_name("_last_checkpoint")
    remove_commits(table, 9)
    if hint is None:
        path.unlink()
    else:
        path.write_bytes(hint)
    assert_whole(read_table(table))


def test_a_checkpoint_with_a_part_missing_is_none(table: Path) -> None:
    whole = checkpoint(table)
    whole.rename(whole.with_name(f"{VERSIONS:020d}.checkpoint.{1:010d}.{2:010d}.parquet"))
    assert_whole(read_table(table))


def test_a_missing_version_is_named(table: Path) -> None:
    commit_path(table, 5).unlink()
    with pytest.raises(LakeError, match=r"Version 5 of the Delta table .* is missing although a later one exists"):
        read_table(table)


def test_a_version_that_a_listing_showed_too_early_is_waited_for(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = commit_path(table, 5).rename(table / "hidden")
    monkeypatch.setattr(delta_log.time, "sleep", lambda _: hidden.exists() and hidden.rename(commit_path(table, 5)))
    assert_whole(read_table(table))


def test_a_checkpoint_cleaned_up_under_the_reader_is_replaced_by_the_newer_one(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = checkpoint(table)
    hidden = newer.rename(table / "hidden")
    older = checkpoint(table, 5)
    remove_commits(table, 8)

    def finish_cleaning(_: float) -> None:
        if hidden.exists():
            hidden.rename(newer)
            older.unlink()

    monkeypatch.setattr(delta_log.time, "sleep", finish_cleaning)
    assert_whole(read_table(table))


def test_a_torn_commit_is_named(table: Path) -> None:
    path = commit_path(table, VERSIONS)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CorruptDataError, match=path.name):
        read_table(table)
    path.write_bytes(b"")
    with pytest.raises(CorruptDataError, match=rf"{path.name} is empty"):
        read_table(table)
    path.write_bytes(b'{"add":' + DEEP)
    with pytest.raises(CorruptDataError, match=rf"{path.name} is no commit"):
        read_table(table)


def test_a_folder_without_a_version_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(NotADeltaTableError):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors"],
                    "writerFeatures": ["deletionVectors"],
                }
            },
            "asks its readers for Delta protocol 3 with deletionVectors",
        ),
        ({"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}, "asks its readers for Delta protocol 4"),
        (
            {"metaData": {"id": "x", "schemaString": "{}", "configuration": {"delta.columnMapping.mode": "name"}}},
            "maps its columns",
        ),
        ({"add": {"path": "a", "size": 1, "modificationTime": 1, "deletionVector": {"x": 1}}}, "deletion vector"),
        ({"add": {"path": "a", "size": 1, "modificationTime": 1, "partitionValues": {"d": "1"}}}, "partition"),
        ({"add": {"path": "../../etc/passwd", "size": 1, "modificationTime": 1}}, "outside of its table"),
        ({"add": {"path": "", "size": 1, "modificationTime": 1}}, "outside of its table"),
        ({"add": {"path": "/etc/passwd", "size": 1, "modificationTime": 1}}, "outside of its table"),
        ({"add": {"path": "a/%2e%2e/%2E%2E/b", "size": 1, "modificationTime": 1}}, "outside of its table"),
        ({"add": {"path": "s3%3A//bucket/a", "size": 1, "modificationTime": 1}}, "outside of its table"),
    ],
)
def test_what_this_reader_cannot_follow_is_refused(table: Path, action: dict[str, object], sentence: str) -> None:
    state = read_table(table)
    add_commit(table, VERSIONS + 1, action)
    with pytest.raises(LakeError, match=sentence):
        read_table(table)
    with pytest.raises(LakeError, match=sentence):
        advance(state)
    assert state.version == VERSIONS


def added(**fields: object) -> dict[str, object]:
    return {"add": {"path": "a", "size": 1, "modificationTime": 1, **fields}}


@pytest.mark.parametrize(
    "action",
    [
        added(path="\ud800"),
        added(path=7),
        added(size="x"),
        added(size=10**30),
        added(modificationTime=[1]),
        added(stats={}),
        added(stats="\ud800"),
        {"remove": {"path": "\ud800"}},
        {"remove": {"path": "a", "deletionTimestamp": "x"}},
        {"txn": {"appId": "x", "version": "1"}},
        {"txn": {"appId": "x", "version": None}},
        {"txn": {"appId": 7, "version": 1}},
        {"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": None}},
        {"metaData": {"id": 7, "schemaString": "{}"}},
        {"metaData": {"id": "x", "schemaString": None}},
        {"commitInfo": 7},
    ],
)
def test_an_action_of_another_writer_with_values_of_wrong_types_is_damage(
    table: Path, action: dict[str, object]
) -> None:
    add_commit(table, VERSIONS + 1, action)
    with pytest.raises(CorruptDataError, match=r"13\.json is no commit of a Delta table"):
        read_table(table)


@pytest.mark.parametrize("name", ["numRecords", "minValues", "maxValues", "nullCount"])
@pytest.mark.parametrize("value", [-1.5, "x", ["offset"], {"offset": 10**30}])
def test_statistics_that_cannot_be_read_say_nothing(table: Path, name: str, value: object) -> None:
    given: dict[str, object] = {"numRecords": 1, "minValues": {"offset": 1}, "maxValues": {}, "nullCount": {}}
    add_commit(table, VERSIONS + 1, added(stats=json.dumps(given)))
    add_commit(table, VERSIONS + 2, added(path="b", stats=json.dumps({**given, name: value})))
    files = read_table(table).files
    assert len(list(files)) == VERSIONS + 2
    assert files["a"].statistics is not None
    assert files["b"].statistics is None


def test_features_that_change_nothing_for_a_reader_are_accepted(table: Path) -> None:
    features = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["appendOnly", "invariants", "timestampNtz"]}
    add_commit(table, VERSIONS + 1, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    assert len(read_table(table).files) == VERSIONS
    with pytest.raises(LakeError, match="asks its writers for Delta protocol 7 with timestampNtz"):
        read_table(table).check_writable()


def test_removed_files_are_gone_and_encoded_paths_are_decoded(table: Path) -> None:
    state = read_table(table)
    victim = next(iter(state.files))
    add = {"path": "a%20b%25.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": False}
    remove = {"path": victim, "dataChange": False, "deletionTimestamp": 1}
    add_commit(table, VERSIONS + 1, {"remove": remove}, {"add": add}, {"cdc": {"path": "x"}}, {"unheard": {"of": 1}})
    advance(state)
    assert state.version == VERSIONS + 1
    assert [commit.changes_data for commit in read_commits(table, VERSIONS + 1)] == [False]
    assert victim not in state.files
    assert "a b%.parquet" in state.files
    assert state.files["a b%.parquet"].to_action()["add"]["path"] == "a%20b%25.parquet"


@pytest.mark.parametrize(
    ("action", "changes_data"),
    [
        ({"add": {"path": "a", "size": 1, "modificationTime": 1, "dataChange": True}}, True),
        ({"add": {"path": "a", "size": 1, "modificationTime": 1, "dataChange": False}}, False),
        ({"remove": {"path": "a", "dataChange": True}}, True),
        ({"remove": {"path": "a"}}, True),
        ({"txn": {"appId": "a", "version": 1}}, False),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, False),
        ({"commitInfo": {"operation": "VACUUM START"}}, False),
    ],
)
def test_a_commit_changes_data_unless_all_its_adds_and_removes_say_that_they_do_not(
    table: Path, action: dict[str, object], changes_data: bool
) -> None:
    add_commit(table, VERSIONS + 1, action)
    assert [commit.changes_data for commit in read_commits(table, VERSIONS + 1)] == [changes_data]


def test_advancing_past_a_clean_up_asks_to_open_again_and_the_log_does(table: Path) -> None:
    state = read_table(table)
    log = MetadataLog.open(table.parent)
    writer = MetadataLog.open(table.parent, disk=UnsyncedDisk())
    for offset in range(VERSIONS, VERSIONS + 4):
        writer.append([data_batch(offset)])
    checkpoint(table, VERSIONS + 3)
    remove_commits(table, VERSIONS + 3)
    with pytest.raises(LakeError, match="was cleaned up"):
        advance(state)
    assert log.refresh() == 4
    assert log.end_offset == VERSIONS + 4


def test_a_handle_that_is_far_behind_goes_on_from_a_checkpoint(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_log, "FAR_BEHIND", 4)
    behind, near = MetadataLog.open(table.parent), MetadataLog.open(table.parent)
    writer = MetadataLog.open(table.parent, disk=UnsyncedDisk())
    for offset in range(VERSIONS, VERSIONS + 20):
        writer.append([data_batch(offset)])
        if offset == VERSIONS + 16:
            near.refresh()
    checkpoint(table, VERSIONS + 18)
    read_commit, asked = delta_log.read_commit, list[int]()

    def noted(path: Path, version: int) -> object:
        asked.append(version)
        return read_commit(path, version)

    monkeypatch.setattr(delta_log, "read_commit", noted)
    first = VERSIONS + 1
    for log, versions, read in (
        (behind, 20, [*range(first, first + 4), first + 18, first + 19, first + 20]),
        (near, 3, [*range(first + 17, first + 21)]),
    ):
        assert log.refresh() == versions
        assert log.rows().num_rows == VERSIONS + 20
        assert asked == read
        asked.clear()


def test_looking_for_news_lists_nothing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = read_table(table)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a listing")

    monkeypatch.setattr(delta_log, "list_log", refuse)
    advance(state)
    assert state.version == VERSIONS


@pytest.mark.parametrize("spoil", [bytes, lambda data: data[:200] + b"\0" * 100 + data[300:], lambda data: data[4:]])
def test_a_spoiled_checkpoint_raises_nothing_but_our_error(table: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = checkpoint(table)
    path.write_bytes(spoil(path.read_bytes()))
    try:
        assert MetadataLog.open(table.parent).rows().num_rows == VERSIONS
    except (CorruptDataError, LakeError) as fault:
        assert str(table) in str(fault)  # noqa: PT017
