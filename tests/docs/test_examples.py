"""The examples in docs/examples run as they stand, on a lake of the sample."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from PIL import Image

import kraftlake
from kraftlake.records.log_record import log_records
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.spark_jobs import java_home
from tests.connect_server import connect_server
from tests.docs.sql_examples import DOCS
from tests.tables.sample_log import sample_batches

EXAMPLES = DOCS / "examples"
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"

pytestmark = pytest.mark.spark


def run(example: str) -> None:
    program = (EXAMPLES / f"{example}.py").read_text("utf-8")
    assert program.startswith("# %%")
    exec(compile(program.replace("spark.stop()", ""), example, "exec"), {"__name__": "example"})


def test_there_are_no_others() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"five_minutes", "images_by_the_stream"}


@pytest.mark.filterwarnings("ignore")  # of matplotlib
@pytest.mark.usefixtures("own_lake", "spark")
def test_five_minutes_draws_the_picture_that_the_page_shows(capfd: pytest.CaptureFixture[str]) -> None:
    run("five_minutes")
    assert capfd.readouterr().out == "93 reigns of 11 partitions\n"
    drawn, shown = (size_of(path) for path in (Path("history.webp"), DOCS / "images" / "history.webp"))
    assert drawn == shown
    assert Path("history.webp").stat().st_size > 20_000


def size_of(picture: Path) -> tuple[int, int]:
    with Image.open(picture) as image:
        assert image.format == "WEBP"
        return image.size


@pytest.mark.usefixtures("spark")
def test_the_brokers_of_images_by_the_stream_lead_and_follow_what_the_last_image_says(
    own_lake: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run("images_by_the_stream")
    assert roles_of(capfd.readouterr().out) == roles_in(own_lake)


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a server of Spark Connect")
def test_images_by_the_stream_run_on_spark_connect(own_lake: Path, tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        done = subprocess.run(
            [sys.executable, EXAMPLES / "images_by_the_stream.py"],
            env={**os.environ, "SPARK_REMOTE": address, "PYTHONPATH": str(DOCS.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert roles_of(done.stdout) == roles_in(own_lake)


def roles_of(said: str) -> list[str]:
    return [line.partition(", since")[0] for line in said.splitlines()]


def roles_in(lake: Path) -> list[str]:
    """What the brokers do in the last image."""
    image, leads, hosts = kraftlake.open(lake).image(), Counter[int](), Counter[int]()
    for topic in image.topics.topics_by_id().values():
        for partition in topic.partitions.values():
            leads[partition.leader] += 1
            hosts.update(partition.replicas)
    return [
        f"broker {broker} leads {leads[broker]} partitions and follows {hosts[broker] - leads[broker]}"
        for broker in sorted(image.cluster.brokers)
    ]


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: two JVMs")
def test_the_pipeline_makes_its_tables(own_lake: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "pipeline", Path(pyspark.__file__).parent
    shutil.copytree(EXAMPLES / "pipeline", folder)
    specification = folder / "spark-pipeline.yml"
    named = specification.read_text("utf-8").replace("/tmp/", f"{tmp_path}/").replace(": LAKE", f": {own_lake}")
    specification.write_text(named, "utf-8")
    places = {"JAVA_HOME": str(java_home()), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    ours = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(DOCS.parent), "SPARK_TESTING": "1"}  # any port
    command = [str(home / "bin" / "spark-pipelines"), "run", "--spec", str(specification)]
    # How the command ends is left out: Spark 4.2.0 may fail at the end of a stream from a Python source.
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **places, **ours}, capture_output=True, text=True, check=False
    )
    tables = [folder / "spark-warehouse" / name for name in ("isr_changes", "isr_changes_by_minute")]
    assert all(table.is_dir() for table in tables), (done.stdout + done.stderr)[-3000:]
    changes, minutes = map(pq.read_table, tables)
    expected = [
        record.offset
        for batch in sample_batches()
        for record in log_records(batch)
        if isinstance(record.message, PartitionChangeRecord) and record.message.isr is not None
    ]
    assert sorted(changes["offset"].to_pylist()) == expected
    assert sum(minutes["changes"].to_pylist()) == changes.num_rows
