from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.log_record import LogRecord, log_records
from kraftlake.records.metadata_records import ConfigRecord, DelegationTokenRecord, TopicRecord
from kraftlake.records.redaction import REDACTED, redact_record_json
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.records.schema import field_specs
from kraftlake.records.serde import encode_value
from kraftlake.records.typed_rows import (
    PLACE,
    checked_schema,
    needed_columns,
    record_types,
    typed_rows,
    typed_schema,
)
from kraftlake.runtime.errors import CorruptDataError, UsageError
from tests.at_least_one import at_least_one
from tests.records.sample_logs import LOG_FILES, whole_batches
from tests.records.typed_json import expected_line, json_of_row
from tests.strategies import messages, unknown_records

files = pytest.mark.parametrize("path", LOG_FILES, ids=lambda path: f"{path.parts[-4]}-{path.name}")


def lines_of(batches: Sequence[RecordBatch], *, secrets: bool) -> list[dict[str, Any]]:
    def line_of(record: LogRecord) -> dict[str, Any]:
        line = record.to_json()
        return line if secrets else {**line, "data": redact_record_json(line["type"], line["data"])}

    return [expected_line(line_of(record), None) for batch in batches for record in log_records(batch)]


def lines_of_all(rows: pa.Table, *, secrets: bool) -> list[dict[str, Any]]:
    lines = []
    for row in typed_rows(rows, typed_schema(), show_secrets=secrets).to_pylist():
        column = row["type"].lower()
        others = [name for name, value in row.items() if isinstance(value, dict) and name != column]
        assert others == []
        lines.append(json_of_row(row, row.get(column), redacted=not secrets))
    return lines


@files
@pytest.mark.parametrize("secrets", [True, False])
def test_rows_of_a_sample_say_what_its_log_says(path: Path, secrets: bool) -> None:
    batches = list(whole_batches(path))
    assert lines_of_all(to_rows(batches), secrets=secrets) == lines_of(batches, secrets=secrets)


@files
def test_rows_of_one_type_are_its_structs_laid_open(path: Path) -> None:
    rows = to_rows(list(whole_batches(path)))
    of_all = typed_rows(rows, typed_schema()).to_pylist()
    for name, kind in at_least_one(record_types().items()):
        table = typed_rows(rows, typed_schema(name), name)
        assert table.schema.equals(typed_schema(name))
        expected = [row for row in of_all if row["type"] == name]
        place = [field.name for field in PLACE]
        assert table.to_pylist() == [
            {key: row[key] for key in place}
            | {column: row[kind.column][field.name] for column, field in kind.plain_fields.items()}
            for row in expected
        ]


@st.composite
def any_batch(draw: st.DrawFn) -> RecordBatch:
    drawn = draw(st.lists(messages(unknown_tags=False) | unknown_records(), min_size=1, max_size=8))
    values = tuple(encode_value(each.message, each.version) for each in drawn)
    times = tuple([-1 if index % 3 == 0 else 1_700_000_000_000 + index for index in range(len(values))])
    return RecordBatch(base_offset=7, epoch=3, timestamp=max(times), values=values, timestamps=times)


@given(any_batch(), st.booleans())
def test_rows_of_any_log_say_what_the_log_says(batch: RecordBatch, secrets: bool) -> None:
    assert lines_of_all(to_rows([batch]), secrets=secrets) == lines_of([batch], secrets=secrets)


@given(any_batch(), st.data())
def test_a_part_of_the_columns_is_that_part(batch: RecordBatch, data: st.DataObject) -> None:
    rows = to_rows([batch])
    whole = typed_rows(rows, typed_schema())
    wanted = pa.schema(data.draw(st.permutations(list(typed_schema())))[: data.draw(st.integers(0, 9))])
    part = typed_rows(rows.select(needed_columns(wanted)), checked_schema(wanted))
    assert part.equals(whole.select(wanted.names))


def test_a_part_of_a_structs_fields_may_be_asked_for_in_any_order() -> None:
    value = encode_value(TopicRecord(name="foo"), 0)
    rows = to_rows([RecordBatch(base_offset=0, epoch=1, timestamp=5, values=(value,), timestamps=(5,))])
    struct = pa.struct([("topic_id", pa.string()), ("name", pa.string())])
    wanted = checked_schema(pa.schema([("topic_record", struct), ("offset", pa.int64())]))
    assert typed_rows(rows, wanted).to_pylist() == [
        {"topic_record": {"topic_id": "A" * 22, "name": "foo"}, "offset": 0}
    ]
    wanted = checked_schema(pa.schema([("topic_record", pa.struct([("name", pa.string())]))]))
    assert typed_rows(rows, wanted).to_pylist() == [{"topic_record": {"name": "foo"}}]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (pa.field("leader", pa.int32()), "no column leader"),
        (pa.field("offset", pa.int32()), "column offset is int64, not int32"),
        (pa.field("topic_record", pa.string()), "column topic_record is a struct of name, topic_id"),
        (pa.field("topic_record", pa.struct([("nam", pa.string())])), "topic_record has no field nam"),
        (pa.field("topic_record", pa.struct([("name", pa.binary())])), "topic_record has no field name of type binary"),
    ],
)
def test_columns_that_records_do_not_have_are_refused(field: pa.Field, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        checked_schema(pa.schema([field]))


def test_every_type_and_field_has_a_column() -> None:
    assert len(record_types()) == 32
    taken = {field.name for field in PLACE} | {"payload"}
    for kind in record_types().values():
        declared = [name for name, _ in field_specs(kind.cls) if not (kind.control and name == "version")]
        assert [field.name for field in kind.fields] == declared
        assert [field.name for field in kind.plain_fields.values()] == declared
        assert taken.isdisjoint(kind.plain_fields)
    assert "record_epoch" in record_types()["FENCE_BROKER_RECORD"].plain_fields
    with_fields = {kind.column for kind in record_types().values() if kind.fields}
    assert {field.name for field in typed_schema()} == taken | with_fields


def test_secrets_are_hidden_unless_asked_for() -> None:
    secret = ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="s3cret")
    public = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1000")
    removed = ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=None)
    of_another = ConfigRecord(resource_type=4, resource_name="1", name="retention.ms", value="?")
    token = DelegationTokenRecord(owner="User:a", renewers=("User:b",), token_id="t", issue_timestamp=5)
    values = [encode_value(message, 0) for message in (secret, public, removed, of_another, token)]
    values.append(b"\x01\x7f\x00unknown")
    rows = to_rows([RecordBatch(base_offset=0, epoch=1, timestamp=5, values=tuple(values), timestamps=(5,) * 6)])
    hidden = typed_rows(
        rows, pa.schema([typed_schema().field(n) for n in ("config_record", "delegation_token_record")])
    )
    assert [row["config_record"] and row["config_record"]["value"] for row in hidden.to_pylist()] == [
        REDACTED, "1000", None, REDACTED, None, None,
    ]  # fmt: skip
    assert hidden.to_pylist()[4]["delegation_token_record"] == {
        "owner": REDACTED, "requester": REDACTED, "renewers": None, "issue_timestamp": None, "max_timestamp": None,
        "expiration_timestamp": None, "token_id": "t",
    }  # fmt: skip
    payload = pa.schema([typed_schema().field("payload")])
    assert typed_rows(rows, payload).to_pylist() == [{"payload": None}] * 6
    assert typed_rows(rows, payload, show_secrets=True).to_pylist()[4:] == [{"payload": None}, {"payload": values[5]}]
    # the value alone, without the columns that say whether it is secret
    of_one = pa.schema([typed_schema("CONFIG_RECORD").field("value")])
    assert [row["value"] for row in typed_rows(rows, of_one, "CONFIG_RECORD").to_pylist()] == [
        REDACTED, "1000", None, REDACTED,
    ]  # fmt: skip


def test_a_broken_record_is_named_by_its_offset() -> None:
    good, bad = encode_value(TopicRecord(name="a"), 0), encode_value(TopicRecord(name="a"), 0)[:-1]
    batch = RecordBatch(base_offset=40, epoch=1, timestamp=5, values=(good, bad), timestamps=(5, 5))
    with pytest.raises(CorruptDataError, match=r"^Offset 41: "):
        typed_rows(to_rows([batch]), typed_schema())


def test_no_rows_are_no_rows() -> None:
    for only in (None, "TOPIC_RECORD", "NO_OP_RECORD", "UNKNOWN"):
        table = typed_rows(LOG_SCHEMA.empty_table(), typed_schema(only), only)
        assert table.num_rows == 0
        assert table.schema.equals(typed_schema(only))
