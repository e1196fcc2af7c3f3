"""How the fault of a record is told."""

from __future__ import annotations

from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, UnknownRecord


def place_of(message: AnyMessage, offset: int | None) -> str:
    """How an error begins: with offset and type where the offset is known, else the caller names both."""
    if offset is None:
        return ""
    name = "UNKNOWN" if isinstance(message, UnknownRecord) else type_name(type(message))
    return f"offset {offset}, {name}: "
