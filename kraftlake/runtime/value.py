"""Equality, hash and repr of data classes, defined once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import attrs


class Value:
    """Base of attrs classes with `eq=False, repr=False`, with the same results as the methods that attrs generates.

    attrs compiles these methods for each class at import, which takes half of the time to create a class: 9 ms for the
    classes of a process that reads a lake.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        kind: Any = type(self)
        values = _compared(kind)
        return bool(values(self) == values(other))

    def __hash__(self) -> int:
        kind: Any = type(self)
        return hash((kind, _compared(kind)(self)))

    def __repr__(self) -> str:
        kind: Any = type(self)
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in attrs.fields(kind) if field.repr)
        return f"{kind.__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


@cache
def _compared(kind: Any) -> Callable[[Any], Any]:
    return attrgetter(*(field.name for field in attrs.fields(kind) if field.eq))
