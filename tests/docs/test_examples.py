"""The examples in docs/examples run as they stand, on a lake of the sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from tests.docs.sql_examples import DOCS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")  # of matplotlib
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_draws_the_picture_that_the_page_shows(
    own_lake: Path, example: Path, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    program = example.read_text("utf-8")
    assert program.startswith("# %%")
    exec(compile(program.replace("spark.stop()", ""), example.name, "exec"), {"__name__": "example"})
    assert capfd.readouterr().out == "93 reigns of 11 partitions\n"
    drawn, shown = (size_of(path) for path in (Path("history.webp"), DOCS / "images" / "history.webp"))
    assert drawn == shown
    assert Path("history.webp").stat().st_size > 20_000


def size_of(picture: Path) -> tuple[int, int]:
    with Image.open(picture) as image:
        assert image.format == "WEBP"
        return image.size
