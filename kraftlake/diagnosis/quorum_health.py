"""The verdicts on a quorum's report: whether a leader can be elected, what may be lost, which nodes are at fault."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from kraftlake.replay.comparing.exclusive_records import ExclusiveRecords
from kraftlake.replay.comparing.histories import History
from kraftlake.replay.comparing.log_comparison import LogComparison, Relation
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.comparing.voters import Role, role_among
from kraftlake.replay.comparing.words import alone_words, comparison_sentence, held_words
from kraftlake.replay.queries.quorum_report import QuorumReport
from kraftlake.runtime.words import counted, in_words


@attrs.frozen(kw_only=True)
class Held:
    """Records that only the nodes of one history have, from an offset on; `timestamp` is its batch's, −1 for none."""

    nodes: tuple[str, ...]
    words: str
    offset: int
    timestamp: int

    def __str__(self) -> str:
        """A line: `node 1: alone offsets 10 to 12, …`."""
        return f"{in_words(self.nodes)}: {self.words}"


@attrs.frozen(kw_only=True)
class Verdict:
    """A sentence on a quorum; `check` names its subject, `things` the nodes or offsets concerned.

    `held` are the records in question that only some logs have.
    """

    check: str
    good: bool
    sentence: str
    things: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()


def quorum_verdicts(report: QuorumReport) -> tuple[Verdict, ...]:
    """The verdicts on histories, election, completeness and majority, also the good ones."""
    histories = tuple(odd_histories(report))
    if not report.voters:
        named = any(copy.quorum.static_voters or copy.quorum.voters is not None for copy in report.copies)
        which = "the furthest of these logs does not name" if named else "none of these logs names"
        sentence = f"{which} its voters: it has neither a leader change nor a snapshot that does"
        return (*histories, Verdict(check="quorum_voters", good=False, sentence=sentence))
    return (*histories, _election(report), _completeness(report), *_majority(report), *_ahead(report))


def odd_histories(report: QuorumReport) -> Iterator[Verdict]:
    """The histories besides the first one, none of them proven right, with the records that each has alone."""
    first = report.histories[0]
    for other in (*report.rivals, *report.changed):
        assert other.comparison is not None, "it is not the first one"
        held = zip((first, other), other.comparison.alone, strict=True)
        yield Verdict(
            check="changed_log" if other.was_changed else "two_histories",
            good=False,
            sentence=comparison_sentence(other.comparison, _nodes(report, first), _nodes(report, other)),
            things=(*_names(report, first), *_names(report, other)),
            held=tuple(_held(report, history, alone, other.comparison) for history, alone in held if alone is not None),
        )


def node_faults(report: QuorumReport) -> Iterator[Verdict]:
    """The faults of single nodes: a broken log, another directory than the voter's, the tail of a deposed leader."""
    for copy in report.copies:
        node = _name(report, copy)
        if copy.fault is not None:
            yield Verdict(check="node_fault", good=False, sentence=f"{node}: {copy.fault}", things=(node,))
        if report.role_of(copy) is Role.OTHER_DIRECTORY:
            sentence = f"{node} has no vote: its directory is not the one of voter {copy.properties.node_id}"
            yield Verdict(check="voter_directory", good=False, sentence=sentence, things=(node,))
        history = report.history_of(copy)
        if history is not None and history.is_outvoted and history.alone is not None:
            offset, others = history.alone.from_offset, _nodes(report, report.histories[0])
            sentence = (
                f"{node} has another batch at offset {offset} than {others}; {_why_outvoted(report, history)}: when it "
                "fetches from a leader of theirs, it drops its own"
            )
            assert history.comparison is not None, "it is not the first one"
            held = (_held(report, history, history.alone, history.comparison),)
            yield Verdict(check="diverged_log", good=False, sentence=sentence, things=(node,), held=held)


def unplaced_logs(report: QuorumReport) -> Iterator[Verdict]:
    """The copies without an offset in common with any other copy: nothing shows whether they are of the same log."""
    for history in report.histories:
        for copy in history.unplaced:
            node = _name(report, copy)
            sentence = (
                f"{node} has no offset in common with the other logs: nothing shows whether it is of the same history"
            )
            yield Verdict(check="unplaced_log", good=True, sentence=sentence, things=(node,))


def _why_outvoted(report: QuorumReport, history: History) -> str:
    """The proof that records of only one history were not committed by its voters, if no disk was put back."""
    main = report.histories[0].alone
    if not history.may_be_on_majority or main is None or not main.leaders:
        lack = "lacks" if len(history.lacking) == 1 else "lack"
        return f"{len(history.lacking)} of {counted(len(history.voters), 'voter')} {lack} it, so no majority has it"
    epoch, leader = main.leaders[0]
    return f"the same voters elected {leader} in epoch {epoch}, whose log ended there"


def _held(report: QuorumReport, history: History, alone: ExclusiveRecords, found: LogComparison) -> Held:
    is_shown = alone.shows_commit or not history.is_on_majority
    words = [f"alone {held_words(found, alone) if is_shown else alone_words(alone)}", _voters(history)]
    return Held(
        nodes=_names(report, history),
        words="; ".join(words if found.relation is Relation.CHANGED else [*words, _followed(report, history)]),
        offset=alone.from_offset,
        timestamp=alone.first_timestamp,
    )


def _voters(history: History) -> str:
    """The voters of a history, and the number of them that have it, as far as their logs are here."""
    if not history.voters:
        return "it names no voters"
    voters = in_words([voter.id for voter in history.voters])
    unseen = len(history.voters) - len(history.holding) - len(history.lacking)
    if len(history.voters) == 1:
        has = "has it" if history.holding else "has no sound log here" if unseen else "lacks it"
        return f"its one voter ({voters}) {has}"
    have = "has" if len(history.holding) == 1 else "have"
    more = f", {unseen} {'has' if unseen == 1 else 'have'} no sound log here" if unseen else ""
    return f"{len(history.holding)} of its {len(history.voters)} voters ({voters}) {have} it{more}"


def _followed(report: QuorumReport, history: History) -> str:
    """The brokers that registered in a history, and the nodes without a vote that copied it."""
    copied = [copy for copy in history.copies if role_among(history.voters, copy) is Role.OBSERVER]
    names = in_words([_name(report, copy) for copy in copied])
    by = f"; {names}, which {'has' if len(copied) == 1 else 'have'} no vote, copied it" if copied else ""
    if history.brokers_since:
        return f"{_brokers(history.brokers_since)} registered there{by}"
    if history.brokers:
        return f"{_brokers(history.brokers)} registered before, none there{by}"
    return f"no broker is registered there{by}"


def _brokers(ids: tuple[int, ...]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {in_words(ids)}"


def _election(report: QuorumReport) -> Verdict:
    here, all_ = len(report.voting), len(report.voters)
    are = f"{here} of {counted(all_, 'voter')} {'is' if 1 in (here, all_) else 'are'} here"
    if any(report.role_of(copy) is Role.VOTER and copy.fault is not None for copy in report.copies):
        are += " and sound"
    needs = f"{are}, {report.needed} {'is' if report.needed == 1 else 'are'} needed"
    missing = tuple(f"voter {voter.id}" for voter in report.voters if voter.id not in report.voting)
    if not report.electable:
        sentence = f"{needs}: no leader can be elected of these alone"
        return Verdict(check="quorum_election", good=False, sentence=sentence, things=missing)
    electable = in_words(report.electable, "or")
    sentence = f"{needs}: they can elect {electable}"
    if report.rivals and any(report.history_of(copy) is not report.histories[0] for copy in report.voting.values()):
        others = "and the others drop what is not in its log, whichever history that is"
        sentence += f", {others if here > 1 else 'with whichever of these logs it starts'}"
        things = tuple(_name(report, copy) for copy in report.voting.values())
        return Verdict(check="election_of_histories", good=False, sentence=sentence, things=things)
    return Verdict(check="quorum_election", good=True, sentence=sentence, things=missing)


def _completeness(report: QuorumReport) -> Verdict:
    if report.rivals:
        sentence = f"which of these {len(report.rivals) + 1} logs brokers follow is not known by the logs alone"
        return Verdict(check="completeness_of_histories", good=False, sentence=sentence)
    if not report.has_all_committed and len(report.voting) > len(report.voters) - report.needed:
        why = "one of them was changed" if report.changed else "some have no offset in common with the others"
        sentence = f"whether all that was committed is in the furthest of these logs is not known: {why}"
        return Verdict(check="completeness_unknown", good=False, sentence=sentence)
    if report.has_all_committed:
        sentence = "all that was ever committed is in the furthest of these logs"
    else:
        sentence = "what the other voters committed without these may be missing in all of these logs"
    return Verdict(check="quorum_completeness", good=report.has_all_committed, sentence=sentence)


def _majority(report: QuorumReport) -> Iterator[Verdict]:
    if report.on_majority >= 0:
        sentence = f"a majority of the voters has the offsets up to {report.on_majority}"
        yield Verdict(check="quorum_majority", good=True, sentence=sentence)


def _ahead(report: QuorumReport) -> Iterator[Verdict]:
    """The verdict on a log without a vote that goes further than the logs of all voters."""
    end = report.furthest.end_offset
    voters = [copy for copy in report.copies if report.role_of(copy) is Role.VOTER]
    further = [
        copy
        for copy in report.copies
        if copy not in voters and copy.end_offset >= end and copy.fault is None and report.behind(copy) is not None
    ]
    if further and voters and all(copy.end_offset < end for copy in voters):
        node = "a source" if further[0].properties.node_id is None else _name(report, further[0])
        sentence = f"the log of {node}, which has no vote, goes further than those of all voters here"
        yield Verdict(check="observer_ahead", good=False, sentence=sentence, things=(_name(report, further[0]),))


def _name(report: QuorumReport, copy: LogCopy) -> str:
    """`node 3`, with its path where two copies are of that node; the path where no file beside the log names it."""
    id_ = copy.properties.node_id
    if id_ is None:
        return copy.path
    same = sum(one.properties.node_id == id_ for one in report.copies)
    return f"node {id_}" if same == 1 else f"node {id_} ({copy.path})"


def _nodes(report: QuorumReport, history: History) -> str:
    """The copies of a history by their nodes: `node 1`, `nodes 2 and 3`."""
    names = _names(report, history)
    if len(names) > 1 and all(copy.properties.node_id is not None for copy in history.copies):
        return f"nodes {in_words([name.removeprefix('node ') for name in names])}"
    return in_words(names)


def _names(report: QuorumReport, history: History) -> tuple[str, ...]:
    """The names of a history's copies, by node, then by path."""
    copies = sorted(history.copies, key=_order)
    return tuple(dict.fromkeys(_name(report, copy) for copy in copies))


def _order(copy: LogCopy) -> tuple[float, str]:
    id_ = copy.properties.node_id
    return math.inf if id_ is None else id_, copy.path
