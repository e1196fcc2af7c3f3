"""The JSON form of report classes: their fields under camel-case names."""

from __future__ import annotations

from typing import Any

import attrs


def camel_case(name: str) -> str:
    """Convert `size_in_bytes` to `sizeInBytes`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def fields_as_json(report: attrs.AttrsInstance) -> dict[str, Any]:
    """The fields of an attrs object under camel-case names, in order; tuples become lists, reports their JSON."""
    return {camel_case(field.name): _form(getattr(report, field.name)) for field in attrs.fields(type(report))}


def _form(value: Any) -> Any:
    if isinstance(value, tuple):
        return [*map(_form, value)]
    return value.to_json() if hasattr(value, "to_json") else value
