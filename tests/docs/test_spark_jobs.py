"""docs/spark-jobs.md describes the tables as they are."""

from __future__ import annotations

from pathlib import Path

from kraftlake.spark_jobs.local_changes import COLUMNS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "spark-jobs.md").read_text("utf-8")


def test_every_column_of_local_changes_is_described_as_in_the_table_itself() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    assert [(row[0].strip("| `"), row[2].removesuffix(" |")) for row in rows] == [
        (field.name, comment) for field, comment in COLUMNS
    ]
