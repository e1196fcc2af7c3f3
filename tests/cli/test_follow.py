"""`kraftlake follow`: what it prints, and how a process of it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlake.metadata_log.log import MetadataLog
from tests.cli.running import ROOT, fault, run, run_json
from tests.server.fake_clusters import FakeCluster, small_log


def config_in(folder: Path, bootstrap: str) -> Path:
    file = folder / "clusters.toml"
    nowhere = '[clusters.gone]\nbootstrap = "127.0.0.1:1"\nlake = "gone"\ntables = true\n'
    file.write_text(f'[clusters.here]\nbootstrap = "{bootstrap}"\nlake = "here"\n{nowhere}[metrics]\nport = 0\n')
    return file


def test_a_file_is_checked_without_asking_any_cluster(tmp_path: Path) -> None:
    file = config_in(tmp_path, "localhost:9093")
    printed = run("follow", "--check", file).stdout
    assert f"here  localhost:9093 → {tmp_path}/here\n" in printed
    assert f"gone  127.0.0.1:1 → {tmp_path}/gone and its tables\n" in printed
    assert "metrics at 127.0.0.1:0\n" in printed
    form = run_json("follow", "--check", file)
    assert [cluster["name"] for cluster in form["clusters"]] == ["here", "gone"]
    assert form["metrics"]["port"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.toml"]


def test_a_wrong_file_is_reported_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "clusters.toml"
    file.write_text('[clusters.here]\nlake = "here"\n')
    sentence = f"{file}, [clusters.here]: the key bootstrap is missing"
    assert sentence in fault("follow", file, code=2)
    assert sentence in fault("follow", "--check", file, code=2)


def test_a_port_that_is_taken_is_reported_before_anything_starts(tmp_path: Path) -> None:
    file = config_in(tmp_path, "127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file.write_text(file.read_text().replace("port = 0", f"port = {port}"))
        assert f"Metrics can't be served at 127.0.0.1:{port}: Address already in use" in fault("follow", file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.toml"]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_process_follows_and_ends_in_order_at_a_signal(tmp_path: Path, end: signal.Signals) -> None:
    cluster = FakeCluster(small_log(), "cluster-of-follow-0001")
    with cluster.serving():
        words = ["-m", "kraftlake.cli", "follow", "--json", str(config_in(tmp_path, cluster.bootstrap))]
        with subprocess.Popen([sys.executable, *words], cwd=ROOT, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            events = map(json.loads, process.stderr)
            seen = {}
            while not {"started", "replayed", "waiting"} <= seen.keys():
                event = next(events)
                seen[event["event"]] = event
            assert seen["replayed"]["cluster"] == "here"
            assert seen["replayed"]["offset"] == cluster.end_offset - 1
            assert seen["waiting"]["cluster"] == "gone"
            assert seen["started"]["metrics"].startswith("http://127.0.0.1:")
            process.send_signal(end)
            assert [event["event"] for event in events][-1] == "ended"
        assert process.returncode == 0
    assert MetadataLog.open(tmp_path / "here").end_offset == cluster.end_offset
    assert not (tmp_path / "gone").exists()


def test_receivers_of_findings_are_shown_without_their_secrets(tmp_path: Path) -> None:
    file = config_in(tmp_path, "localhost:9093")
    url = "https://me:pass@example.org/s3cret"
    printed = run("follow", "--check", file, "--notify", url, "--exec", "/bin/page me").stdout
    assert f"findings to https://example.org and /bin/page, from {file}.notices\n" in printed
    form = run_json("follow", "--check", file, "--notify", url, "--queue", tmp_path / "waiting")
    assert form["notify"] == {"queue": f"{tmp_path}/waiting", "url": "https://example.org"}
    assert "--queue belongs to --notify" in run("follow", "--check", file, "--queue", tmp_path, code=2).stderr
    assert "s3cret" not in fault("follow", file, "--notify", "ftp://s3cret", code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.toml"]
