"""What was so at an offset: the rows that the whole table has for it, found without reading the whole table."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import CorruptDataError, LakeError, OffsetError, UsageError
from kraftlake.tables.history import history_table, state_columns
from kraftlake.tables.history.state_at import history_schemas, state_at
from tests.few_examples import few_examples
from tests.tables.history.folding import Run
from tests.tables.history.reference import KEYS, plain
from tests.tables.sample_log import LAST_OFFSET, batches_between, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's histories in many files of many row groups."""
    lake = tmp_path_factory.mktemp("at") / "lake"
    log = lake_of(lake, commits=1)
    with pytest.MonkeyPatch.context() as patch:
        for module in (state_columns, history_table):
            patch.setattr(module, "ROW_GROUP_ROWS", 60)
        patch.setattr(history_table, "_MERGED_ROWS", 100)
        patch.setattr(history_table, "_FILE_ROWS", 400)
        run = Run(lake)
        ends = [batch.last_offset for batch in batches_between(0, LAST_OFFSET)][100::80]
        for end in [*ends, log.end_offset - 1]:
            run.take(end)
        run.finish()
    assert len(read_table(lake / "partition_history").files) > 6
    return lake


@few_examples
@given(offset=st.integers(0, LAST_OFFSET), table=st.sampled_from(sorted(history_schemas())))
def test_it_gives_the_rows_that_the_whole_table_has_for_it(lake: Path, offset: int, table: str) -> None:
    rows = pa.table(DeltaTable(lake / table).to_pyarrow_table())
    begun = pc.less_equal(rows.column("valid_from_offset"), offset)
    goes_on = pc.fill_null(pc.greater(rows.column("valid_to_offset"), offset), True)
    expected = plain(rows.filter(pc.and_(begun, goes_on)).to_pylist(), KEYS[table])
    found = state_at(lake, offset, table)
    assert plain(found.to_pylist(), KEYS[table]) == expected
    assert found.schema.equals(history_schemas()[table])
    encoded = state_at(lake, offset, table, dictionaries=True)
    assert plain(encoded.to_pylist(), KEYS[table]) == expected
    assert any(map(pa.types.is_dictionary, encoded.schema.types)) or not any(
        map(pa.types.is_string, found.schema.types)
    )
    few = [*KEYS[table], "valid_from"]
    assert state_at(lake, offset, table, columns=few).column_names == few
    assert state_at(lake, offset, table, columns=few).num_rows == len(expected)


@pytest.mark.parametrize("offset", [0, 700, 3000, LAST_OFFSET])
def test_it_is_what_an_image_at_that_offset_has(lake: Path, offset: int) -> None:
    image = image_at(LakeReader(MetadataLog.open(lake)), offset, from_snapshot=False).image
    rows = state_at(lake, offset, columns=["topic", "partition", "leader", "isr"]).to_pylist()
    assert {(row["topic"], row["partition"]): (row["leader"], tuple(row["isr"])) for row in rows} == {
        (topic.name, number): (state.leader, state.isr)
        for topic in image.topics.topics_by_id().values()
        for number, state in topic.partitions.items()
    }


def test_a_time_means_the_last_offset_whose_batch_is_not_later(lake: Path) -> None:
    at = "2026-11-21T07:46:16.256Z"
    expected = plain(state_at(lake, kraftlake.open(lake).offset_at(at)).to_pylist(), KEYS["partition_history"])
    time = datetime.fromisoformat(at)
    for asked in ({"when": at}, {"when": time}, {"at_time": 1795247176256}, {"at_time": at}):
        assert plain(state_at(lake, **asked).to_pylist(), KEYS["partition_history"]) == expected
    assert 0 < len(expected) < state_at(lake, LAST_OFFSET).num_rows
    with pytest.raises(OffsetError, match="is after the time asked for"):
        state_at(lake, "2020-01-01")
    with pytest.raises(UsageError, match="not both"):
        state_at(lake, 5, at_time=at)
    with pytest.raises(UsageError, match="give either"):
        state_at(lake)


def test_a_time_before_the_start_of_a_trimmed_log_is_found_in_the_table(lake: Path, tmp_path: Path) -> None:
    source, keys = kraftlake.open(lake), KEYS["partition_history"]
    times = [source.image(offset).provenance.timestamp for offset in (100, 458, 2000)]
    expected = [plain(state_at(lake, at_time=time).to_pylist(), keys) for time in times]
    trimmed = tmp_path / "lake"
    log = lake_of(trimmed, commits=20)
    shutil.copytree(lake / "partition_history", trimmed / "partition_history")
    image = source.image(4592)
    log.add_snapshot(
        SnapshotFacts(
            end_offset=4593, epoch=image.provenance.epoch, last_contained_log_timestamp=image.provenance.timestamp
        ),
        [RecordBatch.of(0, 1, image.provenance.timestamp, list(image.write()))],
    )
    Upkeep(trimmed).trim(4593, stream_lag_ms=0, force=True)
    with pytest.raises(OffsetError):
        kraftlake.open(trimmed).offset_at(at_time=times[-1])
    assert [plain(state_at(trimmed, at_time=time).to_pylist(), keys) for time in times] == expected
    with pytest.raises(OffsetError, match="is after the time asked for"):
        state_at(trimmed, "2020-01-01")
    table = trimmed / "partition_history"
    (table / next(iter(read_table(table).files))).write_bytes(b"PAR1")
    with pytest.raises(CorruptDataError, match="partition_history, its job makes it anew"):
        state_at(trimmed, at_time=times[-1])


def test_files_of_what_had_ended_by_then_are_not_opened(tmp_path: Path, lake: Path) -> None:
    shutil.copytree(lake, tmp_path / "lake")
    table = tmp_path / "lake" / "partition_history"
    expected = plain(state_at(lake, 3000).to_pylist(), KEYS["partition_history"])
    spoilt = 0
    for file in read_table(table).files.values():
        assert file.statistics is not None
        if file.statistics.max_values.get("valid_to_offset", LAST_OFFSET) <= 3000:
            (table / file.path).write_bytes(b"PAR1")
            spoilt += 1
    assert spoilt > 2
    assert plain(state_at(tmp_path / "lake", 3000).to_pylist(), KEYS["partition_history"]) == expected
    with pytest.raises(CorruptDataError, match="partition_history, its job makes it anew"):
        state_at(tmp_path / "lake", 200)


def test_row_groups_of_what_began_later_or_had_ended_are_passed_over(lake: Path) -> None:
    from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
    from kraftlake.tables.history.rows_at import groups_at

    table = lake / "partition_history"
    read = rows = 0
    for path in table.glob("*.parquet"):
        parquet = open_parquet_file(path)
        chosen = groups_at(parquet.metadata, 2500)
        read += sum(group.rows for group in chosen)
        rows += parquet.metadata.num_rows
    assert state_at(lake, 2500).num_rows <= read < rows / 2


def test_a_program_that_asks_imports_neither_pandas_nor_what_writes(lake: Path) -> None:
    asked = (
        "import sys; from kraftlake.tables.history.state_at import state_at\n"
        f"for strings in (False, True): assert state_at({str(lake)!r}, 3000, dictionaries=strings).num_rows\n"
        "loaded = {'pandas', 'structlog', 'kraftlake.image', 'kraftlake.metadata_log.maintenance.compaction'}\n"
        "print(loaded & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", asked], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_what_it_cannot_answer_is_refused_with_the_way_out(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(OffsetError, match=rf"covers offsets up to {LAST_OFFSET}, not {LAST_OFFSET + 1}: run"):
        state_at(lake, LAST_OFFSET + 1)
    with pytest.raises(OffsetError, match="not -1"):
        state_at(lake, -1)
    with pytest.raises(UsageError, match="'events' is no history table: it is one of partition_history"):
        state_at(lake, 5, "events")
    with pytest.raises(UsageError, match="no column 'who'"):
        state_at(lake, 5, columns=["topic", "who"])
    MetadataLog.create(tmp_path / "lake")
    with pytest.raises(LakeError, match="There is no lake at"):
        state_at(tmp_path / "gone", 1)
    with pytest.raises(LakeError, match="has no partition_history/ yet: run `kraftlake tables"):
        state_at(tmp_path / "lake", 0)


@pytest.mark.spark
def test_spark_finds_the_same(lake: Path, spark: SparkSession) -> None:
    from kraftlake.spark_jobs import state_frame

    for offset in (1234, LAST_OFFSET):
        rows = state_frame(spark, lake, offset).toArrow().to_pylist()
        key = KEYS["partition_history"]
        assert plain(rows, key) == plain(state_at(lake, offset).to_pylist(), key)
    assert state_frame(spark, lake, 3000, "topic_history").count() == state_at(lake, 3000, "topic_history").num_rows
    with pytest.raises(OffsetError, match="covers offsets up to"):
        state_frame(spark, lake, LAST_OFFSET + 1)
