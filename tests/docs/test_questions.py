"""What docs/questions.md shows is what the commands print, at a terminal of 100 columns."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.running import ROOT, run

PAGE = (ROOT / "docs" / "questions.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ kraftlake ([^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)
LOG = "samples/kafka-4.4/log/__cluster_metadata-0"


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = [LOG if word == "L" else word for word in shlex.split(command)]
    printed = run(*words, width=100, code=3 if words[0] in ("upgrade-check", "removal-check") else 0).stdout.rstrip(
        "\n"
    )
    assert [line.rstrip() for line in printed.splitlines()] == output.splitlines()


def test_the_page_shows_commands_and_says_what_l_stands_for() -> None:
    assert len(SHOWN) == 19
    assert f"`{LOG}`" in PAGE
