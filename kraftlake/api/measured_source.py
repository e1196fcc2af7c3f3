"""A source whose availability can be measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftlake.api.attributed import AttributedSource
from kraftlake.runtime.arguments import several
from kraftlake.runtime.moments import Moment, moment_of
from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    from kraftlake.diagnosis.availability.availability import Availability


class MeasuredSource(AttributedSource):
    """A source with the question of `kraftlake availability`; a moment is as in `Source`."""

    def availability(
        self,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        *,
        by: str = "topic",
        topics: Iterable[str] = (),
        lenient: bool = False,
    ) -> Availability:
        """The time that partitions were offline, or close to it, within a window: `kraftlake availability`.

        `by` is `topic`, `partition` or `broker`; `topics` are names or shell patterns, none for all. An end that is a
        time is that time itself. Raises OffsetError where the log has nothing of the window, UsageError where it runs
        backwards, else as `image`.
        """
        from kraftlake.diagnosis.availability.availability import availability_of

        self._refuse_snapshot()
        patterns = several(topics, "a list of topics")
        begin, end = (moment_of(moment, None) for moment in (from_offset, to_offset))
        return availability_of(
            self, begin, end, by=by, is_wanted=lambda name: not patterns or matches(name, patterns), lenient=lenient
        )
