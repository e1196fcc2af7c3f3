"""The JSON form of report classes: their fields under camel-case names."""

from __future__ import annotations

from typing import Any

import attrs


def camel_case(name: str) -> str:
    """Convert `size_in_bytes` to `sizeInBytes`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def fields_as_json(report: attrs.AttrsInstance) -> dict[str, Any]:
    """The fields of an attrs object under camel-case names, in order; tuples become lists."""
    fields = ((field.name, getattr(report, field.name)) for field in attrs.fields(type(report)))
    return {camel_case(name): list(value) if isinstance(value, tuple) else value for name, value in fields}
