"""Runs a notebook in a folder beside the samples, and writes its outputs into it: python -m tools.run_notebook FILE."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tools.samples import beside_samples


def executed(path: Path) -> Any:
    """The notebook with the outputs of a run."""
    import nbformat  # compiles grammars when it is imported, for seconds
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with beside_samples():
        NotebookClient(notebook, timeout=300).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    return notebook


if __name__ == "__main__":
    import nbformat

    file = Path(sys.argv[1])
    nbformat.write(executed(file), file)
