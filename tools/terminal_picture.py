"""Pictures of what commands print on a terminal, as SVG: the command and its output, with colours.

`python -m tools.terminal_picture` writes those of the docs to docs/images. With a command behind it, it draws that
to stdout, at COLUMNS (default 100) cells to a line; `--lines N` before the command keeps the first N lines.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import attrs
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
LOG = "samples/kafka-4.4/log/__cluster_metadata-0"


@attrs.frozen
class Picture:
    """A command, and as much of its output as is drawn."""

    command: str
    title: str
    width: int = 100
    lines: int | None = None

    def svg(self) -> str:
        """The picture; what the command writes to stderr is passed on."""
        environment = {**os.environ, "COLUMNS": str(self.width), "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}"}
        environment.pop("NO_COLOR", None)
        words = [*shlex.split(self.command), "--color", "always"]
        run = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        sys.stderr.write(run.stderr)
        lines = run.stdout.splitlines()
        if self.lines is not None and len(lines) > self.lines:
            lines = [*lines[: self.lines], "…"]
        console = Console(record=True, width=self.width, file=io.StringIO(), force_terminal=True, highlight=False)
        console.print(Text.assemble(("$ ", "bold green"), self.command))
        for line in lines:
            console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
        svg = console.export_svg(title=self.title, theme=MONOKAI, unique_id="terminal")
        # Fonts are the reader's: a picture in a README loads nothing from elsewhere.
        return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


_BIN = Path(sys.executable).parent
PICTURES = {
    "doctor.svg": Picture(f"kraftlake doctor {LOG} --at 07:46:16.256", "kraftlake doctor", lines=18),
    "undo.svg": Picture(f"kraftlake undo {LOG} --at 4639 --to 4000", "kraftlake undo", width=120, lines=24),
    "image.svg": Picture(f"kraftlake image {LOG} --at-offset 4592", "kraftlake image", width=108, lines=46),
}
"""The pictures by their file in docs/images."""


def main() -> None:
    """Write the pictures of the docs, or that of a command to stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=None, help="keep the first N lines")
    parser.add_argument("--title", default="", help="what the window's title says")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.command:
        width = int(os.environ.get("COLUMNS", "100"))
        sys.stdout.write(Picture(shlex.join(given.command), given.title, width, given.lines).svg())
        return
    for name, picture in PICTURES.items():
        (ROOT / "docs" / "images" / name).write_text(picture.svg(), "utf-8")


if __name__ == "__main__":
    main()
