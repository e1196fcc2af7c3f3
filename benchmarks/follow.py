"""What a process takes that follows 1, 10 and 50 idle clusters: `python -m benchmarks.follow`.

Fake controllers in a process of their own serve a generated log of a cluster of 1,008 partitions, each under another
cluster id, and commit a no-op record each half second, as an idle Kafka controller does. What is measured is
`kraftlake follow` alone, by /proc: memory at its peak (the lakes are made then) and at the end, and CPU time after the
first round of upkeep.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import attrs

from benchmarks.folders import made_folder
from benchmarks.processes import as_installed
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.metadata_records import NoOpRecord
from tests.server.fake_clusters import FakeCluster

PLAN = Plan(topics=84, partitions=12, records=4_000)
COUNTS = (1, 10, 50)
_TICKS = os.sysconf("SC_CLK_TCK")


def serve(lake: str, count: int) -> None:
    """Serve `count` clusters with the log of `lake` until stdin ends; prints their bootstrap addresses."""
    batches = list(MetadataLog.open(lake).batches())
    clusters = [FakeCluster(batches, f"cluster-of-follow-{number:04}") for number in range(count)]
    with ExitStack() as stack:
        for cluster in clusters:
            stack.enter_context(cluster.serving())
        print(json.dumps([cluster.bootstrap for cluster in clusters]), flush=True)
        threading.Thread(target=idle, args=[clusters], daemon=True).start()
        sys.stdin.read()
        os._exit(0)


def idle(clusters: list[FakeCluster]) -> None:
    while True:
        for cluster in clusters:
            cluster.append(NoOpRecord())
            time.sleep(0.5 / len(clusters))


@attrs.frozen
class Taken:
    """Megabytes at the peak and at the end, and CPU seconds a second of idle following."""

    clusters: int
    peak_mb: float
    rss_mb: float
    cpu: float


def follow(folder: Path, bootstraps: list[str], seconds: float, *, tables: bool) -> Taken:
    """Run `kraftlake follow` on clusters and measure it."""
    config = folder / "clusters.toml"
    sections = [
        f'[clusters.c{number}]\nbootstrap = "{bootstrap}"\nlake = "lake-{number}"\ntables = {str(tables).lower()}\n'
        for number, bootstrap in enumerate(bootstraps)
    ]
    config.write_text("[metrics]\nport = 0\n" + "".join(sections), "utf-8")
    log = folder / "follow.jsonl"
    command = [str(Path(sys.executable).with_name("kraftlake")), "follow", "--json", str(config)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stderr=errors, env=os.environ | as_installed(folder)) as process,
    ):
        try:
            while metric(log, "kraftlake_follow_up") < len(bootstraps):
                time.sleep(1)
            time.sleep(seconds)  # a round of upkeep, which takes a minute
            before = cpu_seconds(process.pid), time.monotonic()
            time.sleep(seconds)
            cpu = (cpu_seconds(process.pid) - before[0]) / (time.monotonic() - before[1])
            assert metric(log, "kraftlake_follow_up") == len(bootstraps)
            assert metric(log, "kafka_controller_kafkacontroller_globalpartitioncount") >= 1_000 * len(bootstraps)
            peak, rss = memory_mb(process.pid)
        finally:
            process.terminate()
    assert process.returncode == 0, f"the follower ended with {process.returncode}"
    return Taken(len(bootstraps), peak, rss, cpu)


def metric(log: Path, name: str) -> float:
    """The sum of a metric over all clusters; 0 before it is served."""
    lines = log.read_text("utf-8").splitlines()
    url = next((json.loads(line)["metrics"] for line in lines if '"started"' in line), None)
    if url is None:
        return 0
    with urllib.request.urlopen(url) as answer:
        served = answer.read().decode()
    return sum(float(line.rpartition(" ")[2]) for line in served.splitlines() if line.startswith(name + "{"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int) -> tuple[float, float]:
    """The largest and the present resident memory."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    peak, rss = (int(lines[name].split()[0]) / 1024 for name in ("VmHWM", "VmRSS"))
    return peak, rss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--seconds", type=float, default=70, help="how long each is waited for, and then measured")
    parser.add_argument("--tables", action="store_true", help="keep the derived tables up as well")
    parser.add_argument("--folder", type=made_folder, help="where the lakes lie; by default among the temporary files")
    parser.add_argument("--serve", nargs=2, metavar=("LAKE", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        lake = Path(scratch) / "generated"
        generate_lake(lake, PLAN)
        print(f"{'idle clusters':>13} {'MB at the peak':>15} {'MB':>6} {'CPU, % of a core':>17}")
        for count in options.clusters:
            folder = Path(scratch) / str(count)
            folder.mkdir()
            words = [sys.executable, "-m", "benchmarks.follow", "--serve", str(lake), str(count)]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                taken = follow(folder, json.loads(server.stdout.readline()), options.seconds, tables=options.tables)
                assert server.stdin is not None
                server.stdin.close()
            print(f"{count:13} {taken.peak_mb:15.0f} {taken.rss_mb:6.0f} {taken.cpu * 100:17.1f}", flush=True)


if __name__ == "__main__":
    main()
