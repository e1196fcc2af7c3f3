"""The histories to which copies of a log belong: one where they are one log, else several.

A second quorum beside the first writes its own history from an offset on, with the same cluster id, perhaps the same
node ids, and higher or lower epochs. Its logs may go further than the first quorum's, and lack records that brokers
follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from kraftlake.replay.comparing.exclusive_records import ExclusiveRecords
from kraftlake.replay.comparing.log_comparison import LogComparison, Relation, compare_logs
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.comparing.voters import KnownVoter, Role, cluster_of, role_among, voters_of
from kraftlake.runtime.errors import CorruptDataError

_DEPOSED_MS: Final = 60_000
"""The longest time over which a leader writes records that no majority has: Kafka's leader resigns after seconds."""


@attrs.frozen(kw_only=True)
class History:
    """Copies that are one log, the furthest one first, and the `voters` that the furthest one names.

    `comparison` compares the furthest copy of the first history with that of this one, None for the first one itself.
    `alone` are this history's records after the offset at which it parts from the first one; for the first one, after
    it parts from the others. `brokers` are those registered at its end (None for a single history), `brokers_since`
    those of them that registered after the parting. `unplaced` are copies that have no offset in common with these.

    Of its own voters, `holding` are those with a copy here that has the records in `alone`, `lacking` the others with a
    sound copy here.
    """

    copies: tuple[LogCopy, ...]
    voters: tuple[KnownVoter, ...]
    comparison: LogComparison | None = None
    alone: ExclusiveRecords | None = None
    brokers: tuple[int, ...] | None = None
    brokers_since: tuple[int, ...] = ()
    unplaced: tuple[LogCopy, ...] = ()
    holding: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()
    is_outvoted: bool = False
    """Whether the history is the tail of a deposed leader: some records that its own voters can't have committed."""

    @property
    def furthest(self) -> LogCopy:
        """The copy that goes furthest."""
        return self.copies[0]

    @property
    def was_changed(self) -> bool:
        """Whether it differs from the first history only by batches in the middle, so that one of them was changed."""
        return self.comparison is not None and self.comparison.relation is Relation.CHANGED

    @property
    def is_on_majority(self) -> bool:
        """Whether a majority of its own voters has, by the copies here, the records that only this history has."""
        return bool(self.voters) and len(self.holding) > len(self.voters) // 2

    @property
    def may_be_on_majority(self) -> bool:
        """Whether a majority of its own voters may have these records, counting the voters whose logs are not here."""
        return not self.voters or len(self.voters) - len(self.lacking) > len(self.voters) // 2

    def to_json(self) -> dict[str, Any]:
        """The history as `kraftlake quorum --json` prints it."""
        last = self.furthest
        return {
            "nodeIds": [copy.properties.node_id for copy in self.copies],
            "startOffset": min(copy.start_offset for copy in self.copies),
            "endOffset": last.end_offset,
            "lastEpoch": last.position[0] if last.epoch_ends else None,
            "voters": [voter.id for voter in self.voters],
            "brokers": None if self.brokers is None else list(self.brokers),
            "brokersSinceParting": list(self.brokers_since),
            "alone": None if self.alone is None else self.alone.to_json(),
            "onMajority": self.is_on_majority,
            "outvoted": self.is_outvoted,
            "comparison": None if self.comparison is None else self.comparison.to_json(),
        }


def compare_copies(one: LogCopy, other: LogCopy) -> LogComparison:
    """Compare two copies as far as each can be read."""
    ends = min(one.read_to, one.end_offset), min(other.read_to, other.end_offset)
    unknown = LogComparison(first=0, end=0, ends=ends)
    if one.reader is None or other.reader is None:
        return unknown
    try:
        return compare_logs(one.reader, other.reader, ends=ends)
    except CorruptDataError:
        return unknown


def histories_of(copies: Sequence[LogCopy]) -> tuple[History, ...]:
    """The histories of the copies: first that of a running quorum, else one in which brokers are registered.

    Of several, the one whose log goes furthest is first, then the one with more copies. The order does not say which
    one is right: no log shows it.
    """
    groups = _grouped(sorted(copies, key=_rank, reverse=True))
    if len(groups) == 1:
        (one,) = groups
        return (_history(one, copies),)
    epochs = {id(group): _broker_epochs(group.copies[0]) for group in groups}
    groups.sort(key=lambda group: (_rank(group.copies[0]), len(group.copies)), reverse=True)
    first, *others = sorted(groups, key=lambda group: (not group.is_running, not epochs[id(group)]))
    comparisons = [_parting(first, group) for group in others]
    earliest = min(comparisons, key=lambda found: found.parts_at or 0)
    main = _history(first, copies, alone=earliest.alone[0], epochs=epochs[id(first)])
    return (
        main,
        *(
            _compared(main, _history(group, copies, alone=found.alone[1], epochs=epochs[id(group)]), found)
            for group, found in zip(others, comparisons, strict=True)
        ),
    )


class _Group:
    """Copies that are one log, and copies without proof of it."""

    def __init__(self, copy: LogCopy) -> None:
        self.copies = [copy]
        self.unplaced: list[LogCopy] = []

    @property
    def is_running(self) -> bool:
        """Whether it is the log of a running quorum."""
        return any(copy.fetching is not None for copy in self.copies)

    def relation_to(self, copy: LogCopy) -> Relation:
        """The relation of `copy` to the first copy with a common offset; an empty log is the beginning of each."""
        is_empty = not copy.epoch_ends and copy.fault is None
        if is_empty or any(copy.reader is member.reader is not None for member in self.copies):
            return Relation.PREFIX
        found = (compare_copies(member, copy).relation for member in self.copies)
        return next((one for one in found if one is not Relation.UNKNOWN), Relation.UNKNOWN)


def _rank(copy: LogCopy) -> tuple[bool, tuple[int, int], bool]:
    """The sort key of copies: sound ones with records last, and of these the one that goes furthest."""
    is_sound = copy.fault is None
    return is_sound and bool(copy.epoch_ends), copy.position, is_sound


def _grouped(copies: Sequence[LogCopy]) -> list[_Group]:
    """Groups of copies; copies without an offset in common with others come last: later copies may lie in between."""
    groups: list[_Group] = []
    later: list[LogCopy] = []
    for final, some in ((False, copies), (True, later)):
        for copy in some:
            relations = [group.relation_to(copy) for group in groups]
            joined = next((i for i, one in enumerate(relations) if one in (Relation.SAME, Relation.PREFIX)), None)
            if joined is not None:
                groups[joined].copies.append(copy)
            elif Relation.UNKNOWN not in relations:
                groups.append(_Group(copy))
            elif final:
                groups[relations.index(Relation.UNKNOWN)].unplaced.append(copy)
            else:
                later.append(copy)
    return groups


def _parting(one: _Group, other: _Group) -> LogComparison:
    """The comparison that proves two groups different: of their furthest copies, if these have common offsets."""
    found = (compare_copies(here, there) for here in one.copies for there in other.copies)
    return next(comparison for comparison in found if comparison.differs)


def _history(
    group: _Group,
    copies: Sequence[LogCopy],
    *,
    alone: ExclusiveRecords | None = None,
    epochs: dict[int, int] | None = None,
) -> History:
    voters = voters_of(group.copies[0])
    since = 0 if alone is None else alone.from_offset
    having, holding, lacking = [copy for copy in group.copies if copy.end_offset > since], set[int](), set[int]()
    for copy in copies:
        if copy.fault is None and role_among(voters, copy) is Role.VOTER and copy.properties.node_id is not None:
            (holding if copy in having else lacking).add(copy.properties.node_id)
    return History(
        copies=tuple(group.copies),
        voters=voters,
        alone=alone,
        brokers=None if epochs is None else tuple(sorted(epochs)),
        brokers_since=tuple(sorted(id_ for id_, epoch in (epochs or {}).items() if epoch >= since)),
        unplaced=tuple(group.unplaced),
        holding=tuple(sorted(holding)),
        lacking=tuple(sorted(lacking - holding)),
    )


def _compared(main: History, other: History, found: LogComparison) -> History:
    return attrs.evolve(other, comparison=found, is_outvoted=_is_outvoted(main, other, found))


def _is_outvoted(main: History, other: History, found: LogComparison) -> bool:
    """Whether a history is the tail of a deposed leader.

    Such a history has no majority of its own voters, counted one by one; or the same voters elected another leader
    whose log ended there. Records over a longer time than a leader lasts without a majority are another history: the
    voters that lack them may have lost them.
    """
    alone = other.alone
    if found.relation is not Relation.PARTED or found.last_common is None or alone is None:
        return False
    if alone.shows_commit or other.is_on_majority:
        return False
    if alone.records and alone.lasts_ms > _DEPOSED_MS:
        return False
    same = [(voter.id, voter.directory_id) for voter in main.voters] == [
        (voter.id, voter.directory_id) for voter in other.voters
    ]
    return not other.may_be_on_majority or (same and main.alone is not None and main.alone.begins_epoch)


def _broker_epochs(copy: LogCopy) -> dict[int, int]:
    """The epochs of the brokers that are registered at the end of a log: the offsets of their registrations."""
    return {id_: broker.epoch for id_, broker in cluster_of(copy).brokers.items()}
