"""The words of a diagnosis that its terminal form, Markdown and HTML share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraftlake.cli.output.words import moment
from kraftlake.diagnosis.doctor.finding import Severity
from kraftlake.runtime.words import counted, duration

if TYPE_CHECKING:
    from kraftlake.diagnosis.doctor.diagnosis import Diagnosis
    from kraftlake.diagnosis.doctor.finding import Finding
    from kraftlake.diagnosis.doctor.group import Affected, LogPosition
    from kraftlake.diagnosis.doctor.help import Help

SHOWN_GROUPS = 5
NAMES_WIDTH = 28
"""The number of characters for the shown names of a long list."""


def place(position: LogPosition) -> str:
    """`2026-11-21 07:46:16.256Z, offset 458`."""
    return f"{moment(position.timestamp)}, offset {position.offset}"


def since(diagnosis: Diagnosis, finding: Finding) -> str:
    """`2026-11-21 07:46:16.256Z, offset 458, for 2 h 5 min`, as far as it is known; empty for a note."""
    if finding.since is None or finding.severity is Severity.INFO:
        return ""
    return place(finding.since) + lasts(diagnosis, finding).replace("  ", ", ", 1)


def lasts(diagnosis: Diagnosis, finding: Finding) -> str:
    """` for 2 h 5 min`: the time since the finding began; empty where it is not known, or less than a second."""
    position = finding.since
    if position is None or position.timestamp is None or diagnosis.timestamp is None or not finding.lasts:
        return ""
    length = diagnosis.timestamp - position.timestamp
    return f"  for {duration(length)}" if length >= 1000 else ""


def heading(diagnosis: Diagnosis) -> str:
    """The offset and time of the diagnosis."""
    image = diagnosis.image
    if image is None:
        return "the log has no image"
    at = image.provenance
    return f"offset {at.offset}, epoch {at.epoch}, {moment(diagnosis.timestamp)}"


def summary(diagnosis: Diagnosis) -> str:
    """The size of the cluster."""
    counts = diagnosis.counts
    if counts is None:
        return "unknown"
    brokers = counts.active_broker_count + counts.fenced_broker_count
    return (
        f"{counted(brokers, 'broker')}, {counts.active_broker_count} active; "
        f"{counted(counts.global_topic_count, 'topic')} with {counted(counts.global_partition_count, 'partition')}"
    )


def quorum(diagnosis: Diagnosis) -> str:
    """The voters, and the leader of a running quorum."""
    report = diagnosis.quorum
    voters = ", ".join(str(voter.id) for voter in report.voters)
    line = f"{counted(len(report.voters), 'voter')}{f' ({voters})' if voters else ''}, {len(report.voting)} here"
    running = report.running
    return line if running is None else f"{line}, led by {running.leader_id} in epoch {running.leader_epoch}"


def followers(diagnosis: Diagnosis) -> list[str]:
    """The lag of each voter behind the leader of a running quorum, and the time at which it had last caught up."""
    lines = []
    for copy in diagnosis.quorum.fetching_voters:
        fetching = copy.fetching
        if fetching is None or fetching.leads:
            continue
        behind = max(0, diagnosis.quorum.furthest.end_offset - copy.end_offset)
        level = f"{counted(behind, 'offset')} behind" if behind else "level"
        state = f"{level}, caught up last at {moment(fetching.caught_up)}"
        if not copy.epoch_ends:
            state = "has not fetched since this leader was elected"
        lines.append(f"voter {copy.properties.node_id}: {state}")
    return lines


def verdict(diagnosis: Diagnosis) -> str:
    """`1 critical, 2 warnings, 1 note`, or that the cluster is healthy."""
    counts = [0, 0, 0]
    for finding in diagnosis.findings:
        counts[finding.severity] += 1
    words = (f"{counts[0]} critical", counted(counts[1], "warning"), counted(counts[2], "note"))
    totals = ", ".join(word for count, word in zip(counts, words, strict=True) if count)
    if diagnosis.image is None:
        return f"the state of the cluster is not known: {totals}"
    health = "healthy" if diagnosis.is_healthy else "unhealthy"
    return f"{health}: {totals}" if totals else health


def things(names: Sequence[str]) -> str:
    """The first names, and the number of the others: `foo-1, foo-3 and 8 more`."""
    shown = ", ".join(names[:1])
    for count, name in enumerate(names[1:], start=1):
        if len(shown) + len(name) > NAMES_WIDTH:
            return f"{shown} and {len(names) - count:,} more"
        shown += f", {name}"
    return shown


def why_and_cost(one: Help) -> Iterator[tuple[str, str]]:
    """Pairs of `because` and a piece of evidence for a remedy, and a pair of `costs` and what is lost by it."""
    for group in one.evidence:
        yield "because", f"{things(group.things)}: {group.reason}" if group.things else group.reason
    if one.cost:
        yield "costs", one.cost


def shows_newest(finding: Finding) -> bool:
    """Whether the last groups are shown: for notes on events, the newest."""
    return finding.severity is Severity.INFO and any(group.since is not None for group in finding.groups)


def shown_groups(finding: Finding) -> tuple[Sequence[Affected], int]:
    """The groups that are shown, and the number of the others."""
    groups = finding.groups
    some = groups[-SHOWN_GROUPS:] if shows_newest(finding) else groups[:SHOWN_GROUPS]
    return some, len(groups) - len(some)
