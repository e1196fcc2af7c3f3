"""The drawn pictures of the docs: `python -m tools.architecture_picture` writes them to docs/images.

architecture.svg has a row for each layer of the import contract in pyproject.toml, the rooms of the layer side by
side, each with the first sentence of its `__init__.py`; a room may import those of the rows below it. Above them is the
way of the data. flow.svg shows what comes in and what goes out, spark-job.svg what executors and driver do in a step,
image-parts.svg the parts of an image, each with the first sentence of its class.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from html import escape
from pathlib import Path
from typing import get_type_hints

import attrs

from kraftlake.image.metadata_image import MetadataImage

ROOT = Path(__file__).resolve().parents[1]
FLOW = ("records", "log", "delta", "image", "publisher", "replica_manager")
"""What becomes of a record, in order."""
_SOURCES = (
    ("A log of Kafka's", "a __cluster_metadata-0 directory, a snapshot, an archive of a support bundle"),
    ("A live quorum", "followed as an observer of its controllers, or by a node's directory"),
    ("A controller of ours", "topics, brokers, configs: each command's records, fenced by epochs"),
)
_LAKE = (
    "The lake: a Delta table",
    "every metadata record, as Kafka wrote it; offsets without gaps, atomic batches, one writer at a time. "
    "Anything that reads Delta reads it. One replay makes all the rest: the same engine in one process and on Spark's "
    "executors.",
)
_ANSWERS = (
    ("Images, at any offset or time", "the command line, the Python API, a page to send: what was so, since when, why"),
    ("Tables", "histories, events, metrics, typed records: SQL on years of a cluster"),
    ("Each broker's local changes", "what it leads, follows and deletes; they drive a ReplicaManager"),
)
_EXECUTORS = (
    ("Executors: ranges", "a task a core reads its offsets of log/ and decodes each record once"),
    ("Shuffle", "large chunks of payloads, dealt out by topic id; marks go to all"),
    ("Executors: shards", "a LogReplay of some topics, from its state on: changes as rows before and after"),
    ("Executors: files", "the rows of each table as Parquet files, and the state for the next step"),
)
_AFTER_SHARDS = (
    (
        "One executor: what is of no topic",
        "brokers, configs, ACLs, quotas by a LogReplay of its own; the cluster's counts",
    ),
    (
        "Driver: one commit a table",
        "all files of the step, with the offset up to which the table is complete: exactly once",
    ),
)
_WIDTH, _MARGIN, _GAP, _STEP, _LINE = 920, 12, 8, 20, 14
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .room { font-weight: 600; font-size: 13px }
rect { fill: #f6f8fa; stroke: #8c959f } .flow rect { fill: #ddf4ff; stroke: #0969da }
path { stroke: #0969da; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #161b22; stroke: #6e7681 }
.flow rect { fill: #0c2d6b; stroke: #58a6ff } path { stroke: #58a6ff } }
"""


def layers() -> list[list[str]]:
    """The rooms of each layer, the one that knows all others first."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = configuration["tool"]["importlinter"]["contracts"][0]
    return [re.findall(r"kraftlake\.(\w+)", layer) for layer in contract["layers"]]


def job(room: str) -> str:
    """The first sentence of a room."""
    return first_sentence(ast.get_docstring(ast.parse((ROOT / "kraftlake" / room / "__init__.py").read_text("utf-8"))))


def first_sentence(docstring: str | None) -> str:
    """The first sentence of a docstring, without its full stop."""
    assert docstring
    return re.split(r"\.\s", docstring.replace("\n", " ") + " ")[0].replace("`", "").rstrip(".")


def architecture() -> str:
    """The SVG of the rooms."""
    parts, top = _flow(_MARGIN)
    for rooms in layers():
        width = (_WIDTH - 2 * _MARGIN - _GAP * (len(rooms) - 1)) / len(rooms)
        lines = [textwrap.wrap(job(room), int(width / 7.3)) for room in rooms]
        height = 26 + _LINE * max(map(len, lines))
        for number, (room, text) in enumerate(zip(rooms, lines, strict=True)):
            parts += _box((_MARGIN + number * (width + _GAP), top), (width, height), room, text)
        top += height + _GAP
    return _svg(parts, top)


def flow() -> str:
    """The SVG of what comes in and what goes out."""
    width, gap, height = 264, 52, 72
    parts: list[str] = []
    middle = _MARGIN + (3 * (height + _GAP) - _GAP) / 2
    for column, boxes in enumerate((_SOURCES, (_LAKE,), _ANSWERS)):
        left = _MARGIN + column * (width + gap)
        tall = height if len(boxes) > 1 else 3 * height + 2 * _GAP
        for number, (title, text) in enumerate(boxes):
            top = _MARGIN + number * (height + _GAP)
            lake = len(boxes) == 1
            box = _box((left, top), (width, tall), title, textwrap.wrap(text, int(width / 7.3)))
            parts += ['<g class="flow">', *box, "</g>"] if lake else box
            side = top + tall / 2
            if column == 0:
                parts.append(_arrow(left + width + 4, side, left + width + gap - 4, middle + (side - middle) / 2))
            elif column == 2:
                parts.append(_arrow(left - gap + 4, middle + (side - middle) / 2, left - 4, side))
    return _svg(parts, int(3 * (height + _GAP) + 2 * _MARGIN - _GAP))


def spark_job() -> str:
    """The SVG of a step of a Spark job."""
    width, height, between = 203, 72, 28
    parts: list[str] = []
    for number, (title, text) in enumerate(_EXECUTORS):
        left = _MARGIN + number * (width + between)
        parts += _box((left, _MARGIN), (width, height), title, textwrap.wrap(text, int(width / 7.3)))
        if number:
            parts.append(_arrow(left - between + 3, _MARGIN + height / 2, left - 3, _MARGIN + height / 2))
    top, wide = _MARGIN + height + 34, 2 * width + between
    parts.append('<g class="flow">')
    for number, (title, text) in enumerate(_AFTER_SHARDS):
        left = _MARGIN + number * (wide + between)
        parts += _box((left, top), (wide, 58), title, textwrap.wrap(text, int(wide / 7)))
    parts.append("</g>")
    for box in (0, 3):  # what is of no topic, and the names of the files
        middle = _MARGIN + box * (width + between) + width / 2
        parts.append(_arrow(middle, _MARGIN + height + 3, middle, top - 3, down=True))
    parts.append(_arrow(_MARGIN + wide + 3, top + 29, _MARGIN + wide + between - 3, top + 29))
    return _svg(parts, top + 58 + _MARGIN)


def image_parts() -> str:
    """The SVG of an image as a tree of its parts."""
    root, height, branch = (190, 58), 42, 40
    kinds = get_type_hints(MetadataImage)
    parts: list[str] = []
    names = [field.name for field in attrs.fields(MetadataImage)]
    tall = len(names) * (height + _GAP) - _GAP
    middle, left = _MARGIN + tall / 2, _MARGIN + root[0] + branch
    text = textwrap.wrap("one offset; immutable; shares what did not change", int(root[0] / 7))
    parts += [
        '<g class="flow">',
        *_box((_MARGIN, middle - root[1] / 2), root, "MetadataImage", text),
        "</g>",
    ]
    for number, name in enumerate(names):
        top = _MARGIN + number * (height + _GAP)
        title, sentence = f"{name}: {kinds[name].__name__}", first_sentence(kinds[name].__doc__)
        parts += _box((left, top), (_WIDTH - left - _MARGIN, height), title, [sentence])
        bend = left - branch / 2
        parts.append(f'<path d="M{_MARGIN + root[0]} {middle:.1f} H{bend:.1f} V{top + height / 2:.1f} H{left}"/>')
    return _svg(parts, tall + 2 * _MARGIN)


def _arrow(left: float, top: float, right: float, bottom: float, *, down: bool = False) -> str:
    head = "m-4 -6 l4 6 l4 -6" if down else "m-6 -4 l6 4 l-6 4"
    return f'<path d="M{left:.1f} {top:.1f} L{right:.1f} {bottom:.1f} {head}"/>'


def _svg(parts: list[str], height: float) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', f"<style>{_STYLE}</style>", *parts, "</svg>\n"]
    )


def _flow(top: int) -> tuple[list[str], int]:
    """The way of the data, and where it ends."""
    letters = sum(map(len, FLOW))
    free = _WIDTH - 2 * _MARGIN - _STEP * (len(FLOW) - 1) - 36 * len(FLOW)
    parts, left = ['<g class="flow">'], float(_MARGIN)
    for number, name in enumerate(FLOW):
        width = 36 + free * len(name) / letters
        parts += _box((left, top), (width, 30), name, [])
        if number:
            parts.append(f'<path d="M{left - _STEP + 2:.1f} {top + 15} h{_STEP - 4} m-6 -4 l6 4 l-6 4"/>')
        left += width + _STEP
    return [*parts, "</g>"], top + 30 + 2 * _GAP


def _box(at: tuple[float, float], size: tuple[float, float], title: str, lines: list[str]) -> list[str]:
    (left, top), (width, height) = at, size
    parts = [f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5"/>']
    parts.append(f'<text class="room" x="{left + 9:.1f}" y="{top + 19:.1f}">{escape(title)}</text>')
    for number, line in enumerate(lines):
        parts.append(f'<text x="{left + 9:.1f}" y="{top + 35 + number * _LINE:.1f}">{escape(line)}</text>')
    return parts


PICTURES = {
    "architecture.svg": architecture,
    "flow.svg": flow,
    "image-parts.svg": image_parts,
    "spark-job.svg": spark_job,
}
"""The pictures by their file in docs/images."""

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (ROOT / "docs" / "images" / name).write_text(picture(), "utf-8")
