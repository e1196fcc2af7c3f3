"""What a check finds: its severity, the things concerned, since when, and what helps."""

from __future__ import annotations

import enum
from typing import Any

import attrs

from kraftlake.diagnosis.doctor.group import Group, LogPosition, earliest
from kraftlake.diagnosis.doctor.help import Help


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


@attrs.frozen(kw_only=True)
class Found:
    """What a check returns: a sentence and the groups of things; the rest where it is not the check's own.

    `lasts` says that it is still so, and did not only happen. `helps` takes the place of the check's where it is not
    empty: what is destructive stands here alone, as it needs evidence.
    """

    sentence: str
    groups: tuple[Group, ...] = ()
    lasts: bool = True
    severity: Severity | None = None
    command: str | None = None
    helps: tuple[Help, ...] = ()


@attrs.frozen(kw_only=True)
class Finding:
    """A finding of the check `check`. `command` shows more, `helps` says what helps, the first thing to do first."""

    check: str
    severity: Severity
    sentence: str
    groups: tuple[Group, ...]
    command: str
    helps: tuple[Help, ...] = attrs.field(validator=attrs.validators.min_len(1))
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
            "helps": [one.to_json() for one in self.helps],
            "groups": [group.to_json() for group in self.groups],
        }
