"""A source whose past states can be compared with other clusters, and brought back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.arguments import path_text, several
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import Moment

if TYPE_CHECKING:
    from kraftlake.api.undo_plan import UndoPlan
    from kraftlake.diagnosis.drift.comparison import Drift


class UndoableSource(LogSource):
    """A source with the questions of `kraftlake drift` and `kraftlake undo`; a moment is as in `Source`."""

    def drift(
        self,
        other: LogSource | str | os.PathLike[str],
        at: Moment | None = None,
        other_at: Moment | None = None,
        *,
        ignore: Iterable[str] = (),
        internal: bool = False,
        also: Iterable[str] = (),
        lenient: bool = False,
    ) -> Drift:
        """What differs between the cluster at a moment and another one, by name and content: `kraftlake drift`.

        `other` is a source, or the path of a declared file (`kraftlake recreate --as yaml`, resources of Strimzi).
        `ignore` are shell patterns of paths such as `topic/__*`, `also` further fields (`placement`, `id`, `leaders`,
        `isr`, `epochs`, `incarnations`). Raises CorruptDataError for another file, else as `image`.
        """
        from kraftlake.diagnosis.drift.comparison import compare
        from kraftlake.diagnosis.drift.declared import read_declared
        from kraftlake.diagnosis.drift.description import FACTS, describe

        facts = several(also, "a list of fields")
        for one in facts:
            if one not in FACTS:
                raise UsageError(f"{one!r} is no field to compare: these are {', '.join(FACTS)}.")
        if not isinstance(other, LogSource) and other_at is not None:
            raise UsageError("A declared file has one state: leave other_at out.")
        before = describe(self.replay(at, lenient=lenient).image, also=facts)
        after = (
            describe(other.replay(other_at, lenient=lenient).image, also=facts)
            if isinstance(other, LogSource)
            else read_declared(path_text(other))
        )
        return compare(before, after, ignore=several(ignore, "a list of patterns"), internal=internal)

    def plan_undo(
        self,
        to: Moment,
        at: Moment | None = None,
        *,
        topics: Iterable[str] = (),
        kinds: Iterable[str] = (),
        assignments: bool = False,
        throttle: int | None = None,
        lenient: bool = False,
    ) -> UndoPlan:
        """The plan that brings the state at a moment back, from that at `at` (None is the end): `kraftlake undo`.

        `topics` (names or shell patterns) and `kinds` (`topic`, `config`, `acl`, `quota`, `scram`, `feature`) select
        what is undone, by default all but internal topics. `assignments` also moves partitions back, each broker at
        most `throttle` bytes a second, 50 MB by default. The plan is a value: nothing is changed before its `apply`.
        Raises OffsetError where `to` is later than `at`, NoSuchThingError for a topic that neither state has, else as
        `image`.
        """
        import attrs

        from kraftlake.api.undo_plan import UndoPlan
        from kraftlake.diagnosis.drift.selection import KINDS
        from kraftlake.diagnosis.undo.planning import plan_undo
        from kraftlake.diagnosis.undo.throttle import RATE

        words = several(kinds, "a list of kinds")
        for one in words:
            if one not in KINDS:
                raise UsageError(f"{one!r} is no kind of what can be undone: these are {', '.join(KINDS)}.")
        plan = plan_undo(
            self, self.offset_at(to), self.offset_at(at), topics=several(topics, "a list of topics"), kinds=words,
            assignments=assignments, throttle=throttle or RATE, lenient=lenient,
        )  # fmt: skip
        return UndoPlan(source=self, **attrs.asdict(plan, recurse=False))
