from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftlake.cli import submit
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.spark_jobs import java_home, session, spark_session
from kraftlake.spark_jobs.spark_home import spark_home
from tests.tables.sample_log import lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[2]
PROGRAM = "kraftlake.cli.submit"
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a JVM of its own")
def test_the_program_prints_its_answer_and_nothing_else(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=2, last=400)
    end_offset = MetadataLog.open(tmp_path / "lake").end_offset
    words = [sys.executable, "-W", "error", "-m", PROGRAM, "replay", str(tmp_path / "lake")]
    done = run([*words, "--max-records-per-trigger", "300"])
    assert (done.stderr, done.returncode) == ("", 0)
    answer = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert (answer["offset"], answer["microBatches"]) == (end_offset - 1, 2)
    assert answer["snapshots"] == [end_offset]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_program_can_be_given_to_spark_submit(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=100)
    program = Path(sys.executable).with_name("spark-submit")
    java = ["--master", "local[1]", "--driver-java-options", QUICK]
    job = "replay" if LONG else "snapshot"  # a stream takes seconds
    done = run(
        [str(program), *java, submit.__file__, job, str(tmp_path / "lake")],
        PYSPARK_PYTHON=sys.executable,
        JAVA_HOME=os.environ.get("JAVA_HOME") or str(java_home()),
        **({} if LONG else {"SPARK_HOME": str(spark_home())}),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["offset"] == 100
    assert answer["microBatches"] == 1 if LONG else answer["records"] > 0
    (snapshot,) = MetadataLog.open(tmp_path / "lake").snapshots()
    assert snapshot.end_offset == 101


def options_of(*, long_lived: bool) -> tuple[str, str]:
    """What a new session asks of the JVMs of its driver and of executors."""
    options = session._launch_options("any", "local[1]", (), long_lived)
    return options["spark.driver.extraJavaOptions"], options["spark.executor.extraJavaOptions"]


@pytest.mark.spark
def test_a_long_lived_session_compiles_what_is_hot(spark: SparkSession) -> None:
    quick, quick_executors = options_of(long_lived=False)
    assert "TieredStopAtLevel=1" in quick
    assert "arrow.enable_unsafe_memory_access=true" in quick
    assert spark.conf.get("spark.driver.extraJavaOptions") == quick
    assert spark.conf.get("spark.executor.extraJavaOptions") == quick_executors
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    arguments = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert {*shlex.split(quick)} <= {*arguments}, "the JVM has them"
    for options in options_of(long_lived=True):
        assert "TieredStopAtLevel" not in options
        assert "-XX:Tier4CompileThreshold=" in options
        assert "-Darrow.enable_unsafe_memory_access=true" in options
        done = run([str(java_home() / "bin" / "java"), *shlex.split(options), "-version"])
        assert done.returncode == 0, done.stderr


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_jvm_that_does_not_start_is_one_sentence(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=10)
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").write_text("#!/bin/sh\necho no memory left >&2\nexit 1\n")
    (tmp_path / "java" / "bin" / "java").chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    done = run([sys.executable, "-m", PROGRAM, "replay", str(tmp_path / "lake")], JAVA_HOME=str(tmp_path / "java"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: Spark's JVM does not start: ")
    assert "no memory left" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.spark
def test_a_master_that_spark_does_not_know_is_reported_in_its_words(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=10)
    done = run([sys.executable, "-m", "kraftlake.cli", "spark", "snapshot", str(tmp_path / "lake"), "--master", "foo"])
    assert done.returncode == 1
    assert "Master must either be yarn or start with spark, k8s, or local" in done.stderr
    assert "SparkSubmit.scala" not in done.stderr


@pytest.mark.spark
def test_nothing_of_spark_listens_beyond_this_machine(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.spark
def test_a_session_that_is_there_is_taken(spark: SparkSession) -> None:
    assert spark_session("another") is spark


@pytest.mark.spark
def test_times_are_utc_and_no_filters_go_to_python_data_sources(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    # Spark 4.2.0 mixes up those of two uses of one DataFrame: see RecordReader
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "false"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"


def test_the_program_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    done = run([sys.executable, "-m", PROGRAM, "replay", str(tmp_path / "nothing")])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: There is no lake at")
    assert done.stderr.count("\n") == 1
