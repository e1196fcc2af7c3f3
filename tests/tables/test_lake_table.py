from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError
from kraftlake.tables import lake_table
from kraftlake.tables.lake_table import LakeTable, TableDescription
from tests.metadata_log.sleepy_disk import SleepyDisk, refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    (pa.field("offset", pa.int64(), nullable=False), "where"),
    (pa.field("timestamp", pa.timestamp("us", tz="UTC")), "when"),
    (pa.field("name", pa.string(), nullable=False), "who, 'quoted' and \"so\""),
    (pa.field("isr", pa.list_(pa.int32())), "which"),
    (pa.field("share", pa.float64()), "how much"),
    (pa.field("quotas", pa.map_(pa.string(), pa.float64())), "limits"),
    (pa.field("nested", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])), "parts"),
)
MADE_UP = TableDescription("made_up", "Rows of a test.", COLUMNS)


def rows_from(first: int, last: int) -> pa.Table:
    """One row an offset."""
    rows = [
        {
            "offset": offset, "timestamp": offset * 1_000_000, "name": f"n{offset}", "isr": [1, offset], "share": 0.5,
            "quotas": [("a", 1.5)], "nested": {"a": offset, "b": ["x"]},
        }
        for offset in range(first, last + 1)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=MADE_UP.schema)


def rows_of(table: LakeTable) -> pa.Table:
    """The rows of the table by their offsets, without `cluster_id`: a folder without a log has no id."""
    rows = DeltaTable(table.path).to_pyarrow_table().sort_by("offset")
    assert rows.column("cluster_id").null_count == rows.num_rows
    return rows.drop_columns("cluster_id")


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    made = LakeTable(MADE_UP, tmp_path)
    made.create("log-1")
    return made


def test_a_table_covers_nothing_until_something_is_appended(tmp_path: Path, table: LakeTable) -> None:
    assert LakeTable(MADE_UP, tmp_path / "elsewhere").last_offset() is None
    assert table.last_offset() is None
    table.append(MADE_UP.schema.empty_table(), 7)
    assert table.last_offset() == 7
    assert not DeltaTable(table.path).file_uris()


def test_an_append_counts_once_whoever_repeats_it(table: LakeTable, tmp_path: Path) -> None:
    table.append(rows_from(0, 4), 4)
    table.append(rows_from(0, 4), 4)
    another = LakeTable(MADE_UP, tmp_path)
    assert another.last_offset() == 4
    another.append(rows_from(2, 4), 3)
    another.append(rows_from(5, 6), 6)
    table.append(rows_from(5, 6), 6)  # its handle is behind
    assert rows_of(table).equals(rows_from(0, 6))
    assert table.last_offset() == 6


def test_of_two_runs_that_no_lock_keeps_apart_the_second_to_commit_ends(table: LakeTable, tmp_path: Path) -> None:
    another = LakeTable(MADE_UP, tmp_path)
    assert another.last_offset() is table.last_offset() is None
    another.append(rows_from(0, 4), 4)
    with pytest.raises(LakeError, match=r"another run writes .*made_up, it is at offset 4: wait until it ends"):
        table.append(rows_from(0, 6), 6)
    another.append(rows_from(5, 6), 6)
    assert rows_of(table).equals(rows_from(0, 6))


def test_a_run_goes_on_from_no_other_offset_than_the_one_that_it_has_read(table: LakeTable, tmp_path: Path) -> None:
    behind = LakeTable(MADE_UP, tmp_path)
    assert behind.last_offset() is None
    table.append(rows_from(0, 4), 4)
    with pytest.raises(LakeError, match=r"another run writes .*made_up, it is at offset 4: wait until it ends"):
        behind.create("log-1")
    with pytest.raises(LakeError, match=r"another run writes .*made_up, it is at offset 4: wait until it ends"):
        LakeTable(MADE_UP, tmp_path).go_on_from(None)
    again = LakeTable(MADE_UP, tmp_path)
    again.go_on_from(4)
    again.create("log-1")
    assert again.covered == 4


def test_a_table_with_a_torn_or_missing_file_or_commit_is_refused_with_the_way_out(
    table: LakeTable, tmp_path: Path
) -> None:
    table.append(rows_from(0, 4), 4)
    table.append(rows_from(5, 6), 6)
    folder = tmp_path / MADE_UP.name
    (commit,) = (folder / "_delta_log").glob("*2.json")
    data = folder / next(iter(read_table(table.path).files.values())).path
    way_out = r": delete the folder made_up/ and run again, it is made anew from what the log holds$"
    content = data.read_bytes()
    data.write_bytes(content[:-10])
    size = rf"has {len(content) - 10} bytes of {len(content)}"
    with pytest.raises(LakeError, match=rf"{data.name} {size}, the table has lost rows" + way_out):
        table.last_offset()
    data.unlink()
    with pytest.raises(LakeError, match=rf"{data.name} is missing, the table has lost rows" + way_out):
        table.last_offset()
    commit.write_bytes(b'{"add')
    with pytest.raises(LakeError, match="it is torn or was overwritten" + way_out):
        table.last_offset()
    commit.with_name(f"{0:020}.json").unlink()
    with pytest.raises(LakeError, match="is missing although a later one exists" + way_out):
        table.last_offset()


def test_delta_rs_reads_it_with_its_comments(table: LakeTable) -> None:
    table.append(rows_from(0, 4), 4)
    read = DeltaTable(table.path)
    assert {field.name: field.metadata["comment"] for field in read.schema().fields} == {
        field.name: comment for field, comment in MADE_UP.table_columns
    }
    assert read.metadata().description == "Rows of a test."
    assert read.transaction_version("kraftlake.made_up") == 4
    assert read.protocol().min_writer_version == 2
    assert read.to_pyarrow_table(filters=[("offset", ">", 2)]).column("offset").to_pylist() == [3, 4]


def test_a_compaction_by_somebody_else_stands_in_nobodys_way(table: LakeTable) -> None:
    table.append(rows_from(0, 4), 4)
    table.append(rows_from(5, 6), 6)
    DeltaTable(table.path).optimize.compact()
    table.append(rows_from(7, 7), 7)
    assert rows_of(table).equals(rows_from(0, 7))


def test_after_many_appends_it_opens_from_a_checkpoint_that_keeps_what_it_says(table: LakeTable) -> None:
    for offset in range(130):
        table.append(rows_from(offset, offset), offset)
    state = read_table(table.path)
    assert state.checkpoint_version == 100
    assert state.metadata.description == "Rows of a test."
    assert table.last_offset() == 129
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == 130


def test_a_table_that_grows_by_little_for_long_stays_few_files(table: LakeTable, tmp_path: Path) -> None:
    for offset in range(100):
        table.append(rows_from(offset, offset), offset)
    assert len(read_table(table.path).files) < 64 + 5
    for offset in range(100, 170):  # as runs of a job that each append once
        again = LakeTable(MADE_UP, tmp_path)
        again.create("log-1")
        again.append(rows_from(offset, offset), offset)
        again.finish()
    assert len(read_table(table.path).files) < 64 + 5
    assert rows_of(table).equals(rows_from(0, 169))
    assert table.last_offset() == 169


@pytest.mark.spark
def test_a_stream_over_a_table_does_not_see_that_its_files_are_put_in_order(
    table: LakeTable, tmp_path: Path, spark: SparkSession
) -> None:
    seen: list[int] = []

    def read_on() -> None:
        frames = spark.readStream.format("delta").option("maxFilesPerTrigger", 20).load(str(table.path))
        query = frames.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(
            lambda frame, _: seen.extend(frame.toArrow().column("offset").to_pylist())
        )
        assert query.trigger(availableNow=True).start().awaitTermination(60)

    for offset in range(80):
        table.append(rows_from(offset, offset), offset)
        if offset == 30:
            read_on()
    assert len(read_table(table.path).files) < 20, "it was compacted behind the stream"
    read_on()
    table.append(rows_from(80, 80), 80)
    read_on()
    assert sorted(seen) == list(range(81))
    frame = spark.read.format("delta").load(str(table.path))
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(81))


@pytest.mark.parametrize(
    "columns",
    [COLUMNS[:3], (*COLUMNS[:3], (pa.field("isr", pa.list_(pa.int64())), "another type"), *COLUMNS[4:])],
    ids=["a column less", "another type"],
)
def test_a_table_of_another_release_is_named_with_the_way_out(
    tmp_path: Path, columns: tuple[tuple[pa.Field, str], ...]
) -> None:
    LakeTable(TableDescription("made_up", "As it was.", columns), tmp_path).create("log-1")
    with pytest.raises(
        LakeError, match=r"made_up has the columns of another release, isr .*delete the folder made_up/"
    ):
        LakeTable(MADE_UP, tmp_path).last_offset()


def test_columns_that_somebody_added_are_left_alone(table: LakeTable, tmp_path: Path) -> None:
    narrow = LakeTable(TableDescription("made_up", "Narrow.", COLUMNS[:3]), tmp_path)
    assert narrow.last_offset() is None
    narrow.append(rows_from(0, 1).select(["offset", "timestamp", "name"]), 1)
    assert DeltaTable(table.path).to_pyarrow_table().column("isr").null_count == 2


def test_a_table_of_another_log_is_refused(table: LakeTable, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="was made from another log"):
        LakeTable(MADE_UP, tmp_path).create("log-2")
    LakeTable(MADE_UP, tmp_path).create("log-1")


def test_rows_of_unknown_origin_are_refused(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "made_up", schema=MADE_UP.schema)
    from deltalake import write_deltalake

    write_deltalake(tmp_path / "made_up", rows_from(0, 1), mode="append")
    with pytest.raises(LakeError, match="doesn't say which offsets its rows cover"):
        LakeTable(MADE_UP, tmp_path).last_offset()


def test_the_tables_files_are_their_owners_alone(table: LakeTable) -> None:
    table.append(rows_from(0, 1), 1)
    (file,) = table.path.glob("*.parquet")
    assert table.path.stat().st_mode & 0o077 == 0
    assert file.stat().st_mode & 0o077 == 0


def test_the_log_itself_is_no_derived_table(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake")
    with pytest.raises(LakeError, match="has the columns of another release"):
        LakeTable(TableDescription("log", "Not ours.", COLUMNS), tmp_path / "lake").last_offset()


def test_an_append_whose_file_was_vacuumed_is_refused_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SleepyDisk(tmp_path)
    disk.behind = "fsync"
    monkeypatch.setattr(lake_table, "disk_for", lambda _: disk)
    table = LakeTable(MADE_UP, tmp_path)
    table.create("log-1")
    table.append(rows_from(0, 4), 4)
    refused(disk, lambda: table.append(rows_from(5, 9), 9))
    assert LakeTable(MADE_UP, tmp_path).last_offset() == 9
    assert rows_of(table).equals(rows_from(0, 9))


def test_strings_that_are_seldom_alike_are_no_dictionaries() -> None:
    columns = (COLUMNS[0], COLUMNS[2], (pa.field("word", pa.string()), "a word"))
    alike, unlike = (TableDescription("words", "Words.", columns, unlike=names) for names in ((), ("word",)))
    assert [pa.types.is_dictionary(field.type) for field in alike.encoded_schema] == [False, True, True]
    assert [pa.types.is_dictionary(field.type) for field in unlike.encoded_schema] == [False, True, False]
    assert unlike.schema == alike.schema
