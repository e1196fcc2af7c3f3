"""A real standalone Spark cluster on loopback, for tests: a master and two workers, each a process of its own.

    def test_a_job_outlives_a_worker(spark_cluster, tmp_path):
        with spark_cluster.start_driver("tests.spark_jobs.some_job", tmp_path / "lake") as driver:
            ...
            spark_cluster.workers[0].kill()  # kill -9, its executors too
            assert driver.answer(timeout=120) == …

The driver is a process of its own as well, for this one may have another session already; it and its executors go on
with the next test, see tests/spark_driver.py. All ends with the test session, and with this process whatever happens
to it. Tests that use it bear the mark `spark`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from kraftlake.runtime.free_ports import free_ports
from kraftlake.spark_jobs.java import java_home
from kraftlake.spark_jobs.spark_home import spark_home
from tests.process_sessions import kill_session, killed_with_parent
from tests.spark_driver import ClusterDriver

REPOSITORY = Path(__file__).resolve().parents[1]
_TAKES_AT_MOST = 240.0  # seconds, on a busy machine


class SparkClusterError(Exception):
    """The cluster did not come to the state that was asked for; with the last of what it said."""


@attrs.define(kw_only=True)
class ClusterProcess:
    """The master or a worker: a process with a session of its own, in which all that it starts lives and dies."""

    folder: Path
    arguments: tuple[str, ...]
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; the cluster's `await_workers` says when it is of use."""
        assert not self.running, "it runs already"
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "said.log").open("ab") as said:
            self._process = subprocess.Popen(
                killed_with_parent(_spark_class(), *self.arguments),
                cwd=self.folder,
                env=cluster_environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9: it, and all that it started (a worker's executors and their Pythons)."""
        process, self._process = self._process, None
        if process is None:
            return
        kill_session(process.pid)
        process.wait(timeout=120)

    def said(self) -> str:
        """The last of what it printed."""
        try:
            return (self.folder / "said.log").read_text("utf-8", "replace")[-2000:]
        except OSError:
            return ""


@attrs.define(kw_only=True)
class SparkCluster:
    """A master and its workers."""

    folder: Path
    port: int
    web_port: int
    master: ClusterProcess
    workers: tuple[ClusterProcess, ...]
    known_to_driver: Mapping[str, str]
    """Variables of the driver's environment that the other processes lack."""
    _driver: ClusterDriver | None = attrs.field(init=False, default=None)

    def master_for_another_driver(self) -> str:
        """The URL for a driver that the caller starts: the cluster's own driver is ended, for it has all cores."""
        self._end_driver()
        return self._master_url

    @property
    def _master_url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start what does not run, and wait until the master knows all workers."""
        for process in (self.master, *self.workers):
            if not process.running:
                process.start()
        self.await_workers(len(self.workers))

    def await_workers(self, count: int) -> None:
        """Wait until the master knows `count` living workers, no more and no fewer."""
        self._await(lambda: self.state().get("aliveworkers") == count, f"{count} living workers")

    def state(self) -> dict[str, Any]:
        """What the master says of itself: `aliveworkers`, `coresused`, `activeapps`, …; nothing before it answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/json/", timeout=5) as answer:
                state: dict[str, Any] = json.load(answer)
                return state
        except (OSError, ValueError):
            return {}

    def run_driver(self, module: str, *arguments: object, timeout: float = 240) -> Any:
        """What `main` of a module, or `module:function`, returns for the driver's session and the arguments as text."""
        with self.start_driver(module, *arguments) as driver:
            return driver.answer(timeout)

    @contextmanager
    def start_driver(self, module: str, *arguments: object) -> Iterator[ClusterDriver]:
        """As `run_driver`, without waiting; a driver that has not answered at the end is killed."""
        environment = driver_environment() | self.known_to_driver
        driver = self._driver = self._driver or ClusterDriver.start(self._master_url, self.folder, environment)
        try:
            driver.ask(module, arguments)
            yield driver
        finally:
            if not driver.idle:
                self._end_driver()

    def _end_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.end()

    def stop(self) -> None:
        """End all of it."""
        self._end_driver()
        for process in (*self.workers, self.master):
            process.kill()

    def _await(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _TAKES_AT_MOST
        while not reached():
            if time.monotonic() > deadline or not self.master.running:
                said = "\n".join(process.said() for process in (self.master, *self.workers))
                raise SparkClusterError(f"no {what} after {_TAKES_AT_MOST} s: {self.state()}\n{said}")
            time.sleep(0.05)


def cluster_environment() -> dict[str, str]:
    """What the cluster's processes run with: everything on loopback, small, quick to start; no keys of any store."""
    inherited = _without_spark(os.environ)
    return {name: value for name, value in inherited.items() if not name.startswith("AWS_")} | {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_NO_DAEMONIZE": "1",
        "JAVA_TOOL_OPTIONS": os.environ.get("SPARK_SUBMIT_OPTS", ""),  # which reach executors too
    }


def driver_environment() -> dict[str, str]:
    """What a driver runs with: as a user's shell has it, without what this process's own session has left there."""
    options = os.environ.get("SPARK_SUBMIT_OPTS")
    return _without_spark(os.environ) | ({} if options is None else {"SPARK_SUBMIT_OPTS": options})


def _without_spark(environment: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("SPARK_", "PYSPARK_")) and name != "_PYSPARK_DRIVER_CONN_INFO_PATH"
    }


@contextmanager
def started_cluster(
    folder: Path,
    *,
    workers: int = 2,
    cores: int = 1,
    memory: str = "1g",
    known_to_driver: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SparkCluster]:
    """A running cluster whose files are in `folder`."""
    port, web_port, *worker_ports = free_ports(2 + workers)
    master = ClusterProcess(
        folder=folder / "master",
        arguments=(
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web_port)),
        ),
    )
    made = tuple(
        ClusterProcess(
            folder=folder / f"worker-{number}",
            arguments=(
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--webui-port", str(worker_port), "--cores", str(cores), "--memory", memory),
                *("--work-dir", str(folder / f"worker-{number}" / "work"), f"spark://127.0.0.1:{port}"),
            ),
        )
        for number, worker_port in enumerate(worker_ports)
    )
    cluster = SparkCluster(
        folder=folder, port=port, web_port=web_port, master=master, workers=made, known_to_driver=known_to_driver
    )
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        yield cluster


@pytest.fixture(scope="session")
def _one_spark_cluster(
    tmp_path_factory: pytest.TempPathFactory, object_store: dict[str, str]
) -> Iterator[SparkCluster]:
    """The driver alone knows the object store."""
    with started_cluster(tmp_path_factory.mktemp("spark-cluster"), known_to_driver=object_store) as cluster:
        yield cluster


@pytest.fixture
def spark_cluster(_one_spark_cluster: SparkCluster) -> SparkCluster:
    """The test session's cluster, with all its workers alive, whatever the test before has done to them."""
    _one_spark_cluster.start()
    return _one_spark_cluster


def _spark_class() -> str:
    """The launcher; pyspark itself need not be imported."""
    return str(spark_home() / "bin" / "spark-class")
