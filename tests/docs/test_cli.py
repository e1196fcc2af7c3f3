"""What docs/cli.md shows of the shell is what it prints, and its table has all commands."""

from __future__ import annotations

import re
import shlex

import pytest

from kraftlake.cli.shell.commands import COMMANDS
from tests.cli.running import ROOT, run

PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")
LOG = "samples/kafka-4.4/log/__cluster_metadata-0"


def test_the_shell_prints_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    ((command, output),) = re.findall(r"```console\n\$ kraftlake ([^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)
    assert f"`L` is `{LOG}`" in PAGE
    monkeypatch.chdir(ROOT)
    words = [LOG if word == "L" else word for word in shlex.split(command)]
    assert run(*words, width=100).stdout == f"{output}\n"


def test_the_page_names_every_command_of_the_shell() -> None:
    (table,) = re.findall(r"## The shell\n.*?\| --- \| --- \|\n(.*?)\n\n", PAGE, re.DOTALL)
    names = [
        name.split()[0] for row in table.splitlines() for name in re.findall(r"`([a-z][^`]*)`", row.split(" | ")[0])
    ]
    assert sorted(names) == sorted(COMMANDS)
