from __future__ import annotations

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.metadata_records import NoOpRecord, PartitionRecord
from kraftlake.records.rows import LOG_SCHEMA, from_rows, to_rows
from kraftlake.records.serde import ApiMessageAndVersion, UnknownRecord
from kraftlake.runtime.errors import CorruptDataError
from tests.strategies import batches

NO_OP = ApiMessageAndVersion(NoOpRecord(), 0)
DATA = RecordBatch.of(1, 2, 1_700_000_000_123, [NO_OP, ApiMessageAndVersion(PartitionRecord(), 1), NO_OP])
CONTROL = RecordBatch.control_of(0, 2, -1, [LeaderChangeMessage(version=1)])


def following(made: list[RecordBatch]) -> list[RecordBatch]:
    """The batches one behind the other."""
    placed = []
    offset = 0
    for batch in made:
        placed.append(attrs.evolve(batch, base_offset=offset))
        offset += batch.record_count
    return placed


@given(st.lists(batches(), max_size=5).map(following), st.randoms(use_true_random=False))
def test_batches_become_rows_and_in_any_order_batches_again(written: list[RecordBatch], random: object) -> None:
    table = to_rows(written)
    assert table.schema == LOG_SCHEMA
    assert table.num_rows == sum(batch.record_count for batch in written)
    assert list(from_rows(table)) == written
    order = list(range(table.num_rows))
    random.shuffle(order)
    assert list(from_rows(table.take(pa.array(order, pa.int64())))) == written


def test_a_row_says_what_its_record_is() -> None:
    unknown = ApiMessageAndVersion(UnknownRecord(300, 1, b"\x01\xac\x02\x01x"), 1)
    columns = ("offset", "batch", "type", "api_key", "version", "control")
    rows = to_rows([CONTROL, DATA, RecordBatch.of(4, 2, 0, [unknown])]).to_pylist()
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, 0, "LEADER_CHANGE", 2, 1, True),
        (1, 1, "NO_OP_RECORD", 20, 0, False),
        (2, 1, "PARTITION_RECORD", 3, 1, False),
        (3, 1, "NO_OP_RECORD", 20, 0, False),
        (4, 4, "UNKNOWN", 300, 1, False),
    ]  # fmt: skip
    assert {row["epoch"] for row in rows} == {2}
    assert rows[0]["timestamp"] is None
    assert rows[1]["timestamp"].timestamp() == 1_700_000_000.123


def test_the_payload_is_the_value_as_kafka_writes_it() -> None:
    assert to_rows([DATA])["payload"].to_pylist() == list(DATA.values)


def test_a_value_without_a_frame_is_named_by_its_offset() -> None:
    with pytest.raises(CorruptDataError, match=r"^Offset 2: "):
        to_rows([attrs.evolve(DATA, values=(DATA.values[0], b"", b""))])


def _with(name: str, values: list[object], type_: pa.DataType | None = None) -> pa.Table:
    table = to_rows([DATA])
    at = table.column_names.index(name)
    return table.set_column(at, name, pa.array(values, type_ or LOG_SCHEMA.field(name).type))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (to_rows([DATA]).slice(1), "batch at offset 1 is not whole"),
        (to_rows([DATA]).take([0, 2]), "batch at offset 1 is not whole"),
        (to_rows([DATA]).take([0, 0, 1]), "batch at offset 1 is not whole"),
        (_with("epoch", [2, 3, 3]), "several epochs"),
        (_with("control", [True, False, False]), "several epochs or kinds"),
        (_with("payload", [None, b"", b""]), "null in the column payload"),
        (_with("offset", [None, 1, 2]), "null in the column offset"),
        (_with("epoch", [1 << 40] * 3, pa.int64()), "other types"),
        (_with("payload", [[1]] * 3, pa.list_(pa.int8())), "other types"),
        (to_rows([DATA]).drop(["payload"]), "lack the column payload"),
    ],
)
def test_rows_that_make_up_no_batches_are_refused(table: pa.Table, reason: str) -> None:
    with pytest.raises(CorruptDataError, match=reason):
        list(from_rows(table))
