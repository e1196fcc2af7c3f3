"""The parts of Kafka 4.4's controller as the judge: one JVM a test process, asked over its stdin."""

from __future__ import annotations

import atexit
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.interop.kafka_classes import KafkaClasses


@cache
def _classes() -> KafkaClasses:
    classes = KafkaClasses(Path(__file__).with_name("KafkaControllers.java"))
    atexit.register(classes.close)
    return classes


def ask_kafka(what: str, request: dict[str, Any] | None = None) -> Any:
    """What `KafkaControllers.java` answers; KafkaClassesError with what Kafka threw."""
    return _classes().ask(what, json.dumps(request or {}))["answer"]
