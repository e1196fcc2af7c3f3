"""Every SQL example in the docs runs, and gives the answer that is printed behind it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.sql_examples import DOCS, SqlExample, answer, sql_examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
EXAMPLES = list(sql_examples())


def first_of_each_table() -> Iterator[SqlExample]:
    """The first example of each page and of each table; DuckDB answers all of them in test_duckdb."""
    seen: set[str] = set()
    for example in EXAMPLES:
        of_example = {example.page, *re.findall(r"delta\.`LAKE/(\w+)`", example.sql)}
        if of_example - seen:
            yield example
        seen |= of_example


def test_there_are_examples_of_several_pages() -> None:
    assert len(EXAMPLES) > 12
    assert len({example.page for example in EXAMPLES}) >= 2


@pytest.mark.spark
@pytest.mark.parametrize(
    "example", EXAMPLES if LONG else list(first_of_each_table()), ids=lambda e: f"{e.page}-{e.number}"
)
def test_the_answer_is_the_one_in_the_docs(spark: SparkSession, sample_lake: Path, example: SqlExample) -> None:
    assert example.answer is not None, "an example has its answer behind it: python -m tests.docs.sql_examples"
    assert answer(spark, example.sql, sample_lake) == example.answer


@pytest.mark.spark
def test_the_tables_are_read_without_spark_as_the_page_says(sample_lake: Path) -> None:
    page = (DOCS / "history-sql.md").read_text("utf-8").partition("Any reader of Delta tables")[2]
    program = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    made: dict[str, Any] = {}
    exec(program.replace('"LAKE/', f'"{sample_lake}/'), made)
    assert made["rows"].count_rows() == len(made["history"].to_pandas())


@pytest.mark.spark
def test_what_was_so_at_an_offset_is_asked_of_python_as_the_page_says(spark: SparkSession, sample_lake: Path) -> None:
    page = (DOCS / "history-sql.md").read_text("utf-8").partition("## What was the whole cluster at an offset?")[2]
    (program,) = re.findall(r"```python\n(.*?)```", page.partition("\n## ")[0], flags=re.DOTALL)
    exec(program.replace('"LAKE"', repr(str(sample_lake))), {"__name__": "example", "spark": spark})
