"""The same cases in a classic session and in one of Spark Connect, with a server in another process.

`make test` runs some, on Connect alone: what a classic session does has tests of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime import __version__
from kraftlake.runtime.errors import EnvironmentFaultError, LakeError, NotASourceError, OffsetError, UsageError
from kraftlake.spark_jobs import (
    ReplayListener,
    ReplayProgress,
    StreamOptions,
    build_snapshot,
    counts_by_minute,
    image_frame,
    image_stream,
    local_changes_frame,
    read_records,
    run_job,
    run_lakes,
    run_tables,
    spark_session,
    state_frame,
    table_frame,
    tasks,
)
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.history.rows_at import FROM, TO
from kraftlake.tables.image_partitions import partition_table
from kraftlake.tables.jobs import ALL
from kraftlake.tables.local_changes.local_changes_writer import LocalChangesWriter
from tests.at_least_one import at_least_one
from tests.connect_server import ROOT, connect_server, connected
from tests.spark_cluster import SparkCluster
from tests.tables.sample_log import LAST_OFFSET, append_in, lake_of, sample_batches
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(params=["classic", "connect"] if LONG else ["connect"])
def session(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if request.param == "classic":
        yield request.getfixturevalue("spark")
        return
    with connected(request.getfixturevalue("server")) as made:
        yield made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with all tables as one process makes them."""
    lake = tmp_path_factory.mktemp("made") / "lake"
    lake_of(lake, commits=2)
    update_tables(lake, [*ALL.tables, "records"])
    return lake


def rows_of(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=str)


def tables_of(lake: Path, names: tuple[str, ...] = ALL.tables) -> dict[str, list[dict[str, Any]]]:
    return {name: rows_of(DeltaTable(lake / name).to_pyarrow_table()) for name in names}


def test_reads_and_frames_have_what_one_process_reads(made: Path, session: SparkSession) -> None:
    lake, history = kraftlake.open(made), tables_of(made, ("partition_history",))["partition_history"]
    topics = read_records(session, made, "TopicRecord", columns=["offset", "name"]).toArrow().sort_by("offset")
    typed = session.read.format("kraft").option("type", "TopicRecord").load(str(made)).select("offset", "name")
    assert topics.to_pylist() == typed.toArrow().sort_by("offset").to_pylist() != []
    assert rows_of(table_frame(session, made, "events").toArrow()) == tables_of(made, ("events",))["events"]
    named = table_frame(session, [made], "events", columns=["offset", "lake"]).distinct().toArrow()
    assert set(named["lake"].to_pylist()) == {"lake"}
    valid = [row for row in history if row[FROM] <= 3000 and (row[TO] is None or row[TO] > 3000)]
    assert rows_of(state_frame(session, made, 3000).toArrow()) == valid != []
    partitions = partition_table(lake.image(3000).topics)
    assert rows_of(image_frame(session, made, 3000).toArrow()) == rows_of(partitions) != []
    replicas = [replica for row in rows_of(partition_table(lake.image().topics)) for replica in row["replicas"]]
    assert local_changes_frame(session, made, -1).count() == len(replicas)
    assert counts_by_minute(session, made).count() > 1


def test_jobs_make_the_tables_of_one_process_in_steps(tmp_path: Path, made: Path, session: SparkSession) -> None:
    lake, whole = tmp_path / "lake", list(sample_batches())
    log = MetadataLog.create(lake)
    append_in(log, 1, whole[:400])
    if LONG:
        first = run_job("all", lake, spark=session)
        assert (first.base_offset, first.offset) == (-1, whole[400].base_offset - 1)
        assert (first.micro_batches, first.steps, first.executors, first.driver_batches) == (1, 1, 1, 0)
        assert first.snapshots == (first.offset + 1,)
    else:
        update_tables(lake, ALL.tables)
    log.refresh()
    append_in(log, 1, whole[400:])
    heard: list[ReplayProgress] = []
    offsets: list[int] = []
    done = run_job(
        "all",
        lake,
        spark=session,
        options=StreamOptions(max_records=3_000),
        listener=ReplayListener(heard.append),
        on_progress=lambda offset, _: offsets.append(offset),
    )
    assert (done.base_offset, done.offset) == (whole[400].base_offset - 1, LAST_OFFSET)
    assert (done.micro_batches, done.steps, done.executors, done.driver_batches) == (2, 2, 1, 0)
    assert done.snapshots[-1] == LAST_OFFSET + 1
    assert done.image.topics.partition_count == kraftlake.open(made).image().topics.partition_count
    assert tables_of(lake) == tables_of(made)
    assert done.open_rows["partition_history"] == done.image.topics.partition_count
    assert run_job("all", lake, spark=session).micro_batches == 0
    assert offsets[-1] == LAST_OFFSET
    assert [progress.lag for progress in heard] == [LAST_OFFSET - progress.offset for progress in heard]
    assert (len(heard), heard[-1].offset) == (2, LAST_OFFSET)
    assert heard[-1].partitions == done.image.topics.partition_count
    if LONG:
        run_job("records", lake, spark=session)
        assert tables_of(lake, ("records",)) == tables_of(made, ("records",))


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: streams of their own")
def test_a_stream_with_an_interval_ends_at_its_last_offset(tmp_path: Path, made: Path, session: SparkSession) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    options = StreamOptions(trigger="50 milliseconds", until_offset=LAST_OFFSET, max_records=3_000)
    done = run_tables("own", lake, [LocalChangesWriter()], options=options, spark=session)
    assert (done.offset, done.steps, done.driver_batches) == (LAST_OFFSET, 0, done.micro_batches)
    assert tables_of(lake, ("local_changes",)) == tables_of(made, ("local_changes",))


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: streams of their own")
def test_snapshots_are_those_of_one_process(tmp_path: Path, session: SparkSession) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    lake_of(here, commits=1)
    shutil.copytree(here, there)
    update_tables(here)
    built = build_snapshot(session, there)
    (expected,), (snapshot,) = MetadataLog.open(here).snapshots(), MetadataLog.open(there).snapshots()
    assert (built.name, built.records) == (expected.name, expected.record_count)
    assert (snapshot.checksum, snapshot.record_count) == (expected.checksum, expected.record_count)
    assert not build_snapshot(session, there).written


def test_many_lakes_are_a_task_each(tmp_path: Path, made: Path, session: SparkSession) -> None:
    for name in ("a", "b"):
        lake_of(tmp_path / name, commits=1, last=500)
    shutil.rmtree(tmp_path / "b" / "log" / "_delta_log")
    done = run_lakes("events", [tmp_path / "a", tmp_path / "b"], spark=session)
    (error,) = [run.error for run in done.lakes if run.error is not None]
    assert "is no lake" in error
    alone = [row for row in tables_of(made, ("events",))["events"] if row["offset"] <= 500]
    assert tables_of(tmp_path / "a", ("events",))["events"] == alone


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: streams of their own")
def test_images_are_received_where_the_stream_is(tmp_path: Path, made: Path, session: SparkSession) -> None:
    received = tmp_path / "received"

    def receive(delta: Any, image: Any, manifest: Any) -> None:
        changed = 0 if delta.topics_delta is None else len(delta.topics_delta.changed_topics)
        with received.open("a") as file:
            file.write(f"{manifest.provenance.offset} {image.topics.partition_count} {changed}\n")

    writer = image_stream(session, made, receive, max_records_per_trigger=3_000)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    expected = [
        f"{change.image.provenance.offset} {change.image.topics.partition_count} "
        f"{0 if change.delta.topics_delta is None else len(change.delta.topics_delta.changed_topics)}"
        for change in kraftlake.open(made).changes()
    ]
    assert received.read_text().splitlines() == expected != []


def test_errors_are_those_of_one_process_in_one_sentence(tmp_path: Path, made: Path, session: SparkSession) -> None:
    nowhere = tmp_path / "nowhere"
    inside = next(batch.base_offset for batch in sample_batches() if batch.base_offset < batch.last_offset)
    calls: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (NotASourceError, "nowhere does not exist", partial(read_records, session, nowhere)),
        (LakeError, "There is no lake at", partial(run_job, "events", nowhere, spark=session)),
        (LakeError, "There is no lake at", partial(image_frame, session, nowhere)),
        (LakeError, "has no nothing/", partial(table_frame, session, made, "nothing")),
        (UsageError, "no column 'nothing'", partial(table_frame, session, made, "events", columns=["nothing"])),
        (OffsetError, "9999", partial(state_frame, session, made, 9999)),
        (UsageError, "run backwards", partial(local_changes_frame, session, made, 5, 4)),
        (OffsetError, "Offset 9999 is past the end", partial(build_snapshot, session, made, 9999)),
        (OffsetError, "is inside of a batch", partial(build_snapshot, session, made, inside)),
    ]
    for kind, words, call in calls:
        with pytest.raises(kind, match=words) as raised:
            call()
        assert "\n" not in str(raised.value)


def test_the_program_of_the_docs_runs(
    tmp_path: Path, server: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "spark-jobs.md").read_text("utf-8").partition("\n## On Spark Connect\n")[2]
    program = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    lake_of(tmp_path / "LAKE", commits=1, last=600)
    monkeypatch.chdir(tmp_path)
    with connected(server) as spark:
        _, _, rest = program.replace("LAKE", str(tmp_path / "LAKE")).partition('remote("local")\n')
        imports = "from kraftlake.spark_jobs import image_frame, read_records, run_job, table_frame\n"
        exec(imports + rest, {"__name__": "example", "spark": spark})
    said = capfd.readouterr().out
    assert said.startswith("600 ")
    assert "partitions without a leader" in said


DOOMED = """
import sys
from pyspark.sql import SparkSession
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs import StreamOptions, run_job

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
try:
    run_job("all", sys.argv[2], spark=spark, options=StreamOptions(trigger=sys.argv[3], max_records=200))
except KraftlakeError as fault:
    print(fault)
"""


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: three servers")
def test_a_server_that_is_killed_leaves_nothing_half_written(tmp_path: Path, made: Path, server: str) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    for commits in (2, 9):
        end_at(lake, commits, tmp_path)
    with connected(server) as spark:
        assert 0 < run_job("all", lake, spark=spark).base_offset < LAST_OFFSET
    assert tables_of(lake) == tables_of(made)


def end_at(lake: Path, commits: int, folder: Path) -> None:
    """Run a job until a table has so many commits, and kill its server: its client says so, and ends."""
    with connect_server(folder) as address:
        client = doomed_client(address, lake, "10 milliseconds")
        wait_for(lambda: client.poll() is not None or commits_of(lake) >= commits, "a commit")
        assert client.poll() is None
    said, shown = client.communicate(timeout=100)
    gone = "the server of Spark Connect has ended or is out of reach: run again, which goes on from there\n"
    assert (said, "Traceback" in shown) == (gone, False), shown


def doomed_client(address: str, lake: Path, trigger: str) -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-c", DOOMED, address, str(lake), trigger], subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a cluster and a server")
def test_executors_that_are_killed_lose_no_row_and_double_none(
    tmp_path: Path, made: Path, spark_cluster: SparkCluster
) -> None:
    lake, whole = tmp_path / "lake", list(sample_batches())
    log = MetadataLog.create(lake)
    append_in(log, 1, whole[:100])
    with connect_server(tmp_path, master=spark_cluster.master_for_another_driver()) as address:
        with connected(address) as spark:
            run_job("all", lake, spark=spark)
        append_in(log, 1, whole[100:])
        client = doomed_client(address, lake, AVAILABLE_NOW)
        for worker in at_least_one(spark_cluster.workers):
            kept = commits_of(lake)
            wait_for(lambda kept=kept: client.poll() is not None or commits_of(lake) > kept, "a commit")
            assert client.poll() is None, client.communicate()
            worker.kill()
            spark_cluster.start()
        assert DeltaTable(lake / "cluster_metrics").transaction_version("kraftlake.cluster_metrics") < LAST_OFFSET
        client.communicate(timeout=600)
        with connected(address) as spark:  # goes on, should Spark have given a task up
            assert run_job("all", lake, spark=spark).offset == LAST_OFFSET
    assert tables_of(lake) == tables_of(made)


def commits_of(lake: Path) -> int:
    """The number of commits of a table of the lake."""
    return len(list((lake / "cluster_metrics" / "_delta_log").glob("*.json")))


def test_a_server_of_another_release_is_one_sentence(made: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "__version__", "0.0.9")
    with connected(server) as spark, pytest.raises(EnvironmentFaultError) as raised:
        run_job("events", made, spark=spark)
    where = rf"kraftlake is {__version__} on \S+ and 0.0.9 where the job was started: install the same release on both"
    assert re.fullmatch(where, str(raised.value))


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a server of its own")
def test_a_server_without_kraftlake_is_one_sentence(tmp_path: Path, made: Path) -> None:
    (tmp_path / "other").mkdir()
    missing = "raise ModuleNotFoundError(\"No module named 'kraftlake'\")"
    (tmp_path / "other" / "kraftlake.py").write_text(missing, "utf-8")
    environment = {"PYTHONPATH": str(tmp_path / "other")}
    with connect_server(tmp_path, environment=environment) as address, connected(address) as spark:
        for call in (partial(run_job, "events", made, spark=spark), partial(read_records, spark, made)):
            with pytest.raises(EnvironmentFaultError, match=r"^kraftlake is not installed in the Python of") as raised:
                call()
            assert "\n" not in str(raised.value)


def test_a_session_that_was_stopped_is_refused(made: Path, server: str) -> None:
    with connected(server) as spark:
        with pytest.raises(UsageError, match="a session of Spark Connect is active in this process"):
            spark_session("another")
        spark.stop()
        for call in (
            partial(read_records, spark, made),
            partial(table_frame, spark, made, "events"),
            partial(image_stream, spark, made, print),
            partial(run_lakes, "events", [made], spark=spark),
        ):
            with pytest.raises(UsageError, match="this session of Spark was stopped"):
                call()
