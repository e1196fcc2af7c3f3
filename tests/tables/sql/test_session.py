"""A question in SQL sees the tables that it is given and nothing else, and ends within its limits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.tables.sql.session import SqlLimits, answer, asked_tables

TABLE = pa.table({"a": [3, None, 1], "list": [[1, 2], [], None]})
OUTSIDE = pa.table({"secret": ["outside"]})
"""A name of this module, which DuckDB would find by itself."""


def refusal(question: str, **limits: float) -> str:
    with pytest.raises(UsageError) as refused:
        answer(question, {"t": TABLE}, SqlLimits(**limits))  # type: ignore[arg-type]
    words = str(refused.value)
    assert words.endswith(".")
    assert "\n" not in words
    return words


def rows(question: str) -> list[tuple[object, ...]]:
    found = answer(question, {"t": TABLE}, SqlLimits()).rows
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_question_names_its_tables() -> None:
    assert asked_tables("WITH e AS (SELECT * FROM Events) SELECT * FROM e, log AS l") == {"events", "log"}
    assert asked_tables("SELECT 1") == frozenset()


@pytest.mark.parametrize(
    "question",
    [
        "", "-- nothing", "SELECT 1; SELECT 2", "COPY t TO '/tmp/t.csv'", "COPY (SELECT 1) TO 'x'", "ATTACH 'x.db'",
        "INSTALL httpfs", "LOAD httpfs", "PRAGMA version", "SET threads = 9", "CALL pragma_version()",
        "CREATE TABLE x (a INT)", "INSERT INTO t VALUES (1)", "DROP TABLE t", "EXPORT DATABASE 'x'", "USE memory",
        "CREATE MACRO m(x) AS x", "RESET lock_configuration", "EXPLAIN ANALYZE SELECT 1", "CHECKPOINT", "DETACH memory",
        "PREPARE p AS SELECT 1", "BEGIN TRANSACTION", "CREATE SECRET s (TYPE s3)",
    ],
)  # fmt: skip
def test_what_is_not_one_select_is_refused(question: str) -> None:
    assert refusal(question) == "The question is not one SELECT: SQL reads the tables here, and nothing else."


@pytest.mark.parametrize(
    "function",
    [
        "read_csv('{}')", "read_text('{}')", "read_blob('{}')", "read_json('{}')", "read_parquet('{}')", "glob('{}')",
        "sniff_csv('{}')", "parquet_metadata('{}')", "read_csv('https://example.org/x')", "'{}'", "duckdb_secrets()",
        "query('COPY (SELECT 1) TO ''{}.copy''')", "sqlite_scan('{}', 't')", "enable_logging()", "OUTSIDE",
    ],
)  # fmt: skip
def test_nothing_outside_of_the_tables_is_read(function: str, tmp_path: Path) -> None:
    file = tmp_path / "outside.csv"
    file.write_text("secret\n1\n")
    said = refusal(f"SELECT * FROM {function.format(file)}")
    assert said.startswith("DuckDB refuses the question: ")
    assert os.listdir(tmp_path) == ["outside.csv"]  # noqa: PTH208 - a name is enough


def test_a_variable_of_the_environment_is_not_read() -> None:
    assert "getenv does not exist" in refusal("SELECT getenv('HOME')")


@pytest.mark.parametrize(
    "question",
    [
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM range(1000000000000)",
        "SELECT count(*) FROM t a, range(1000000) b, range(1000000) c WHERE b.range * c.range = 7",
    ],
)
def test_an_endless_question_ends(question: str) -> None:
    begin = time.monotonic()
    assert refusal(question, seconds=0.3) == (
        "The question has no answer within 0.3 s: ask for less, or give it longer."
    )
    assert time.monotonic() - begin < 120


def test_a_huge_answer_is_cut_and_a_huge_value_is_refused() -> None:
    found = answer("SELECT a.range FROM range(1000000000) a, range(100000) b", {}, SqlLimits(rows=5))
    assert found.rows.num_rows == 5
    assert found.is_cut
    assert not answer("SELECT * FROM t", {"t": TABLE}, SqlLimits(rows=3)).is_cut
    assert "Out of Memory" in refusal("SELECT string_agg(repeat('x', 1000000)) FROM range(1000000)")


def test_functions_of_spark_mean_the_same() -> None:
    assert rows("SELECT size(list), get(list, 0) FROM t WHERE a = 3") == [(2, 1)]
    assert rows("SELECT array_except([1, 2, 3], [2])") == [([1, 3],)]
    assert rows("SELECT unix_millis(TIMESTAMPTZ '1970-01-01 00:00:01.5')") == [(1500,)]


def test_nulls_are_ordered_as_in_spark() -> None:
    assert rows("SELECT a FROM t ORDER BY a") == [(None,), (1,), (3,)]
    assert rows("SELECT a FROM t ORDER BY a DESC") == [(3,), (1,), (None,)]


def test_a_mistake_is_reported_in_one_sentence() -> None:
    assert refusal("SELECT b FROM t").startswith(
        'DuckDB refuses the question: Binder Error: Referenced column "b" not found in FROM clause!'
    )
    assert "syntax error" in refusal("SELECT FROM")
    assert refusal("SELECT * FROM u").startswith("DuckDB refuses the question: Catalog Error: Table with name u")
