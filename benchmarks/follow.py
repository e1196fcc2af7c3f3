"""What a process takes that follows 1, 50 and 200 idle clusters: `python -m benchmarks.follow`.

Fake controllers in a process of their own serve a generated log of a cluster of 1,008 partitions, each under another
cluster id, and commit a no-op record each half second, as an idle Kafka controller does. What is measured is
`kraftlake follow` alone, by /proc: memory at its peak (the lakes are made then) and at the end, and CPU time after the
first round of upkeep, while metrics are scraped each 15 seconds. Doctor's checks run as they do for users. Then the
follower is stopped, each cluster commits the no-op records of an hour, and the time is taken until a new process has
caught up with all of them.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from benchmarks.folders import made_folder
from benchmarks.processes import as_installed
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion
from tests.server.fake_clusters import FakeCluster

PLAN = Plan(topics=84, partitions=12, records=4_000)
COUNTS = (1, 50, 200)
_HOUR = 7_200
"""The no-op records of an hour."""
_SCRAPE_SECONDS = 15.0
_COMMITS = threading.Lock()
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
        for _ in sys.stdin:  # a line asks for an hour's records
            with _COMMITS:
                for cluster in clusters:
                    hour(cluster)
            print("an hour later", flush=True)
        os._exit(0)


def idle(clusters: list[FakeCluster]) -> None:
    while True:
        for cluster in clusters:
            with _COMMITS:
                cluster.append(NoOpRecord())
            time.sleep(0.5 / len(clusters))


def hour(cluster: FakeCluster) -> None:
    """Commit what an idle controller commits within an hour."""
    now, end, epoch = time.time_ns() // 1_000_000, cluster.end_offset, cluster.model.epoch
    no_op = [ApiMessageAndVersion(NoOpRecord(), 0)]
    cluster.add([RecordBatch.of(end + number, epoch, now + number, no_op) for number in range(_HOUR)])


@attrs.frozen
class Taken:
    """Megabytes at the peak and at the end, and CPU seconds a second of idle following."""

    peak_mb: float
    rss_mb: float
    cpu: float


def config_of(folder: Path, bootstraps: list[str], *, tables: bool) -> Path:
    """The file of `kraftlake follow`."""
    config = folder / "clusters.toml"
    sections = [
        f'[clusters.c{number}]\nbootstrap = "{bootstrap}"\nlake = "lake-{number}"\ntables = {str(tables).lower()}\n'
        for number, bootstrap in enumerate(bootstraps)
    ]
    config.write_text("[metrics]\nport = 0\n" + "".join(sections), "utf-8")
    return config


@contextmanager
def follower(config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of `kraftlake follow`."""
    command = [str(Path(sys.executable).with_name("kraftlake")), "follow", "--json", str(config)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stderr=errors, env=os.environ | as_installed(config.parent)) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
    assert process.returncode == 0, f"the follower ended with {process.returncode}"


def follow(config: Path, count: int, seconds: float) -> Taken:
    """Run `kraftlake follow` on clusters and measure it."""
    log = config.with_name("follow.jsonl")
    with follower(config, log) as process:
        while metric(log, "kraftlake_follow_up") < count or counted(log, "kraftlake_doctor_checked_offset") < count:
            time.sleep(1)
        time.sleep(seconds)  # a round of upkeep, which takes a minute
        before = cpu_seconds(process.pid), time.monotonic()
        while time.monotonic() < before[1] + seconds:
            time.sleep(_SCRAPE_SECONDS)
            assert metric(log, "kraftlake_follow_up") == count
        cpu = (cpu_seconds(process.pid) - before[0]) / (time.monotonic() - before[1])
        assert metric(log, "kafka_controller_kafkacontroller_globalpartitioncount") >= 1_000 * count
        peak, rss = memory_mb(process.pid)
    return Taken(peak, rss, cpu)


def catch_up(config: Path, count: int) -> tuple[float, float]:
    """The seconds and the CPU seconds until a new process has caught up with all clusters."""
    log, begun = config.with_name("again.jsonl"), time.monotonic()
    with follower(config, log) as process:
        # a lake is level within the no-op records that wait to be appended together
        while metric(log, "kraftlake_follow_up") < count or metric(log, "kraftlake_follow_lag_offsets") > 20 * count:
            time.sleep(0.5)
        return time.monotonic() - begun, cpu_seconds(process.pid)


def metric(log: Path, name: str) -> float:
    """The sum of a metric over all clusters; 0 before it is served."""
    return sum(values(log, name))


def counted(log: Path, name: str) -> int:
    """The number of clusters that have a metric."""
    return len(values(log, name))


def values(log: Path, name: str) -> list[float]:
    """A metric of all clusters; none before it is served."""
    lines = log.read_text("utf-8").splitlines()
    url = next((json.loads(line)["metrics"] for line in lines if '"started"' in line), None)
    if url is None:
        return []
    with urllib.request.urlopen(url) as answer:
        served = answer.read().decode()
    return [float(line.rpartition(" ")[2]) for line in served.splitlines() if line.startswith(name + "{")]


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
        titles = ("idle clusters", "MB at the peak", "MB", "CPU, % of a core", "s after an hour", "CPU s")
        print("{:>13} {:>15} {:>6} {:>17} {:>20} {:>8}".format(*titles))
        for count in options.clusters:
            folder = Path(scratch) / str(count)
            folder.mkdir()
            words = [sys.executable, "-m", "benchmarks.follow", "--serve", str(lake), str(count)]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                config = config_of(folder, json.loads(server.stdout.readline()), tables=options.tables)
                taken = follow(config, count, options.seconds)
                print(
                    f"{count:13} {taken.peak_mb:15.0f} {taken.rss_mb:6.0f} {taken.cpu * 100:17.1f}", end=" ", flush=True
                )
                assert server.stdin is not None
                server.stdin.write("\n")
                server.stdin.flush()
                server.stdout.readline()
                seconds, cpu = catch_up(config, count)
                print(f"{seconds:20.1f} {cpu:8.1f}", flush=True)
                server.stdin.close()


if __name__ == "__main__":
    main()
