"""A pager for answers that do not fit on the terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LESS = "FRX"
"""The options that git passes to `less`: quit if all fits on one screen, keep colours, leave the text on the screen."""


def pager_command() -> list[str] | None:
    """The command of PAGER, `less` where it is not set; None without a pager, or without a terminal to page on."""
    if os.environ.get("TERM", "dumb") == "dumb" or not _has_keys_and_height():
        return None
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return None
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None


def _has_keys_and_height() -> bool:
    """Whether stdin and stdout are terminals with a height: the terminal of a recording, such as `script`, has none."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and os.get_terminal_size(sys.stdout.fileno()).lines > 0
    except (AttributeError, OSError, ValueError):
        return False


@contextmanager
def written_to(command: list[str]) -> Iterator[None]:
    """Send the output on stdout to a pager, and wait for its end.

    Quitting the pager early ends the context; the remaining output is dropped.
    """
    stdout = sys.stdout
    pager = subprocess.Popen(  # noqa: S603 - the user's own command
        command,
        stdin=subprocess.PIPE,
        env={"LESS": _LESS, **os.environ},
        text=True,
        encoding=stdout.encoding,
        errors="backslashreplace",
    )
    assert pager.stdin is not None
    sys.stdout = pager.stdin
    try:
        with suppress(BrokenPipeError):
            yield
            sys.stdout.flush()
    finally:
        interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the pager's until that ends
        with suppress(BrokenPipeError):
            sys.stdout.close()
        sys.stdout = stdout
        pager.wait()
        signal.signal(signal.SIGINT, interrupts)
