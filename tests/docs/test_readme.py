"""The README fits on two screens, and its Spark example and its links are right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.spark
def test_the_spark_example_prints_what_its_comments_say(
    own_lake: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example.replace('"LAKE', f'"{own_lake}'), "README.md", "exec"), {})
    said = re.findall(r"^print.*# (.+)$", example, re.MULTILINE)
    assert said
    assert capsys.readouterr().out.splitlines()[-len(said) :] == said


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_readme_is_two_screens_long() -> None:
    assert len(README.splitlines()) <= 125
