"""docs/records-sql.md: its table of columns is the table's own, its Python runs; its SQL is run by test_sql.py.

`python -m tests.docs.test_records_page` prints the lines of the table of columns.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from kraftlake.tables.records_table import RECORDS
from tests.tables.sample_log import lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "records-sql.md").read_text("utf-8")


def type_text(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array of {type_text(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct of " + ", ".join(f"`{field.name}` {type_text(field.type)}" for field in kind)
    return "timestamp" if pa.types.is_timestamp(kind) else str(kind)


def column_lines() -> list[str]:
    return [f"| `{field.name}` | {type_text(field.type)} | {meaning} |" for field, meaning in RECORDS.table_columns]


def test_every_column_and_field_is_described_as_in_the_table_itself() -> None:
    section = PAGE.partition("\n## records/\n")[2]
    assert [line for line in section.splitlines() if line.startswith("| `")] == column_lines()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from pyspark import SparkContext

    from kraftlake.spark_jobs import spark_session

    shared = SparkContext._active_spark_context is not None
    session = spark_session("kraftlake tests")
    yield session
    if not shared:
        session.stop()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records-page") / "lake"
    lake_of(path, commits=2)
    return path


@pytest.mark.spark
def test_the_python_runs(lake: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    made: dict[str, object] = {"__name__": "example"}
    exec(program.replace('"LAKE"', repr(str(lake))).replace('"SOURCE"', repr(str(lake))), made)
    assert "only showing top 5 rows" in capsys.readouterr().out
    assert made["names"].columns == ["offset", "topic_record"]  # type: ignore[attr-defined]
    assert made["leaders"].count() == 592  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.stdout.write("\n".join(column_lines()) + "\n")
