"""An obstacle of an upgrade, with the record behind it and the command that mends it."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.diagnosis.things import Thing


@attrs.frozen(kw_only=True)
class RecordPlace:
    """A record of the log; `timestamp` in epoch ms, None for none, `type` None for what a snapshot has already."""

    offset: int
    timestamp: int | None
    type: str | None


@attrs.frozen(kw_only=True)
class Obstacle:
    """What stands against an upgrade.

    `refuses` is false for what changes nothing of the answer, and is to be known. `things` are such as `broker 3`;
    `thing` is what the record made, `command` mends it, or says how.
    """

    check: str
    sentence: str
    refuses: bool = True
    things: tuple[str, ...] = ()
    command: str | None = None
    thing: Thing | None = None
    record: RecordPlace | None = None

    def to_json(self) -> dict[str, Any]:
        """The obstacle in `kraftlake upgrade-check --json`."""
        return {
            "check": self.check,
            "refuses": self.refuses,
            "sentence": self.sentence,
            "things": [*self.things],
            "record": None if self.record is None else attrs.asdict(self.record),
            "command": self.command,
        }
