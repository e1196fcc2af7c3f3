"""A module that is imported at the first access to an attribute."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """A proxy of the module `name`; it keeps each attribute after the first access."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"LazyModule({self.__name__!r})"

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self.__name__), attribute)
        setattr(self, attribute, value)
        return value
