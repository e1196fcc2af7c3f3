"""A module that is imported when something in it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for the module `name`; once an attribute was asked for, it is as quick as one of its own."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"LazyModule({self.__name__!r})"

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self.__name__), attribute)
        setattr(self, attribute, value)
        return value
