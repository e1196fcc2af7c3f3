"""The pages for those who embed the library: their examples run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.records.metadata_records import NoOpRecord
from tests.at_least_one import at_least_one
from tests.cli.running import run

ROOT = Path(__file__).resolve().parents[2]


def example(page: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL)
    return str(code)


def test_the_example_of_appending_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("format", "lake")
    exec(compile(example("appending.md"), "docs/appending.md", "exec"), {})
    *_, first, second = kraftlake.open("lake").records()
    assert first.message == second.message == NoOpRecord()


def test_the_commands_and_the_example_of_the_controller_make_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "controller.md").read_text("utf-8")
    (commands,) = re.findall(r"## From the command line\n```\n(.*?)```", page, re.DOTALL)
    for command in at_least_one(commands.splitlines()):
        run(*shlex.split(command.removeprefix("kraftlake ")))
    names: dict[str, Any] = {}
    exec(compile(example("controller.md"), "docs/controller.md", "exec"), names)
    assert "bills" in capsys.readouterr().out
    assert set(kraftlake.open("cluster").image().topics.topics_by_name()) == {"orders", "bills"}
