from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.errors import CorruptDataError
from tests.few_examples import few_examples
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, leader_change, noop_batch
from tests.metadata_log.strategies import groupings, logs


def fill(path: Path, groups: Iterable[list[RecordBatch]], start_offset: int = 0) -> MetadataLog:
    log = MetadataLog.create(path, start_offset=start_offset, disk=UnsyncedDisk())
    for group in groups:
        log.append(group)
    return log


def batches_of(count: int) -> list[RecordBatch]:
    batches = [leader_change(0, epoch=1)]
    while len(batches) < count:
        offset = batches[-1].last_offset + 1
        batches.append(noop_batch(offset, time=-1) if offset % 3 == 0 else data_batch(offset, offset % 5 + 1))
    return batches


def by_delta_rs(path: Path) -> pa.Table:
    return DeltaTable(path / "log").to_pyarrow_table().select(LOG_SCHEMA.names).cast(LOG_SCHEMA).sort_by("offset")


def compact_by_hand(path: Path, pieces: list[pa.Table], *, statistics: bool) -> None:
    """What a foreign compaction may leave: rows and files in any order, batches cut, without statistics even."""
    table = DeltaTable(path / "log")
    actions: list[dict[str, object]] = [
        {"remove": {"path": name, "dataChange": False, "deletionTimestamp": 1}}
        for name in (Path(uri).name for uri in table.file_uris())
    ]
    for piece in pieces:
        name = f"part-{uuid.uuid4()}.parquet"
        pq.write_table(piece, path / "log" / name, row_group_size=5, write_statistics=statistics)
        offsets = piece.column("offset").to_pylist()
        batches = piece.column("batch").to_pylist()
        stats = {
            "numRecords": len(offsets),
            "minValues": {"offset": min(offsets), "batch": min(batches)},
            "maxValues": {"offset": max(offsets), "batch": max(batches)},
            "nullCount": {},
        }
        add = {"path": name, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": False}
        actions.append({"add": {**add, "stats": json.dumps(stats)} if statistics else add})
    commit = path / "log" / "_delta_log" / f"{table.version() + 1:020d}.json"
    commit.write_text("\n".join(map(json.dumps, actions)))


def test_delta_rs_reads_the_same_rows_and_schema(tmp_path: Path) -> None:
    batches = batches_of(20)
    log = fill(tmp_path / "lake", [batches[:1], batches[1:12], batches[12:]])
    table = DeltaTable(tmp_path / "lake" / "log")
    assert by_delta_rs(tmp_path / "lake").equals(log.rows())
    assert [(field.name, str(field.type.type)) for field in table.schema().fields] == [
        ("offset", "long"), ("epoch", "integer"), ("timestamp", "timestamp"), ("batch", "long"), ("type", "string"),
        ("api_key", "short"), ("version", "short"), ("control", "boolean"), ("payload", "binary"),
    ]  # fmt: skip
    assert [entry["operation"] for entry in table.history()] == ["WRITE"] * 3 + ["CREATE TABLE"]
    assert table.transaction_version("kraftlake.end_offset") == log.end_offset
    assert table.metadata().configuration["delta.appendOnly"] == "true"


def test_delta_rs_skips_files_by_our_statistics(tmp_path: Path) -> None:
    fill(tmp_path / "lake", [[data_batch(offset, 10)] for offset in range(0, 50, 10)])
    for path in (tmp_path / "lake" / "log").glob("*.parquet"):
        if not path.name.startswith(f"{20:020d}"):
            path.unlink()
    rows = DeltaTable(tmp_path / "lake" / "log").to_pyarrow_table(filters=[("offset", ">", 22), ("offset", "<", 25)])
    assert rows.column("offset").to_pylist() == [23, 24]


def test_a_compacted_checkpointed_and_cleaned_table_reads_the_same_and_goes_on(tmp_path: Path) -> None:
    batches = batches_of(30)
    before = fill(tmp_path / "lake", [[batch] for batch in batches]).rows()
    table = DeltaTable(tmp_path / "lake" / "log")
    assert table.optimize.compact()["numFilesRemoved"] == 30
    table.create_checkpoint()
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True) != []
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    for version in range(31):
        (tmp_path / "lake" / "log" / "_delta_log" / f"{version:020d}.json").unlink()
    log = MetadataLog.open(tmp_path / "lake")
    assert log.rows().equals(before)
    assert list(log.batches()) == batches
    log.append([data_batch(log.end_offset, 3)])
    assert MetadataLog.open(tmp_path / "lake").rows().num_rows == before.num_rows + 3
    assert by_delta_rs(tmp_path / "lake").equals(log.rows())


@pytest.mark.parametrize("statistics", [True, False])
def test_rows_in_any_order_and_cut_batches_are_read_in_offset_order(tmp_path: Path, statistics: bool) -> None:
    batches = batches_of(25)
    before = fill(tmp_path / "lake", [batches]).rows()
    reverse = before.take(list(reversed(range(before.num_rows))))
    third = before.num_rows // 3
    pieces = [reverse.slice(0, third), reverse.slice(2 * third), reverse.slice(third, third)]
    compact_by_hand(tmp_path / "lake", pieces, statistics=statistics)
    log = MetadataLog.open(tmp_path / "lake")
    assert log.rows().equals(before)
    assert list(log.batches()) == batches
    for batch in batches:
        assert list(log.batches(batch.last_offset, batch.last_offset)) == [batch]
        assert list(log.batches(batch.base_offset, batch.base_offset)) == [batch]
        assert log.rows(batch.base_offset, batch.last_offset).equals(to_rows([batch]))


def test_a_batch_larger_than_what_is_read_at_once_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftlake.metadata_log.reading.readable_log._LOOK_AHEAD_ROWS", 3)
    for module in ("data_files", "scan"):
        monkeypatch.setattr(f"kraftlake.metadata_log.delta_table.{module}.ROW_GROUP_ROWS", 4)
    batches = [data_batch(0, 2), data_batch(2, 40), data_batch(42, 2)]
    before = fill(tmp_path / "lake", [batches]).rows()
    compact_by_hand(tmp_path / "lake", [before.slice(20), before.slice(0, 20)], statistics=True)
    log = MetadataLog.open(tmp_path / "lake")
    assert list(log.batches(5, 6)) == batches[1:2]
    assert list(log.batches(1, 2)) == batches[:2]
    assert list(log.batches()) == batches
    assert list(log.batches(41, 42)) == batches[1:]


def test_a_file_of_another_shape_is_named(tmp_path: Path) -> None:
    before = fill(tmp_path / "lake", [batches_of(5)]).rows()
    compact_by_hand(tmp_path / "lake", [before.drop_columns(["payload"])], statistics=True)
    with pytest.raises(CorruptDataError, match=r"part-.* is damaged, or isn't a data file of this table"):
        list(MetadataLog.open(tmp_path / "lake").batches())


@few_examples
@given(data=st.data(), start_offset=st.sampled_from([0, 7, 2**40]))
def test_any_grouping_into_commits_reads_the_same_in_any_range(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, start_offset: int
) -> None:
    batches = data.draw(logs(start_offset))
    path = tmp_path_factory.mktemp("any") / "lake"
    fill(path, data.draw(groupings(batches)), start_offset)
    end_offset = batches[-1].last_offset + 1
    if data.draw(st.booleans(), label="compacted"):
        DeltaTable(path / "log").optimize.compact()
    log = MetadataLog.open(path)
    assert (log.start_offset, log.end_offset, log.epoch) == (start_offset, end_offset, batches[-1].epoch)
    low, high = (data.draw(st.integers(start_offset - 2, end_offset + 2), label=name) for name in ("from", "to"))
    assert list(log.batches(low, high)) == [
        batch for batch in batches if max(batch.base_offset, low) <= min(batch.last_offset, high)
    ]
    rows = to_rows(batches)
    first = min(max(low - start_offset, 0), rows.num_rows)
    assert log.rows(low, high).equals(rows.slice(first, max(0, high - start_offset + 1 - first)))


@given(data=st.data())
def test_the_offset_at_a_time_is_the_last_whose_batch_is_not_later(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    batches = data.draw(logs())
    path = tmp_path_factory.mktemp("time") / "lake"
    log = fill(path, data.draw(groupings(batches)))
    times = sorted({batch.timestamp for batch in batches if batch.timestamp >= 0})
    for time in (point for known in times for point in (known, known + 1)):
        expected = max(batch.last_offset for batch in batches if 0 <= batch.timestamp <= time)
        assert log.offset_at_time(time) == expected
