"""The attributes that an entry of an image and its record have in common, and which of them are secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from kraftlake.records.schema import Message, field_specs, memoized, secret_fields


def common_fields(source: Any, target: type) -> dict[str, Any]:
    """The values of the attributes that an attrs object and the attrs class `target` have in common, by name."""
    return {name: getattr(source, name) for name in _common_names(type(source), target)}


@memoized
def _common_names(source: type, target: type) -> tuple[str, ...]:
    names = {field.name for field in attrs.fields(target)}
    return tuple(field.name for field in attrs.fields(source) if field.name in names)


def secrets_hidden(record: type[Message]) -> Callable[[type, list[Any]], list[Any]]:
    """A field transformer of attrs: a repr shows of an entry only what the record type declares and not as secret."""
    shown = {name for name, _ in field_specs(record)}.difference(secret_fields(record))
    return lambda _, fields: [field.evolve(repr=field.repr and field.name in shown) for field in fields]
