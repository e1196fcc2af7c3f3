"""An Admin client that goes on working while controllers are killed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.kafka_node import KafkaNode
from tests.replay.following import PATIENCE

# What a call is answered with that took effect before, and whose answer was lost with its controller.
_DONE_BEFORE = {KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_PARTITIONS}


class AdminWork:
    """Each call is repeated until it is acknowledged; `calls` counts the calls, not the attempts."""

    def __init__(self, brokers: Sequence[KafkaNode]) -> None:
        self._admin = AdminClient({"bootstrap.servers": ",".join(node.bootstrap for node in brokers), "log_level": 2})
        self.calls = 0

    def do(self, count: int) -> None:
        """Make so many calls: topics come, change and go, and users get passwords."""
        for _ in range(count):
            self._acknowledged(*divmod(self.calls, 6))
            self.calls += 1

    def _acknowledged(self, cycle: int, step: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                for future in self._asked(cycle, step).values():
                    future.result(timeout=PATIENCE)
            except KafkaException as fault:
                if fault.args[0].code() in _DONE_BEFORE:
                    return
                time.sleep(0.1)
            else:
                return
        raise AssertionError(f"call {self.calls} is not acknowledged")

    def _asked(self, cycle: int, step: int) -> Mapping[Any, Future[Any]]:
        topic = f"topic-{cycle}"
        match step:
            case 0:
                return self._admin.create_topics([NewTopic(topic, 2, 2)])
            case 1 | 2:
                return self._admin.incremental_alter_configs([_retention(topic, cycle + step)])
            case 3:
                return self._admin.create_partitions([NewPartitions(topic, 3)])
            case 4:
                return self._admin.alter_user_scram_credentials([_password(cycle)])
            case _:
                return self._admin.delete_topics([topic])


def _retention(topic: str, hours: int) -> ConfigResource:
    entry = ConfigEntry("retention.ms", str(3_600_000 * (hours + 1)), incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])


def _password(number: int) -> UserScramCredentialUpsertion:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    return UserScramCredentialUpsertion(f"user-{number % 7}", info, password=b"secret %d" % number)
