"""A notebook that was run, as a part of a page in Markdown."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat


def notebook_markdown(notebook: Path, images: Path) -> str:
    """The cells with what they print, headings one level lower; plots are written to a folder, `images` by its name."""
    return "\n\n".join(_parts(nbformat.read(notebook, as_version=4).cells, images)) + "\n"


def _parts(cells: list[Any], images: Path) -> Iterator[str]:
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            yield "\n".join(f"#{line}" if line.startswith("#") else line for line in cell.source.splitlines())
            continue
        yield f"```python\n{cell.source}\n```"
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                file = images / f"notebook-{number}.png"
                file.write_bytes(base64.b64decode(data["image/png"]))
                yield f"![What the cell draws]({images.name}/{file.name})"
            else:
                yield f"```text\n{data['text/plain'].rstrip()}\n```"
