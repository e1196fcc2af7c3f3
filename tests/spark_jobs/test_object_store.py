"""Lakes in an object store with the S3 API: jobs without Spark, reads and folds by Spark's executors."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from kraftlake.api import open_source
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError
from kraftlake.spark_jobs import StreamOptions, image_frame, read_records, run_job
from kraftlake.spark_jobs.spark_home import spark_home
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.history.state_at import state_at
from kraftlake.tables.jobs import JOBS
from tests.at_least_one import at_least_one
from tests.connect_server import connect_server, connected
from tests.metadata_log.object_store import BUCKET, KEY, LONG
from tests.spark_cluster import SparkCluster, driver_environment
from tests.spark_jobs.in_a_lake import STATE_AT, everything, pages_of
from tests.tables.metrics.test_cluster_metrics import check_minutes
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of, sample_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

IN_A_LAKE = "tests.spark_jobs.in_a_lake"
ROOT = Path(__file__).parents[2]
TABLES = sorted({table for job in JOBS.values() for table in job.tables})
SNAPSHOT_BYTES = 60_000
LAST_ON_CLUSTER = LAST_OFFSET if LONG else batches_between(0, 3_500)[-1].last_offset
"""The end of the log of which a cluster makes all tables."""
_numbers = itertools.count()


@pytest.fixture
def lake(server: dict[str, str]) -> str:
    return f"s3://{BUCKET}/spark{next(_numbers)}"


def rows_of(lake: str | Path, options: dict[str, str] | None = None) -> dict[str, list[str]]:
    tables = {name: DeltaTable(f"{lake}/{name}", storage_options=options) for name in TABLES}
    return {name: sorted(map(str, table.to_pyarrow_table().to_pylist())) for name, table in tables.items()}


def batches_of_snapshots(lake: str | Path) -> list[tuple[str, int, list[Any]]]:
    """What each snapshot holds, but for the times at which they were made."""
    kept = MetadataLog.open(lake).snapshots()
    return [(each.name, each.record_count, [batch.values for batch in each.batches()]) for each in kept]


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a cluster makes these tables below")
def test_every_job_makes_the_tables_that_it_makes_on_a_disk(
    server: dict[str, str], lake: str, tmp_path: Path, spark: SparkSession
) -> None:
    log = MetadataLog.create(lake)
    whole = list(sample_batches())
    append_in(log, 3, whole[:600])
    first = run_job("all", lake, snapshot_every_bytes=SNAPSHOT_BYTES, spark=spark)
    assert (first.offset, first.executors) == (log.end_offset - 1, 1)
    append_in(log, 2, whole[600:])
    for job in ("all", "records"):
        done = run_job(job, lake, options=StreamOptions(max_records=3_000), spark=spark)
        assert (done.offset, done.driver_batches) == (LAST_OFFSET, 0)
        assert set(run_job(job, lake, spark=spark).rows.values()) == {0}
    lake_of(tmp_path / "lake", commits=1)
    update_tables(tmp_path / "lake", TABLES)
    found = rows_of(lake, {**server, "AWS_ALLOW_HTTP": "true"})
    for name, rows in at_least_one(rows_of(tmp_path / "lake").items()):
        assert found[name] == rows, name
    check_snapshots(lake, LAST_OFFSET)


def check_snapshots(lake: str, last_offset: int) -> None:
    """The lake has snapshots up to the end of its log, which are the images at their offsets."""
    for snapshot in (snapshots := MetadataLog.open(lake).snapshots()):
        image = open_source(lake).image(snapshot.end_offset - 1, from_snapshot=True)
        assert image == open_source(lake).image(snapshot.end_offset - 1, from_snapshot=False)
    assert [snapshot.end_offset for snapshot in snapshots][-1] == last_offset + 1


def test_a_stream_goes_on_there_with_what_is_appended(lake: str, spark: SparkSession) -> None:
    log = MetadataLog.create(lake)
    first, rest = batches_between(0, 500), batches_between(501, 700)
    log.append(first)

    def append_once(offset: int, _: int) -> None:
        if offset == first[-1].last_offset:
            log.append(rest)

    options = StreamOptions(trigger="100 milliseconds", until_offset=rest[-1].last_offset)
    done = run_job("events", lake, options=options, spark=spark, on_progress=append_once)
    assert (done.offset, done.steps, done.driver_batches) == (rest[-1].last_offset, 1, 1)
    with pytest.raises(LakeError, match=f"There is no lake at {lake}-nowhere"):
        run_job("events", f"{lake}-nowhere")


@pytest.fixture
def found(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """What a driver finds whose executors know no store by themselves, or inherit what this process knows."""
    if request.param == "local":
        return found_by_local_driver
    cluster: SparkCluster = request.getfixturevalue("spark_cluster")
    return partial(cluster.run_driver, IN_A_LAKE, timeout=400)


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a JVM of its own")
@pytest.mark.parametrize("found", ["local", "cluster"], indirect=True)
def test_executors_read_fold_and_write_there_without_a_client_of_hadoops(
    lake: str, tmp_path: Path, spark: SparkSession, found: Callable[..., dict[str, Any]]
) -> None:
    append_in(MetadataLog.create(lake), 4, sample_batches())
    lake_of(tmp_path / "lake", commits=4)
    answer = found(lake, "everything")
    assert answer == everything(spark, str(tmp_path / "lake"))
    assert answer["records"]["committed"][-1] == LAST_OFFSET
    assert batches_of_snapshots(lake) == batches_of_snapshots(tmp_path / "lake")


def test_a_cluster_whose_workers_know_no_store_makes_and_reads_its_tables(
    lake: str, server: dict[str, str], spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    append_in(MetadataLog.create(lake), 2, batches_between(0, LAST_ON_CLUSTER))
    answer = spark_cluster.run_driver(IN_A_LAKE, lake, "made", timeout=400)
    assert answer["made"] == [2, 0]
    logs = [
        path.read_text("utf-8", "replace")
        for path in spark_cluster.folder.rglob("*")
        if path.suffix != ".jar" and path.is_file()
    ]
    assert len(logs) > 4
    assert [text for text in logs if KEY in text] == [], "nor is a key in what master, workers and executors say"
    lake_of(tmp_path / "lake", commits=1, last=LAST_ON_CLUSTER)
    update_tables(tmp_path / "lake", TABLES)
    rows, expected = rows_of(lake, {**server, "AWS_ALLOW_HTTP": "true"}), rows_of(tmp_path / "lake")
    for name in at_least_one(TABLES):
        assert rows[name] == expected[name], name
    check_snapshots(lake, LAST_ON_CLUSTER)
    check_minutes(answer["minutes"], DeltaTable(tmp_path / "lake" / "cluster_metrics").to_pyarrow_table().to_pylist())
    so = state_at(lake, STATE_AT, columns=["topic", "partition", "isr", "leader"]).to_pylist()
    assert answer["state"] == sorted([row["topic"], row["partition"], row["isr"]] for row in so if row["leader"] == 2)
    topics = DeltaTable(tmp_path / "lake" / "topic_history").to_pyarrow_table().to_pylist()
    assert answer["ended"] == sorted(row["topic"] for row in topics if row["valid_to_offset"] is not None)
    assert answer["streamed"] == list(range(LAST_ON_CLUSTER + 1))
    assert answer["lakes"] == [1, {"records": LAST_ON_CLUSTER + 1}, LAST_ON_CLUSTER + 1]
    assert len(answer["minutes"]) > 3
    assert answer["state"]
    assert answer["ended"]


def found_by_local_driver(lake: str, what: str, **environment: str) -> dict[str, Any]:
    """What is found by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark_driver", "local[2]"],
        input=json.dumps([IN_A_LAKE, lake, what]) + "\n",
        cwd=ROOT, env=driver_environment() | environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


LOGGED = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a server of Spark Connect")
def test_no_key_of_the_store_is_in_what_a_connect_server_logs_and_shows(
    server: dict[str, str], lake: str, tmp_path: Path
) -> None:
    append_in(MetadataLog.create(lake), 2, batches_between(0, 500))
    (tmp_path / "events").mkdir()
    options = {**LOGGED, "spark.eventLog.dir": (tmp_path / "events").as_uri()}
    with connect_server(tmp_path, options, server) as address, connected(address) as spark:
        assert run_job("all", lake, spark=spark).steps == 1
        assert read_records(spark, lake, columns=["offset"]).count() == 501
        assert image_frame(spark, lake).count() > 0
        (port,) = re.findall(r"service 'SparkUI' on port (\d+)", (tmp_path / "server.log").read_text("utf-8"))
        shown = pages_of(f"http://127.0.0.1:{port}")
    logged = [path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert sum("SparkListenerConnectOperationStarted" in text for text in logged) == 1
    assert [text for text in (*shown, *logged) if KEY in text] == []


SHOWN = """
import json, sys
from pyspark.sql import SparkSession
from tests.spark_jobs.in_a_lake import shown

builder = SparkSession.builder.master("local[2]")
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
print(json.dumps(shown(builder.getOrCreate(), sys.argv[2])))
"""


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a JVM of its own")
def test_no_key_of_the_store_is_in_what_a_session_of_the_users_logs_and_shows(lake: str, tmp_path: Path) -> None:
    append_in(MetadataLog.create(lake), 2, batches_between(0, 500))
    daemon = {"spark.python.daemon.module": "kraftlake.spark_jobs.worker_daemon"}
    options = json.dumps({**LOGGED, **daemon, "spark.eventLog.dir": tmp_path.as_uri()})
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, options, lake],
        cwd=ROOT, env=driver_environment() | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(spark_home())},
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows, *shown = json.loads(done.stdout)
    assert rows == 501
    logged = [path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert sum("SparkListenerSQLExecutionStart" in text for text in logged) == 1
    assert len(shown) == 5
    assert [text for text in (done.stderr, *shown, *logged) if KEY in text] == []
