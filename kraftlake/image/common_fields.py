"""The attributes that an entry of an image and its record have in common."""

from __future__ import annotations

from typing import Any

import attrs


def common_fields(source: Any, target: type) -> dict[str, Any]:
    """The values of the attributes that an attrs object and the attrs class `target` have in common, by name."""
    names = {field.name for field in attrs.fields(target)}
    return {field.name: getattr(source, field.name) for field in attrs.fields(type(source)) if field.name in names}
