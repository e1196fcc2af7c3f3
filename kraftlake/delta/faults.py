"""The prefix of errors about a record."""

from __future__ import annotations

from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, UnknownRecord


def place_of(message: AnyMessage, offset: int | None) -> str:
    """`offset N, TYPE: `, or nothing if the offset is unknown: then the caller names both."""
    if offset is None:
        return ""
    name = "UNKNOWN" if isinstance(message, UnknownRecord) else type_name(type(message))
    return f"offset {offset}, {name}: "
