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

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
README = (ROOT / "README.md").read_text("utf-8")
_, EXAMPLE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SAID = re.findall(r"^print.*# (.+)$", EXAMPLE, re.MULTILINE)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_spark_example_prints_what_its_comments_say(own_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(EXAMPLE.replace('"LAKE', f'"{own_lake}'), {"__name__": "example"})
    assert SAID
    assert capsys.readouterr().out.splitlines() == SAID


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="make test-long: the same with the wheel, in a process and a JVM of its own")
def test_the_spark_example_prints_what_its_comments_say_with_the_wheel(
    wheel: Path, own_lake: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = EXAMPLE.replace('"LAKE', f'"{own_lake}') + "print(kraftlake.__file__)\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [*SAID, str(tmp_path / "installed/kraftlake/__init__.py")]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_readme_is_two_screens_long() -> None:
    assert len(README.splitlines()) <= 125
