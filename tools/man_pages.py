"""Writes a man page for each command: python -m tools.man_pages [FOLDER], default build/man/man1.

`MANPATH=build/man: man kraftlake-doctor` shows one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from click_man.core import write_man_pages

import kraftlake
from kraftlake.cli.application import application
from kraftlake.cli.options.command import Command
from tools.commands import commands

ROOT = Path(__file__).resolve().parents[1]


def write_pages(target: Path) -> list[Path]:
    """Write the pages; their files."""
    target.mkdir(parents=True, exist_ok=True)
    write_man_pages("kraftlake", application, version=kraftlake.__version__, target_dir=str(target))
    for name, command in commands():
        page = target / f"{name.replace(' ', '-')}.1"
        if isinstance(command, Command) and command.examples and page.exists():
            page.write_text(page.read_text("utf-8") + _examples(command), "utf-8")
    return sorted(target.glob("kraftlake*.1"))


def _examples(command: Command) -> str:
    """The section of examples, as click-man leaves it out."""
    lines = [".SH EXAMPLES"]
    for example in command.examples:
        lines += [
            ".PP",
            example.purpose,
            ".PP",
            ".RS 4",
            ".nf",
            example.command.replace("\\", "\\e").replace("-", "\\-"),
            ".fi",
            ".RE",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    pages = write_pages(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "man" / "man1")
    print(f"{len(pages)} pages are in {pages[0].parent}")
