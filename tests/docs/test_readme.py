"""The README fits on two screens, and its Spark example and its links are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cli.running import ROOT

README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.spark
def test_the_spark_example_prints_what_its_comments_say_with_the_wheel(
    wheel: Path, own_lake: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    program = example.replace('"LAKE', f'"{own_lake}') + "print(kraftlake.__file__)\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    said = re.findall(r"^print.*# (.+)$", example, re.MULTILINE)
    assert said
    assert done.stdout.splitlines() == [*said, str(tmp_path / "installed/kraftlake/__init__.py")]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_readme_is_two_screens_long() -> None:
    assert len(README.splitlines()) <= 125
