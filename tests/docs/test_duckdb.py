"""Every SQL example in the docs has the answer that Spark gives in DuckDB, too, of a lake and of the log alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.api.sql import SqlRows
from tests.cli.running import DIRECTORY
from tests.docs.sql_examples import SqlExample, sql_examples

EXAMPLES = list(sql_examples())


def of_duckdb(sql: str) -> str:
    """A question with the names of tables alone, as the page says."""
    return re.sub(r"delta\.`LAKE/(\w+)`", r"\1", sql)


def as_spark_shows(value: Any) -> str:
    """A value as Spark's `show` draws it."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"[{', '.join(map(as_spark_shows, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    time = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d+))?Z", str(value))
    if time is not None:
        return time[1] + (f".{digits}" if (digits := (time[2] or "").rstrip("0")) else "")
    return str(value)


def rows_of(answer: SqlRows) -> list[list[str]]:
    return [[*answer.columns], *([as_spark_shows(value) for value in row] for row in answer)]


def shown(answer: str) -> list[list[str]]:
    """The cells of what Spark shows."""
    lines = [line for line in answer.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def test_there_are_questions_enough() -> None:
    assert len(EXAMPLES) >= 25


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.page}-{e.number}")
def test_the_answer_is_the_one_in_the_docs(sample_lake: Path, example: SqlExample) -> None:
    assert example.answer is not None
    answer = kraftlake.open(sample_lake).sql(of_duckdb(example.sql))
    assert rows_of(answer) == shown(example.answer)
    assert len(answer)


def test_a_log_in_no_lake_answers_the_same(sample_lake: Path) -> None:
    sql = of_duckdb(EXAMPLES[0].sql)
    assert rows_of(kraftlake.open(DIRECTORY).sql(sql)) == rows_of(kraftlake.open(sample_lake).sql(sql))
