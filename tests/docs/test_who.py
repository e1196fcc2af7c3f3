"""What docs/who.md shows is what the commands print, and its Python runs."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.running import ROOT, run

PAGE = (ROOT / "docs" / "who.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ kraftlake ([^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)
FILES = {
    "W": "samples/authorized/log/__cluster_metadata-0",
    "A": "samples/authorized/node-1/kafka-authorizer.log.gz",
}


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed = run(*[FILES.get(word, word) for word in shlex.split(command)], width=100).stdout.rstrip("\n")
    assert [line.rstrip() for line in printed.splitlines()] == output.splitlines()


def test_the_page_shows_commands_and_says_what_stands_for_files() -> None:
    assert len(SHOWN) == 2
    for file in FILES.values():
        assert f"`{file}`" in PAGE


def test_its_python_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "docs/who.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[:2] == [
        "User:alice", "topic t-0 is created with 1 partition, replication factor 1 User:alice",
    ]  # fmt: skip
