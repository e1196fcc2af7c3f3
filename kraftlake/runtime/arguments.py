"""Checks of arguments of public functions: a value of the wrong type raises a UsageError that shows the value.

The functions that use a value check its meaning: whether an offset is in the log, or a path exists.
"""

from __future__ import annotations

import operator
import os
import reprlib
from collections.abc import Iterable
from typing import Any, TypeVar, overload

from kraftlake.runtime.errors import UsageError

T = TypeVar("T")

_BITS = 63


def whole(given: Any, what: str = "an offset", *, least: int | None = None) -> int:
    """Return a whole number, also one of numpy's, that fits into Kafka's 64 bits.

    `least` is the lowest allowed value.
    """
    try:
        number = operator.index(given)
    except TypeError:
        raise _refused(given, what) from None
    if isinstance(given, bool) or number.bit_length() > _BITS:
        raise _refused(given, what)
    if least is not None and number < least:
        raise UsageError(f"{number} is not {what}: the lowest is {least}.")
    return number


def whole_or_none(given: Any, what: str = "an offset", *, least: int | None = None) -> int | None:
    """The same as `whole`, with None allowed."""
    return None if given is None else whole(given, what, least=least)


def text(given: Any, what: str) -> str:
    """Return a string."""
    return instance(given, str, what)


def path_text(given: str | os.PathLike[str], what: str = "a path") -> str:
    """Return a path or URI as text: not empty, and without a null character."""
    try:
        path = os.fspath(given)
    except TypeError:
        raise _refused(given, what) from None
    if not isinstance(path, str) or not path or "\0" in path:
        raise _refused(given, what)
    return path


def path_texts(given: Iterable[str | os.PathLike[str]], what: str = "a path") -> tuple[str, ...]:
    """Return a list of paths; a single path is not allowed."""
    return tuple(path_text(path, what) for path in several(given, f"a list of which each is {what}"))


def texts(given: Iterable[str], what: str) -> tuple[str, ...]:
    """Return a list of strings; a single string is not allowed."""
    return tuple(text(one, what) for one in several(given, f"a list of which each is {what}"))


@overload
def instance(given: Any, kind: type[T], what: str) -> T: ...
@overload
def instance(given: Any, kind: tuple[type[Any], ...], what: str) -> Any: ...
def instance(given: Any, kind: Any, what: str) -> Any:
    """Return an instance of a class, or of one of several classes."""
    if not isinstance(given, kind):
        raise _refused(given, what)
    return given


def several(given: Any, what: str) -> list[Any]:
    """Return a list of any values; a single string or path is not allowed."""
    if isinstance(given, str | bytes | os.PathLike):
        raise _refused(given, what)
    try:
        return list(given)
    except TypeError:
        raise _refused(given, what) from None


def _refused(given: Any, what: str) -> UsageError:
    return UsageError(f"{reprlib.repr(given)} is not {what}.")
