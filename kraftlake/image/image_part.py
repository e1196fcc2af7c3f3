"""What the parts of an image have in common."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class _Empty:
    """The object of a class that is made of defaults."""

    def __get__(self, _: object, cls: type[T]) -> T:
        made = cls()
        cls.EMPTY = made  # type: ignore[attr-defined]
        return made


class ImagePart:
    """A part of an image: an attrs class whose defaults make the empty part, `EMPTY`."""

    __slots__ = ()
    EMPTY = _Empty()

    def is_empty(self) -> bool:
        """Whether nothing is set."""
        return bool(self == self.EMPTY)
