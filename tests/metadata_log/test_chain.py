"""The chain of hashes: what it depends on, what it survives, what it refuses."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.append.log_file import FIRST_HASH, hash_of_columns, hash_of_rows
from kraftlake.metadata_log.chain import ChainLink
from kraftlake.metadata_log.delta_table.actions import SEAL
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.rows import LOG_SCHEMA, to_columns, to_rows
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, UsageError
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, noop_batch, snapshot_batches
from tests.metadata_log.strategies import logs
from tests.metadata_log.unsealed import unseal

ROWS = 20


def lake_of(path: Path, batches: list[RecordBatch], sizes: list[int] | None = None) -> MetadataLog:
    """A lake of these batches, so many in each commit, one by one without sizes."""
    log = MetadataLog.create(path, "cluster", disk=UnsyncedDisk())
    left = list(batches)
    for size in sizes or [1] * len(batches):
        log.append(left[:size])
        left = left[size:]
    assert not left
    return log


def batches_of(rows: int = ROWS, *, who: str = "") -> list[RecordBatch]:
    return [data_batch(offset, who=who) for offset in range(rows)]


def commits_of(log: MetadataLog) -> Callable[[int], Path]:
    return lambda version: Path(str(commit_path(log.path / "log", version)))


def random_batches() -> list[RecordBatch]:
    """A batch whose records don't compress."""
    chance = random.Random(1)
    records = [TopicRecord(name=chance.randbytes(20).hex(), topic_id=Uuid.ZERO) for _ in range(9_000)]
    return [RecordBatch.of(0, 1, 0, [ApiMessageAndVersion(record, 0) for record in records])]


def hash_at(log: MetadataLog) -> ChainLink:
    assert log.chain is not None
    return log.chain.link


@given(logs(), st.data())
def test_the_hash_depends_on_the_rows_alone_not_on_how_they_are_cut(
    batches: list[RecordBatch], data: st.DataObject
) -> None:
    rows = to_rows(batches)
    whole = hash_of_rows(rows, FIRST_HASH)
    assert hash_of_columns(to_columns(batches), FIRST_HASH) == whole
    cut = data.draw(st.integers(0, rows.num_rows))
    assert hash_of_rows(rows.slice(cut), hash_of_rows(rows.slice(0, cut), FIRST_HASH)) == whole


@given(logs(), st.data())
def test_another_value_in_any_row_is_another_hash(batches: list[RecordBatch], data: st.DataObject) -> None:
    rows = to_rows(batches)
    at = data.draw(st.integers(0, rows.num_rows - 1))
    name = data.draw(st.sampled_from(["offset", "epoch", "timestamp", "batch", "control", "api_key", "payload"]))
    values = rows.column(name).to_pylist()
    old = values[at]
    new = {"control": lambda: not old, "payload": lambda: old + b"\0", "timestamp": lambda: None if old else 0}
    values[at] = new.get(name, lambda: old + 1)()
    index = LOG_SCHEMA.get_field_index(name)
    other = rows.set_column(index, LOG_SCHEMA.field(name), pa.array(values, LOG_SCHEMA.field(name).type))
    assert hash_of_rows(other, FIRST_HASH) != hash_of_rows(rows, FIRST_HASH)


def test_lakes_of_the_same_log_by_other_commits_have_the_same_hash(tmp_path: Path) -> None:
    batches = batches_of()
    links = {
        hash_at(lake_of(tmp_path / "one-by-one", batches)),
        hash_at(lake_of(tmp_path / "groups", batches, [7, 1, 12])),
        hash_at(lake_of(tmp_path / "at-once", batches, [ROWS])),
        hash_at(MetadataLog.create(tmp_path / "founded", contents=Contents(batches=batches), disk=UnsyncedDisk())),
    }
    assert len(links) == 1


def test_the_chain_survives_compaction_checkpoints_and_clean_up_by_us_and_by_delta_rs(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of())
    before = hash_at(log)
    Upkeep(log.path, UpkeepPolicy(compact_from=2)).run(force_checkpoint=True)
    assert hash_at(MetadataLog.open(log.path)) == before
    DeltaTable(tmp_path / "lake" / "log").create_checkpoint()
    for file in (tmp_path / "lake" / "log" / "_delta_log").glob("*.json"):
        file.unlink()
    opened = MetadataLog.open(log.path, disk=UnsyncedDisk())
    assert hash_at(opened) == before
    opened.append([data_batch(ROWS)])
    assert hash_at(opened) == hash_at(lake_of(tmp_path / "other", batches_of(ROWS + 1)))


def test_a_trim_keeps_the_hash_of_what_it_takes_away(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of())
    log.add_snapshot(SnapshotFacts(end_offset=12, epoch=1, last_contained_log_timestamp=0), snapshot_batches(3))
    before = hash_at(log)
    upkeep = Upkeep(log.path)
    for start in (5, 12):
        upkeep.trim(start, stream_lag_ms=0)
        trimmed = MetadataLog.open(log.path)
        assert (trimmed.start_offset, hash_at(trimmed)) == (start, before)
        assert trimmed.chain_base == hash_of_rows(to_rows(batches_of(start)), FIRST_HASH)
        assert hash_of_rows(trimmed.rows(), trimmed.chain_base) == before.hash


def test_a_lake_made_by_a_release_without_a_chain_begins_it_at_its_next_commit(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    forget_chain(log)
    old = MetadataLog.open(log.path, disk=UnsyncedDisk())
    assert old.chain is None
    old.append([data_batch(3), data_batch(4)])
    assert old.chain is not None
    assert (old.chain.start, old.chain.end) == (3, 5)
    assert old.chain.hash == hash_of_rows(to_rows([data_batch(3), data_batch(4)]), FIRST_HASH)


def test_rows_appended_by_a_release_without_a_chain_make_it_begin_anew(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    forget_chain(log, since=3)
    old = MetadataLog.open(log.path, disk=UnsyncedDisk())
    assert old.chain is None
    old.append([data_batch(3)])
    again = MetadataLog.open(log.path).chain
    assert again is not None
    assert (again.start, again.end) == (3, 4)


def forget_chain(log: MetadataLog, since: int = 0) -> None:
    """Rewrite commits as a release before chains made them."""
    for version in range(since, log.version + 1):
        file = commits_of(log)(version)
        kept = []
        for line in file.read_text().splitlines():
            action = json.loads(line)
            if "txn" in action and action["txn"]["appId"].startswith("kraftlake.chain"):
                continue
            for name in ("kraftlake.chain_before", SEAL):
                action.get("commitInfo", {}).pop(name, None)
            kept.append(json.dumps(action))
        file.write_text("".join(f"{line}\n" for line in kept))


@pytest.mark.parametrize("damage", ["swapped", "replaced by the one before", "of another lake"])
def test_a_commit_that_was_not_made_upon_the_one_before_it_is_refused(tmp_path: Path, damage: str) -> None:
    log = lake_of(tmp_path / "lake", batches_of())
    unseal(tmp_path / "lake" / "log")
    file = commits_of(log)
    if damage == "swapped":
        seventh, eighth = file(7).read_bytes(), file(8).read_bytes()
        file(7).write_bytes(eighth)
        file(8).write_bytes(seventh)
    elif damage == "replaced by the one before":
        shutil.copy(file(ROWS - 1), file(ROWS))
    else:
        other = lake_of(tmp_path / "other", batches_of(who="-other"))
        for version in range(10, ROWS + 1):
            shutil.copy(commits_of(other)(version), file(version))
    with pytest.raises(CorruptDataError, match="was not made upon version"):
        MetadataLog.open(log.path)


def test_a_live_handle_refuses_a_commit_of_another_lake(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    other = lake_of(tmp_path / "other", batches_of(4, who="-other"))
    shutil.copy(commits_of(other)(4), commits_of(log)(4))
    with pytest.raises(CorruptDataError, match="was not made upon version 3"):
        log.refresh()


def test_nothing_is_appended_to_a_newest_data_file_that_holds_other_rows(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    lake_of(tmp_path / "other", batches_of(3, who="-ever"))
    unseal(tmp_path / "lake" / "log")
    (mine,), (its,) = (list((tmp_path / name / "log").glob(f"{2:020d}-*.parquet")) for name in ("lake", "other"))
    shutil.copy(its, mine)
    handle = MetadataLog.open(log.path, disk=UnsyncedDisk())
    with pytest.raises(CorruptDataError, match="holds other rows than those that version 3"):
        handle.append([noop_batch(3)])
    assert MetadataLog.open(log.path).version == 3


def test_nothing_is_appended_when_the_newest_data_file_is_gone(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    (mine,) = (tmp_path / "lake" / "log").glob(f"{2:020d}-*.parquet")
    mine.unlink()
    with pytest.raises(CorruptDataError, match="is missing: the lake lost a data file"):
        MetadataLog.open(log.path, disk=UnsyncedDisk()).append([noop_batch(3)])


def test_nothing_is_appended_behind_a_checkpoint_that_was_replaced_by_an_older_one(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    delta_log = tmp_path / "lake" / "log" / "_delta_log"
    DeltaTable(tmp_path / "lake" / "log").create_checkpoint()
    older = (delta_log / f"{3:020d}.checkpoint.parquet").read_bytes()
    log.append([data_batch(3)])
    DeltaTable(tmp_path / "lake" / "log").create_checkpoint()
    (delta_log / f"{4:020d}.checkpoint.parquet").write_bytes(older)
    handle = MetadataLog.open(log.path, disk=UnsyncedDisk())
    with pytest.raises(CorruptDataError, match="one of them was replaced"):
        handle.append([data_batch(handle.end_offset)])


def test_a_writer_goes_on_where_its_newest_commit_was_compacted_and_vacuumed(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    upkeep = Upkeep(log.path, UpkeepPolicy(compact_from=2, orphan_age_ms=0, exclusive=True))
    upkeep.run()
    upkeep.trim(0, stream_lag_ms=0)
    assert upkeep.vacuum().removed == 3
    MetadataLog.open(log.path, disk=UnsyncedDisk()).append([data_batch(3)])
    assert MetadataLog.open(log.path).rows().num_rows == 4


@pytest.mark.parametrize("text", ["", "x", "5:", "5:123", "-1", "5:00000000000000000", "5:zzzzzzzzzzzzzzzz"])
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="OFFSET:HASH"):
        ChainLink.parse(text)


@given(st.integers(0, 2**62), st.none() | st.integers(-(2**63), 2**63 - 1))
def test_a_link_is_read_as_it_is_shown(offset: int, value: int | None) -> None:
    link = ChainLink(offset=offset, hash=value)
    assert ChainLink.parse(str(link)) == link


def test_a_commit_is_refused_that_is_not_what_was_committed_as_its_version(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    file = commits_of(log)
    whole = file(2).read_bytes()
    flipped = whole.replace(b'"kraftlake.epoch","version":1', b'"kraftlake.epoch","version":3')
    assert flipped != whole
    for other in (flipped, file(1).read_bytes(), whole.split(b"\n")[0] + b"\n"):
        file(2).write_bytes(other)
        with pytest.raises(CorruptDataError, match="is not what was committed as version 2 of log/"):
            MetadataLog.open(log.path)


def test_a_data_file_is_refused_that_is_not_what_was_written(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    (first, second, _) = sorted((tmp_path / "lake" / "log").glob("*.parquet"))
    whole = second.read_bytes()
    for other in (first.read_bytes(), whole.replace(b"topic-1", b"topic-7"), whole[:-1]):
        second.write_bytes(other)
        with pytest.raises(CorruptDataError, match=second.name):
            MetadataLog.open(log.path).rows()
    second.write_bytes(whole)
    assert MetadataLog.open(log.path).rows().num_rows == 3


def test_a_flipped_byte_before_the_sealed_end_of_a_large_file_is_refused(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", random_batches(), [1])
    (file,) = (tmp_path / "lake" / "log").glob("*.parquet")
    whole = file.read_bytes()
    assert len(whole) > 2 * 64 * 1024
    for at in range(1_000, len(whole) - 70_000, 20_000):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(CorruptDataError, match=file.name):
            MetadataLog.open(log.path).rows()


def test_a_checkpoint_of_another_version_is_not_taken_for_one(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", batches_of(3))
    delta_log = tmp_path / "lake" / "log" / "_delta_log"
    Upkeep(log.path, UpkeepPolicy(compact_from=99)).run(force_checkpoint=True)
    log.append([data_batch(3)])
    Upkeep(log.path, UpkeepPolicy(compact_from=99)).run(force_checkpoint=True)
    shutil.copy(delta_log / f"{3:020d}.checkpoint.parquet", delta_log / f"{4:020d}.checkpoint.parquet")
    with contextlib.suppress(CorruptDataError):
        assert MetadataLog.open(log.path).end_offset == 4
