"""The driver of the tests' Spark cluster: a process whose JVM and executors start once for many tests.

`python -m tests.spark_driver MASTER` reads lines `["module:function", "argument", …]`, calls the function, `main` where
none is named, with the session and the arguments, and answers with a line, the JSON of what it returned. It ends when
the function raises, with a traceback.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from tests.process_sessions import kill_session, killed_with_parent
from tests.waiting import is_readable


@attrs.define(kw_only=True)
class ClusterDriver:
    """The process, as tests see it."""

    log: Path
    _process: subprocess.Popen[bytes]
    idle: bool = attrs.field(init=False, default=True)
    """Whether it has answered all that it was asked."""

    @classmethod
    def start(cls, master: str, folder: Path, environment: Mapping[str, str]) -> ClusterDriver:
        """Start it; what it prints on stderr is in a file of the folder."""
        log = folder / "driver.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                killed_with_parent(sys.executable, "-m", __name__, master),
                cwd=Path(__file__).resolve().parents[1],
                env=environment,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        return cls(log=log, process=process)

    def ask(self, module: str, arguments: Iterable[object]) -> None:
        """Have it call `module:function`, or `main` of a module."""
        assert self.idle, "it runs another"
        assert self._process.stdin is not None
        self.idle = False
        self._process.stdin.write(json.dumps([module, *map(str, arguments)]).encode() + b"\n")
        self._process.stdin.flush()

    @property
    def busy(self) -> bool:
        """Whether the function runs."""
        return not self.idle and self._process.poll() is None and not self._has_answered(0)

    def answer(self, timeout: float) -> Any:
        """Wait for what the function returns."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline() if self._has_answered(timeout) else b""
        assert line, self.said() or f"no answer in {timeout} s"
        self.idle = True
        return json.loads(line)

    def said(self) -> str:
        """The last of what it printed on stderr."""
        return self.log.read_text("utf-8", "replace")[-3000:]

    def kill(self) -> None:
        """kill -9 of the Python process alone: its JVM notices, and ends."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=60)

    def end(self) -> None:
        """End it, and all that it has started."""
        kill_session(self._process.pid)
        with self._process:
            pass

    def _has_answered(self, timeout: float) -> bool:
        return is_readable(self._process.stdout.fileno(), timeout)


def main(master: str) -> None:
    from kraftlake.spark_jobs import spark_session
    from tests.spark_session import FOR_FEW_ROWS

    session = spark_session("tests on a cluster", master=master)
    for setting in FOR_FEW_ROWS.items():
        session.conf.set(*setting)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        module, _, function = name.partition(":")
        answer = getattr(import_module(module), function or "main")(session, *arguments)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
