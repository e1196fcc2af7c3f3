"""A diagnosis as a tree: a branch for each finding, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.tree import Tree

from kraftlake.cli.output.drawing import branch, table, text, tree
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import NONE, moment
from kraftlake.cli.views import doctor_words as words
from kraftlake.diagnosis.doctor.finding import Severity

if TYPE_CHECKING:
    from kraftlake.diagnosis.doctor.diagnosis import Diagnosis
    from kraftlake.diagnosis.doctor.finding import Finding

_STYLES = {Severity.CRITICAL: Style.BAD, Severity.WARNING: Style.WARNING, Severity.INFO: Style.NAME}


def show_diagnosis(terminal: Terminal, diagnosis: Diagnosis) -> None:
    """Write the cluster, the findings and the verdict."""
    root = tree(("cluster ", Style.STRONG), (diagnosis.cluster_id or "of unknown id", Style.HEADING))
    branch(root, "at", words.heading(diagnosis))
    branch(root, "holds", words.summary(diagnosis))
    quorum = branch(root, "quorum", words.quorum(diagnosis))
    for follower in words.followers(diagnosis):
        quorum.add(text(follower))
    for finding in diagnosis.findings:
        _add(root, diagnosis, finding)
    terminal.render(root)
    good = diagnosis.is_healthy
    terminal.line(("✓ " if good else "✗ ", Style.GOOD if good else Style.BAD), words.verdict(diagnosis))


def _add(root: Tree, diagnosis: Diagnosis, finding: Finding) -> None:
    is_note = finding.severity is Severity.INFO
    lasts = "" if is_note else words.lasts(diagnosis, finding)
    sentence = (finding.sentence, Style.PLAIN if is_note else Style.STRONG)
    node = root.add(text((finding.severity.word, _STYLES[finding.severity]), "  ", sentence, (lasts, Style.QUIET)))
    if finding.says_more:
        _add_groups(node, finding)
    node.add(text(("more   ", Style.QUIET), (finding.command, Style.NAME)))
    if not is_note:
        for one in finding.helps:
            helps = node.add(text(("helps  ", Style.QUIET), one.action))
            for label, detail in words.why_and_cost(one):
                helps.add(text((f"{label:7}  ", Style.QUIET), detail))


def _add_groups(node: Tree, finding: Finding) -> None:
    """Add a table of the shown groups: the start of each, its things, and its cause."""
    newest = words.shows_newest(finding)
    shown, more = words.shown_groups(finding)
    dated = any(group.since is not None for group in shown)
    rows = table(*(("offset", "since") if dated else ()), "what, and why", right=("offset",), whole="since")
    for group in shown:
        at = group.since
        when = [text(str(at.offset)), text(moment(at.timestamp))] if at is not None else [text(NONE), text(NONE)]
        rows.add_row(*(when if dated else ()), text((words.things(group.things), Style.NAME), f": {group.reason}"))
    node.add(rows)
    if more:
        node.add(text((f"… {more:,} {'earlier' if newest else 'more'}: --json has all", Style.QUIET)))
