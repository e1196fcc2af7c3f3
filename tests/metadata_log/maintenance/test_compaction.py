"""Derived tables made into fewer files: the same rows, for every reader, and for the table's own writer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table.delta_log import read_commit, read_table
from kraftlake.metadata_log.maintenance import compaction
from kraftlake.metadata_log.maintenance.compaction import compact_rows
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.lake_table import LakeTable, TableDescription
from tests.metadata_log.maintenance.test_derived_tables import made_of
from tests.metadata_log.maintenance.test_upkeep import DISK, POLICY, after_another, grown, upkeep
from tests.metadata_log.unsealed import unseal

COLUMNS = (
    (pa.field("offset", pa.int64(), nullable=False), "where"),
    (pa.field("number", pa.int32()), "which of the offset's rows"),
    (pa.field("names", pa.list_(pa.string())), "some"),
)
EVENTS = TableDescription("events", "Rows of a test.", COLUMNS)


def rows_at(offset: int, count: int) -> pa.Table:
    rows = [{"offset": offset, "number": number, "names": [f"n{number}", None]} for number in range(count)]
    return pa.Table.from_pylist(rows, schema=EVENTS.schema)


def table_of(lake: Path, counts: list[int]) -> LakeTable:
    """A table with an append of so many rows for every third offset."""
    table = LakeTable(EVENTS, lake)
    table.create("log")
    for number, count in enumerate(counts):
        table.append(rows_at(3 * number, count), 3 * number)
    return table


def rows_of(path: Path) -> pa.Table:
    order = [("offset", "ascending"), ("number", "ascending")]
    return pa.table(DeltaTable(path).to_pyarrow_table()).select(EVENTS.schema.names).cast(EVENTS.schema).sort_by(order)


def test_small_files_become_one_with_the_same_rows_in_their_order(tmp_path: Path) -> None:
    counts = [1, 4, 0, 2, 1, 3, 1, 2]
    table = table_of(tmp_path, counts)
    before, state = rows_of(table.path), read_table(table.path)
    done = compact_rows(table.path, DISK, POLICY)
    assert (done.files, done.made) == (7, 1)
    assert rows_of(table.path).equals(before)
    now = read_table(table.path)
    (file,) = now.files.values()
    assert pq.read_table(table.path / file.path).column("offset").to_pylist() == before.column("offset").to_pylist()
    assert file.statistics is not None
    assert file.statistics.record_count == sum(counts)
    assert (file.statistics.min_values["offset"], file.statistics.max_values["offset"]) == (0, 21)
    assert file.modification_time == max(old.modification_time for old in state.files.values())
    assert now.transactions == state.transactions == {"kraftlake.events": 21}
    commit = read_commit(table.path, now.version)
    assert commit is not None
    assert (commit.changes_data, commit.transactions, commit.protocol, commit.metadata) == (False, {}, None, None)
    assert compact_rows(table.path, DISK, POLICY).made == 0, "nothing is left to do"
    table.append(rows_at(24, 2), 24)
    assert rows_of(table.path).num_rows == sum(counts) + 2, "its writer's handle, from before, goes on"


@given(counts=st.lists(st.integers(0, 5), max_size=30), small_rows=st.integers(2, 40))
def test_whatever_the_sizes_no_row_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], small_rows: int
) -> None:
    table = table_of(tmp_path_factory.mktemp("rows"), counts)
    before = rows_of(table.path)
    policy = UpkeepPolicy(compact_from=2, small_rows=small_rows)
    while compact_rows(table.path, DISK, policy).made:
        assert rows_of(table.path).equals(before)
    assert table.last_offset() == (3 * (len(counts) - 1) if counts else None)


def test_what_others_did_meanwhile_is_theirs_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, [1] * 8)
    before = rows_of(table.path)
    after_another(monkeypatch, compaction, "rewrite_row_file", DeltaTable(table.path).optimize.compact)
    assert compact_rows(table.path, DISK, POLICY).made == 0
    assert rows_of(table.path).equals(before)
    live = {Path(uri).name for uri in DeltaTable(table.path).file_uris()}
    named = live | set(read_table(table.path).tombstones.since(0))
    assert {path.name for path in table.path.glob("*.parquet")} == named


def test_an_append_in_between_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path, [1] * 8)
    after_another(monkeypatch, compaction, "rewrite_row_file", lambda: table.append(rows_at(99, 2), 99))
    assert compact_rows(table.path, DISK, POLICY).made == 1
    assert rows_of(table.path).num_rows == 10
    assert LakeTable(EVENTS, tmp_path).last_offset() == 99


def test_columns_that_somebody_added_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path, [1] * 4)
    more = rows_at(50, 1).append_column("note", pa.array(["mine"]))
    write_deltalake(table.path, more, mode="append", schema_mode="merge")
    assert compact_rows(table.path, DISK, POLICY).files == 5
    assert DeltaTable(table.path).to_pyarrow_table().sort_by("offset").column("note").to_pylist() == [None] * 4 + [
        "mine"
    ]


def test_a_file_that_lost_rows_is_named_and_nothing_replaces_it(tmp_path: Path) -> None:
    table = table_of(tmp_path, [2] * 5)
    unseal(table.path)
    victim = sorted(table.path.glob("*.parquet"))[2]
    pq.write_table(pq.read_table(victim).slice(0, 1), victim)
    version = read_table(table.path).version
    with pytest.raises(CorruptDataError, match="events is damaged"):
        compact_rows(table.path, DISK, POLICY)
    victim.write_bytes(b"PAR1")
    with pytest.raises(CorruptDataError, match=victim.name):
        compact_rows(table.path, DISK, POLICY)
    assert read_table(table.path).version == version


def test_the_upkeep_of_a_lake_takes_its_derived_tables_along(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 4)
    events = made_of(log, "events", None)
    for offset in range(12):
        events.append(pa.table({"offset": pa.array([offset], pa.int64())}), offset)
    report = upkeep(log).run()
    assert report.derived["events"].files == 12
    assert report.checkpoints["events"] == 13
    (events.path / "crashed.parquet").write_bytes(b"PAR1")
    done = upkeep(log).vacuum()
    assert (done.orphans, done.kept) == (1, 12), "a stream over the table may lag behind by hours"
    assert DeltaTable(events.path).to_pyarrow_table().num_rows == 12
