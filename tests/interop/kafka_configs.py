"""Kafka 4.4's ConfigurationControlManager as the judge: one JVM a test process, asked over its stdin."""

from __future__ import annotations

import atexit
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.interop.kafka_classes import KafkaClasses


@cache
def _classes() -> KafkaClasses:
    classes = KafkaClasses(Path(__file__).with_name("KafkaConfigs.java"))
    atexit.register(classes.close)
    return classes


def ask_configs(what: str, **request: Any) -> Any:
    """What `KafkaConfigs.java` answers; KafkaClassesError with what Kafka threw."""
    return _classes().ask(what, json.dumps(request))["answer"]
