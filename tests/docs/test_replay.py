"""What docs/replay.md shows is what the commands print."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.at_least_one import at_least_one
from tests.cli.running import ROOT, run

PAGE = (ROOT / "docs" / "replay.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ kraftlake ([^\n]+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run(*shlex.split(command)).stdout == output


def test_the_page_shows_commands() -> None:
    assert len(SHOWN) == 4


def test_every_action_is_named() -> None:
    from kraftlake.replica_manager.transitions import TransitionKind

    assert all(f"`{kind.value}`" in PAGE for kind in at_least_one(TransitionKind))
