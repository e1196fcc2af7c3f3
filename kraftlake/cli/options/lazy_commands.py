"""Commands that are imported when they are asked for: importing all of them takes longer than most of them run."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from importlib import import_module

import click


class LazyCommands(UserDict[str, click.Command]):
    """The commands of a group by name, for click; `places` are `file:name`, a file of `package` and a name in it."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        super().__init__()
        self._package = package
        self._places = places

    def __missing__(self, name: str) -> click.Command:
        file, _, attribute = self._places[name].partition(":")
        command: click.Command = getattr(import_module(f"{self._package}.{file}"), attribute)
        self.data[name] = command
        return command

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
