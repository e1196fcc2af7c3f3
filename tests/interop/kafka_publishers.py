"""What a Kafka 4.4 broker answers its requests from, as the judge: one JVM a test process, asked over its stdin."""

from __future__ import annotations

import atexit
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.interop.kafka_classes import KafkaClasses


@cache
def _classes() -> KafkaClasses:
    classes = KafkaClasses(Path(__file__).with_name("KafkaPublishers.java"))
    atexit.register(classes.close)
    return classes


def ask_broker(what: str, request: dict[str, Any]) -> Any:
    """What `KafkaPublishers.java` answers; KafkaClassesError with what Kafka threw."""
    return _classes().ask(what, json.dumps(request))["answer"]
