"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kraftlake  # noqa: F401 - what the README asks
from tests.cli.running import DIRECTORY, run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_example_prints_what_its_comments_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(compile(example, "README.md", "exec"), {})
    said = re.findall(r"^print.*# (.+)$", example, re.MULTILINE)
    assert said
    assert capsys.readouterr().out.splitlines()[: len(said)] == said


def test_the_states_of_a_lake_are_asked_for_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("import", DIRECTORY, "LAKE")
    run("tables", "LAKE", "partition_history", "broker_history")
    example, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    partitions, brokers = [line.partition("  #")[0] for line in example.splitlines() if "state_at" in line]
    assert eval(partitions).num_rows == 75
    assert {row["broker"]: row["fenced"] for row in eval(brokers).to_pylist()}[3]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()
