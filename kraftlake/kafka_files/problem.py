"""A problem found by the check of a log, and its place."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.runtime.json_names import fields_as_json


@attrs.frozen(kw_only=True)
class Problem:
    """A problem: at `offset`, in `file` at byte `position`, where known.

    With `in_snapshot` the offset counts within the snapshot `file`, not in the log.
    """

    offset: int | None = None
    file: str | None = None
    position: int | None = None
    message: str
    in_snapshot: bool = False

    @classmethod
    def of(cls, fault: BrokenFileError, *, in_snapshot: bool = False) -> Problem:
        """Convert the error raised by reading a file."""
        return cls(
            offset=fault.offset,
            file=fault.file,
            position=fault.position,
            message=fault.message,
            in_snapshot=in_snapshot,
        )

    def __str__(self) -> str:
        place = [self.file] if self.file is not None else []
        if self.position is not None:
            place.append(f"position {self.position}")
        if self.offset is not None:
            place.append(f"{'snapshot ' if self.in_snapshot else ''}offset {self.offset}")
        return f"{', '.join(place)}: {self.message}" if place else self.message

    def to_json(self) -> dict[str, Any]:
        """Return offset, file, position and message."""
        return fields_as_json(self)
