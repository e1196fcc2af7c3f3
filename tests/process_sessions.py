"""Processes with sessions of their own, killed with all that they started."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


class StillRunningError(Exception):
    """Processes that were killed do not end."""


def killed_with_parent(*command: str) -> list[str]:
    """The command, killed by the kernel when the process that starts it is gone, which may be killed itself.

    By a program of its own (util-linux): a `preexec_fn` may wait for ever for a lock that another thread held at the
    fork.
    """
    return ["setpriv", "--pdeathsig", "KILL", "--", *command]


def kill_session(session: int) -> None:
    """kill -9 for each process of a session; again until none is left, for they may be starting others."""
    deadline = time.monotonic() + 120
    while members := _members(session):
        for member in members:
            try:
                os.kill(member, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            raise StillRunningError(f"processes {members} of session {session} do not end")
        time.sleep(0.01)


def _members(session: int) -> list[int]:
    """The living processes of a session; a zombie waits for its parent only."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text("utf-8", "replace").rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(sid) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found
