from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.metadata_log.append.log_file import RowsFile
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import (
    encode_parquet,
    epoch_milliseconds,
    file_statistics,
    integer_bounds,
    iso_milliseconds,
    may_hold_time_before,
    open_parquet,
    read_row_groups,
)
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.compaction import compact
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.errors import CorruptDataError, RefusedReadError
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, noop_batch
from tests.metadata_log.strategies import logs
from tests.metadata_log.unsealed import unseal


def file_of(rows: pa.Table) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(encode_parquet(rows)))


@given(logs())
def test_a_file_holds_its_rows_and_their_offsets_bounds(batches: list[RecordBatch]) -> None:
    rows = to_rows(batches)
    file = file_of(rows)
    assert file.read().cast(LOG_SCHEMA).equals(rows)
    assert integer_bounds(file, "offset") == [(batches[0].base_offset, batches[-1].last_offset)]


def test_a_file_that_the_disk_refuses_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.c00000000.parquet"
    path.mkdir()
    with pytest.raises(RefusedReadError, match=r"can't be read: Is a directory\.$"):
        open_parquet(path)


def test_a_row_group_that_a_store_refuses_to_give_is_not_called_damaged(tmp_path: Path) -> None:
    data = encode_parquet(to_rows([data_batch(0, 20_000)]))
    damaged = io.BytesIO(bytes(4 + 1_000) + bytes(data)[4 + 1_000 :])
    with pytest.raises(CorruptDataError, match="is damaged"):
        read_row_groups(pq.ParquetFile(damaged, page_checksum_verification=True), tmp_path, [0], LOG_SCHEMA)

    class Refusing(io.BytesIO):
        refuses = False

        def read(self, size: int | None = -1) -> bytes:
            if self.refuses:
                raise OSError(5, "the object store answers: 503 Slow Down")
            return super().read(size)

    file = Refusing(data)
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    file.refuses = True
    with pytest.raises(RefusedReadError, match=r"can't be read: the object store answers: 503 Slow Down\.$"):
        read_row_groups(parquet, tmp_path, [0], LOG_SCHEMA)
    file.refuses = False
    assert read_row_groups(parquet, tmp_path, [0], LOG_SCHEMA).num_rows == 20_000


def compressions(*batches: RecordBatch) -> set[str]:
    group = pq.ParquetFile(pa.BufferReader(RowsFile.of_batches(batches).data)).metadata.row_group(0)
    return {group.column(index).compression for index in range(group.num_columns)}


def test_what_fits_a_block_of_the_disk_is_plain_and_the_rest_is_compressed() -> None:
    assert compressions(noop_batch(0)) == {"UNCOMPRESSED"}
    assert compressions(data_batch(0, 1_000)) == {"ZSTD"}
    assert len(RowsFile.of_batches([data_batch(0, 20)]).data) < 4_096


def test_delta_rs_reads_plain_and_compressed_files_of_one_table(tmp_path: object) -> None:
    log = MetadataLog.create(f"{tmp_path}/lake", durability="os")
    log.append([noop_batch(0)])
    log.append([data_batch(1, 1_000)])
    log.append([data_batch(1_001, 3)])
    theirs = DeltaTable(f"{tmp_path}/lake/log").to_pyarrow_table().sort_by("offset")
    assert theirs.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).equals(log.rows())


READERS: dict[str, Callable[[MetadataLog], object]] = {
    "rows": lambda log: log.rows(),
    "offsets alone": lambda log: log.rows(columns=["offset"]),
    "rows of the offset": lambda log: log.rows(4, 4),
    "rows of the lost offset": lambda log: log.rows(5, 5),
    "batches": lambda log: list(log.batches()),
    "bulk_batches": lambda log: list(log.bulk_batches(0, 6)),
    "tables": lambda log: list(log.tables(3, 6, ["offset", "type"])),
    "tail": lambda log: list(log.tail(0, timeout=0)),
    "append": lambda log: log.append([data_batch(7)]),
}


def repeat_an_offset(lake: Path) -> None:
    """Make the file of offsets 3 to 6 say 3, 4, 4, 6, as another writer's: their count and their bounds stay."""
    unseal(lake / "log")
    log = MetadataLog.open(lake)
    (span,) = log.files_between(3, 6)
    spoiled = log.rows(3, 6).set_column(0, LOG_SCHEMA.field("offset"), pa.array([3, 4, 4, 6], pa.int64()))
    (lake / "log" / span.file.path).write_bytes(encode_parquet(spoiled))


@pytest.fixture(params=[[data_batch(3, 4)], [data_batch(offset) for offset in range(3, 7)]], ids=["one batch", "four"])
def repeating(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    log = MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())
    log.append([data_batch(0, 3)])
    log.append(request.param)
    repeat_an_offset(tmp_path / "lake")
    return tmp_path / "lake"


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_offset_that_a_file_repeats_in_place_of_the_next_one_is_refused(
    repeating: Path, read: Callable[[MetadataLog], object]
) -> None:
    with pytest.raises(CorruptDataError):
        read(MetadataLog.open(repeating, disk=UnsyncedDisk()))


def test_a_repeated_offset_is_named_by_readers_and_verify_and_is_never_compacted(repeating: Path) -> None:
    with pytest.raises(CorruptDataError, match="holds offset 4 twice"):
        MetadataLog.open(repeating).rows()
    report = kraftlake.open(repeating).verify()
    assert not report.sound
    assert any("holds offset 4 twice" in problem.message for problem in report.problems)
    files = sorted((repeating / "log").glob("*.parquet"))
    with pytest.raises(CorruptDataError, match="holds offset 4 twice"):
        compact(repeating / "log", UnsyncedDisk(), UpkeepPolicy(compact_from=2))
    assert sorted((repeating / "log").glob("*.parquet")) == files


def test_a_tail_refuses_a_file_that_repeats_an_offset(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())
    log.append([data_batch(0, 3)])
    with MetadataLog.open(tmp_path / "lake").tail(3, timeout=0) as tail:
        log.append([data_batch(offset) for offset in range(3, 7)])
        repeat_an_offset(tmp_path / "lake")
        with pytest.raises(CorruptDataError):
            list(tail)


FIRST_US = -62_135_596_800_000_000
LAST_US = 253_402_300_799_999_000


def times(*values: int | None) -> pa.Table:
    return pa.table({"timestamp": pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC"))})


def add_of(rows: pa.Table) -> AddFile:
    stats = file_statistics(rows, ["timestamp"]).to_json()
    return AddFile(path="f", size=1, modification_time=0, stats=stats)


def test_bounds_and_nulls_are_those_of_the_rows() -> None:
    rows = pa.table({"offset": pa.array([3, 1, 2], pa.int64()), "type": ["b", "a", None]})
    found = file_statistics(rows, ["offset", "type"])
    assert (found.record_count, found.null_counts) == (3, {"offset": 0, "type": 1})
    assert (found.min_values, found.max_values) == ({"offset": 1, "type": "a"}, {"offset": 3, "type": "b"})


def test_a_time_between_two_milliseconds_is_rounded_up_where_it_is_the_largest() -> None:
    found = file_statistics(times(1_000_001, 2_000_001), ["timestamp"])
    assert found.min_values["timestamp"] == "1970-01-01T00:00:01.000Z"
    assert found.max_values["timestamp"] == "1970-01-01T00:00:02.001Z"


@given(st.lists(st.one_of(st.none(), st.integers(FIRST_US, LAST_US)), min_size=1))
def test_bounds_enclose_all_times(values: list[int | None]) -> None:
    found = file_statistics(times(*values), ["timestamp"])
    there = [value for value in values if value is not None]
    assert found.null_counts["timestamp"] == len(values) - len(there)
    if not there:
        assert "timestamp" not in found.min_values
        return
    low = epoch_milliseconds(found.min_values["timestamp"])
    high = epoch_milliseconds(found.max_values["timestamp"])
    assert low is not None
    assert high is not None
    assert low * 1000 <= min(there) < low * 1000 + 1000
    assert high * 1000 - 1000 < max(there) <= high * 1000


@pytest.mark.parametrize("value", [FIRST_US - 1, LAST_US + 1, 2**63 - 1, -(2**63)])
def test_a_time_that_no_calendar_has_leaves_its_column_without_bounds(value: int) -> None:
    assert file_statistics(times(0, value), ["timestamp"]).max_values == {}


@given(st.integers(FIRST_US // 1000, LAST_US // 1000))
def test_iso_times_are_read_back(epoch_ms: int) -> None:
    assert epoch_milliseconds(iso_milliseconds(epoch_ms)) == epoch_ms


def test_times_in_other_writers_forms_are_understood() -> None:
    assert epoch_milliseconds("2023-11-14T22:13:20.000+00:00") == 1_700_000_000_000
    assert epoch_milliseconds("2023-11-14T23:13:20.000+01:00") == 1_700_000_000_000
    assert epoch_milliseconds("2023-11-14 22:13:20") == 1_700_000_000_000
    assert epoch_milliseconds("soon") is None
    assert epoch_milliseconds(17) is None


def test_a_file_is_passed_over_only_when_all_its_times_are_later() -> None:
    assert may_hold_time_before(add_of(times(5000, 9000)), 5)
    assert not may_hold_time_before(add_of(times(5000, 9000)), 4)
    assert not may_hold_time_before(add_of(times(None)), 4)
    assert may_hold_time_before(AddFile(path="f", size=1, modification_time=0, stats=None), 4)
    assert may_hold_time_before(AddFile(path="f", size=1, modification_time=0, stats="torn{"), 4)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), min_size=1, max_size=40))
def test_few_values_have_the_bounds_that_many_have(values: list[int | None]) -> None:
    few = pa.table({"offset": pa.array(values, pa.int64()), "timestamp": times(*values).column(0)})
    many = pa.concat_tables([few] * 40)
    names = ["offset", "timestamp"]
    found, of_many = file_statistics(few, names), file_statistics(many, names)
    assert (found.min_values, found.max_values) == (of_many.min_values, of_many.max_values)
