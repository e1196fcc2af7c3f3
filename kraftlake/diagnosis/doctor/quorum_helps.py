"""Remedies for a quorum and its logs: only those that the logs here prove to lose nothing, else with their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.checked_logs import CheckedLog
from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.diagnosis.doctor.help import Help, HelpRisk, safe
from kraftlake.kafka_files.problem import Problem
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.comparing.voters import Role
from kraftlake.replay.reading.replay_base import has_beginning, usable_snapshots
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import counted, in_words


def election_helps(case: CheckInput) -> Iterator[Help]:
    """Remedies that give the voters a leader; new controllers only where the furthest log here is whole."""
    report = case.quorum
    damaged = [copy for copy in report.copies if report.role_of(copy) is Role.VOTER and copy.fault is not None]
    known = {copy.properties.node_id for copy in (*damaged, *report.voting.values())}
    absent = [voter.id for voter in report.voters if voter.id not in known]
    if not absent:
        return
    voters = _voters(absent)
    yield Help(action=f"Start {voters}, or give {'its directory' if len(absent) == 1 else 'their directories'} too.")
    furthest = report.furthest
    if report.rivals or case.replay is None or furthest.fault is not None or case.stopped is not None:
        return
    others = "and those whose logs are damaged " if damaged else ""
    lost = (
        "Nothing that was committed is lost by it, as far as these logs show."
        if report.has_all_committed
        else f"What these voters {others}committed after offset {furthest.end_offset - 1} is lost."
    )
    yield Help(
        action=f"If {'it is' if len(absent) == 1 else 'they are'} lost for good, restore the cluster with new "
        f"controllers from the furthest of these logs, {furthest.path}: kraftlake restore.",
        risk=HelpRisk.RESTORE,
        evidence=(
            Affected(
                reason=f"not here, and {report.needed} of {counted(len(report.voters), 'voter')} make a majority",
                things=tuple(f"voter {id_}" for id_ in absent),
            ),
        ),
        cost=f"{lost} All brokers have to be stopped for it, and the old controllers must never come back.",
    )


def stopped_helps(case: CheckInput) -> tuple[Help, ...]:
    """Remedies where a log can't be replayed to its end: another copy, or a release that knows its records."""
    if isinstance(case.stopped, CorruptDataError):
        return ()  # as the check says: the log of another node
    return safe(
        "All nodes hold these records: no other log helps, and none needs to be replaced. What can't be replayed may "
        "need another release; `image`, `events` and `diff` show with --lenient what follows it."
    )


def unsound_helps(case: CheckInput, found: Sequence[tuple[CheckedLog, Problem]]) -> Iterator[Help]:
    """Remedies for damaged files: older snapshots, and the logs of a majority that has all records."""
    for log in dict.fromkeys(log for log, _ in found):
        problems = [problem for other, problem in found if other is log]
        damaged = sorted({problem.file for problem in problems if problem.in_snapshot and problem.file is not None})
        if len(damaged) == len({problem.file for problem in problems}):
            yield from _without_snapshots(log, damaged)
        else:
            yield from _fetched_again(case, log)


def _without_snapshots(log: CheckedLog, damaged: Sequence[str]) -> Iterator[Help]:
    """The replay of the log, which is sound, from another snapshot, or from its beginning."""
    if log.source is None:
        return
    reader = log.source.reader
    sound = [one.name for one in usable_snapshots(reader) if one.name not in damaged]
    base = sound[-1] if sound else "its beginning" if has_beginning(reader) else None
    files = in_words(damaged)
    if base is None:
        yield Help(
            action=f"Keep {files}: the log begins after it, and there is no other snapshot. The other nodes have their "
            "own, of the same state."
        )
        return
    them = "it" if len(damaged) == 1 else "them"
    yield Help(
        action=f"Keep {files}, and move {them} out of the directory of the stopped node: the log is sound, and is "
        f"replayed from {base} on. The node makes a new snapshot in time."
    )


def _fetched_again(case: CheckInput, log: CheckedLog) -> Iterator[Help]:
    """The refetch of a node's log from the leader, where a majority of the voters has all of it without that node.

    A log without a readable record might be another quorum's, and is kept.
    """
    report = case.quorum
    copy = next((one for one in report.copies if one.path == log.path), None)
    if copy is None or not copy.epoch_ends or report.history_of(copy) is not report.histories[0]:
        return
    end = report.furthest.end_offset
    whole = [
        id_
        for id_, other in report.voting.items()
        if other is not copy and other.end_offset == end and report.diverges_from(other) is None
    ]
    if report.rivals or not report.voters or len(whole) < report.needed or report.running is not None:
        return
    yield Help(
        action="With the node stopped, and a leader elected by the others, move its __cluster_metadata-0 to another "
        f"disk, or delete it: {log.path}. The node fetches all of the log from the leader when it starts.",
        risk=HelpRisk.DELETE,
        evidence=(
            Affected(reason=f"sound, with all offsets up to {end - 1}", things=tuple(f"voter {id_}" for id_ in whole)),
        ),
        cost="What this log alone has, of which nothing was committed as far as the others show. Until it has caught "
        "up, the quorum can spare one voter less.",
    )


def directory_helps(case: CheckInput) -> Iterator[Help]:
    """Remedies that give a node its vote back: its former directory; new voters only where a leader is possible."""
    report = case.quorum
    ids = {voter.id: voter.directory_id for voter in report.voters}
    for copy in report.copies:
        if report.role_of(copy) is not Role.OTHER_DIRECTORY or copy.properties.node_id is None:
            continue
        voter = copy.properties.node_id
        node, had = f"node {voter}", ids[voter]
        yield Help(action=f"Look for directory {had}, which voter {voter} has had: with it {node} votes again.")
        if report.rivals:
            continue
        if report.electable or report.running is not None:
            yield _added_again(node, voter, str(had), len(report.voters))
        elif len(report.voting) + 1 >= report.needed and copy.fault is None:
            yield _named_again(copy, node, str(had))


def _added_again(node: str, voter: int, had: str, voters: int) -> Help:
    return Help(
        action="If that directory is lost, remove the voter (kafka-metadata-quorum.sh remove-controller "
        f"--controller-id {voter} --controller-directory-id {had}), and add {node} again with the directory "
        "it has (add-controller).",
        risk=HelpRisk.REMOVE_VOTER,
        evidence=(Affected(reason="has another directory, and the other voters can elect a leader", things=(node,)),),
        cost=f"The log in directory {had} has no vote any more, and in between there are {voters - 1} voters.",
    )


def _named_again(copy: LogCopy, node: str, had: str) -> Help:
    return Help(
        action=f"If {copy.path} is a copy of that voter's own log, restore its identity: directory.id={had} in its "
        "meta.properties.",
        risk=HelpRisk.RESTORE,
        evidence=(Affected(reason="without its vote no leader can be elected", things=(node,)),),
        cost="What the voter acknowledged after the copy was made is lost, committed records among it.",
    )


def _voters(ids: Sequence[int]) -> str:
    return f"voter{'' if len(ids) == 1 else 's'} {in_words(ids)}"
