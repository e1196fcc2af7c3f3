from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from hypothesis import given

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.data_files import encode_parquet, integer_bounds
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from tests.metadata_log.log_batches import data_batch, noop_batch
from tests.metadata_log.strategies import logs


def file_of(rows: pa.Table) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(encode_parquet(rows)))


@given(logs())
def test_a_file_holds_its_rows_and_their_offsets_bounds(batches: list[RecordBatch]) -> None:
    rows = to_rows(batches)
    file = file_of(rows)
    assert file.read().cast(LOG_SCHEMA).equals(rows)
    assert integer_bounds(file, "offset") == [(batches[0].base_offset, batches[-1].last_offset)]


def compressions(rows: pa.Table) -> set[str]:
    group = file_of(rows).metadata.row_group(0)
    return {group.column(index).compression for index in range(group.num_columns)}


def test_what_fits_a_block_of_the_disk_is_plain_and_the_rest_is_compressed() -> None:
    one, many = to_rows([noop_batch(0)]), to_rows([data_batch(0, 1_000)])
    assert compressions(one) == {"UNCOMPRESSED"}
    assert compressions(many) == {"ZSTD"}
    assert len(encode_parquet(to_rows([data_batch(0, 20)]))) < 4_096


def test_delta_rs_reads_plain_and_compressed_files_of_one_table(tmp_path: object) -> None:
    log = MetadataLog.create(f"{tmp_path}/lake", durability="os")
    log.append([noop_batch(0)])
    log.append([data_batch(1, 1_000)])
    log.append([data_batch(1_001, 3)])
    theirs = DeltaTable(f"{tmp_path}/lake/log").to_pyarrow_table().sort_by("offset")
    assert theirs.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).equals(log.rows())
