"""docs/spark-jobs.md names the jobs, and its Python runs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import kraftlake
from kraftlake.records.log_record import log_records
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import JOBS
from tests.tables.sample_log import LAST_OFFSET, batches_between, lake_of, sample_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "spark-jobs.md").read_text("utf-8")


def section(heading: str) -> str:
    return re.split(r"^## ", PAGE.partition(f"\n## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_every_job_is_named_and_says_which_tables_it_keeps() -> None:
    for job in JOBS.values():
        assert f"kraftlake spark {job.name} LAKE" in PAGE
        assert job.tables == tuple(writer.description.name for writer in job.new_writers())


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_table_of_ones_own_runs(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1)
    (program,) = re.findall(r"```python\n(.*?)```", section("A table of your own"), flags=re.DOTALL)
    exec(program.replace('"LAKE"', repr(str(tmp_path / "lake"))), {"__name__": "example"})
    rows = DeltaTable(tmp_path / "lake" / "controller_changes").to_pyarrow_table().to_pylist()
    assert len(rows) > 1
    assert all(row["leader"] is not None for row in rows)


@pytest.mark.spark
def test_many_lakes_run_and_are_read(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("LAKE-1", "LAKE-2"):
        lake_of(tmp_path / name, commits=1, last=100)
    first, second = re.findall(r"```python\n(.*?)```", section("Many lakes"), flags=re.DOTALL)
    exec(first + second, {"__name__": "example", "spark": spark})
    said = capfd.readouterr().out
    assert said.startswith("[]\n")
    assert "LAKE-1" in said
    assert "LAKE-2" in said


@pytest.mark.spark
def test_programs_that_ask_a_session_run(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake_of(tmp_path / "LAKE", commits=1, last=600)
    update_tables(tmp_path / "LAKE", ("partition_history", "cluster_metrics", "events"))
    monkeypatch.chdir(tmp_path)
    headings = ("replay", "Progress", "cluster_metrics/", "In an object store")
    pages = [section(heading).replace("s3://BUCKET/PREFIX", "LAKE") for heading in headings]
    pages.append((DOCS / "history-sql.md").read_text("utf-8"))
    made = {"__name__": "example"}
    for page in pages:
        program = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
        exec(program.replace("`LAKE", f"`{tmp_path}/LAKE"), made)
    said = capfd.readouterr().out
    assert said.startswith(f"600 {made['result'].image.topics.partition_count}\n")
    assert "offline_partitions_count" in said
    assert "count(1)" in said


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


def receiver_of_images(folder: Path) -> str:
    (program,) = re.findall(r"```python\n(.*?)```", section("Images in a stream of your own"), flags=re.DOTALL)
    for name in ("LAKE", "CHECKPOINT", "STORE"):
        program = program.replace(f'"{name}"', repr(str(folder / name.lower())))
    return program


def check_kept(folder: Path) -> None:
    """Each change is kept once."""
    expected = []
    for change in kraftlake.open(folder / "lake").changes():
        topics = change.delta.topics_delta
        for broker in () if topics is None else change.image.cluster.brokers:
            found = topics.local_changes(broker)
            if found.leaders or found.followers or found.deletes:
                row = (change.offset, broker, len(found.leaders), len(found.followers), len(found.deletes))
                expected.append(row)
    rows = sqlite3.connect(folder / "store").execute("SELECT * FROM kept ORDER BY offset, broker").fetchall()
    assert rows == sorted(expected)
    assert rows[-1][0] > 3000


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_receiver_of_images_keeps_each_change_once_whatever_is_repeated(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=1, last=3000)
    program = receiver_of_images(tmp_path)
    exec(program, {"__name__": "example"})
    shutil.rmtree(tmp_path / "checkpoint")  # so that all comes again
    log.append(batches_between(log.end_offset, LAST_OFFSET))
    exec(program, {"__name__": "example"})
    check_kept(tmp_path)


@pytest.mark.spark
@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="starts a JVM for each of two processes")
def test_the_receiver_of_images_keeps_each_change_once_when_it_is_killed(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1)
    program = receiver_of_images(tmp_path)
    insert = 'store.execute("INSERT INTO kept VALUES (?, ?, ?, ?, ?)", row)'
    deadly = program.replace(insert, f"{insert}; offset > 2500 and __import__('os').kill(__import__('os').getpid(), 9)")
    killed = subprocess.run([sys.executable, "-c", deadly], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    check_kept(tmp_path)
