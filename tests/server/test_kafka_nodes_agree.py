"""Kafka's own KafkaConfig and ours refuse the same files of settings."""

from __future__ import annotations

import os
import random

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.node_config import NodeSettings
from kraftlake.settings.tables import BROKER_CONFIGS
from tests.controller.random_configs import value_of
from tests.interop.kafka_configs import ask_configs

pytestmark = pytest.mark.spark

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SEED = int(os.environ.get("KRAFTLAKE_SEED") or 0)
VALUES = 100 if LONG else 20
PAIRS = 10_000 if LONG else 500
NUMBERS = (-1, 0, 1, 2, 100, 1000, 2000, 9000, 30000, 60000, 1 << 20, 1 << 21, 100 << 20, 1 << 30)
OF_BROKER = {"process.roles": "broker", "node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/a,/b"}
"""What `KafkaConfigs.java` gives each file."""
OF_OTHER_PARTS = {
    *OF_BROKER, "advertised.listeners", "authorizer.class.name", "controller.listener.names",
    "controller.quorum.auto.join.enable", "controller.quorum.voters", "cordoned.log.dirs", "early.start.listeners",
    "group.consumer.assignors", "group.share.assignors", "group.streams.assignors", "inter.broker.listener.name",
    "listener.security.protocol.map",
}  # fmt: skip
"""Those that name listeners or directories, which the broker checks beside its command line, or classes of Java."""
RARE = (
    ("broker.id", "-1"),
    ("broker.id", OF_BROKER["node.id"]),
    ("group.coordinator.rebalance.protocols", "consumer,streams"),
    ("group.coordinator.rebalance.protocols", "streams,classic,streams"),
    ("group.streams.rack.aware.assignment.tags", "zone, zone"),
    ("group.streams.rack.aware.assignment.tags", "zone,Zone"),
    ("security.inter.broker.protocol", "SSL"),
    ("security.inter.broker.protocol", "PLAINTEXT"),
)
"""Settings and values that random draws rarely meet."""


def test_a_file_that_kafka_refuses_is_refused_and_no_other() -> None:
    draws = random.Random(SEED)
    keys = {name: key for name, key in BROKER_CONFIGS.items() if key.type != "CLASS" and name not in OF_OTHER_PARTS}
    files = [dict([setting]) for setting in RARE]
    files += [{name: value_of(draws, key)} for name, key in keys.items() for _ in range(VALUES)]
    numbers = [name for name, key in keys.items() if key.type in ("SHORT", "INT", "LONG", "DOUBLE")]
    files += [
        {name: str(draws.choice(NUMBERS)) for name in draws.sample(numbers, draws.choice((1, 2)))} for _ in range(PAIRS)
    ]
    theirs = [problem is None for problem in ask_configs("nodes", files=files)]
    verdicts = zip(files, map(is_taken, files), theirs, strict=True)
    assert [file for file, ours, kafkas in verdicts if ours != kafkas] == []
    assert len(files) / 10 < sum(theirs) < len(files)


def is_taken(file: dict[str, str]) -> bool:
    try:
        BrokerConfig.of("lake", NodeSettings(values=OF_BROKER | file))
    except UsageError:
        return False
    return True
