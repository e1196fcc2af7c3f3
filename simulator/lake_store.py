"""An object store in memory for the lake of a simulation: slow, failing, seen late by some nodes, never torn.

It answers the calls that `ObjectPath` makes of obstore, so that all of the log's code above runs as it is. A request
that was sent arrives whatever becomes of its sender; its answer may be lost, and it may arrive after the sender's
time-out.
"""

from __future__ import annotations

import errno
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import attrs

from kraftlake.metadata_log.storage.object_path import ObjectPath
from simulator.scheduler import MILLISECOND, SECOND, WALL_START_NS, Killed, Process, Running, Scheduler

BUCKET = "s3://virtual"
_TIMEOUT_NS = 20 * SECOND


@attrs.frozen
class _Object:
    data: bytes
    written_ns: int
    writer: Process


@attrs.define
class LakeTrouble:
    """Shares of requests that go wrong, and the times that requests take."""

    slow: float = 0.0
    """The share of requests that take `slow_ns`, at most."""
    slow_ns: int = 3 * SECOND
    fails: float = 0.0
    """The share of reads that fail."""
    short: float = 0.0
    """The share of files on a disk of which a read gives the first part only."""
    unanswered: float = 0.0
    """The share of writes whose outcome the writer does not learn: made, not made, or made later."""


class Strike:
    """Calls something in the middle of one of the next writes to a lake."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._left = 0
        self._when_named = False
        self._strike: Callable[[Process], None] | None = None

    @property
    def is_armed(self) -> bool:
        """Whether it is to come."""
        return self._strike is not None

    def arm(self, left: int, strike: Callable[[Process], None], *, when_named: bool = False) -> None:
        """Call `strike` with the process that makes the last of so many steps of writes, before it makes it.

        With `when_named`, the first step after a file got its name is the last, too.
        """
        self._left, self._strike, self._when_named = left, strike, when_named

    def disarm(self) -> None:
        """Call nothing."""
        self._strike = None

    def named(self) -> None:
        """A file got its name."""
        if self._when_named:
            self._left = 1

    def count_down(self) -> None:
        """A step of a write is made, which takes some time."""
        strike, process = self._strike, self._scheduler.process
        if strike is None:
            return
        self._left -= 1
        if self._left <= 0:
            self._strike = None
            self._scheduler.after(0, lambda: strike(process))


class LakeStore:
    """The store; `on_put` gets each new object's key and content."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.chance = scheduler.outside.chance
        self.objects: dict[str, _Object] = {}
        self.trouble = LakeTrouble()
        self.strike = Strike(scheduler)
        self.hits = 0
        """How many requests went wrong."""
        self.on_put: Callable[[str, bytes, Process], None] = lambda key, data, writer: None
        self._keys: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Pass on what a request raises."""

    # what a simulation does

    def copy_of(self, objects: dict[str, bytes]) -> None:
        """Begin with these objects."""
        for key, data in objects.items():
            self._put_now(key, data, self.scheduler.outside)

    def contents(self) -> dict[str, bytes]:
        """All objects."""
        return {key: found.data for key, found in self.objects.items()}

    # one request

    def _request(self, *, is_write: bool = False) -> None:
        """Spend the time of a request; raises Killed, OSError."""
        process, chance = self.scheduler.process, self.chance
        trouble = process.extra.get("lake_trouble") or self.trouble
        if not process.alive:
            raise Killed
        if self.scheduler.current is None:
            return
        until_ns = process.extra.get("lake_gone_until", 0)
        if until_ns > self.scheduler.now_ns:
            self.hits += 1
            self.scheduler.sleep(min(_TIMEOUT_NS, until_ns - self.scheduler.now_ns))
            raise OSError(errno.EIO, "the object store does not answer")
        if trouble.slow and chance.random() < trouble.slow:
            self.hits += 1
            self.scheduler.sleep(chance.randrange(trouble.slow_ns))
        elif is_write:
            self.scheduler.sleep(chance.randrange(MILLISECOND, 8 * MILLISECOND))
        if trouble.fails and not is_write and chance.random() < trouble.fails:
            self.hits += 1
            raise OSError(errno.EIO, "the object store answers: 503")

    def _horizon(self) -> int:
        """Up to when the running process sees what others have written; never goes back."""
        process, now_ns = self.scheduler.process, self.scheduler.now_ns
        lag_ns = process.extra.get("lake_lag", 0)
        horizon: int = max(process.extra.get("lake_horizon", 0), now_ns - lag_ns)
        process.extra["lake_horizon"] = horizon
        return horizon

    def _visible(self, key: str) -> _Object:
        found = self.objects.get(key)
        if found is None or (found.writer is not self.scheduler.process and found.written_ns > self._horizon()):
            raise FileNotFoundError(errno.ENOENT, "there is no such object", key)
        return found

    def _put_now(self, key: str, data: bytes, writer: Process) -> None:
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = _Object(bytes(data), self.scheduler.now_ns, writer)
        self.on_put(key, data, writer)

    # obstore's calls

    def put(self, store: LakeStore, key: str, data: bytes, *, mode: str, use_multipart: bool = False) -> None:
        """Write an object; FileExistsError where it exists and mode is "create"."""
        self.strike.count_down()
        self._request(is_write=True)
        scheduler, trouble, chance = self.scheduler, self.trouble, self.chance
        writer = scheduler.process

        def arrive() -> None:
            if mode != "create" or key not in self.objects:
                self._put_now(key, data, writer)

        if trouble.unanswered and chance.random() < trouble.unanswered:
            self.hits += 1
            kind = chance.randrange(3)
            if kind == 0:
                arrive()
            elif kind == 1:
                scheduler.after(chance.randrange(60 * SECOND), arrive)
            scheduler.sleep(chance.randrange(_TIMEOUT_NS))
            raise OSError(errno.EIO, "the object store answers: timed out")
        found = self.objects.get(key)
        if mode == "create" and found is not None:
            writer.extra["lake_horizon"] = max(self._horizon(), found.written_ns)
            raise FileExistsError(errno.EEXIST, "there is such an object already", key)
        self._put_now(key, data, writer)
        self.strike.count_down()
        if scheduler.current is not None:
            scheduler.sleep(chance.randrange(MILLISECOND, 8 * MILLISECOND))

    def get(self, store: LakeStore, key: str) -> _Answer:
        """An object's content."""
        self._request()
        return _Answer(self._visible(key).data)

    def get_range(self, store: LakeStore, key: str, *, start: int, length: int) -> bytes:
        """A part of an object's content."""
        self._request()
        return self._visible(key).data[start : start + length]

    def head(self, store: LakeStore, key: str) -> dict[str, Any]:
        """An object's size and time."""
        self._request()
        found = self._visible(key)
        written_s = (WALL_START_NS + found.written_ns) / SECOND
        return {"size": len(found.data), "last_modified": datetime.fromtimestamp(written_s, UTC)}

    def delete(self, store: LakeStore, key: str) -> None:
        """Delete an object."""
        self._request(is_write=True)
        if self.objects.pop(key, None) is not None:
            self._keys.remove(key)

    def list(self, store: LakeStore, prefix: str | None = None, *, offset: str | None = None) -> Any:
        """The visible objects below a prefix, after an offset."""
        self._request()
        yield [{"path": key} for key in self._below(prefix or "", offset)]

    def list_with_delimiter(self, store: LakeStore, prefix: str | None) -> dict[str, Sequence[str]]:
        """The prefixes right below a prefix."""
        self._request()
        start = prefix or ""
        names = {key[len(start) :].partition("/")[0] for key in self._below(start, None) if "/" in key[len(start) :]}
        return {"common_prefixes": [f"{start}{name}" for name in sorted(names)]}

    def _below(self, prefix: str, offset: str | None) -> Sequence[str]:
        horizon, me = self._horizon(), self.scheduler.process
        first = bisect_left(self._keys, max(prefix, offset or ""))
        keys = []
        for key in self._keys[first:]:
            if not key.startswith(prefix):
                break
            found = self.objects[key]
            if key != offset and (found.writer is me or found.written_ns <= horizon):
                keys.append(key)
        return keys


@attrs.frozen
class _Answer:
    _data: bytes

    def bytes(self) -> bytes:
        return self._data


def requests(path: ObjectPath) -> LakeStore:
    """In place of `_requests` in object_path."""
    store: LakeStore = Running.scheduler.outside.extra["lake"]
    return store


def hooks() -> list[tuple[Any, str, Any]]:
    """Let objects have no client of their own: `requests` finds the store."""
    return [(ObjectPath, "store", None)]
