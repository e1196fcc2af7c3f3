"""The findings of a verification, and the report of them."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.problem import Problem
from kraftlake.replay.reading.open_reader import LogReader

if TYPE_CHECKING:
    from kraftlake.metadata_log.chain import Chain
    from kraftlake.replay.spec.spec_report import SpecReport

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
        snapshot: str | None = None,
    ) -> None:
        """Report a problem of the log, or inside of a snapshot; the offset names the segment where no file is given."""
        in_snapshot, file = snapshot is not None, file or snapshot
        if file is None and offset is not None:
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


@attrs.frozen(kw_only=True)
class VerifyReport:
    """The result; `problems` are in the order of offsets, those of the log first, `more_problems` counts those omitted.

    `notes` are not faults. `batches` and `records` count those read from the log, `replayed` the offsets that were
    replayed, `snapshot_records` the records read of the snapshots, `snapshots_compared` the snapshots that were
    compared with a replay. `torn_tail` is the beginning of a batch at the end of the log, which is not a problem: a
    node that was killed, or whose log was copied while it ran, leaves one. `chain` is a lake's chain of hashes. `spec`
    is the judgement by Kafka's specifications, where it was asked for.
    """

    source: str
    kind: str
    start_offset: int
    end_offset: int
    batches: int
    records: int
    replayed: int
    snapshots: int
    snapshot_records: int
    snapshots_compared: int
    problems: tuple[Problem, ...]
    more_problems: int
    notes: tuple[str, ...]
    chain: Chain | None = None
    torn_tail: Problem | None = None
    spec: SpecReport | None = None

    @property
    def sound(self) -> bool:
        """Whether there is no problem, and no violation of a specification."""
        return not self.problems and (self.spec is None or self.spec.holds)

    @property
    def first_bad_offset(self) -> int | None:
        """The lowest offset of the log with a problem; None where no problem concerns the log's offsets."""
        return min((p.offset for p in self.problems if p.offset is not None and not p.in_snapshot), default=None)

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake verify --json`; `spec` is there where the log was judged."""
        spec = {} if self.spec is None else {"spec": self.spec.to_json()}
        return {
            "source": self.source,
            "kind": self.kind,
            "sound": self.sound,
            "firstBadOffset": self.first_bad_offset,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "chain": None if self.chain is None else str(self.chain.link),
            "chainStart": None if self.chain is None else self.chain.start,
            "checked": {
                "batches": self.batches,
                "records": self.records,
                "replayed": self.replayed,
                "snapshots": self.snapshots,
                "snapshotRecords": self.snapshot_records,
                "snapshotsCompared": self.snapshots_compared,
            },
            "problems": [problem.to_json() for problem in self.problems],
            "moreProblems": self.more_problems,
            "notes": list(self.notes),
            "tornTail": None if self.torn_tail is None else self.torn_tail.to_json(),
            **spec,
        }
