"""Classes of attrs whose instances are frozen by agreement: they are made in half the time.

mypy sees to it that nobody changes them, and the tests of the rooms run with the real ones. `install` has to come
before the import of kraftlake.
"""

from __future__ import annotations

import sys
from typing import Any

import attrs


def install() -> None:
    """Let `attrs.frozen` make classes without a check of assignments from now on, in this process."""
    assert "kraftlake.image" not in sys.modules, "classes are frozen already"
    attrs.frozen = _frozen  # type: ignore[assignment]


def _frozen(kind: type[Any] | None = None, **options: Any) -> Any:
    """A class as `attrs.frozen` makes it, with the same equality and hash."""
    if kind is None:
        return lambda kind: _frozen(kind, **options)
    has_own = {"__eq__", "__hash__"} & vars(kind).keys()
    if options.get("eq") is not False and not has_own and not issubclass(kind, BaseException):
        options.setdefault("unsafe_hash", True)
    return attrs.define(kind, on_setattr=attrs.setters.NO_OP, **options)
