"""A Spark session with Delta Lake that starts without a download and prints only errors."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from py4j.java_gateway import JavaClass
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.user_cache import user_cache
from kraftlake.spark_jobs.class_archive import archive_options
from kraftlake.spark_jobs.data_source import registered
from kraftlake.spark_jobs.jars import spark_jars
from kraftlake.spark_jobs.java import QUICK_COMPILER, java_home
from kraftlake.spark_jobs.spark_home import spark_home
from kraftlake.spark_jobs.stream_faults import first_words
from kraftlake.spark_jobs.tasks import remote_session
from kraftlake.spark_jobs.worker_daemon import MODULE as WORKER_DAEMON

_LOG4J = Path(__file__).with_name("log4j2.properties")
_STARTING = threading.Lock()
_LINES_QUOTED = 3
_FRAME = re.compile(r"at \S+\(.*\)$|\.\.\. \d+ more$")

# A job here runs for seconds, most of them a cold JVM: the quick compiler alone and one collector thread halve them, in
# the driver and in executors, whose JVMs hardly do more than pass large chunks on.
_COLLECTOR = "-XX:+UseSerialGC"
_QUICK = f"{QUICK_COMPILER} {_COLLECTOR}"

# Rows from Python make the JVM compute for long: then the optimising compiler pays, for what is hot indeed, ten times
# hotter than Java asks for by itself (with Java's own thresholds it costs twice as much at the start).
_LONG_LIVED = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=20000 "
    f"-XX:Tier4CompileThreshold=100000 -XX:Tier4BackEdgeThreshold=400000 {_COLLECTOR}"
)

# By default Arrow for Java checks the bounds and the null bit of each value that is read; Spark has checked for null.
_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

LOCAL: Final = "local[2]"
"""The master where none is named: two tasks at a time in this process's own JVM."""

_WORKERS = {"spark.python.daemon.module": WORKER_DAEMON}
_NO_PAGE = {"spark.ui.enabled": "false"}
# Spark listens on loopback only, and its web page is off.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **_NO_PAGE}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_OPTIONS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A metadata log is small: Spark's 200 tasks a shuffle would be 200 empty tasks.
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def spark_session(
    app_name: str,
    *,
    master: str = LOCAL,
    extra_packages: Sequence[str] = (),
    long_lived: bool = False,
) -> SparkSession:
    """A session with Delta Lake and the source `kraft`: UTC, Arrow on, everything on 127.0.0.1, no web page.

    With the `master` of a cluster on other machines (`spark://HOST:PORT`) the driver listens where they can reach it.

    Under spark-submit (and where a session is already active) the existing session is used, with the SQL options that
    can still be set; its master and its jars stay those of its start, with Delta Lake or without.

    The JVM's output is kept off this process's stderr; the error quotes it when the JVM does not start.
    `extra_packages` are Maven coordinates `group:name:version` beyond Delta's own. `long_lived` is for sessions that
    read millions of rows or live for minutes: the JVMs of the driver and of executors compile hot code with the
    optimising compiler too, which costs some CPU seconds at first and then halves their time for rows from Python.

    Raises EnvironmentFaultError when Java is missing, jars can't be resolved, or the JVM does not start; UsageError
    beside a session of Spark Connect.
    """
    with _STARTING:
        if remote_session() is not None:
            raise UsageError(
                "a session of Spark Connect is active in this process, beside which kraftlake starts none: give it as "
                "spark=, or stop it"
            )
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM
            SparkContext._ensure_initialized()
            jvm: Any = SparkContext._jvm
            has_delta = isinstance(jvm.io.delta.tables.DeltaTable, JavaClass)
            options = _OPTIONS | (_DELTA if has_delta else {}) | _unless_given()
        else:
            options = _launch_options(app_name, master, extra_packages, long_lived)
            if SparkContext._gateway is None:
                _launch(options)
        builder = SparkSession.builder
        for name, value in options.items():
            builder = builder.config(name, value)
        try:
            session = builder.getOrCreate()
        except Exception as fault:
            where = "" if master.startswith("local") else f" on {master}"
            raise EnvironmentFaultError(f"Spark does not start{where}: {first_words(fault)}") from fault
        session.sparkContext.setLogLevel("ERROR")
        return registered(session)


def _launch_options(app_name: str, master: str, extra_packages: Sequence[str], long_lived: bool) -> dict[str, str]:
    """All options of a session whose JVM starts with it."""
    java_home()  # before the jars: where both are missing, Java is what to install first
    options = {
        **_OPTIONS,
        **_DELTA,
        **(_LOOPBACK if _is_here(master) else _NO_PAGE),
        **_warehouse(),
        **_WORKERS,
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.jars": ",".join(str(jar) for jar in spark_jars(extra_packages)),
    }
    java_options = f"{_LONG_LIVED if long_lived else _QUICK} {_ARROW}"
    archived = f"{java_options} {archive_options()}".rstrip()
    options["spark.executor.extraJavaOptions"] = archived if _is_here(master) else java_options
    java_options = archived
    if _LOG4J.is_file():  # in a wheel that was not unpacked it is none
        java_options += f' -Dlog4j2.configurationFile="{_LOG4J.as_uri()}"'
    options["spark.driver.extraJavaOptions"] = java_options
    return options


def _unless_given() -> dict[str, str]:
    """Options for a JVM that spark-submit started, except those that it has already.

    127.0.0.1 only with a local master: the workers of a cluster have to reach the driver.
    """
    given = SparkConf()
    wanted = _warehouse() | _WORKERS
    if _is_here(str(given.get("spark.master", "local"))):
        wanted |= _LOOPBACK
    return {name: value for name, value in wanted.items() if not given.contains(name)}


def _is_here(master: str) -> bool:
    """Whether all of Spark runs on this machine."""
    host = re.fullmatch(r"spark://(.*):\d+", master)
    return master.startswith("local") or (host is not None and host[1] in ("127.0.0.1", "localhost"))


def _warehouse() -> dict[str, str]:
    """A folder in the cache for managed tables, which kraftlake lacks: Spark's default is the working directory."""
    return {"spark.sql.warehouse.dir": str(user_cache() / "warehouse")}


def _launch(options: dict[str, str]) -> None:
    """Start the JVM, which prints to an unnamed file.

    pyspark would let the JVM inherit this process's stderr, where Java warns about a module of Spark's before any
    logging is configured.
    """
    conf = SparkConf(loadDefaults=False)
    for name, value in options.items():
        conf.set(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # it stays: Spark starts Python workers long after this
    of_launcher = {
        "JAVA_HOME": str(java_home()),
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", _QUICK),
    }
    if "spark.driver.host" in options:
        of_launcher |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(spark_home())}
    before = {name: value for name, value in os.environ.items() if name in of_launcher}
    os.environ.update(of_launcher)
    with tempfile.TemporaryFile() as output:
        try:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
        except (PySparkRuntimeError, OSError) as fault:
            raise EnvironmentFaultError(
                f"Spark's JVM does not start: {_last_lines(output) or first_words(fault)}"
            ) from fault
        finally:
            for name in of_launcher:
                del os.environ[name]
            os.environ.update(before)
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _last_lines(output: IO[bytes]) -> str:
    """The last lines that the JVM printed, joined, without stack frames."""
    output.seek(0)
    lines = [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    without_frames = [line for line in lines if not _FRAME.match(line)] or lines
    return " / ".join(without_frames[-_LINES_QUOTED:])[:500]
