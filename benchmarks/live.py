"""How long after an acknowledged change a lake has it that follows the quorum: `python -m benchmarks.live`.

A real controller and two brokers. An Admin client creates topics, one after another, at one broker. The acknowledgement
begins the clock; the lake of `kraftlake import --follow` ends it when a tail of the lake has the topic's record, and
the other broker, which observes the same quorum, when its own metadata has the topic. Both are polled without pause.
The first topic does not count.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka.admin import NewTopic
from kio.schema.types import TopicName

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.records.metadata_records import TopicRecord
from tests.kafka_node import started_nodes

ROLES = {1: "controller", 2: "broker", 3: "broker"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=300)
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="live-") as folder, started_nodes(Path(folder) / "kafka", ROLES) as nodes:
        lake = Path(folder) / "lake"
        command = [
            sys.executable,
            "-m",
            "kraftlake.cli",
            "import",
            "--follow",
            nodes[1].controller,
            str(lake),
            "--json",
        ]
        follower = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert follower.stdout is not None
        follower.stdout.readline()
        threading.Thread(target=follower.stdout.read, daemon=True).start()
        seen = tailed(lake)
        (address,) = parse_addresses(nodes[3].bootstrap)
        in_lake, at_broker = [], []
        with NodeConnector()(address) as broker:
            for number in range(arguments.topics + 1):
                name = f"topic-{number}"
                nodes[2].admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=60)
                acknowledged = time.monotonic_ns()
                while not has_topic(broker, name):
                    pass
                at_broker.append(time.monotonic_ns() - acknowledged)
                while name not in seen:
                    time.sleep(0.001)
                in_lake.append(seen[name] - acknowledged)
        follower.terminate()
        follower.wait()
    in_lake, at_broker = in_lake[1:], at_broker[1:]
    for of, times in (("in the lake", in_lake), ("at the other broker", at_broker)):
        print(f"{of:20} p50 {percentile(times, 50):6.1f} ms   p99 {percentile(times, 99):6.1f} ms")
    print(f"the lake / the broker, p50: {statistics.median(in_lake) / statistics.median(at_broker):.2f}")


def tailed(lake: Path) -> dict[str, int]:
    """The times at which a tail of the lake had the records of topics, by name; filled in a thread."""
    seen: dict[str, int] = {}
    log = MetadataLog.open(lake)

    def follow() -> None:
        with log.tail(log.end_offset, poll=0.001) as batches:
            for batch in batches:
                now = time.monotonic_ns()
                if not batch.control:
                    seen.update({m.message.name: now for m in batch.messages() if isinstance(m.message, TopicRecord)})

    threading.Thread(target=follow, daemon=True).start()
    return seen


def has_topic(broker: NodeClient, name: str) -> bool:
    def request(module: Any) -> Any:
        topic = module.MetadataRequestTopic(name=TopicName(name), topic_id=None)
        return module.MetadataRequest(
            topics=(topic,), allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )

    answer = broker.ask("metadata", range(12, 14), request)
    return bool(answer.topics[0].error_code == ErrorCode.NONE)


def percentile(times: list[int], percent: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)] / 1e6


if __name__ == "__main__":
    main()
