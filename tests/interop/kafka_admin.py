"""Kafka's own Admin client in a JVM, for requests that the client in Python lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop.kafka_classes import KafkaClasses


class KafkaAdmin:
    """Asks a cluster by Kafka's Admin client; KafkaClassesError has what the client threw."""

    def __init__(self, bootstrap: str) -> None:
        self._jvm = KafkaClasses(Path(__file__).with_name("KafkaAdmin.java"), heap="128m")
        self._jvm.ask("connect", bootstrap)

    def read(self) -> set[tuple[str, ...]]:
        """Quotas, SCRAM credentials, features, configs of groups and of client metrics; each of them as a row."""
        answer = self._jvm.ask("read")
        found = {
            ("quota", json.dumps(entity, sort_keys=True), key, str(value))
            for entity, quotas in answer["quotas"]
            for key, value in quotas.items()
        }
        return found | {
            (part, name, str(value))
            for part in ("scram", "features", "configs")
            for name, value in answer[part].items()
        }

    def set_quota(self, entity: Mapping[str, str | None], key: str, value: float | None) -> None:
        """Set a quota, or remove it."""
        self._jvm.ask("quota", json.dumps(entity), key, _word(value))

    def set_scram(self, user: str, mechanism: str, iterations: int | None) -> None:
        """Set a user's credential, or remove it."""
        self._jvm.ask("scram", user, mechanism, _word(iterations))

    def set_feature(self, name: str, level: int) -> None:
        """Upgrade or downgrade a feature; 0 disables it."""
        self._jvm.ask("feature", name, level)

    def set_config(self, kind: str, name: str, key: str, value: str | None) -> None:
        """Set a config of a resource such as GROUP or CLIENT_METRICS, or remove it."""
        self._jvm.ask("config", kind, name, key, _word(value))

    def move(self, topic: str, partition: int, *brokers: int) -> None:
        """Begin to move a partition to some brokers."""
        self._jvm.ask("move", topic, partition, ",".join(map(str, brokers)))

    def moving(self) -> int:
        """The number of partitions that move."""
        return int(self._jvm.ask("moving")["moving"])

    def close(self) -> None:
        """End the JVM."""
        self._jvm.close()


def _word(value: Any) -> Any:
    return "-" if value is None else value


@contextmanager
def kafka_admin(bootstrap: str) -> Iterator[KafkaAdmin]:
    """A client, which is closed with the block."""
    admin = KafkaAdmin(bootstrap)
    try:
        yield admin
    finally:
        admin.close()
