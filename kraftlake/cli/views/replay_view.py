"""The actions of a broker in words: a heading for each delta, and a line for each action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import moment, numbers
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.replica_manager.logs.log_dirs import LogDirReport
    from kraftlake.replica_manager.replay.broker_replay import ReplayStep
    from kraftlake.replica_manager.replay.causes import Cause
    from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
    from kraftlake.replica_manager.transitions import FetcherName, Transition

_SHOWN_FINDINGS = 20


def show_step(terminal: Terminal, step: ReplayStep) -> None:
    """Write a heading, and a line for each action."""
    offsets = f"offset {step.offset}"
    if step.first_offset < step.offset:
        offsets = f"offsets {step.first_offset} to {step.offset}"
    time = f"  {moment(step.timestamp)}" if step.timestamp >= 0 else ""
    terminal.line((offsets, Style.HEADING), (f"{time}  epoch {step.epoch}", Style.QUIET))
    for group, cause in grouped(step.transitions):
        because: list[Piece] = []
        if cause is not None:
            because = [(f"  because of record {cause.offset} ({cause.type})", Style.QUIET)]
        terminal.line("  ", *line_of(group), *because)


def show_broker(terminal: Terminal, broker: ReplayedBroker, offset: int | None = None) -> None:
    """Write the partitions that the broker hosts after `offset`, by default its image's, and its fetchers' state."""
    leads, follows = broker.roles()
    after = broker.image.offset if offset is None else offset
    terminal.line(
        ("broker ", Style.STRONG), (str(broker.broker_id), Style.HEADING),
        f" after offset {after}: leads ", (counted(len(leads), "partition"), Style.GOOD),
        ", follows ", (counted(len(follows), "partition"), Style.NAME), *_troubles(broker),
    )  # fmt: skip
    for fetcher in broker.fetchers():
        leader = fetcher.leader
        terminal.line(
            "  ",
            (f"fetcher {fetcher.fetcher_id}", Style.NAME),
            f" to broker {leader.id} ({leader.host}:{leader.port}): ",
            counted(fetcher.partition_count, "partition"),
        )


def show_partitions(terminal: Terminal, broker: ReplayedBroker, name: str) -> bool:
    """Write the state of a partition, or of all partitions of a topic; False where the broker hosts none."""
    found = False
    for key in sorted(broker.manager.hosted_partitions()):
        if name not in (str(key), key.topic):
            continue
        found = True
        partition = broker.manager.online_partition(key)
        if partition is None or partition.log is None:
            terminal.line((str(key), Style.STRONG), (" is offline", Style.BAD))
            continue
        directory = broker.log_directory(key)
        role = "leads" if partition.is_leader else "follows"
        isr = f", ISR {numbers(sorted(partition.in_sync.state.isr))}" if partition.is_leader else ""
        leader = "" if partition.is_leader else f", leader {_leader_name(partition.leader_id)}"
        terminal.line(
            f"{role} ", (str(key), Style.STRONG),
            f": leader epoch {partition.leader_epoch}, partition epoch {partition.partition_epoch}{leader}{isr}, "
            f"replicas {numbers(partition.in_sync.assignment.replicas)}, log in {directory}",
        )  # fmt: skip
    return found


def show_log_dirs(terminal: Terminal, report: LogDirReport) -> None:
    """Write the findings of a comparison with log directories."""
    terminal.line(("log directories", Style.HEADING), f"  {counted(report.matching, 'folder')} as they should be")
    for path, id_ in report.directories.items():
        terminal.line("  ", (path, Style.NAME), (f"  id {id_}" if id_ else "  without an id", Style.QUIET))
    for heading, findings, style in (
        ("missing", report.missing, Style.BAD),
        ("stray", report.strays, Style.WARNING),
        ("in the wrong directory", report.misplaced, Style.WARNING),
    ):
        if findings:
            terminal.line("  ", (f"{heading}: {counted(len(findings), 'partition')}", style))
        for finding in findings[:_SHOWN_FINDINGS]:
            where = "" if finding.path is None else f"  {finding.path}"
            terminal.line("    ", (finding.partition, Style.NAME), where, (f"  {finding.reason}", Style.QUIET))
        if len(findings) > _SHOWN_FINDINGS:
            terminal.line("    ", (f"… {len(findings) - _SHOWN_FINDINGS:,} more: --json has all", Style.QUIET))
    for what, paths in (("on the move", report.moving), ("marked for deletion", report.deleted)):
        if paths:
            terminal.line("  ", (f"{counted(len(paths), 'folder')} {what}", Style.QUIET))
    if report.compacted:
        terminal.line(
            "  ", (f"{counted(len(report.compacted), 'compacted log')}, without active segments", Style.QUIET)
        )
    for log in sorted(report.compacted, key=lambda one: -one.dirty_bytes)[:_SHOWN_FINDINGS]:
        cleaned = "no cleaning is known" if log.cleaned_to is None else f"cleaned up to offset {log.cleaned_to}"
        sizes = f"  {log.clean_bytes:,} bytes clean, {log.dirty_bytes:,} dirty"
        terminal.line("    ", (log.path, Style.NAME), sizes, (f"  {cleaned}", Style.QUIET))


def _troubles(broker: ReplayedBroker) -> list[Piece]:
    partitions = list(broker.manager.online_partitions())
    leaderless = sum(partition.leader_id == -1 for partition in partitions)
    offline = len(broker.manager.hosted_partitions()) - len(partitions)
    pieces: list[Piece] = []
    if leaderless:
        pieces += [", ", (f"{leaderless:,} without a leader", Style.BAD)]
    if offline:
        pieces += [", ", (f"{offline:,} in a failed directory", Style.BAD)]
    return pieces


def grouped(transitions: Sequence[tuple[Transition, Cause | None]]) -> Iterator[tuple[list[Transition], Cause | None]]:
    """Groups of the transitions of one partition because of one record, in the order of their first transition."""
    groups: dict[object, tuple[list[Transition], Cause | None]] = {}
    for place, (transition, cause) in enumerate(transitions):
        key = place if transition.partition is None else (transition.partition, cause)
        groups.setdefault(key, ([], cause))[0].append(transition)
    yield from groups.values()


def line_of(group: Sequence[Transition]) -> list[Piece]:
    """The transitions of a partition, a fetcher or the broker, as one line."""
    first = next((transition for transition in group if _leading(transition)), group[0])
    pieces = _leading(first) or _other(first)
    for transition in group:
        if transition is not first:
            pieces += _also(transition)
    return pieces


def _leading(t: Transition) -> list[Piece]:
    """The beginning of a line about a transition; empty for a kind that occurs only within other lines."""
    where = f" ({t.directory})" if t.directory else ""
    match t.kind.value:
        case "became-leader":
            return list(_became_leader(t))
        case "became-follower":
            return list(_became_follower(t))
        case "leader-updated" | "follower-updated":
            return list(_updated(t))
        case "fetcher-started" | "fetcher-stopped":
            return list(_fetcher(t))
        case "log-deleted":
            return [("log deleted", Style.WARNING), " of ", _name(t), f": {t.reason}"]
        case "log-delete-failed":
            return [_name(t), (" could not be deleted", Style.BAD), f": {t.reason}{where}"]
        case "replica-stopped":
            return [("stopped", Style.WARNING), " ", _name(t), f": {t.reason}"]
        case "replica-failed":
            return [_name(t), (" failed", Style.BAD), f": {t.reason}{where}"]
        case "partition-offline":
            return [_name(t), (" is offline", Style.BAD), f": {t.reason}{where}"]
        case "broker-started":
            return [("the broker started", Style.EVENT), _detail(t)]
        case "controlled-shutdown-begun":
            return [("the broker began to shut down", Style.EVENT), _detail(t)]
        case "directory-failed":
            return [("a log directory failed", Style.BAD), _detail(t)]
    return []


def _detail(t: Transition) -> str:
    detail = t.directory or t.reason
    return f" ({detail})" if detail else ""


def _became_leader(t: Transition) -> Iterator[Piece]:
    assert t.after is not None
    yield from (("became leader", Style.GOOD), " of ", _name(t), f" at epoch {t.after.leader_epoch}")
    if t.before is not None and t.before.leader != t.after.leader:
        yield f", {_after(t.before.leader)}"
    yield f", ISR {numbers(t.after.isr)}"


def _became_follower(t: Transition) -> Iterator[Piece]:
    assert t.after is not None
    if t.after.leader < 0:
        yield from (_name(t), (" has no leader", Style.BAD), f" at epoch {t.after.leader_epoch}: {t.reason}")
        return
    yield from (("became follower", Style.NAME), " of ", _name(t), f" at epoch {t.after.leader_epoch}, ")
    yield f"leader {t.after.leader}"
    if t.before is not None and t.before.leader != t.after.leader:
        yield f", {_after(t.before.leader)}"


def _updated(t: Transition) -> Iterator[Piece]:
    yield "leads " if t.kind.value == "leader-updated" else "follows "
    yield _name(t)
    yield " as before" if t.after is None or t.before is None else f" on, {_changes(t)}"


def _changes(t: Transition) -> str:
    assert t.before is not None
    assert t.after is not None
    words = [
        f"{word} {numbers(old)} → {numbers(new)}"
        for word, old, new in (("ISR", t.before.isr, t.after.isr), ("replicas", t.before.replicas, t.after.replicas))
        if old != new
    ]
    if t.before.directories != t.after.directories:
        words.append("log directories assigned")
    if (t.before.elr, t.before.last_known_elr) != (t.after.elr, t.after.last_known_elr):
        words.append(f"ELR {numbers(t.before.elr)} → {numbers(t.after.elr)}")
    return ", ".join(words) or f"partition epoch {t.after.partition_epoch}"


def _fetcher(t: Transition) -> Iterator[Piece]:
    assert t.fetcher is not None
    started = t.kind.value == "fetcher-started"
    name = t.fetcher
    yield from ((f"fetcher {name.fetcher_id}", Style.NAME), f" to broker {name.leader_id} ({name.host}:{name.port}) ")
    yield ("started", Style.GOOD) if started else ("stopped", Style.WARNING)
    yield f": {t.reason}" if t.reason else ""


def _other(t: Transition) -> list[Piece]:
    first, *rest = _also(t)
    return [_name(t), first, *rest] if isinstance(first, str) and t.partition else [first, *rest]


def _also(t: Transition) -> list[Piece]:
    """A part of a line, after its beginning."""
    where = "" if t.fetcher is None else _fetched_by(t.fetcher)
    match t.kind.value:
        case "log-created":
            return [f", log made in {t.directory}" if t.directory and " " not in t.directory else ", log made"]
        case "fetching-started":
            return [f", fetched from offset {t.offset} by {where}"]
        case "fetching-stopped":
            return [f", no longer fetched by {where}"]
        case "not-fetching":
            return [] if t.reason == "the partition has no leader" else [", ", (f"not fetched: {t.reason}", Style.BAD)]
        case "replica-stopped":
            return [", ", ("stopped", Style.WARNING), f": {t.reason}"]
        case "directory-reported":
            return [f", which lies in {t.directory}: reported, {t.reason}"]
        case "stale-epoch-ignored":
            return [", ", (f"ignored: {t.reason}", Style.WARNING)]
        case _:
            return [", ", *_leading(t)]


def _fetched_by(name: FetcherName) -> str:
    return f"fetcher {name.fetcher_id} to broker {name.leader_id}"


def _leader_name(leader: int | None) -> str:
    return "none" if leader is None or leader < 0 else f"broker {leader}"


def _after(leader: int) -> str:
    return "which had no leader" if leader < 0 else f"after broker {leader}"


def _name(t: Transition) -> Piece:
    return (str(t.partition), Style.STRONG)
