"""The `kraftlake` command: reads the command line, asks the rooms below, and shows what they answer.

The door is `main`, the console entry point. Nothing heavy is imported before a command needs it: `--help` loads
click alone.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code."""
    from kraftlake.cli.application import application

    application.main(prog_name="kraftlake")
