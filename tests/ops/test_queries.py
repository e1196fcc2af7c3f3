"""Each query of the dashboard and the rules, run by a real Prometheus that scrapes a real service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kraftlake.runtime.free_ports import free_ports
from kraftlake.runtime.metrics_server import MetricsServer
from tests.at_least_one import at_least_one
from tests.ops.record_incidents import incident, is_level
from tests.waiting import wait_for
from tools.observability import queries

pytestmark = [
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="a Prometheus takes ten seconds"),
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="prometheus is not installed: on Debian it is a package of that name",
    ),
]
OF_FOLLOW = "kraftlake_follow_", "kraftlake_lake_end", "kraftlake_lake_files", "kraftlake_cluster_", "process_resident"


class Prometheus:
    """A Prometheus of its own for one test."""

    def __init__(self, port: int) -> None:
        self._port = port

    def query(self, expr: str) -> list[Any]:
        """The result of an instant query; AssertionError where Prometheus refuses it."""
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{urllib.parse.urlencode({'query': expr})}"
        try:
            with urllib.request.urlopen(url, timeout=120) as answer:
                form = json.loads(answer.read())
        except OSError:
            return []
        assert form["status"] == "success", form
        found: list[Any] = form["data"]["result"]
        return found


@contextmanager
def scraping(folder: Path, target: int) -> Iterator[Prometheus]:
    (port,) = free_ports(1)
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "kraftlake", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    words = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Prometheus(port)
        finally:
            process.terminate()


def test_each_query_is_one_that_prometheus_runs(tmp_path: Path) -> None:
    (tmp_path / "followed").mkdir()
    with (
        incident(tmp_path / "followed") as made,
        MetricsServer(made.service.registry) as server,
        scraping(tmp_path, server.port) as prometheus,
    ):
        made.step(is_level)
        wait_for(lambda: len(prometheus.query("rate(process_cpu_seconds_total[1m])")) == 1)
        for query in at_least_one(queries()):
            found = prometheus.query(query.replace("$cluster", ".*"))
            if query.startswith(OF_FOLLOW) and "{cluster=" in query and query.endswith("}"):
                assert found, query
