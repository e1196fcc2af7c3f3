from __future__ import annotations

from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.metadata_log.append.log_file import MOST_BYTES, RowsFile, encode_one_block, fits_one_block
from kraftlake.metadata_log.delta_table.data_files import encode_parquet, integer_bounds
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import NO_TIMESTAMP, RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, columns_to_rows, to_columns, to_rows
from tests.metadata_log.log_batches import data_batch, leader_change, noop_batch
from tests.metadata_log.strategies import logs


def said(file: RowsFile) -> dict[str, object]:
    return {name: value for name, value in attrs.asdict(file).items() if name != "data"}


@given(logs())
def test_a_file_of_batches_says_what_one_of_their_rows_does(batches: list[RecordBatch]) -> None:
    assert said(RowsFile.of_batches(batches)) == said(RowsFile.of_rows(to_rows(batches)))


@given(st.lists(st.sampled_from([-1, 0, 1, 1_700_000_000_001, 253_402_300_799_999, 2**52]), min_size=1, max_size=5))
def test_times_that_no_calendar_has_leave_both_without_bounds(times: list[int]) -> None:
    batches = [data_batch(offset, time=time) for offset, time in enumerate(times)]
    assert said(RowsFile.of_batches(batches)) == said(RowsFile.of_rows(to_rows(batches)))


INT64 = st.integers(-(2**63), 2**63 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)


@st.composite
def any_columns(draw: st.DrawFn) -> dict[str, list[object]]:
    """Values of each column's type that no log has too: what a file holds isn't its business."""
    rows = draw(st.integers(1, 40))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=rows, max_size=rows))

    return {
        "offset": column(INT64),
        "epoch": column(st.integers(-(2**31), 2**31 - 1)),
        "timestamp": column(st.one_of(st.none(), INT64)),
        "batch": column(INT64),
        "type": column(st.text(max_size=20)),
        "api_key": column(INT16),
        "version": column(INT16),
        "control": column(st.booleans()),
        "payload": column(st.binary(max_size=300)),
    }


def file_of(data: bytes | memoryview) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data))


@given(any_columns())
def test_pyarrow_reads_what_it_would_have_written_itself(columns: dict[str, list[object]]) -> None:
    rows = columns_to_rows(columns)
    ours, theirs = file_of(encode_one_block(columns)), file_of(encode_parquet(rows))
    assert ours.read().equals(theirs.read())
    assert ours.read().cast(LOG_SCHEMA).equals(rows)
    assert ours.schema.equals(theirs.schema)
    assert integer_bounds(ours, "offset") == [(min(columns["offset"]), max(columns["offset"]))]  # type: ignore[type-var]


@given(any_columns())
def test_its_metadata_says_where_each_column_lies(columns: dict[str, list[object]]) -> None:
    data = encode_one_block(columns)
    metadata = file_of(data).metadata
    group = metadata.row_group(0)
    assert (metadata.num_row_groups, metadata.num_rows, group.num_rows) == (1, *[len(columns["offset"])] * 2)
    chunks = [group.column(index) for index in range(group.num_columns)]
    assert chunks[0].data_page_offset == 4
    ends = [chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks]
    assert [chunk.data_page_offset for chunk in chunks[1:]] == ends[:-1]
    assert len(data) == ends[-1] + metadata.serialized_size + 8
    assert group.total_byte_size == ends[-1] - 4
    assert {chunk.compression for chunk in chunks} == {"UNCOMPRESSED"}
    assert {chunk.num_values for chunk in chunks} == {len(columns["offset"])}


def test_delta_rs_finds_and_filters_its_rows(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", durability="os")
    for batch in (leader_change(0, epoch=1), noop_batch(1), data_batch(2, 5, time=NO_TIMESTAMP), data_batch(7, 3)):
        log.append([batch])
    # By its own Parquet reader, which is not pyarrow's.
    query = QueryBuilder().register("log", DeltaTable(log.path / "log"))
    for condition, wanted in (("offset >= 2 and timestamp is not null", log.rows(7)), ("true", log.rows())):
        found = query.execute(f"select * from log where {condition} order by offset").read_all()
        assert pa.table(found).select(LOG_SCHEMA.names).cast(LOG_SCHEMA).equals(wanted)


def test_many_rows_and_long_ones_do_not_fit() -> None:
    assert fits_one_block(to_columns([noop_batch(0), data_batch(1, 3)]))
    assert not fits_one_block(to_columns([noop_batch(offset) for offset in range(MOST_BYTES // 48 + 1)]))
    columns = to_columns([noop_batch(0)])
    assert not fits_one_block({**columns, "payload": [b"x" * MOST_BYTES]})


@given(logs())
def test_what_fits_stays_within_one_block_of_a_disk(batches: list[RecordBatch]) -> None:
    columns = to_columns(batches)
    assume(fits_one_block(columns))
    assert len(encode_one_block(columns)) <= 4_096


def test_a_record_without_a_time_is_null_among_others_that_have_one() -> None:
    batch = RecordBatch(
        base_offset=5, epoch=1, timestamp=7, values=noop_batch(5).values * 3, timestamps=(NO_TIMESTAMP, 7, NO_TIMESTAMP)
    )
    rows = file_of(encode_one_block(to_columns([batch]))).read()
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [None, 7_000, None]
