from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table import row_files
from kraftlake.metadata_log.delta_table.data_files import (
    file_statistics,
)
from kraftlake.metadata_log.delta_table.row_files import GrowingStatistics, bounded_columns, write_row_file
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.tables.history.history_columns import PARTITION_HISTORY_SCHEMA
from tests.metadata_log.delta_table.test_data_files import FIRST_US, LAST_US, times

TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("directory", pa.string()),
        pa.field("directories", pa.list_(pa.string())),
        pa.field("leader", pa.int32()),
    ]
)
ENCODED = pa.schema(
    [
        SCHEMA.field("offset"),
        SCHEMA.field("topic").with_type(TEXT),
        SCHEMA.field("directory").with_type(TEXT),
        SCHEMA.field("directories").with_type(pa.list_(TEXT)),
        SCHEMA.field("leader"),
    ]
)


def rows(first: int, count: int, word: str) -> pa.Table:
    offsets = range(first, first + count)
    columns = [
        pa.array(offsets, pa.int64()),
        pa.array([f"{word}-{offset % 3}" for offset in offsets]),
        pa.array([None if offset % 2 else word for offset in offsets]),
        pa.array([None if offset % 5 == 0 else [word] * (offset % 3) for offset in offsets], pa.list_(pa.string())),
        pa.array([None if offset % 7 == 0 else offset % 4 for offset in offsets], pa.int32()),
    ]
    return pa.table(columns, schema=SCHEMA)


def test_strings_that_are_dictionaries_are_strings_in_the_file(tmp_path: Path) -> None:
    parts = [rows(0, 10, "a"), rows(10, 1, "b"), rows(11, 30, "c")]
    encoded = pa.concat_tables([part.cast(ENCODED) for part in parts])
    assert encoded.column("topic").num_chunks == 3, "a dictionary each"
    add = write_row_file(Disk(), tmp_path, encoded, last_offset=40, statistics_columns=("offset", "leader"))
    file = pq.ParquetFile(tmp_path / add.path)
    assert file.schema_arrow.equals(SCHEMA)
    assert file.read().equals(pa.concat_tables(parts))
    plain = write_row_file(
        Disk(), tmp_path, pa.concat_tables(parts), last_offset=40, statistics_columns=("offset", "leader")
    )
    assert add.statistics == plain.statistics


def test_few_rows_share_a_row_group_and_many_have_one_with_words_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "_ROW_GROUP_ROWS", 20)
    parts = [rows(0, 3, "a"), rows(3, 2, "b"), rows(5, 10, "c"), rows(15, 35, "d"), rows(50, 1, "e")]
    encoded = pa.concat_tables([part.cast(ENCODED) for part in parts])
    add = write_row_file(Disk(), tmp_path, encoded, last_offset=50, statistics_columns=("offset",))
    file = pq.ParquetFile(tmp_path / add.path)
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [15, 20, 15, 1]
    topics = [group.column(1).statistics for group in groups]
    assert [(ends.min, ends.max) for ends in topics] == [("a-0", "c-2"), ("d-0", "d-2"), ("d-0", "d-2"), ("e-2", "e-2")]
    assert file.read().equals(pa.concat_tables(parts))


def test_what_readers_skip_by_has_bounds_in_each_row_group_and_nothing_else(tmp_path: Path) -> None:
    add = write_row_file(
        Disk(), tmp_path, rows(5, 9, "a").cast(ENCODED), last_offset=13, statistics_columns=("offset",)
    )
    group = pq.ParquetFile(tmp_path / add.path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
    bounds = {name: known and (known.min, known.max) for name, known in columns.items()}
    assert bounds == {
        "offset": (5, 13),
        "topic": ("a-0", "a-2"),
        "directory": None,
        "directories.list.element": None,
        "leader": (0, 3),
    }
    lists = ("elr", "last_known_elr", "adding_replicas", "removing_replicas")
    assert bounded_columns(PARTITION_HISTORY_SCHEMA.empty_table()) == [
        *("leader", *(f"{name}.list.element" for name in lists)),
        *("valid_from_offset", "valid_to_offset", "valid_from", "valid_to"),
    ]


def test_the_names_of_few_topics_have_bounds_and_those_of_many_do_not(tmp_path: Path) -> None:
    for count in (1024, 1025):
        topics = [f"topic-{number}" for number in range(count)]
        rows = pa.table({"offset": range(count), "topic": pa.array(topics).dictionary_encode()})
        add = write_row_file(Disk(), tmp_path, rows, last_offset=count, statistics_columns=("offset",))
        group = pq.ParquetFile(tmp_path / add.path).metadata.row_group(0)
        assert (group.column(1).statistics is not None) == (count == 1024)


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(2 * FIRST_US, 2 * LAST_US)), max_size=20), min_size=1))
def test_statistics_that_grow_are_those_of_all_rows(parts: list[list[int | None]]) -> None:
    growing = GrowingStatistics(["timestamp", "offset"], held_rows=30)
    tables = [times(*part).append_column("offset", pa.array(part, pa.int64())) for part in parts]
    for table in tables:
        growing.add(table)
    assert growing.of_all() == file_statistics(pa.concat_tables(tables), ["timestamp", "offset"])
