"""The command on a terminal: a pseudo terminal of a given width."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.running import DIRECTORY, ROOT

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*words: object, width: int = 80, **environment: str) -> str:
    """What a terminal of `width` columns receives from a command, on stdout and stderr."""
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "kraftlake.cli", *map(str, words)],
        cwd=ROOT, stdin=child, stdout=child, stderr=child,
        env={**variables, "TERM": "xterm-256color", "PAGER": "cat", **environment},
    ) as command:  # fmt: skip
        os.close(child)
        received = bytearray()
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            received += piece
        os.close(main)
        assert command.wait(timeout=60) == 0, received.decode()
    return received.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", [80, 120])
def test_lines_of_the_log_are_cut_to_the_terminal(width: int) -> None:
    received = ANSI.sub("", on_terminal("log", DIRECTORY, "--from", 1, "--to", 200, width=width))
    lines = received.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert any(line.endswith("…") for line in lines)
    days = [line for line in lines if line.startswith("── 2026-11-21 UTC")]
    assert len(days) == (1 if width < 110 else 0)
    assert len(lines) == 200 + len(days)


def test_a_terminal_gets_colours_and_no_color_takes_them_away() -> None:
    assert "\x1b[1m" in on_terminal("image", DIRECTORY, "--part", "brokers")
    assert "\x1b" not in on_terminal("image", DIRECTORY, "--part", "brokers", NO_COLOR="1")
    assert "\x1b[1mUsage:" in on_terminal("--help")
    assert "\x1b" not in on_terminal("--help", NO_COLOR="1")


def test_an_import_draws_its_progress_and_leaves_the_summary(tmp_path: Path) -> None:
    received = on_terminal("import", DIRECTORY, tmp_path / "lake", width=100)
    assert "Checking what the log holds" in received
    assert "Appending to the lake" in received
    assert "5,737 records" in received.rpartition("Appending")[2]


def test_json_on_a_terminal_is_json_alone() -> None:
    received = on_terminal("diff", DIRECTORY, 7, 7, "--json")
    assert json.loads(received)["from"] == 7
    assert received.count("\n") == 1
