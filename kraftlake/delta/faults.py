"""Errors about a record."""

from __future__ import annotations

from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, UnknownRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError


def place_of(message: AnyMessage, offset: int | None) -> str:
    """The prefix `offset N, TYPE: `, or nothing if the offset is unknown: then the caller names both."""
    if offset is None:
        return ""
    name = "UNKNOWN" if isinstance(message, UnknownRecord) else type_name(type(message))
    return f"offset {offset}, {name}: "


def taken_name(name: str, topic_id: Uuid) -> ReplayError:
    """The error of a name that two topics have."""
    return ReplayError(f"topic {name!r} was created while the topic with id {topic_id} had that name.")
