"""Checks of the quorum and of the soundness of its logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import attrs

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.checked_logs import CheckedLog
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected, LogPosition
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.doctor.quorum_helps import directory_helps, election_helps, stopped_helps, unsound_helps
from kraftlake.diagnosis.quorum_health import Verdict, node_faults, odd_histories, quorum_verdicts, unplaced_logs
from kraftlake.kafka_files.problem import Problem
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.comparing.voters import Role
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.words import counted, in_words


def _is_partly_seen(case: CheckInput) -> bool:
    """Whether one source alone was given, of a quorum of several: its missing records then prove nothing."""
    report = case.quorum
    seen = {copy.properties.node_id for copy in report.copies if report.role_of(copy) is Role.VOTER}
    return len(case.logs) == 1 and (not report.voters or any(voter.id not in seen for voter in report.voters))


def _bad(case: CheckInput, *checks: str) -> Iterator[Verdict]:
    if not _is_partly_seen(case):
        yield from (one for one in quorum_verdicts(case.quorum) if one.check in checks and not one.good)


def _found(verdicts: Iterable[Verdict]) -> Iterator[CheckResult]:
    """One finding of all verdicts, a group each."""
    failed = list(verdicts)
    if failed:
        groups = tuple(Affected(reason=one.sentence, things=one.things) for one in failed)
        yield CheckResult(sentence="; ".join(one.sentence for one in failed), groups=groups)


def _no_election(case: CheckInput) -> Iterator[CheckResult]:
    for found in _found(_bad(case, "quorum_election", "quorum_voters")):
        yield attrs.evolve(found, helps=_HELP_OF_HISTORIES if case.quorum.rivals else tuple(election_helps(case)))


def _two_histories(case: CheckInput) -> Iterator[CheckResult]:
    """The histories besides the first one, with what the present voters would do."""
    for found in _held_alone("two_histories", odd_histories(case.quorum)):
        elected = _bad(case, "election_of_histories")
        groups = (*found.groups, *(Affected(reason=one.sentence, things=one.things) for one in elected))
        rest = "what brokers, topics and partitions lack is not looked at: it would be that of one history alone"
        yield attrs.evolve(found, sentence=f"{found.sentence}; {rest}", groups=groups)


def _changed(case: CheckInput) -> Iterator[CheckResult]:
    return _held_alone("changed_log", odd_histories(case.quorum))


def _unplaced(case: CheckInput) -> Iterator[CheckResult]:
    return _found(unplaced_logs(case.quorum))


def _held_alone(check: str, verdicts: Iterable[Verdict]) -> Iterator[CheckResult]:
    """One finding of the verdicts of a kind, with a group for the records that only the logs of each history have."""
    matching = [one for one in verdicts if one.check == check]
    if matching:
        held = dict.fromkeys(held for one in matching for held in one.held)
        groups = tuple(
            Affected(reason=one.words, things=one.nodes, since=LogPosition.of(one.offset, one.timestamp))
            for one in held
        )
        yield CheckResult(sentence="; ".join(one.sentence for one in matching), groups=groups)


def _lost_commits(case: CheckInput) -> Iterator[CheckResult]:
    return _found(_bad(case, "quorum_completeness", "observer_ahead"))


def _voter_directory(case: CheckInput) -> Iterator[CheckResult]:
    for found in _found(one for one in node_faults(case.quorum) if one.check == "voter_directory"):
        yield attrs.evolve(found, helps=tuple(directory_helps(case)))


def _diverged(case: CheckInput) -> Iterator[CheckResult]:
    return _held_alone("diverged_log", node_faults(case.quorum))


def _partly_seen(case: CheckInput) -> Iterator[CheckResult]:
    if not _is_partly_seen(case):
        return
    voters, here = case.quorum.voters, case.quorum.voting
    missing = tuple(f"voter {voter.id}" for voter in voters if voter.id not in here)
    what = f"{len(here)} of {counted(len(voters), 'voter')} is here" if voters else "the log does not name its voters"
    groups = (Affected(reason="not here", things=missing),) if missing else ()
    yield CheckResult(sentence=f"{what}: the quorum is not checked", groups=groups)


def _silent(case: CheckInput) -> Iterator[CheckResult]:
    """The voters that have stopped fetching; a broker that was shut down cleanly is an observer and does not count."""
    running = case.quorum.running
    silent = [copy for copy in case.quorum.fetching_voters if copy.fetching is not None and copy.fetching.is_silent]
    if running is None or not silent:
        return
    ids = [f"{copy.properties.node_id}" for copy in silent]
    voters = f"voter {ids[0]}" if len(ids) == 1 else f"voters {in_words(ids)}"
    does = "does" if len(ids) == 1 else "do"
    yield CheckResult(
        sentence=f"{voters} of {len(case.quorum.voters)} {does} not fetch from leader {running.leader_id}",
        groups=tuple(_silence(copy, case.quorum.furthest.end_offset) for copy in silent),
    )


def _silence(copy: LogCopy, end_offset: int) -> Affected:
    fetching = copy.fetching
    assert fetching is not None, "it is a voter of a running quorum"
    seconds = f"{fetching.silent_ms // 1000:,} s"
    behind = counted(max(0, end_offset - fetching.since_offset), "offset")
    has = f"last fetched {seconds} ago" if copy.epoch_ends else f"has not fetched since the election {seconds} ago"
    return Affected(
        reason=f"{has}, {behind} behind",
        things=(f"voter {copy.properties.node_id}",),
        since=LogPosition.of(fetching.since_offset, fetching.since),
    )


def _stopped(case: CheckInput) -> Iterator[CheckResult]:
    """The fault that stops the replay before the end of the log, or before the requested offset."""
    if case.stopped is None:
        return
    known = "there is no image at all"
    groups: tuple[Affected, ...] = ()
    if case.replay is not None:
        offset = case.image.offset
        known = (
            f"the log can't be replayed from offset {offset + 1} on, and all that follows here is as of offset {offset}"
        )
        groups = (Affected(reason=_text(case.stopped), things=(f"offset {offset + 1}",)),)
    yield CheckResult(sentence=f"{known}: {_text(case.stopped)}", groups=groups, helps=stopped_helps(case))


def _unsound(case: CheckInput) -> Iterator[CheckResult]:
    """The problems that `verify` has found in each log, the first one in full."""
    found = [(log, problem) for log in case.logs for problem in _problems(case, log)]
    faults = [log for log in case.logs if log.fault is not None]
    groups = [Affected(reason=f"{problem}", things=_places(case, log, problem)) for log, problem in found]
    groups += [Affected(reason=f"{log.fault}", things=(log.path,)) for log in faults]
    if not groups:
        return
    more = len(groups) - 1 + sum(log.report.more_problems for log in case.logs if log.report is not None)
    rest = f", and {counted(more, 'problem')} more" if more else ""
    command = case.command("verify {source}", log=[*(log for log, _ in found), *faults][0])
    yield CheckResult(
        sentence=f"{groups[0].reason.rstrip('.')}{rest}",
        groups=tuple(groups),
        command=command,
        helps=tuple(unsound_helps(case, found)),
    )


def _problems(case: CheckInput, log: CheckedLog) -> tuple[Problem, ...]:
    """The problems of a log except the one that stops the replay, which is a finding of its own."""
    found = () if log.report is None else log.report.problems
    stops = "" if case.stopped is None or log is not case.furthest else str(case.stopped)
    return tuple(problem for problem in found if problem.message not in stops)


def _places(case: CheckInput, log: CheckedLog, problem: Problem) -> tuple[str, ...]:
    places = [] if problem.file is None else [problem.file]
    places += [] if problem.offset is None or problem.in_snapshot else [f"offset {problem.offset}"]
    return tuple(places if len(case.logs) == 1 and places else [log.path, *places])


def _torn(case: CheckInput) -> Iterator[CheckResult]:
    torn = [(log, log.report.torn_tail) for log in case.logs if log.report is not None and log.report.torn_tail]
    if torn:
        what = "a log ends with the beginning of a batch: its node was killed, or it was copied while it was written"
        groups = tuple(Affected(reason=str(tail), things=(f"offset {tail.offset}",)) for _, tail in torn)
        yield CheckResult(sentence=what, groups=groups)


def _open_transaction(case: CheckInput) -> Iterator[CheckResult]:
    if case.replay is not None and case.replay.open_since is not None:
        begin = case.replay.open_since
        time = next(iter(case.source.batches(begin, begin))).timestamp
        yield CheckResult(
            sentence=f"a metadata transaction is open since offset {begin}: none of its records has taken effect",
            groups=(Affected(reason="open", things=(f"offset {begin}",), since=LogPosition.of(begin, time)),),
        )


def _text(fault: KraftlakeError) -> str:
    return str(fault).rstrip(".")


_check = partial(Check, of_image=False, command="quorum {sources}")

_HELP_OF_HISTORIES = safe(
    "Keep a copy of every directory, and start neither controllers nor brokers that are down. Never delete, format or "
    "replace one of these logs before it is known which one brokers follow: each may be the only one that has it.",
    "Find out which one brokers follow: the `__cluster_metadata-0` of a broker, given as one more source, is shown "
    "with the log that it copied. A broker's epoch is the offset of its registration in that log: `kraftlake image "
    "LOG --json` has it, and so has the `.kafka_cleanshutdown` of a broker that was shut down in order.",
    "Look at what one has and the other lacks: `kraftlake diff LOG --with OTHER`. `kraftlake doctor LOG` diagnoses one "
    "of them alone.",
)

QUORUM_CHECKS = (
    _check(
        name="two_histories",
        severity=Severity.CRITICAL,
        text="logs of one cluster are two histories: two quorums wrote them",
        helps=_HELP_OF_HISTORIES,
        find=_two_histories,
    ),
    _check(
        name="changed_log",
        severity=Severity.CRITICAL,
        text="a log has another batch in the middle than the log of another node",
        helps=safe(
            "Keep a copy of both. The logs of further nodes show which one was changed, and so does a lake that was "
            "imported before: its chain of hashes is checked by `kraftlake verify LAKE --at-least LINK`.",
        ),
        find=_changed,
    ),
    _check(
        name="quorum_election",
        severity=Severity.CRITICAL,
        text="the voters can't elect a leader",
        helps=safe(
            "Start the missing voters, or give their directories too.",
        ),
        find=_no_election,
    ),
    _check(
        name="lost_commits",
        severity=Severity.CRITICAL,
        text="records that were committed may be missing",
        helps=safe(
            "Look for the directories of the other voters, and of brokers, before anything is started: a log that "
            "goes further holds what these lack."
        ),
        find=_lost_commits,
    ),
    _check(
        name="log_stops",
        severity=Severity.CRITICAL,
        text="the log can't be replayed to its end",
        command="verify {source}",
        helps=safe(
            "Take the log of another node, which holds the same records. "
            "`image`, `events` and `diff` show with --lenient what is behind the fault."
        ),
        find=_stopped,
    ),
    _check(
        name="unsound_log",
        severity=Severity.CRITICAL,
        text="a log or a snapshot is damaged or contradicts itself",
        command="verify {source}",
        helps=safe(
            "Keep a copy of the directory, and compare it with the logs of the other nodes (`kraftlake quorum "
            "DIRECTORY DIRECTORY …`) before anything is done to it: while no leader runs, it may hold what they "
            "lack.",
        ),
        find=_unsound,
    ),
    _check(
        name="voter_directory",
        severity=Severity.CRITICAL,
        text="a node has the id of a voter, but another directory, and so no vote",
        helps=safe(
            "Look for the directory that the voter has had: with it the node votes again.",
        ),
        find=_voter_directory,
    ),
    _check(
        name="diverged_log",
        severity=Severity.WARNING,
        text="a node has records that the quorum did not accept",
        helps=safe(
            "Keep a copy of the directory of the node before it is started: a leader of this quorum makes it drop"
            " these records, and they may be the only copy.",
        ),
        find=_diverged,
    ),
    _check(
        name="silent_node",
        severity=Severity.WARNING,
        text="a voter of the running quorum has stopped fetching",
        helps=safe(
            "Start the controller. If its process runs, look at its connection to the leader and at its disk. Until "
            "it fetches again, the quorum can spare fewer of the other voters."
        ),
        find=_silent,
    ),
    _check(
        name="unplaced_log",
        severity=Severity.INFO,
        text="a log has no offset in common with the others",
        helps=safe(
            "Give the log of a node that reaches back further, or a lake of this cluster: what lies between shows "
            "whether they are one history.",
        ),
        find=_unplaced,
    ),
    _check(
        name="open_transaction",
        severity=Severity.INFO,
        text="a metadata transaction has not ended",
        command="log {source} --type BEGIN_TRANSACTION",
        helps=safe(
            "The active controller ends it, and a new one aborts it. If it is old, look at the controller's log."
        ),
        find=_open_transaction,
    ),
    _check(
        name="torn_tail",
        severity=Severity.INFO,
        text="a log ends within a batch",
        command="verify {source}",
        helps=safe(
            "Nothing has to be done: that batch was never acknowledged, and the node leaves it out when it starts.",
        ),
        find=_torn,
    ),
    _check(
        name="quorum_partly_seen",
        severity=Severity.INFO,
        text="not all voters are among the sources",
        helps=safe("Name the directories of all controllers that are left: kraftlake doctor DIRECTORY DIRECTORY …."),
        find=_partly_seen,
    ),
)
"""The checks of the quorum and the logs, which need no image."""
