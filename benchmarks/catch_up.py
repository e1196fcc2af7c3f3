"""How long a lake and a new broker take for a log of a million records: `python -m benchmarks.catch_up [--snapshots]`.

A real controller of Kafka 4.4 has a generated log of a cluster of 10,000 partitions. In turn, each from nothing and as
a whole process: `kraftlake import --follow` makes a lake of what the quorum has, until that is all that was committed
when it began; and a new broker of the same release starts, until it answers that it is a broker of the cluster, which
it is once it has replayed as much. With --snapshots the controller has a checkpoint of the end of that log, too: the
broker loads that in place of the log, the lake takes both. CPU seconds are those of the process by /proc. The first
round does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from benchmarks.folders import made_folder
from benchmarks.follow import cpu_seconds
from benchmarks.processes import as_installed
from kraftlake.api import open_source
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.kafka_files.file_names import segment_name, snapshot_name
from kraftlake.kafka_files.writer import write_segment
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from tests.kafka_node import KafkaNode, new_nodes
from tests.replay.following import position

PLAN = Plan(topics=1_000, partitions=10)
SETTINGS = {
    # The brokers of the generated log send no heartbeats: so long are they taken for alive, and nothing is written.
    "broker.session.timeout.ms": "86400000",
    "metadata.log.max.record.bytes.between.snapshots": str(2**62),
    "metadata.log.max.snapshot.interval.ms": "0",
}


@attrs.frozen
class Taken:
    """Seconds of a catch-up."""

    wall: float
    cpu: float


def lake_catches_up(quorum: str, end_offset: int, folder: Path) -> Taken:
    """Follow the quorum into a new lake until it has the log up to an offset."""
    command = [sys.executable, "-m", "kraftlake.cli", "import", "--follow", quorum, str(folder / "lake"), "--json"]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | as_installed(folder.parent)) as process:
        try:
            assert process.stdout is not None
            while json.loads(process.stdout.readline())["endOffset"] < end_offset:
                pass
            return Taken(time.perf_counter() - begin, cpu_seconds(process.pid))
        finally:
            process.kill()


def broker_catches_up(broker: KafkaNode) -> Taken:
    """Start a new broker until it knows itself."""
    begin = time.perf_counter()
    broker.launch()
    try:
        assert broker.pid is not None
        while broker.node_id not in brokers_known_at(broker):
            assert cpu_seconds(broker.pid) < 3_600, "the broker does not come up"
            time.sleep(0.02)
        return Taken(time.perf_counter() - begin, cpu_seconds(broker.pid))
    finally:
        broker.kill()


def brokers_known_at(broker: KafkaNode) -> set[int]:
    """The ids of the brokers that a broker answers with; none while it does not answer."""

    def request(module: Any) -> Any:
        return module.MetadataRequest(
            topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )

    try:
        with NodeConnector()(parse_addresses(broker.bootstrap)[0]) as node:
            return {int(known.node_id) for known in node.ask("metadata", range(12, 14), request).brokers}
    except NodeError:
        return set()


@contextmanager
def cluster(folder: Path, records: int, rounds: int, *, snapshots: bool) -> Iterator[tuple[KafkaNode, list[KafkaNode]]]:
    """A controller that leads with a generated log, and a formatted broker for each round."""
    generate_lake(folder / "generated", attrs.evolve(PLAN, records=records))
    ids = range(1_001, 1_001 + rounds)  # the generated brokers have the first ones
    nodes = new_nodes(folder / "kafka", {1: "controller"} | dict.fromkeys(ids, "broker"), settings=SETTINGS)
    controller = nodes.pop(1)
    log, directory = open_source(folder / "generated"), controller.metadata_directory
    directory.mkdir(exist_ok=True)
    write_segment(directory / segment_name(0), log.batches())
    if snapshots:
        log.export(directory / snapshot_name(log.end_offset, log.replay().image.provenance.epoch))
    shutil.rmtree(folder / "generated")
    controller.launch()
    try:
        controller.await_ready()
        position(controller)
        yield controller, list(nodes.values())
    finally:
        controller.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="turns that count")
    parser.add_argument("--snapshots", action="store_true", help="with a checkpoint at the leader")
    parser.add_argument("--folder", type=made_folder, help="where the logs lie; by default among the temporary files")
    options = parser.parse_args()
    taken: dict[str, list[Taken]] = {"the lake": [], "a new broker": []}
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as scratch,
        cluster(Path(scratch), options.records, options.rounds + 1, snapshots=options.snapshots) as (leader, brokers),
    ):
        for turn, broker in enumerate(brokers):
            folder = Path(scratch) / f"turn-{turn}"
            folder.mkdir()
            end_offset = position(leader).high_watermark
            assert end_offset > options.records
            taken["the lake"].append(lake_catches_up(leader.controller, end_offset, folder))
            taken["a new broker"].append(broker_catches_up(broker))
            has_whole_log = (broker.metadata_directory / segment_name(0)).exists()
            assert has_whole_log != options.snapshots, "the broker took the other way"
            shutil.rmtree(folder)
    print(f"{'catching up':13} {'wall, s':>8} {'CPU, s':>8}   each wall")
    medians = {}
    for name, times in taken.items():
        counted = times[1:]
        wall, cpu = (statistics.median(getattr(one, of) for one in counted) for of in ("wall", "cpu"))
        medians[name] = wall, cpu
        print(f"{name:13} {wall:8.2f} {cpu:8.2f}   {' '.join(f'{one.wall:.2f}' for one in counted)}")
    ratios = [ours / theirs for ours, theirs in zip(*medians.values(), strict=True)]
    print(f"the lake / the broker: wall {ratios[0]:.2f}, CPU {ratios[1]:.2f}")


if __name__ == "__main__":
    main()
