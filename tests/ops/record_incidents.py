"""Records the series of incidents for the tests of the alerts: `python -m tests.ops.record_incidents` writes them.

Each incident happens to a cluster that a service of `kraftlake follow` follows in this process. A minute of the
recording is the state of its metrics once they show what has happened; the clock that ages are counted by goes on by a
minute then. One incident is of a real cluster: the log of the sample, in steps of five seconds.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import yaml

from kraftlake.image.cluster_health import HEALTH_COUNTS
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.metrics import MetricsRegistry, Sample
from kraftlake.server.follow_config import ClusterConfig, FollowConfig
from kraftlake.server.follow_service import FollowService
from tests.replay.made_logs import partition, topic
from tests.server.fake_clusters import FakeCluster, small_log
from tests.waiting import wait_for
from tools.observability import ALERTS, OPS, names_in

FOLDER = OPS / "prometheus" / "tests"
SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "kafka-4.4"
HERE, GONE = (Uuid(number.to_bytes(16, "big")) for number in (1001, 1002))
_NAMES = set[str]().union(*(names_in(alert.expr) for alert in ALERTS)) - {"kraftlake_doctor_finding"}
_HEALTHY, _STEP_MS = 3, 60_000


class ShiftedClock(SystemClock):
    """The clock of this machine, set forward."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def milliseconds(self) -> int:
        """Epoch milliseconds."""
        return super().milliseconds() + self.shift_ms


@attrs.define
class Recording:
    """The samples of each step, by series."""

    steps: list[dict[str, float]] = attrs.field(factory=list)

    def add(self, samples: Sequence[Sample]) -> None:
        """Add a step."""
        self.steps.append({series_of(one): float(one.value) for one in samples if one.name.prometheus_name in _NAMES})

    def input_series(self) -> list[dict[str, str]]:
        """The series in promtool's form; `_` stands for no sample."""
        names = sorted({name for step in self.steps for name in step})
        return [{"series": name, "values": _values([step.get(name) for step in self.steps])} for name in names]


def series_of(sample: Sample) -> str:
    """The series of a sample in Prometheus' form."""
    labels = ",".join(f'{key}="{value}"' for key, value in sample.name.tags)
    return sample.name.prometheus_name + (f"{{{labels}}}" if labels else "")


def _values(values: Sequence[float | None]) -> str:
    words = []
    for value, run in groupby(values):
        count = len(list(run))
        word = "_" if value is None else f"{value:g}" if abs(value) < 1e5 else f"{value:.0f}"
        words.append(word if count == 1 else f"{word}x{count}" if value is None else f"{word}+0x{count - 1}")
    return " ".join(words)


@attrs.define
class Incident:
    """A followed cluster, and its recording."""

    cluster: FakeCluster
    lake: Path
    service: FollowService
    clock: ShiftedClock
    recording: Recording = attrs.field(factory=Recording)
    _topics: int = 100

    def values(self) -> dict[str, float]:
        """The values of all metrics now."""
        return {series_of(one): float(one.value) for one in self.service.registry.samples()}

    def step(self, shows: Callable[[Mapping[str, float]], object], *, quiet: bool = False) -> None:
        """Record a minute in which the metrics show something; something is committed in it unless it is `quiet`."""
        if not quiet:
            self._topics += 1
            new = [topic(self._topics), partition(self._topics)]
            self.cluster.append(*new, timestamp=self.clock.milliseconds())
            end = self.cluster.end_offset - 1
            wait_for(lambda: self.values().get('kraftlake_follow_last_offset{cluster="east"}') == end)
        wait_for(lambda: shows(self.values()))
        self.recording.add(self.service.registry.samples())
        self.clock.shift_ms += _STEP_MS


@contextmanager
def incident(folder: Path) -> Iterator[Incident]:
    """A cluster of two brokers with two directories each, followed for some minutes."""
    cluster, clock, stop = FakeCluster(small_log(), "cluster-of-follow-0001"), ShiftedClock(), threading.Event()
    lake = folder / "lake"
    with cluster.serving():
        config = FollowConfig(clusters=(ClusterConfig(name="east", bootstrap=cluster.bootstrap, lake=str(lake)),))
        service = FollowService(config, stop=stop, clock=clock, upkeep_seconds=0.1)
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            made = Incident(cluster, lake, service, clock)
            directories = [r.BrokerRegistrationChangeRecord(broker_id=id_, broker_epoch=id_, log_dirs=(HERE, GONE))
                           for id_ in (1, 2)]  # fmt: skip
            cluster.append(min_isr("2"))
            cluster.append(*directories, version=2)
            cluster.append(change(0, directories=(HERE, GONE)), version=1)
            for _ in range(_HEALTHY):
                made.step(is_level)
            yield made
        finally:
            stop.set()
            thread.join()


def is_level(values: Mapping[str, float]) -> bool:
    return (
        values.get('kraftlake_follow_up{cluster="east"}') == 1 and 'kraftlake_lake_end_offset{cluster="east"}' in values
    )


def at(name: str, value: float) -> Callable[[Mapping[str, float]], bool]:
    return lambda values: values.get(f'{name}{{cluster="east"}}') == value


def min_isr(value: str) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=value)


def change(number: int, **fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(partition_id=0, topic_id=topic(number).topic_id, **fields)


def broker_lost(folder: Path) -> Recording:
    """Broker 2 is fenced; its replicas leave the ISR, and come back."""
    fenced = "kafka_controller_kafkacontroller_fencedbrokercount"
    with incident(folder) as made:
        back = r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=-1)
        lost = r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1)
        made.cluster.append(lost, min_isr("1"), change(0, isr=(1,)))
        for _ in range(14):
            made.step(at(fenced, 1))
        made.cluster.append(back, change(0, isr=(1, 2)))
        for _ in range(3):
            made.step(at(fenced, 0))
    return made.recording


def isr_under_minimum(folder: Path) -> Recording:
    """A follower falls out of the ISR of a partition whose topic wants two replicas in sync."""
    with incident(folder) as made:
        made.cluster.append(change(1, isr=(1,)))
        for _ in range(4):
            made.step(at("kraftlake_cluster_under_min_isr_partitions", 1))
    return made.recording


def disk_lost(folder: Path) -> Recording:
    """Broker 2 registers without the directory in which it has a replica."""
    with incident(folder) as made:
        made.cluster.append(r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, log_dirs=(HERE,)), version=2)
        for _ in range(4):
            made.step(at("kraftlake_cluster_offline_directories", 1))
    return made.recording


def quorum_without_majority(folder: Path) -> Recording:
    """The controllers answer no more, and nothing is committed."""
    with incident(folder) as made:
        made.cluster.dead = True
        waiting = 'kraftlake_follow_state{cluster="east",state="waiting"}'
        for _ in range(5):
            made.step(lambda values: values.get(waiting) == 1, quiet=True)
    return made.recording


def import_stalls(folder: Path) -> Recording:
    """The controllers answer, and commit nothing, not even no-op records."""
    with incident(folder) as made:
        for _ in range(6):
            made.step(is_level, quiet=True)
    return made.recording


def lake_shortened(folder: Path) -> Recording:
    """An older copy of the lake is put in its place."""
    with incident(folder) as made:
        shutil.copytree(made.lake, folder / "copy")
        for _ in range(2):
            made.step(is_level)
        shutil.rmtree(made.lake)
        (folder / "copy").rename(made.lake)
        for _ in range(2):
            made.step(at("kraftlake_lake_shortened", 1), quiet=True)
    return made.recording


def real_outage(_: Path) -> Recording:
    """The real cluster of the sample, whose brokers were killed one after another, by the times of its log."""
    counts, health, registry = ControllerMetadataMetrics(), HealthCounter(), MetricsRegistry()
    counts.register(registry)
    health.register(registry)
    loader, recording, until = MetadataBatchLoader(), Recording(), -1
    loader.publish_to(lambda *update: [one.on_metadata_update(*update) for one in (counts, health)])
    for batch in LogSource.open(str(SAMPLE)).batches():
        while 0 <= until <= batch.timestamp:
            recording.add(registry.samples())
            until += 5_000
        until = batch.timestamp + 5_000 if until < 0 else until
        loader.load_batch(batch)
        loader.flush()
    for _ in range(36):  # the cluster stays down
        recording.add(registry.samples())
    assert set(HEALTH_COUNTS) >= {"under_min_isr_partitions"}
    return recording


INCIDENTS: Mapping[str, tuple[Callable[[Path], Recording], tuple[str, ...], str]] = {
    "broker_lost": (broker_lost, ("KraftlakeBrokerFenced", "KraftlakeUnderReplicated"), "1m"),
    "isr_under_minimum": (isr_under_minimum, ("KraftlakeUnderMinIsr",), "1m"),
    "disk_lost": (disk_lost, ("KraftlakeDirectoryOffline",), "1m"),
    "quorum_without_majority": (quorum_without_majority, ("KraftlakeQuorumUnreachable", "KraftlakeImportStalls"), "1m"),
    "import_stalls": (import_stalls, ("KraftlakeImportStalls",), "1m"),
    "lake_shortened": (lake_shortened, ("KraftlakeLakeShortened",), "1m"),
    "real_outage": (real_outage, ("KraftlakeOfflinePartitions", "KraftlakeUnderMinIsr", "KraftlakeBrokerFenced"), "5s"),
}
"""Each incident with the alerts that it raises, and the time between two steps of its recording."""


def main() -> None:
    """Record all incidents."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (record, _, interval) in INCIDENTS.items():
        with tempfile.TemporaryDirectory() as folder:
            recorded = record(Path(folder))
        form = {"interval": interval, "steps": len(recorded.steps), "input_series": recorded.input_series()}
        text = f"# {(record.__doc__ or '').strip()} Written by `python -m tests.ops.record_incidents`.\n"
        (FOLDER / f"{name}.yml").write_text(text + yaml.safe_dump(form, sort_keys=False, width=10_000), "utf-8")
        print(name, len(recorded.steps))


if __name__ == "__main__":
    main()
