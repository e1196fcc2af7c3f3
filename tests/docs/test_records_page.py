"""docs/records-sql.md: its Python runs; its SQL is run by test_sql.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "records-sql.md").read_text("utf-8")


@pytest.mark.spark
def test_the_python_runs(sample_lake: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    made: dict[str, object] = {"__name__": "example"}
    exec(program.replace('"LAKE"', repr(str(sample_lake))).replace('"SOURCE"', repr(str(sample_lake))), made)
    assert "only showing top 5 rows" in capsys.readouterr().out
    assert made["names"].columns == ["offset", "topic_record"]  # type: ignore[attr-defined]
    assert made["leaders"].count() == 592  # type: ignore[attr-defined]
