"""The file of kafka-reassign-partitions: target replicas of partitions, as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kraftlake.runtime.errors import UsageError

PartitionName: TypeAlias = tuple[str, int]
"""A topic's name and a partition's number."""


def read_reassignment(path: str | os.PathLike[str]) -> dict[PartitionName, tuple[int, ...]]:
    """The target replicas in a file. Raises UsageError for a file that can't be read or has another content."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8"
        raise UsageError(f"The reassignment {os.fspath(path)} can't be read: {reason}.") from None
    try:
        return parse_reassignment(text)
    except UsageError as fault:
        raise UsageError(f"{os.fspath(path)}: {fault}") from None


def parse_reassignment(text: str) -> dict[PartitionName, tuple[int, ...]]:
    """The target replicas in JSON: `{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2]}]}`.

    `log_dirs` are ignored: brokers move replicas between their own directories without the controller. Raises
    UsageError where Kafka's tool refuses: another version, no partitions, a repeated partition, a repeated replica or
    no replicas.
    """
    try:
        form = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise UsageError(
            f"this is not the JSON of kafka-reassign-partitions ({fault}): of what --generate prints, take the line "
            "below 'Proposed partition reassignment configuration'."
        ) from None
    if not isinstance(form, Mapping) or form.get("version", 1) != 1 or not isinstance(form.get("partitions"), list):
        raise UsageError('a reassignment is {"version":1,"partitions":[…]}, as kafka-reassign-partitions takes it.')
    targets: dict[PartitionName, tuple[int, ...]] = {}
    for entry in form["partitions"]:
        name, replicas = _entry(entry)
        if name in targets:
            raise UsageError(f"partition {name[0]}-{name[1]} is named twice.")
        if not replicas or len(set(replicas)) < len(replicas):
            what = "a replica twice" if replicas else "no replica"
            raise UsageError(f"partition {name[0]}-{name[1]} is given {what}.")
        targets[name] = replicas
    if not targets:
        raise UsageError("the reassignment names no partition.")
    return targets


def _entry(entry: Any) -> tuple[PartitionName, tuple[int, ...]]:
    if isinstance(entry, Mapping):
        topic, number, replicas = (entry.get(key) for key in ("topic", "partition", "replicas"))
        if isinstance(topic, str) and _is_id(number) and isinstance(replicas, list) and all(map(_is_id, replicas)):
            return (topic, int(number or 0)), tuple(replicas)
    raise UsageError(
        f"{json.dumps(entry)[:80]} is no partition of a reassignment: give "
        '{"topic":"foo","partition":0,"replicas":[1,2,3]}.'
    )


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
