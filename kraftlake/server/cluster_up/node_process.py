"""A node as a child process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from kraftlake.runtime.java_properties import format_properties
from kraftlake.runtime.whole_file import write_whole
from kraftlake.server.cluster_up.cluster_plan import NodePlan

_LAUNCHER: Final = Path(__file__).with_name("node_launcher.py")
_TAIL_BYTES: Final = 64 * 1024
LONGEST_LOG: Final = 10 * 1024 * 1024
"""The size in bytes at which a log file is rotated; the two previous files are kept."""


class NodeProcess:
    """A node that is started once; it ends with the thread that starts it, in whatever way that thread ends.

    The node has a session of its own, so that Ctrl-C in a terminal does not reach it.
    """

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self.is_asked_to_end = False

    def start(self) -> None:
        """Start the node. Raises OSError if its folder can't be made or written."""
        self.plan.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.plan.properties_file, [format_properties(self.plan.settings)])
        self.rotate_log()
        command = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *self.plan.arguments]
        with self.plan.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def rotate_log(self) -> None:
        """Start a new log file if the current one is long.

        The node keeps appending to the same file, so its lines are copied and the file is truncated; lines that are
        written between the two steps, or can't be copied, are lost.
        """
        log = self.plan.log_file
        if not log.exists() or log.stat().st_size < LONGEST_LOG:
            return
        older, oldest = (log.with_name(f"{log.name}.{number}") for number in (1, 2))
        with suppress(OSError):
            if older.exists():
                older.replace(oldest)
            shutil.copyfile(log, older)
        os.truncate(log, 0)
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process id; None before the process is started."""
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def ending(self) -> str | None:
        """The way in which the process ended; None while it runs."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"

    @property
    def ended_well(self) -> bool:
        """Whether the process ended as requested, perhaps before it handled signals."""
        code = None if self._process is None else self._process.poll()
        return self.is_asked_to_end and code in (0, 128 + signal.SIGTERM, -signal.SIGTERM)

    def last_lines(self, count: int) -> list[str]:
        """The last lines of the log since the start."""
        with self.plan.log_file.open("rb") as log:
            log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return list(deque(lines, count))

    def ask_to_end(self) -> None:
        """Send SIGTERM, also to a stopped process; the second one makes a broker end without a controlled shutdown."""
        self.is_asked_to_end = True
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process, and wait for its end."""
        self.is_asked_to_end = True
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
