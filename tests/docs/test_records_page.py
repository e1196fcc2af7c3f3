"""docs/records-sql.md: its Python runs; its SQL is run by test_sql.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tables.sample_log import lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "records-sql.md").read_text("utf-8")


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
