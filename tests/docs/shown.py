"""The commands that pages of docs/ show, and what they print: `python -m tests.docs.shown PAGE` writes it anew."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cli.running import run
from tools.samples import beside_samples

_BLOCK = re.compile(r"(?<=```console\n).*?(?=\n```)", re.DOTALL)
UNHEALTHY = 3
"""The exit code of `doctor` on the pages."""


def anew(page: str) -> str:
    """The page with what its commands print now, run in order in one folder, where the clone's samples are."""
    names: dict[str, str] = {}

    def printed(block: re.Match[str]) -> str:
        commands = [line.removeprefix("$ ") for line in block[0].splitlines() if line.startswith("$ ")]
        return "\n".join(line for command in commands for line in (f"$ {command}", *_printed(command, names)))

    with beside_samples():
        return _BLOCK.sub(printed, page)


def _printed(command: str, names: dict[str, str]) -> Iterator[str]:
    for name, value in names.items():
        command = command.replace(f"${name}", value)
    command, _, first = command.partition(" | head -")
    tool, *words = shlex.split(command)
    if tool == "export":
        name, _, value = words[0].partition("=")
        names[name] = value
        return
    assert tool == "kraftlake", f"a page shows commands of kraftlake, not {command!r}"
    done = run(*words, width=100, code=UNHEALTHY if words[0] == "doctor" else 0)
    yield from (line.rstrip() for line in done.stdout.splitlines()[: int(first) if first else None])


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(anew(path.read_text("utf-8")), "utf-8")
