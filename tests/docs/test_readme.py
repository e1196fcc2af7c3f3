"""The README fits on two screens, and its Spark example and its links are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import DIRECTORY, ROOT, run

README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.spark
def test_the_spark_example_prints_what_its_comments_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    run("import", DIRECTORY, tmp_path / "LAKE")
    run("tables", tmp_path / "LAKE", "partition_history")
    monkeypatch.chdir(tmp_path)
    exec(compile(example.replace('"LAKE', f'"{tmp_path}/LAKE'), "README.md", "exec"), {})
    said = re.findall(r"^print.*# (.+)$", example, re.MULTILINE)
    assert said
    assert capsys.readouterr().out.splitlines()[-len(said) :] == said


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_readme_is_two_screens_long() -> None:
    assert len(README.splitlines()) <= 125
