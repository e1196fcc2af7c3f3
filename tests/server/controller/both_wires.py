"""The same requests to a real Kafka 4.4 controller and to ours, and the answers of both."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from datetime import timedelta
from enum import IntEnum
from importlib import import_module
from typing import Any

import attrs
from kio.static.primitive import i32Timedelta

from tests.controller.kafka_rpc import KafkaRpc

_OFFSETS = {
    "high_watermark",
    "log_end_offset",
    "log_start_offset",
    "end_offset",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
}


def kio(name: str, version: int) -> Any:
    """kio's module of a request."""
    return import_module(f"kio.schema.{name}.v{version}.request")


def timeout(seconds: float = 60) -> i32Timedelta:
    """A timeout for a request."""
    return i32Timedelta.parse(timedelta(seconds=seconds))


@attrs.define(kw_only=True, eq=False)
class Side:
    """One of the two controllers; `topics` are the ids of topics by name, `epochs` those of brokers."""

    rpc: KafkaRpc
    port: int
    topics: dict[str, uuid.UUID] = attrs.field(factory=dict)
    epochs: dict[int, int] = attrs.field(factory=dict)

    def normal(self, value: Any, key: str = "") -> Any:
        """An answer without what differs for good reasons: ids that are drawn, epochs that are offsets, order."""
        if isinstance(value, IntEnum):
            return value.name
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {name: self.normal(one, name) for name, one in sorted(fields.items()) if "throttle" not in name}
        if isinstance(value, tuple):
            return sorted((self.normal(one, key) for one in value), key=str)
        if isinstance(value, uuid.UUID):
            names = {id_: name for name, id_ in self.topics.items()}
            return names.get(value, "an id")
        if key == "error_message":
            return "a message" if value else None  # Kafka has either of None and "" where there is none
        if key in _OFFSETS and isinstance(value, int):
            return "known" if value >= 0 else "unknown"
        if key == "broker_epoch":
            return next((f"epoch of {broker}" for broker, epoch in self.epochs.items() if epoch == value), value)
        if key == "port" and value == self.port:
            return "its port"
        return value


def _without_more_reasons(theirs: Any, ours: Any) -> Any:
    """Our answer without the reasons that it gives where Kafka gives none for the same error."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        kept = {key: _without_more_reasons(theirs.get(key), value) for key, value in ours.items()}
        if theirs.get("error_message", "") is None and theirs.get("error_code") == ours.get("error_code"):
            kept["error_message"] = None
        return kept
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [_without_more_reasons(*pair) for pair in zip(theirs, ours, strict=True)]
    return ours


@attrs.define
class Difference:
    """Where the two have not answered the same."""

    step: str
    theirs: Any
    ours: Any


@attrs.define(kw_only=True)
class BothWires:
    """`ask` sends what `make` makes for a side to both; what is not equal is in `differences`."""

    theirs: Side
    ours: Side
    steps: list[str] = attrs.field(factory=list)
    differences: list[Difference] = attrs.field(factory=list)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Theirs and ours."""
        return self.theirs, self.ours

    def ask(self, step: str, make: Callable[[Side], Any]) -> list[Any]:
        """Both answers."""
        answers = [side.rpc.ask(make(side)) for side in self.sides]
        self.compare(step, *answers)
        return answers

    def agree(self, make: Callable[[Side], Any]) -> bool:
        """Whether both answer alike by now: Kafka's controller describes what it has published, a moment later."""
        theirs, ours = (side.normal(side.rpc.ask(make(side))) for side in self.sides)
        return bool(theirs == _without_more_reasons(theirs, ours))

    def compare(self, step: str, theirs: Any, ours: Any) -> None:
        """Note whether the answers to a step differ."""
        self.steps.append(step)
        normal = (self.theirs.normal(theirs), self.ours.normal(ours))
        normal = (normal[0], _without_more_reasons(*normal))
        if normal[0] != normal[1]:
            self.differences.append(Difference(step, *normal))
