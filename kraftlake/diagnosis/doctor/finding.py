"""A finding of a check: its severity, the things concerned, since when, and the remedies."""

from __future__ import annotations

import enum
from typing import Any

import attrs

from kraftlake.diagnosis.doctor.group import Affected, LogPosition, earliest
from kraftlake.diagnosis.doctor.help import Help


class Severity(enum.IntEnum):
    """The severity of a finding; the lower, the worse. Only findings above INFO make a cluster unhealthy."""

    CRITICAL = 0
    """Data can't be read or written, or may be lost."""
    WARNING = 1
    """Redundancy is lost, or a change is stuck."""
    INFO = 2
    """Worth knowing; not a fault."""

    @property
    def word(self) -> str:
        """`critical`, `warning` or `info`."""
        return self.name.lower()


@attrs.frozen(kw_only=True)
class CheckResult:
    """The result of a check: a sentence, the groups of things, and fields that override the check's own.

    `lasts` says that the finding still holds, and is not a past event. `helps` replaces the check's where it is not
    empty: destructive remedies appear here alone, as they need evidence.
    """

    sentence: str
    groups: tuple[Affected, ...] = ()
    lasts: bool = True
    severity: Severity | None = None
    command: str | None = None
    helps: tuple[Help, ...] = ()


@attrs.frozen(kw_only=True)
class Finding:
    """A finding of the check `check`. `command` shows more, `helps` are the remedies in the order of their use."""

    check: str
    severity: Severity
    sentence: str
    groups: tuple[Affected, ...]
    command: str
    helps: tuple[Help, ...] = attrs.field(validator=attrs.validators.min_len(1))
    lasts: bool = True

    @property
    def things(self) -> tuple[str, ...]:
        """The things of all groups, each once, in the order of the groups."""
        return tuple(dict.fromkeys(thing for group in self.groups for thing in group.things))

    @property
    def since(self) -> LogPosition | None:
        """The start of the oldest group; None where it is unknown for a group."""
        return earliest(group.since for group in self.groups)

    @property
    def says_more(self) -> bool:
        """Whether the groups have details beyond the sentence."""
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
