"""The README and the tutorial show what their commands print, and what their Python prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import DIRECTORY, ROOT, run
from tests.docs.shown import anew

PAGES = ("README.md", "docs/tutorial.md")
OF_PYTHON = (*PAGES, "docs/concepts/images.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert len(re.findall(r"^\$ kraftlake", text, re.MULTILINE)) >= 5
    assert anew(text) == text, f"python -m tests.docs.shown {page} writes it anew"


@pytest.mark.parametrize("page", OF_PYTHON)
def test_its_first_python_prints_what_its_comments_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    Path("samples").symlink_to(ROOT / "samples")
    if "LAKE" in example:
        run("import", DIRECTORY, "LAKE")
        run("tables", "LAKE", "partition_history")
    capsys.readouterr()
    exec(compile(example, page, "exec"), {})
    said = re.findall(r"^print.*# (.+)$", example, re.MULTILINE)
    assert said
    assert capsys.readouterr().out.splitlines() == said
