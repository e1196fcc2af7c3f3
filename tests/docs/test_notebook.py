"""The notebook of docs/examples runs, and holds what its cells print."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.at_least_one import at_least_one
from tests.cli.running import ROOT
from tools.run_notebook import executed

PATH = ROOT / "docs" / "examples" / "cluster.ipynb"


def texts(cell: Any) -> list[str]:
    """What a cell shows as text; the size of a page is that of its scripts, too."""
    shown = [output.get("data", {}).get("text/plain", output.get("text", "")) for output in cell.outputs]
    return [re.sub(r"size=\d+", "size=…", text) for text in shown]


@pytest.mark.filterwarnings("ignore")  # of packages that a kernel is made of
def test_the_notebook_shows_what_its_cells_print() -> None:
    import nbformat  # which takes seconds, that a worker without this test need not spend

    held, now = nbformat.read(PATH, as_version=4), executed(PATH)
    for before, after in at_least_one(zip(held.cells, now.cells, strict=True)):
        if before.cell_type == "code":
            assert texts(before) == texts(after), f"python -m tools.run_notebook {PATH.relative_to(ROOT)}"
    page = now.cells[-1].outputs[0]["data"]["text/html"]
    assert page.startswith("<iframe srcdoc='&lt;!doctype html&gt;")
    assert page.count("'") == 8, "the page is escaped: it can't leave its frame"
