"""What a check finds: its severity, the things concerned, since when, and what helps."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import attrs


class Severity(enum.IntEnum):
    """How much a finding hurts; the lower, the worse. Only what is above INFO makes a cluster unhealthy."""

    CRITICAL = 0
    """Data can't be read or written, or may be lost."""
    WARNING = 1
    """Redundancy is lost, or a change is stuck."""
    INFO = 2
    """Good to know; no fault."""

    @property
    def word(self) -> str:
        """`critical`, `warning` or `info`."""
        return self.name.lower()


@attrs.frozen(kw_only=True, order=True)
class LogPosition:
    """A place in the log: an offset, and the time of its batch in epoch ms, None where the batch has none."""

    offset: int
    timestamp: int | None = attrs.field(order=False)

    @classmethod
    def of(cls, offset: int, time: int) -> LogPosition:
        """The place of an offset whose time is -1 for none."""
        return cls(offset=offset, timestamp=None if time < 0 else time)

    def to_json(self) -> dict[str, Any]:
        """The offset and the time."""
        return {"offset": self.offset, "timestamp": self.timestamp}


@attrs.frozen(kw_only=True)
class Group:
    """Things with the same trouble for the same reason; `since` is None where the log does not reach back so far."""

    reason: str
    things: tuple[str, ...]
    since: LogPosition | None = None


@attrs.frozen(kw_only=True)
class Found:
    """What a check returns: a sentence and the groups of things; the rest where it is not the check's own.

    `lasts` says that it is still so, and did not only happen.
    """

    sentence: str
    groups: tuple[Group, ...] = ()
    lasts: bool = True
    severity: Severity | None = None
    command: str | None = None
    helps: str | None = None


@attrs.frozen(kw_only=True)
class Finding:
    """A finding of the check `check`. `command` shows more, `helps` says what usually helps."""

    check: str
    severity: Severity
    sentence: str
    groups: tuple[Group, ...]
    command: str
    helps: str
    lasts: bool = True

    @property
    def things(self) -> tuple[str, ...]:
        """The things of all groups, each once, in the order of the groups."""
        return tuple(dict.fromkeys(thing for group in self.groups for thing in group.things))

    @property
    def since(self) -> LogPosition | None:
        """Where the oldest group began; None where that is not known of a group."""
        return earliest(group.since for group in self.groups)

    @property
    def says_more(self) -> bool:
        """Whether the groups have more to say than the sentence."""
        return len(self.groups) > 1 or any(group.reason not in self.sentence for group in self.groups)

    def to_json(self) -> dict[str, Any]:
        """The finding as `kraftlake doctor --json` prints it."""
        since = self.since
        return {
            "check": self.check,
            "severity": self.severity.word,
            "sentence": self.sentence,
            "since": None if since is None else since.to_json(),
            "things": list(self.things),
            "command": self.command,
        }


def earliest(positions: Iterable[LogPosition | None]) -> LogPosition | None:
    """The first of some places; None where one of them is unknown, and for none."""
    known = list(positions)
    return min((one for one in known if one is not None), default=None) if None not in known else None
