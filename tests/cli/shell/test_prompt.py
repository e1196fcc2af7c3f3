"""The shell at a prompt, in a pseudo-terminal: lines are typed, keys pressed, and what is drawn is read."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import TracebackType

import pytest

from tests.cli.running import DIRECTORY, ROOT
from tests.image.nodes import recorded
from tests.waiting import PATIENCE, is_readable

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Typist:
    """A shell in a pseudo-terminal; `wait` reads until it has drawn something."""

    def __init__(self, cache: Path, *words: object, width: int = 100, **environment: str) -> None:
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        self.modes_before = termios.tcgetattr(child)
        variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        settings = {
            "TERM": "xterm-256color", "PAGER": "cat", "KRAFTLAKE_CACHE": str(cache), "PROMPT_TOOLKIT_NO_CPR": "1",
        }  # fmt: skip
        self._child = child
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kraftlake.cli", "shell", *map(str, words or (DIRECTORY,))],
            cwd=ROOT, stdin=child, stdout=child, stderr=child, start_new_session=True,
            env={**variables, **settings, **environment},
        )  # fmt: skip
        self.raw = ""
        self._read = 0

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._main, keys.encode())

    def wait(self, wanted: str) -> str:
        """What is drawn up to some text, without colours; the next wait goes on behind it."""
        while (place := self._plain().find(wanted, self._read)) < 0:
            assert is_readable(self._main), f"{wanted!r} is not in {self._plain()[self._read :]!r}"
            self.raw += os.read(self._main, 65536).decode()
        drawn = self._plain()[self._read : place]
        self._read = place + len(wanted)
        return drawn

    def drawn(self) -> str:
        """All that was waited for, without colours."""
        return self._plain()[: self._read]

    def run(self, line: str, directory: str) -> str:
        """Type a line; what is drawn below it, up to the next prompt, which ends with this directory."""
        self.type(f"{line}\r")
        self.wait("\n")
        return self.wait(f"{directory}>").rpartition("\n")[0]

    def end(self, code: int = 0) -> None:
        """Wait for the end of the shell: it has this exit code, and leaves the terminal as it was."""
        assert self.process.wait(timeout=PATIENCE) == code
        assert termios.tcgetattr(self._child) == self.modes_before

    def _plain(self) -> str:
        return _CONTROL.sub("", self.raw).replace("\r", "")

    def __enter__(self) -> Typist:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE)
        os.close(self._main)
        os.close(self._child)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_walk_at_the_prompt(cache: Path) -> None:
    with Typist(cache) as shell:
        assert "`help` lists the commands" in shell.wait("5736 />")
        assert "\x1b[34m" in shell.raw
        shell.run("cd /image/topics/byName/elr-a", "5736 /image/topics/byName/elr-a")
        assert shell.run("ls", "elr-a").split() == ["0", "1", "2", "id", "name"]
        assert "  isr=[],\n" in shell.run("cat 0", "elr-a"), "no room on one line of 100 cells"
        assert shell.run("cat name ../t-22-3h4/name", "elr-a").split() == [
            "/image/topics/byName/elr-a/name", "elr-a", "/image/topics/byName/t-22-3h4/name", "t-22-3h4"
        ]  # fmt: skip
        assert "offset 4592, epoch 2" in shell.run("at 4592", "4592 /image/topics/byName/elr-a")
        assert "PARTITION_CHANGE  in sync 2 3 → 2 3 4" in shell.run("blame 0 isr", "elr-a")
        said = shell.run("at 900", "900 /image/topics/byName")
        assert "note: /image/topics/byName/elr-a is not there at offset 900: this is /image/topics/byName" in said
        assert "error: there is no node elr-a at offset 900" in shell.run("ls elr-a", "byName")
        shell.type("exit\r")
        shell.end()


def test_names_are_completed(cache: Path) -> None:
    with Typist(cache) as shell:
        shell.wait("/>")
        shell.type("cat /image/topics/byName/elr\t")
        shell.wait("-a/")  # completion has a thread of its own
        shell.type("name")
        shell.wait("name")
        shell.type("\r")
        shell.wait("\n")
        assert shell.drawn().split("\n")[-2].endswith("cat /image/topics/byName/elr-a/name")
        assert shell.wait("/>").split()[0] == "elr-a"
        shell.type("ls /image/cluster/brokers/\t")
        shell.wait("\n1 2 3 4 \n")
        shell.wait("brokers/")  # only then the terminal is the prompt's again, and reads keys
        shell.type("\x03")
        shell.wait("\n")
        shell.wait("/>")
        shell.type("\x04")
        shell.end()


def test_the_history_is_kept_for_the_user_alone(cache: Path) -> None:
    with Typist(cache) as shell:
        shell.wait("/>")
        shell.run("cd /image/cluster", "/image/cluster")
        shell.type("\x04")
        shell.end()
    kept = cache / "shell_history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    with Typist(cache) as shell:
        shell.wait("5736 />")
        shell.type("\x1b[A\r")
        shell.wait("5736 /image/cluster>")
        shell.type("history\r")
        shell.wait("    1  cd /image/cluster")
        shell.wait("    2  cd /image/cluster")
        shell.wait("    3  history")
        shell.type("exit\r")
        shell.end()
    kept.unlink()
    kept.symlink_to(cache / "elsewhere")
    with Typist(cache) as shell:
        assert "warning: the history is not kept: " in shell.wait("/>")
        shell.type("exit\r")
        shell.end()
    assert not (cache / "elsewhere").exists()


def test_what_has_no_room_on_the_screen_is_paged(cache: Path, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\nexec head -n 3\n")
    pager.chmod(0o700)
    with Typist(cache, recorded.checkpoint("crash-torn"), PAGER=str(pager)) as shell:
        shell.wait("1723 />")
        assert shell.run("find /image", "1723 /").split() == ["PAGED", "/image", "/image/acls", "/image/acls/byId"]
        assert "PAGED" not in shell.run("ls /image", "1723 /")
        shell.type("exit\r")
        shell.end()
    with Typist(cache, recorded.checkpoint("crash-torn"), "--no-pager", PAGER=str(pager)) as shell:
        shell.wait("1723 />")
        assert "PAGED" not in shell.run("find /image/acls", "1723 /")
        shell.type("exit\r")
        shell.end()


def test_ctrl_c_clears_the_line_and_a_signal_ends_the_shell(cache: Path) -> None:
    with Typist(cache) as shell:
        shell.wait("/>")
        shell.type("cd /image/topics\x03")
        shell.wait("\n")
        shell.wait("5736 />")
        assert shell.run("pwd", "/").strip() == "/"
        shell.type("ls /ima")
        shell.wait("/ima")
        shell.process.send_signal(signal.SIGTERM)
        shell.end(143)


def test_colours_are_left_out_where_they_are_not_wanted(cache: Path) -> None:
    with Typist(cache, NO_COLOR="1") as shell:
        shell.wait("/>")
        shell.run("ls /image", "/")
        shell.type("exit\r")
        shell.end()
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shell.raw)


@pytest.mark.parametrize("width", [60, 120])
def test_kafkas_paths_are_listed_in_the_columns_of_a_terminal(cache: Path, width: int) -> None:
    with Typist(cache, recorded.checkpoint("crash-torn"), width=width) as shell:
        shell.wait("/>")
        drawn = shell.run("ls /image/topics/byName", "1723 /")
        shell.type("exit\r")
        shell.end()
    topics = {path.split("/")[4] for path in recorded.found("crash-torn") if path.startswith("/image/topics/byName/")}
    assert set(drawn.split()) == topics
    assert max(map(len, drawn.splitlines())) <= width
