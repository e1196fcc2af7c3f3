"""`kraftlake import --follow` as a process beside real Kafka nodes, and what its lake must be."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic

from kraftlake.api import open_source
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.quorum_client import QuorumClient, QuorumPosition
from kraftlake.records.batch import encode_batch
from tests.kafka_node import KafkaNode
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


class Follower:
    """`kraftlake import --follow` as a process."""

    def __init__(self, *words: str | Path) -> None:
        words = ("import", "--follow", *words, "--json")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kraftlake.cli", *map(str, words)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    def follow_to(self, end_offset: int) -> dict[str, Any]:
        """Read what it says until it has the log up to an offset; an idle controller writes twice a second."""
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            assert line, f"the follower ended with {self._process.wait()}"
            step: dict[str, Any] = json.loads(line)
            assert step["endOffset"] <= max(step["committed_to"], 0), step  # -1 until the quorum has answered
            if step["endOffset"] >= end_offset:
                return step

    def end(self, number: int) -> int:
        """Send it a signal; how it ended."""
        self._process.send_signal(number)
        assert self._process.stdout is not None
        with self._process.stdout:
            self._process.stdout.read()  # it may be about to say more
        return self._process.wait()


@contextmanager
def following(*words: str | Path, kill: bool = False) -> Iterator[Follower]:
    """A follower with these arguments, ended at the end of the block: interrupted, or killed with -9."""
    follower = Follower(*words)
    try:
        yield follower
    except BaseException:
        follower.end(signal.SIGKILL)
        raise
    ended = follower.end(signal.SIGKILL if kill else signal.SIGINT)
    assert ended == (-signal.SIGKILL if kill else 130)


def position(*nodes: KafkaNode) -> QuorumPosition:
    """Where the quorum stands, once it has a leader that knows."""
    addresses = parse_addresses(",".join(node.controller for node in nodes))
    deadline = time.monotonic() + PATIENCE
    with QuorumClient(addresses, cluster_id=nodes[0].cluster_id) as client:
        while True:
            try:
                found = client.describe()
                if found.high_watermark >= 0:
                    return found
            except NodeError:
                assert time.monotonic() < deadline, "the quorum has no leader"
            time.sleep(0.2)


def change_topics(node: KafkaNode, first: int, count: int) -> None:
    """Create topics, three a request, and delete every third."""
    made = [f"topic-{number}" for number in range(first, first + count)]
    for at in range(0, count, 3):
        for created in node.admin.create_topics([NewTopic(name, 8, 1) for name in made[at : at + 3]]).values():
            created.result(timeout=PATIENCE)
    for deleted in node.admin.delete_topics(made[::3]).values():
        deleted.result(timeout=PATIENCE)


def check_same(lake: Path, *nodes: KafkaNode) -> None:
    """The lake's log is that of each node, as far as both go back and the lake goes on; its snapshots are sound."""
    log = MetadataLog.open(lake)
    ours = {batch.base_offset: encode_batch(batch) for batch in log.batches()}
    for node in nodes:
        directory = open_source(node.metadata_directory)
        theirs = {
            batch.base_offset: encode_batch(batch)
            for batch in directory.batches()
            if batch.last_offset < log.end_offset
        }
        both = max(log.start_offset, min(theirs))
        assert [ours[base] for base in sorted(ours) if base >= both] == [theirs[b] for b in sorted(theirs) if b >= both]
        assert max(theirs) == max(ours)
    assert not open_source(lake).verify().problems
