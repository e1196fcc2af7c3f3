"""Throttle times of clients, beside those of Kafka's own quota managers, in histories of uses and changed quotas."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.records import metadata_records as r
from kraftlake.runtime.rates import Windows
from kraftlake.server.quotas.client_quota_manager import ClientQuotaManager, ControllerMutationQuotaManager
from tests.interop.kafka_classes import KafkaClasses
from tests.publisher.updates import cluster

pytestmark = pytest.mark.spark

_HISTORIES = 400 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 15
_STEPS = 250
_KEYS = {
    "produce": "producer_byte_rate",
    "request": "request_percentage",
    "strict": "controller_mutation_rate",
    "permissive": "controller_mutation_rate",
}
_SIZES = {"produce": 100_000, "request": 40.0, "strict": 30, "permissive": 30}
"""The largest use, and the largest quota."""


@cache
def _kafka() -> KafkaClasses:
    classes = KafkaClasses(Path(__file__).with_name("KafkaQuotas.java"))
    atexit.register(classes.close)
    return classes


@pytest.mark.parametrize("kind", _KEYS)
def test_each_use_has_the_throttle_time_of_kafkas_class(kind: str) -> None:
    throttled = 0
    for number in range(_HISTORIES):
        random = Random(f"{kind} {number}")
        windows, seconds = random.choice([(11, 1), (2, 1), (5, 3), (1, 1)])
        steps = _history(random, kind)
        asked = {"kind": kind, "windows": windows, "seconds": seconds, "steps": steps}
        theirs = _kafka().ask("throttles", json.dumps(asked))["answer"]
        ours = _throttles(kind, Windows.of_seconds(windows, seconds), steps)
        assert ours == theirs, f"{kind} {number}"
        throttled += sum(one > 0 for one in ours)
    assert throttled > _HISTORIES, "the histories have throttled clients"


def _history(random: Random, kind: str) -> list[dict[str, Any]]:
    now_ms, steps, largest = 1_700_000_000_000, list[dict[str, Any]](), _SIZES[kind]
    entities = [
        entity
        for user in ({}, {"user": None}, {"user": "alice"})
        for client in ({}, {"client-id": None}, {"client-id": "app"})
        if (entity := {**user, **client})
    ]
    entities = random.sample(entities, random.choice([1, 1, 2, len(entities)]))
    for _ in range(_STEPS):
        if random.random() < 0.04 or not steps:
            value = None if random.random() < 0.3 else random.randint(1, int(largest) * 2) / random.choice([1, 1, 16])
            steps.append({**random.choice(entities), "value": value})
            continue
        now_ms += random.choice([0, 1, random.randint(0, 400), random.randint(0, 3_000), random.randint(0, 30_000)])
        use = random.random() * largest if kind == "request" else random.randint(0, int(largest))
        step = {"at": now_ms, "user": random.choice(["alice", "bob"]), "client-id": random.choice(["app", "x", ""])}
        steps.append({**step, "use": use})
        if kind == "produce" and random.random() < 0.2:
            steps.append({**step, "use": use, "back": True})
    return steps


def _throttles(kind: str, windows: Windows, steps: list[dict[str, Any]]) -> list[int]:
    quotas, key = ClientQuotas(), _KEYS[kind]
    made = cluster(parts=(quotas,))
    longest = {"longest_ms": windows.length_ms} if kind == "request" else {}
    manager = ClientQuotaManager(key, quotas, windows, **longest)
    record: Callable[[str, str, float, int], int] = manager.record
    if kind in ("strict", "permissive"):
        record = partial(ControllerMutationQuotaManager(quotas, windows).record, strict=kind == "strict")
    answers = list[int]()
    for step in steps:
        if "at" not in step:
            entity = tuple(r.EntityData(entity_type=one, entity_name=step[one]) for one in step if one != "value")
            value = step["value"]
            made.change(r.ClientQuotaRecord(entity=entity, key=key, value=value or 0, remove=value is None))
            continue
        use = (step["user"], step["client-id"], step["use"], step["at"])
        if "back" in step:
            manager.take_back(*use)
        else:
            answers.append(record(*use))
    return answers
