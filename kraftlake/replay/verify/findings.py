"""The findings of a verification."""

from __future__ import annotations

import bisect

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.problem import Problem
from kraftlake.replay.reading.log_reader import LogReader

MAX_PROBLEMS = 1_000
"""The most problems that are kept: a broken log can have as many as records."""


@attrs.define
class Findings:
    """Problems, each named once, and notes."""

    reader: LogReader
    problems: list[Problem] = attrs.field(factory=list)
    notes: dict[str, None] = attrs.field(factory=dict)
    torn: Problem | None = None
    more: int = 0
    _known: set[tuple[int | None, str | None, str]] = attrs.field(factory=set)

    def add(
        self,
        message: str,
        *,
        offset: int | None = None,
        file: str | None = None,
        position: int | None = None,
        in_snapshot: bool = False,
    ) -> None:
        """Report a problem; the segment's name is found by the offset where no file is given."""
        if file is None and offset is not None and not in_snapshot:
            file = self._segment(offset)
        self.report(Problem(offset=offset, file=file, position=position, message=message, in_snapshot=in_snapshot))

    def report(self, problem: Problem) -> None:
        """Report a problem."""
        known = (problem.offset, problem.file, problem.message)
        if known in self._known:
            return
        if len(self.problems) >= MAX_PROBLEMS:
            self.more += 1
            return
        self._known.add(known)
        self.problems.append(problem)

    def note(self, text: str) -> None:
        """Add a note, once."""
        self.notes[text] = None

    def sorted(self) -> tuple[Problem, ...]:
        """The problems of the log by offset, then those inside of snapshots."""
        return tuple(sorted(self.problems, key=lambda p: (p.in_snapshot, -1 if p.offset is None else p.offset)))

    def _segment(self, offset: int) -> str | None:
        if not isinstance(self.reader, MetadataDirectory):
            return None
        index = bisect.bisect_right([s.base_offset for s in self.reader.segments], offset) - 1
        return self.reader.segments[index].file.name if index >= 0 else None
