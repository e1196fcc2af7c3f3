"""A picture of what a command prints on a terminal: `python tools/terminal_picture.py COMMAND… > picture.svg`.

The command runs with colours on and COLUMNS (default 100) cells to a line; `--lines N` before it keeps the first N
lines. The picture is an SVG that shows the command and its output.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import subprocess
import sys

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text


def main() -> int:
    """Run the command and write the SVG to stdout; the command's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=None, help="keep the first N lines")
    parser.add_argument("--title", default="", help="what the window's title says")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    width = int(os.environ.get("COLUMNS", "100"))
    environment = {**os.environ, "COLUMNS": str(width)}
    environment.pop("NO_COLOR", None)
    run = subprocess.run(
        [*arguments.command, "--color", "always"], env=environment, capture_output=True, text=True, check=False
    )
    sys.stderr.write(run.stderr)
    lines = run.stdout.splitlines()
    if arguments.lines is not None and len(lines) > arguments.lines:
        lines = [*lines[: arguments.lines], "…"]
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "bold green"), shlex.join(arguments.command)))
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
    svg = console.export_svg(title=arguments.title, theme=MONOKAI, unique_id="terminal")
    # Fonts are the reader's: a picture in a README loads nothing from elsewhere.
    sys.stdout.write(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S))
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
