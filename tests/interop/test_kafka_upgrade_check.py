"""An upgrade of metadata.version is refused as Kafka's own controller refuses it, and for the same node first."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.diagnosis.upgrade.made import METADATA_VERSION, MadeCluster, Range
from tests.interop.kafka_controllers import ask_kafka

CLUSTERS = 60


def made_cluster(seed: int) -> tuple[MadeCluster, int]:
    """A cluster, and the level that is asked for."""
    draw = random.Random(seed)
    current = draw.choice([7, 14, 15, 21, 25, 29, 33])
    level = draw.choice([current, 7, 14, 19, 21, 25, 26, 29, 33, 34])

    def supported() -> Range:
        return draw.choice([(7, 33)] * 6 + [(7, 25), (7, 21), (1, 29), (15, 33)])

    quorum = draw.sample([3000, 3001, 3002], draw.randint(1, 3))
    registered = [quorum[0], *(id_ for id_ in (*quorum[1:], 3009) if draw.random() < 0.8)]
    made = MadeCluster(
        current=current,
        brokers={id_: supported() for id_ in range(1, draw.randint(2, 5))},
        controllers={id_: supported() for id_ in registered} | {quorum[0]: (7, 33)} if current >= 15 else {},
        quorum=quorum,
        fenced=frozenset(draw.sample([1, 2, 3, 4], 2)),
    )
    return made, level


def by_kafka(made: MadeCluster, level: int) -> Any:
    def features(nodes: Any) -> dict[str, Any]:
        return {str(id_): {METADATA_VERSION: supported} for id_, supported in sorted(nodes.items())}

    own = made.controllers.get(made.quorum[0], (7, 33))
    request = {
        "leader": made.quorum[0], "own": {METADATA_VERSION: own}, "quorum": made.quorum, "current": made.current,
        "brokers": features(made.brokers), "controllers": features(made.controllers), "level": level,
    }  # fmt: skip
    return ask_kafka("update", request)


@pytest.mark.spark
def test_every_made_cluster_has_the_answer_of_kafka() -> None:
    refused = 0
    for seed in range(CLUSTERS):
        made, level = made_cluster(seed)
        found = made.source().upgrade_check(metadata_version=level)
        error, message = by_kafka(made, level)
        if level > 33 and not made.controllers:
            continue  # the level that this controller's own release supports is not in such a log
        assert found.allowed == (error == "NONE"), (seed, made, level, message, found)
        if not found.allowed:
            refused += 1
            first = found.obstacles[0]
            assert first.things, (seed, message)
            who = first.things[0].split()[-1]
            is_local = who == str(made.quorum[0]) or who == METADATA_VERSION
            assert is_local or who in message, (seed, message, first)
    assert 10 < refused < CLUSTERS - 10
