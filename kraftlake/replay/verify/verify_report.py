"""The result of a verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from kraftlake.kafka_files.problem import Problem
    from kraftlake.metadata_log.chain import Chain


@attrs.frozen(kw_only=True)
class VerifyReport:
    """The result; `problems` are in the order of offsets, those of the log first, `more_problems` counts those omitted.

    `notes` are not faults. `batches` and `records` count those read from the log, `replayed` the offsets that were
    replayed, `snapshot_records` the records read of the snapshots, `snapshots_compared` the snapshots that were
    compared with a replay. `torn_tail` is the beginning of a batch at the end of the log, which is not a problem: a
    node that was killed, or whose log was copied while it ran, leaves one. `chain` is a lake's chain of hashes.
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

    @property
    def sound(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def first_bad_offset(self) -> int | None:
        """The lowest offset of the log with a problem; None where no problem concerns the log's offsets."""
        return min((p.offset for p in self.problems if p.offset is not None and not p.in_snapshot), default=None)

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake verify --json`."""
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
        }
