"""The violations of a log, and the report of them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import attrs

from kraftlake.replay.spec.known_bugs import KnownBug
from kraftlake.replay.spec.properties import PROPERTIES

MAX_VIOLATIONS: Final = 1_000
"""The most violations that are kept: a broken log can have as many as records."""


@attrs.frozen(kw_only=True)
class Violation:
    """A violation of a property by a record: `offset` and `record` (its type) name it.

    `effective_offset` is where the record takes effect, within a metadata transaction that of its end; `thing` is what
    violates the property: a partition, a broker or a feature.
    """

    name: str
    offset: int
    record: str
    thing: str
    sentence: str
    effective_offset: int
    known_bug: KnownBug | None = None

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake verify --spec --json`."""
        return {
            "property": self.name,
            "offset": self.offset,
            "record": self.record,
            "effectiveOffset": self.effective_offset,
            "thing": self.thing,
            "sentence": self.sentence,
            "knownBug": None if self.known_bug is None else self.known_bug.name,
        }


@attrs.frozen(kw_only=True)
class SpecReport:
    """The judgement of a log: `judged` counts the states or records that each property was judged on.

    `violations` are in the order of offsets, `more_violations` counts those omitted. `from_offset` and `to_offset` are
    the offsets whose records were judged, None for none; `stopped` says why what follows was not.
    """

    judged: dict[str, int]
    violations: tuple[Violation, ...]
    more_violations: int
    from_offset: int | None
    to_offset: int | None
    stopped: str | None = None

    @property
    def holds(self) -> bool:
        """Whether no property is violated."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake verify --spec --json`."""
        violated = Counter(violation.name for violation in self.violations)
        return {
            "holds": self.holds,
            "fromOffset": self.from_offset,
            "toOffset": self.to_offset,
            "stopped": self.stopped,
            "properties": [
                {
                    "name": one.name,
                    "meaning": one.meaning,
                    "source": one.source,
                    "since": str(one.since),
                    "judged": self.judged.get(one.name, 0),
                    "violations": violated[one.name],
                }
                for one in PROPERTIES.values()
            ],
            "violations": [violation.to_json() for violation in self.violations],
            "moreViolations": self.more_violations,
        }


class Judgement:
    """The violations found so far, each named once."""

    def __init__(self) -> None:
        self.judged: Counter[str] = Counter()
        self.violations: dict[tuple[str, int, str], Violation] = {}
        self.more = 0

    def count(self, name: str, count: int) -> None:
        """Note that a property was judged on so many states or records."""
        self.judged[name] += count

    def add(self, violation: Violation) -> None:
        """Report a violation."""
        key = (violation.name, violation.offset, violation.thing)
        if key in self.violations:
            return
        if len(self.violations) >= MAX_VIOLATIONS:
            self.more += 1
            return
        self.violations[key] = violation

    def report(self, from_offset: int | None, to_offset: int | None, stopped: str | None) -> SpecReport:
        """The report of all that was found."""
        return SpecReport(
            judged=dict(self.judged),
            violations=tuple(sorted(self.violations.values(), key=lambda one: (one.effective_offset, one.offset))),
            more_violations=self.more,
            from_offset=from_offset,
            to_offset=to_offset,
            stopped=stopped,
        )
