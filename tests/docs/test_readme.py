"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_example_prints_what_its_comments_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example
    monkeypatch.chdir(ROOT)
    exec(compile(example[1], "README.md", "exec"), {})
    said = re.findall(r"^print.*# (.+)$", example[1], re.MULTILINE)
    assert said
    assert capsys.readouterr().out.splitlines()[: len(said)] == said


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()
