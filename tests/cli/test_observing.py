"""The options of daemons for metrics and health, and what their processes serve."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.free_ports import free_ports
from tests.cli.running import DIRECTORY, ROOT, SAMPLE, fault, run
from tests.protocol.fake_nodes import FakeController, serving
from tests.server.fake_clusters import FakeCluster, small_log
from tests.server.scraping import asked, samples
from tests.waiting import wait_for

CLUSTER_ID = "VXUoBgBGTaWWfCM4Toybuw"


@contextmanager
def daemon(*words: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "kraftlake.cli", *map(str, words)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.parametrize(
    "words",
    [
        ("import", "--follow", SAMPLE, "lake"),
        ("tables", "--follow", "lake"),
        ("controller", "--lake", "lake", "--id", "100", "--listener", "CONTROLLER://127.0.0.1:0"),
        ("broker", "--lake", "lake", "--id", "1", "--log-dirs", "logs"),
        ("cluster", "up", "lake"),
    ],
    ids=lambda words: words[0],
)
def test_each_daemon_refuses_an_address_that_other_machines_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = fault(*words, "--metrics", "0.0.0.0:9400", code=2)
    assert sentence.startswith("--metrics: 0.0.0.0 is not a loopback address")
    assert "add --insecure-metrics if that is meant." in sentence
    assert not [*tmp_path.iterdir()]


def test_options_for_metrics_without_a_daemon_or_an_address_are_refused(tmp_path: Path) -> None:
    assert "--metrics belongs to --follow" in run("import", SAMPLE, tmp_path / "lake", "--metrics", 0, code=2).stderr
    assert "--metrics belongs to --follow" in run("tables", tmp_path / "lake", "--metrics", 0, code=2).stderr
    errors = run("tables", tmp_path / "lake", "--follow", "--insecure-metrics", code=2).stderr
    assert "--insecure-metrics belongs to --metrics" in errors
    assert "is no address for metrics" in run("tables", tmp_path, "--follow", "--metrics", "x", code=2).stderr
    errors = run("spark", "all", tmp_path / "lake", "--metrics", 0, code=2).stderr
    assert "--metrics is for a stream that goes on: give --trigger processing-time=INTERVAL" in errors
    assert not (tmp_path / "lake").exists()


def test_an_import_that_follows_a_quorum_serves_its_lag_and_its_lake(tmp_path: Path) -> None:
    cluster, (port,) = FakeCluster(small_log(), "cluster-of-follow-0001"), free_ports(1)
    lake = tmp_path / "lake"
    label = f'{{cluster="{lake}"}}'
    with cluster.serving(), daemon("import", "--follow", cluster.bootstrap, lake, "--metrics", port):
        wait_for(lambda: asked(port, "/readyz") == (200, "ok\n"))
        wait_for(lambda: samples(port).get(f"kraftlake_lake_end_offset{label}") == cluster.end_offset)
        values = samples(port)
        assert values[f"kraftlake_follow_up{label}"] == 1
        wait_for(lambda: samples(port).get(f"kraftlake_follow_high_watermark{label}") == cluster.end_offset)
        assert samples(port)[f"kraftlake_follow_lag_offsets{label}"] == 0
        assert values[f'kraftlake_lake_files{{cluster="{lake}",table="log"}}'] == 1
        cluster.dead = True
        wait_for(lambda: asked(port, "/readyz") == (503, "the quorum can't be reached\n"))
        assert asked(port, "/healthz") == (200, "ok\n")
        cluster.dead = False
        wait_for(lambda: asked(port, "/readyz") == (200, "ok\n"))


def test_an_import_that_follows_a_directory_serves_what_it_waits_for(tmp_path: Path) -> None:
    node, (port,), lake = FakeController(), free_ports(1), tmp_path / "lake"
    node.cluster_id, node.leader_epoch, node.high_watermark = CLUSTER_ID, 2, 5000
    label = f'{{cluster="{lake}"}}'
    words = ("import", "--follow", DIRECTORY, lake, "--metrics", port, "--poll", "0.05")
    with daemon(*words):
        wait_for(lambda: samples(port).get(f"kraftlake_follow_waiting_offsets{label}") == 1144)
        values = samples(port)
        assert f"kraftlake_follow_lag_offsets{label}" not in values, "a directory holds no high watermark"
        assert f"kraftlake_follow_high_watermark{label}" not in values
    with serving(node) as address, daemon(*words, "--quorum", address):
        wait_for(lambda: samples(port).get(f"kraftlake_follow_high_watermark{label}") == 5000)
        wait_for(lambda: samples(port).get(f"kraftlake_follow_lag_offsets{label}", 99) < 99)
        wait_for(lambda: samples(port)[f"kraftlake_follow_waiting_offsets{label}"] < 1144)
        node.shift = 1
        wait_for(lambda: asked(port, "/readyz") == (503, "the quorum can't be reached\n"))
        node.high_watermark, node.shift = 10**6, 0
        wait_for(lambda: samples(port).get(f"kraftlake_follow_waiting_offsets{label}") == 0)
        wait_for(lambda: asked(port, "/readyz") == (200, "ok\n"))


def test_an_updater_of_tables_serves_their_lag(tmp_path: Path) -> None:
    lake, (port,) = tmp_path / "lake", free_ports(1)
    MetadataLog.create(lake, durability="os").append(small_log())
    with daemon("tables", "--follow", lake, "events", "--poll", "0.05", "--metrics", port):
        lag = f'kraftlake_lake_table_lag_offsets{{cluster="{lake}",table="events"}}'
        wait_for(lambda: samples(port).get(lag) == 0)
        wait_for(lambda: asked(port, "/readyz") == (200, "ok\n"))
        wait_for(lambda: samples(port)["kraftlake_tables_rows"] > 0)
