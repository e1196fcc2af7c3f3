"""What docs/incidents.md shows is what the commands print about broken logs, at a terminal of 100 columns."""

from __future__ import annotations

import re
import shlex
from itertools import groupby
from pathlib import Path

import pytest
from click.testing import CliRunner

from kraftlake.cli.application import application
from tests.at_least_one import at_least_one
from tests.cli.running import ROOT
from tests.docs.broken_logs import BROKEN

PAGE = (ROOT / "docs" / "incidents.md").read_text("utf-8")
SHOWN = re.findall(r"`md` is `(\w+) ?(\d*)`:\n```console\n\$ kraftlake ([^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)
LEFT_OUT = "[…]"
UNHEALTHY = {"doctor": 3, "quorum": 3, "verify": 1}
HEALTHY = "✓ healthy"


@pytest.fixture
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("kind", "argument", "command", "output"), SHOWN, ids=[f"{command} of {kind}" for kind, _, command, _ in SHOWN]
)
@pytest.mark.usefixtures("_in_a_folder")
def test_a_command_prints_what_the_page_shows(kind: str, argument: str, command: str, output: str) -> None:
    BROKEN[kind](Path(), argument)
    result = CliRunner().invoke(application, shlex.split(command), env={"COLUMNS": "100"}, prog_name="kraftlake")
    unhealthy = UNHEALTHY.get(command.split(maxsplit=1)[0], 0)
    assert result.exit_code == (0 if HEALTHY in output else unhealthy)
    printed = [line.rstrip() for line in result.stdout.rstrip("\n").splitlines()]
    at = 0
    for left_out, group in groupby(output.splitlines(), key=lambda line: line == LEFT_OUT):
        if left_out:
            continue
        lines = list(group)
        begin = printed.index(lines[0], at)
        assert printed[begin : begin + len(lines)] == lines
        assert begin == at or at > 0, "the page leaves out the beginning without saying so"
        at = begin + len(lines)
    assert at == len(printed) or output.endswith(LEFT_OUT)


def test_the_page_asks_sixteen_questions_with_short_commands() -> None:
    questions = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)
    assert questions == [str(number) for number in range(1, 17)]
    assert len(SHOWN) == len(questions) + 1  # the first look comes before them
    assert [command for _, _, command, _ in SHOWN if len(f"kraftlake {command}") > 45] == []
    assert len(re.findall(r"^\$ kraftlake", PAGE, re.MULTILINE)) == len(SHOWN)


def test_each_question_says_what_kafkas_own_tools_show() -> None:
    for answer in at_least_one(PAGE.split("\n## ")[1:]):
        assert "Kafka's tools: " in answer.replace("\n", " "), answer.splitlines()[0]
