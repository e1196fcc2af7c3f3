"""A source whose availability and stability can be measured, and whose upgrades can be checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftlake.api.attributed import AttributedSource
from kraftlake.runtime.arguments import several, text, whole
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import Moment, moment_of
from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    from kraftlake.diagnosis.availability.availability import Availability
    from kraftlake.diagnosis.removal.removal_check import RemovalCheck
    from kraftlake.diagnosis.stability.stability import Stability
    from kraftlake.diagnosis.upgrade.upgrade_check import UpgradeCheck


class MeasuredSource(AttributedSource):
    """A source with the questions of `availability`, `stability` and `upgrade-check`; a moment is as in `Source`."""

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

    def stability(
        self,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        *,
        by: str = "hour",
        lenient: bool = False,
    ) -> Stability:
        """How often something happened in a range, by `hour` or by `broker`, against the past: `kraftlake stability`.

        Raises UsageError for another `by`, else as `events`.
        """
        from kraftlake.diagnosis.stability.stability import stability

        if text(by, "what counts are by") not in ("hour", "broker"):
            raise UsageError(f"counts are by hour or by broker, not by {by!r}.")
        return stability(self, *self.offset_range(from_offset, to_offset), by=by, lenient=lenient)

    def upgrade_check(
        self,
        at: Moment | None = None,
        *,
        release: str | None = None,
        metadata_version: str | int | None = None,
        kraft_version: int | None = None,
        lenient: bool = False,
    ) -> UpgradeCheck:
        """What refuses an upgrade at a moment, and the record behind each obstacle: `kraftlake upgrade-check`.

        The target is one of a release (`4.4`), a metadata.version (its level, `4.4-IV2`, or a release) and a
        kraft.version. Raises UsageError for another one, else as `image`.
        """
        from kraftlake.diagnosis.upgrade.target import Target
        from kraftlake.diagnosis.upgrade.upgrade_check import check_upgrade

        target = Target.of(release=release, metadata_version=metadata_version, kraft_version=kraft_version)
        return check_upgrade(self, target, self.offset_at(at), lenient=lenient)

    def removal_check(self, broker: int, at: Moment | None = None, *, lenient: bool = False) -> RemovalCheck:
        """What lies on a broker at a moment, what its loss takes, and moves that empty it: `kraftlake removal-check`.

        Nothing is written. Raises NoSuchThingError for a broker that is not registered then, else as `image`.
        """
        from kraftlake.diagnosis.removal.removal_check import check_removal

        replay = self.replay(at, lenient=lenient)
        return check_removal(replay.image, replay.quorum, whole(broker, "a broker's id", least=0))
