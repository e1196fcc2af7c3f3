"""Things with the same trouble for the same reason, and the position in the log at which it began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kraftlake.diagnosis.attribution.findings import Who
from kraftlake.runtime.json_names import fields_as_json


@attrs.frozen(kw_only=True, order=True)
class LogPosition:
    """A position in the log: an offset, and the time of its batch in epoch ms, None where the batch has none."""

    offset: int
    timestamp: int | None = attrs.field(order=False)

    @classmethod
    def of(cls, offset: int, time: int) -> LogPosition:
        """The position of an offset whose time is -1 for none."""
        return cls(offset=offset, timestamp=None if time < 0 else time)

    def to_json(self) -> dict[str, Any]:
        """The offset and the time."""
        return fields_as_json(self)


@attrs.frozen(kw_only=True)
class Affected:
    """Things with the same trouble for the same reason; `since` is None where the log does not reach that far back.

    `by` are the clients that made the change at `since`, where they were asked for.
    """

    reason: str
    things: tuple[str, ...]
    since: LogPosition | None = None
    by: Who | None = None

    def to_json(self) -> dict[str, Any]:
        """The reason, the things and the position at which it began; the clients where they were asked for."""
        form = fields_as_json(self)
        del form["by"]
        return form if self.by is None else form | self.by.to_json()


def latest(positions: Iterable[LogPosition | None]) -> LogPosition | None:
    """The last of some positions; None where one of them is unknown, and for none."""
    known = list(positions)
    return max((one for one in known if one is not None), default=None) if None not in known else None


def earliest(positions: Iterable[LogPosition | None]) -> LogPosition | None:
    """The first of some positions; None where one of them is unknown, and for none."""
    known = list(positions)
    return min((one for one in known if one is not None), default=None) if None not in known else None
