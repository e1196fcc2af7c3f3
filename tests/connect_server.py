"""A server of Spark Connect in a process of its own, as a user starts one by hand, and sessions with it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from kraftlake.spark_jobs import java_home
from kraftlake.spark_jobs.spark_home import spark_home
from tests.process_sessions import kill_session, killed_with_parent
from tests.spark_session import FOR_FEW_ROWS
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
_STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")
_OPTIONS = {
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "kraftlake.spark_jobs.worker_daemon",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}


@contextmanager
def connect_server(
    folder: Path,
    options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    master: str = "local[2]",
) -> Iterator[str]:
    """Start a server, whose files and log are in the folder; gives its address, and kills all of it at the end."""
    home = Path(pyspark.__file__).parent if LONG else spark_home()  # a user's, or the one that starts sooner
    words = [f"--conf={name}={value}" for name, value in {**_OPTIONS, **FOR_FEW_ROWS, **(options or {})}.items()]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(home / "bin" / "spark-submit"), f"--master={master}", *words, f"--class={main}", "spark-internal"]
    places = {"JAVA_HOME": str(java_home()), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    pythons = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    log = folder / "server.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            killed_with_parent(*command),
            cwd=folder,
            env={**inherited, **places, **pythons, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        ) as server,
    ):
        try:
            wait_for(lambda: _STARTED.search(log.read_text("utf-8", "replace")) or server.poll() is not None, log)
            port = _STARTED.search(log.read_text("utf-8", "replace"))
            assert port is not None, log.read_text("utf-8", "replace")[-3000:]
            yield f"sc://127.0.0.1:{port[1]}"
        finally:
            kill_session(server.pid)


@contextmanager
def connected(address: str) -> Iterator[SparkSession]:
    """A session with a server, beside a classic one that this process may have."""
    from pyspark.sql.connect.session import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # pyspark's functions make columns of Connect
        session = SparkSession.builder.remote(address).create()
        try:
            yield session  # type: ignore[misc] # pyspark has no types here
        finally:
            session.stop()
