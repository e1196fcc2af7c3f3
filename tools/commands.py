"""The commands of kraftlake with their full names."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kraftlake.cli.application import application


def commands(path: str = "kraftlake", command: click.Command = application) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups before their commands."""
    yield path, command
    for name, child in command.commands.items() if isinstance(command, click.Group) else ():
        yield from commands(f"{path} {name}", child)
