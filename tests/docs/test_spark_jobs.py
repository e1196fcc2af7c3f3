"""docs/spark-jobs.md and docs/history-sql.md describe the tables as they are, and their Python runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from kraftlake.records.log_record import log_records
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.tables.jobs import ALL, HISTORY, JOBS
from kraftlake.tables.lake_table import TableDescription
from tests.tables.sample_log import lake_of, sample_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "spark-jobs.md").read_text("utf-8")
HISTORY_PAGE = (DOCS / "history-sql.md").read_text("utf-8")
TABLES = {writer.description.name: writer.description for writer in ALL.new_writers()}


def section(heading: str, page: str = PAGE) -> str:
    return re.split(r"^## ", page.partition(f"\n## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("description", TABLES.values(), ids=TABLES)
def test_every_column_is_described_as_in_the_table_itself(description: TableDescription) -> None:
    if description.name in HISTORY.tables:
        text = section(f"{description.name}/", HISTORY_PAGE) + section("Columns of every table", HISTORY_PAGE)
    else:
        text = section(f"{description.name}/")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [(row[0].strip("| `"), row[2].removesuffix(" |")) for row in rows] == [
        (field.name, comment) for field, comment in description.table_columns
    ]


def test_every_job_is_named_and_says_which_tables_it_keeps() -> None:
    for job in JOBS.values():
        assert f"kraftlake spark {job.name} LAKE" in PAGE
        assert job.tables == tuple(writer.description.name for writer in job.new_writers())


@pytest.mark.spark
def test_the_table_of_ones_own_runs(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1)
    (program,) = re.findall(r"```python\n(.*?)```", section("A table of your own"), flags=re.DOTALL)
    exec(program.replace('"LAKE"', repr(str(tmp_path / "lake"))), {"__name__": "example"})
    rows = DeltaTable(tmp_path / "lake" / "controller_changes").to_pyarrow_table().to_pylist()
    assert len(rows) > 1
    assert all(row["leader"] is not None for row in rows)


@pytest.mark.spark
def test_the_stream_of_ones_own_runs(spark: SparkSession, tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=2)
    (program,) = re.findall(r"```python\n(.*?)```", section("A stream of your own"), flags=re.DOTALL)
    for name in ("LAKE", "CHECKPOINT", "MINUTES"):
        program = program.replace(f'"{name}"', repr(str(tmp_path / name.lower())))
    exec(program, {"__name__": "example"})
    rows = DeltaTable(tmp_path / "minutes").to_pyarrow_table().to_pylist()
    minutes: dict[datetime, list[int]] = {}
    for record in (record for batch in sample_batches() for record in log_records(batch)):
        if isinstance(record.message, PartitionChangeRecord) and record.message.isr is not None:
            last = datetime.fromtimestamp(record.timestamp / 1000, UTC)
            minutes.setdefault(last.replace(second=0, microsecond=0), []).append(len(record.message.isr))
    assert {row["minute"]: (row["changes"], row["smallest"]) for row in rows} == {
        minute: (len(sizes), min(sizes)) for minute, sizes in minutes.items() if minute + timedelta(minutes=2) <= last
    }
    assert len(rows) > 1
