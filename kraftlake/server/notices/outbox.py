"""The notices that wait to be delivered, and the findings of which each cluster's were made; in one file."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.whole_file import check_folder_of, write_whole

LIMIT: Final = 256
"""The number of notices that may wait."""
_VERSION: Final = 1

Form = dict[str, Any]
"""A finding as `kraftlake doctor --json` has it."""


def identity(finding: Form) -> str:
    """What makes a finding the same one later: its check and severity."""
    return f"{finding['check']}/{finding['severity']}"


def has_changed(noticed: Form, now: Form) -> bool:
    """Whether a finding is news again: it has twice the things of its last notice, or none of these any more.

    The doubling bounds the notices of a fault that spreads, however many things it takes.
    """
    before, things = {*noticed["things"]}, {*now["things"]}
    return bool(things) and (len(things) >= 2 * max(1, len(before)) or not things & before)


class Outbox:
    """The queue of one receiver, for any thread. What `offer` and `delivered` return from is on the disk.

    A notice has the findings of a cluster that have appeared, changed (`has_changed`) and cleared since the notice
    before. A finding is known by its check and severity. While LIMIT notices wait none is added: the next one that has
    room then has the difference to the last one, so that no lasting finding is lost.
    """

    def __init__(self, path: Path) -> None:
        """Read the file, which is made with the first notice.

        Raises UsageError for another file, EnvironmentFaultError if its folder is missing.
        """
        check_folder_of(path)
        self._path = path
        self._lock = threading.Lock()
        self._grown = threading.Event()
        self._known, self._queue = _read(path)
        self.deferred = 0
        """How often a notice had no room."""

    def __len__(self) -> int:
        return len(self._queue)

    def offer(self, cluster: str, findings: Sequence[Form], **facts: Any) -> None:
        """Add a notice if the findings of a cluster differ from those of its last notice; `facts` are in it, too.

        Raises EnvironmentFaultError where the file can't be written; nothing is added then.
        """
        now = {identity(one): one for one in findings}
        with self._lock:
            before = self._known.get(cluster, {})
            appeared = [one for key, one in now.items() if key not in before]
            changed = [one for key, one in now.items() if key in before and has_changed(before[key], one)]
            cleared = [one for key, one in before.items() if key not in now]
            if not (appeared or changed or cleared):
                return
            if len(self._queue) >= LIMIT:
                self.deferred += 1
                return
            news = {"appeared": appeared, "changed": changed, "cleared": cleared}
            notice = {"id": str(uuid.uuid4()), "cluster": cluster, **facts, **news}
            noticed = {**now, **{key: before[key] for key in now.keys() & before.keys() if now[key] not in changed}}
            self._keep({**self._known, cluster: noticed}, [*self._queue, notice])
        self._grown.set()

    def first(self) -> Form | None:
        """The notice that waits longest; None for none."""
        return self._queue[0] if self._queue else None

    def delivered(self, notice: Form) -> None:
        """Remove a notice that was delivered. Raises EnvironmentFaultError where the file can't be written."""
        with self._lock:
            self._keep(self._known, [one for one in self._queue if one is not notice])

    def wait(self, seconds: float) -> None:
        """Wait until a notice is added, `wake` is called, or some seconds have passed."""
        self._grown.wait(seconds)
        self._grown.clear()

    def wake(self) -> None:
        """End a `wait`."""
        self._grown.set()

    def _keep(self, known: Mapping[str, dict[str, Form]], queue: list[Form]) -> None:
        form = {"version": _VERSION, "known": known, "queue": queue}
        try:
            write_whole(self._path, [json.dumps(form, separators=(",", ":")).encode()])
        except OSError as fault:
            raise EnvironmentFaultError(f"{self._path} can't be written: {fault.strerror or fault}.") from fault
        self._known, self._queue = dict(known), queue


def _read(path: Path) -> tuple[dict[str, dict[str, Form]], list[Form]]:
    try:
        form = json.loads(path.read_bytes())
        if form["version"] == _VERSION:
            return dict(form["known"]), list(form["queue"])
    except FileNotFoundError:
        return {}, []
    except OSError as fault:
        raise EnvironmentFaultError(f"{path} can't be read: {fault.strerror or fault}.") from fault
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise UsageError(f"{path} is no queue of notices of this release: name another file, or delete it.")
