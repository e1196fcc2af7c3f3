"""The page on publishers: its example runs, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraftlake.replay.imports.import_log import import_source

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "publishers.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    import_source(ROOT / "samples" / "kafka-4.4" / "log", tmp_path / "lake")
    monkeypatch.chdir(tmp_path)

    exec(compile(code, "docs/publishers.md", "exec"), {})

    assert capsys.readouterr().out == printed
