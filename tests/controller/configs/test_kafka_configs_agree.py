"""Kafka's own ConfigurationControlManager and ours agree on the same values and random changes of configs."""

from __future__ import annotations

import base64
import json
import os
import random
from typing import Any

import pytest

from kraftlake.controller.configs.alter_configs import (
    ConfigOperation,
    OpType,
    incremental_alter_configs,
    legacy_alter_configs,
)
from kraftlake.controller.configs.config_schema import effective_topic_config
from kraftlake.controller.configs.java_patterns import check_pattern
from kraftlake.controller.result import ControllerResult
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.records.json_form import to_json
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion, decode_value
from tests.controller.controlled_cluster import ControlledCluster
from tests.controller.random_configs import NODES, TOPICS, change, pattern
from tests.interop.kafka_configs import ask_configs

pytestmark = pytest.mark.spark

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SEED = int(os.environ.get("KRAFTLAKE_SEED") or 0)
PATTERNS = 100_000 if LONG else 5_000
STEPS = 20_000 if LONG else 400
PROPERTY_FILES: dict[str, dict[str, str]] = {
    "nothing is set": {},
    "bounds and topic defaults are set": {
        "log.cleaner.min.compaction.lag.ms": " 45000 ",
        "log.retention.hours": "-1",
        "log.roll.hours": "2",
        "group.consumer.max.session.timeout.ms": "100000",
        "group.consumer.min.session.timeout.ms": "10000",
        "group.consumer.heartbeat.interval.ms": "6000",
        "group.streams.max.standby.replicas": "3",
    },
    "remote storage is enabled": {
        "remote.log.storage.system.enable": "true",
        "log.retention.ms": "100000",
        "log.local.retention.ms": "50000",
    },
}


def test_regular_expressions_are_javas() -> None:
    draws = random.Random(SEED)
    patterns = [pattern(draws) for _ in range(PATTERNS)]
    theirs = ask_configs("patterns", values=patterns)
    differences = [
        text
        for text, valid in zip(patterns, theirs, strict=True)
        if _is_pattern(text) != valid and not (("(?<=" in text or "(?<!" in text) and not valid)
    ]
    assert differences == []
    assert PATTERNS / 10 < sum(theirs) < PATTERNS


def _is_pattern(text: str) -> bool:
    try:
        check_pattern(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("elr", [False, True], ids=["without-elr", "with-elr"])
@pytest.mark.parametrize("properties", PROPERTY_FILES.values(), ids=PROPERTY_FILES)
def test_random_changes_are_answered_and_written_down_alike(properties: dict[str, str], elr: bool) -> None:
    draws = random.Random(SEED)
    both = BothManagers(properties, elr=elr)
    both.replay(
        (2, "orders", "message.format.version", "2.8"),
        (2, "bills", "retention.ms", "soon"),
        (2, "bills", "remote.storage.enable", "true"),
        (4, "", "log.roll.hours", "soon"),
        (4, "", "log.cleaner.min.compaction.lag.ms", "9999999"),
        (16, "mine", "no.such.config", "1"),
        (32, "group", "no.such.config", "1"),
    )
    accepted = 0
    for step in range(STEPS):
        changes = [change(draws) for _ in range(draws.choice((1, 1, 1, 2)))]
        accepted += both.alter(changes, legacy=draws.random() < 0.2, forwarded=draws.random() < 0.5)
        if step % 20 == 0:
            both.compare_topics()
    assert STEPS / 20 < accepted < STEPS


class BothManagers:
    """Each method is one thing done at both; it fails where they differ."""

    def __init__(self, properties: dict[str, str], *, elr: bool) -> None:
        self.ours = ControlledCluster(
            static_configs=properties, features={"eligible.leader.replicas.version": int(elr)}
        )
        self.ours.start(1)
        for topic in TOPICS:
            self.ours.assigned(topic, (1,))
        ask_configs("start", static=properties, topics=TOPICS, brokers=NODES, elr=elr)
        known = self.ours.image.configs.resource_data.values()
        self._replay_theirs(
            [(image.resource.type, image.resource.name, *item) for image in known for item in image.data.items()]
        )

    def _replay_theirs(self, records: Any) -> None:
        ask_configs("replay", records=records)

    def replay(self, *records: tuple[int, str, str, str]) -> None:
        """Records that are in the log already, as another version or a broker may have left them."""
        self._replay_theirs(records)
        messages = [
            ApiMessageAndVersion(ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value), 0)
            for kind, resource, name, value in records
        ]
        self.ours.run(lambda state: ControllerResult(messages, None))

    def alter(self, changes: list[Any], *, legacy: bool, forwarded: bool) -> int:
        """How many of the resources are changed."""
        theirs = ask_configs("alter", legacy=legacy, forwarded=forwarded, created=False, resources=changes)
        targets = {ConfigResource(kind, resource): configs for kind, resource, configs in changes}
        if legacy:
            wanted: Any = {target: {name: v for name, _, v in configs} for target, configs in targets.items()}
            answers = self.ours.run(lambda state: legacy_alter_configs(state, wanted, forwarded=forwarded))
        else:
            wanted = {
                target: {name: ConfigOperation(OpType(op), value) for name, op, value in configs}
                for target, configs in targets.items()
            }
            answers = self.ours.run(lambda state: incremental_alter_configs(state, wanted, forwarded=forwarded))
        errors = [int(answers[ConfigResource(kind, resource)].error) for kind, resource, _ in changes]
        assert errors == theirs["errors"], changes
        assert _forms(self.ours.added) == _forms(
            [decode_value(base64.b64decode(record)).message for record in theirs["records"]]
        ), changes
        return errors.count(0)

    def compare_topics(self) -> None:
        """The effective configs of each topic."""
        for topic, values in ask_configs("topics", names=TOPICS).items():
            image, node = self.ours.image.configs, self.ours.config
            assert {name: effective_topic_config(image, node, topic, name) for name in values} == values


def _forms(messages: list[Message]) -> list[str]:
    return sorted(f"{type(message).__name__} {json.dumps(to_json(message, 0), sort_keys=True)}" for message in messages)
