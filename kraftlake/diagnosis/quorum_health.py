"""What a quorum's report means: whether a leader can be elected, what may be lost, and which nodes are at fault."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.replay import LogCopy, QuorumReport, Role
from kraftlake.runtime import counted


@attrs.frozen(kw_only=True)
class Verdict:
    """A sentence on a quorum; `check` names what it is about, `things` the nodes or offsets concerned."""

    check: str
    good: bool
    sentence: str
    things: tuple[str, ...] = ()


def quorum_verdicts(report: QuorumReport) -> tuple[Verdict, ...]:
    """The verdicts on election, completeness and majority, good ones too."""
    if not report.voters:
        sentence = "none of these logs names its voters: it has neither a leader change nor a snapshot that does"
        return (Verdict(check="quorum_voters", good=False, sentence=sentence),)
    return (_election(report), _completeness(report), *_majority(report), *_ahead(report))


def node_faults(report: QuorumReport) -> Iterator[Verdict]:
    """The faults of single nodes: a broken log, another directory than the voter's, a tail that will be cut off."""
    for copy in report.copies:
        node = _node(copy)
        if copy.fault is not None:
            yield Verdict(check="node_fault", good=False, sentence=f"{node}: {copy.fault}", things=(node,))
        if report.role_of(copy) is Role.OTHER_DIRECTORY:
            sentence = f"{node} has no vote: its directory is not the one of voter {copy.properties.node_id}"
            yield Verdict(check="voter_directory", good=False, sentence=sentence, things=(node,))
        diverges = report.diverges_from(copy)
        if diverges is not None:
            sentence = (
                f"{node} has from offset {diverges} on not what the furthest log has: it will cut off "
                f"{counted(copy.end_offset - diverges, 'offset')}"
            )
            yield Verdict(check="diverged_log", good=False, sentence=sentence, things=(node,))


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
    electable = " or ".join(map(str, report.electable))
    return Verdict(check="quorum_election", good=True, sentence=f"{needs}: they can elect {electable}", things=missing)


def _completeness(report: QuorumReport) -> Verdict:
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
    """Whether a log without a vote goes further than those of all voters."""
    end = report.furthest.end_offset
    voters = [copy for copy in report.copies if report.role_of(copy) is Role.VOTER]
    further = [
        copy
        for copy in report.copies
        if copy not in voters and copy.end_offset >= end and copy.fault is None and report.diverges_from(copy) is None
    ]
    if further and voters and all(copy.end_offset < end for copy in voters):
        node = "a source" if further[0].properties.node_id is None else _node(further[0])
        sentence = f"the log of {node}, which has no vote, goes further than those of all voters here"
        yield Verdict(check="observer_ahead", good=False, sentence=sentence, things=(_node(further[0]),))


def _node(copy: LogCopy) -> str:
    """`node 3`, or the path where no file beside the log names the node."""
    return copy.path if copy.properties.node_id is None else f"node {copy.properties.node_id}"
