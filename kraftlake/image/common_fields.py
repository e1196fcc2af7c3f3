"""The attributes that an entry of an image and its record have in common, and the secret ones among them."""

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
    """A field transformer of attrs: an entry's repr shows only the record's declared fields that are not secret."""
    shown = {name for name, _ in field_specs(record)}.difference(secret_fields(record))
    return lambda _, fields: [field.evolve(repr=field.repr and field.name in shown) for field in fields]
