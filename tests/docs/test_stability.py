"""What docs/stability.md shows is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.running import DIRECTORY, ROOT, run

PAGE = (ROOT / "docs" / "stability.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ kraftlake ([^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)
MADE = re.findall(r"^    kraftlake (generate made-up .*)$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    (command,) = MADE
    run(*(str(made / word) if word == "made-up" else word for word in shlex.split(command)))
    return made


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(command: str, output: str, folder: Path) -> None:
    places = {"L": str(DIRECTORY), "made-up": str(folder / "made-up")}
    printed = run(*(places.get(word, word) for word in shlex.split(command)), width=100).stdout.rstrip("\n")
    assert [line.rstrip() for line in printed.splitlines()] == output.splitlines()


def test_the_page_shows_commands() -> None:
    assert len(SHOWN) == 2
