"""Earlier releases of Spark, each installed with the wheel: what docs/spark-jobs.md says of them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import kraftlake.spark_jobs as jobs
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs.run_session import RunSession
from tests.tables.sample_log import LAST_OFFSET, lake_of
from tests.wheel import REPOSITORY, Install, install

EARLIER = ("4.0.5", "4.1.4")
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
TESTS = ("tests/spark_jobs/test_data_source.py", "tests/spark_jobs/fold/test_spark_fold.py")
NOT_CLOSED = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""Earlier pysparks leave sockets to the garbage collector."""

STREAM = """
import sys
from kraftlake.spark_jobs import image_stream, spark_session

spark = spark_session("streams")
for stream in (
    spark.readStream.format("kraft").load(sys.argv[1]).writeStream.format("noop"),
    image_stream(spark, sys.argv[1], print),
):
    try:
        stream.trigger(availableNow=True).option("checkpointLocation", sys.argv[2]).start().awaitTermination()
    except Exception as fault:
        print(str(fault).splitlines()[0])
"""


@pytest.fixture(scope="module", params=EARLIER)
def earlier(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    packages = (f"{wheel}[s3,spark]", f"pyspark=={request.param}")
    tools = ("pytest", "pytest-xdist", "hypothesis", "deltalake", "localbucket")
    return install(tmp_path_factory.mktemp("spark"), *packages, *tools)


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="installs two releases of Spark")
def test_an_earlier_spark_reads_logs_builds_snapshots_and_runs_the_jobs(earlier: Install, tmp_path: Path) -> None:
    tested = earlier.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *NOT_CLOSED, *TESTS, timeout=1_800)
    assert tested.returncode == 0, tested.stdout[-5_000:] + tested.stderr
    lake = tmp_path / "lake"
    lake_of(lake, commits=2)
    for job in ("records", "all", "snapshot"):
        done = earlier.kraftlake("spark", job, lake, "--json")
        assert (done.returncode, json.loads(done.stdout)["offset"]) == (0, LAST_OFFSET), done.stderr
    assert earlier.kraftlake("verify", lake).returncode == 0


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="installs two releases of Spark")
def test_an_earlier_spark_says_that_it_can_not_stream(earlier: Install, tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=100)
    done = earlier.run("-c", STREAM, tmp_path / "lake", tmp_path / "checkpoint")
    said = re.findall(r'KraftSourceError: streams of format\("kraft"\) need Spark 4\.2, and this is (4\.[01]\.\d)$',
                      done.stdout, flags=re.MULTILINE)  # fmt: skip
    assert len(said) == 2, done.stdout + done.stderr


def test_the_page_names_the_releases_that_are_tested() -> None:
    page = (REPOSITORY / "docs" / "spark-jobs.md").read_text("utf-8")
    current = re.findall(r"^pyspark==(.*)$", (REPOSITORY / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert f"tested with {', '.join(EARLIER)} and {current[0]}" in " ".join(page.split())


def test_a_spark_that_is_too_old_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "3.5.9")
    for asked in (lambda: jobs.spark_session, RunSession(None, "any").get):
        with pytest.raises(
            EnvironmentFaultError, match=r"^kraftlake runs on Spark 4\.0 or newer, and this is 3\.5\.9: "
        ):
            asked()
    assert not hasattr(jobs, "no_such_name")
