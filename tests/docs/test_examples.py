"""The examples in docs/examples run as they stand, on a lake of the sample."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from kraftlake.replay.imports.import_log import import_source
from tests.docs.sql_examples import DOCS
from tests.tables.history.folding import run_to_end
from tests.tables.sample_log import SAMPLE

EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example") / "LAKE"
    import_source(SAMPLE, path)
    run_to_end(path)
    return path


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_draws_the_picture_that_the_page_shows(lake: Path, example: Path) -> None:
    program = example.read_text("utf-8")
    assert program.startswith("# %%")
    done = subprocess.run(
        [sys.executable, "-"], input=program, cwd=lake.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "93 reigns of 11 partitions\n"
    drawn, shown = (size_of(path) for path in (lake.parent / "history.webp", DOCS / "images" / "history.webp"))
    assert drawn == shown
    assert (lake.parent / "history.webp").stat().st_size > 20_000


def size_of(picture: Path) -> tuple[int, int]:
    with Image.open(picture) as image:
        assert image.format == "WEBP"
        return image.size
