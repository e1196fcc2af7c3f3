"""A quorum as a table of its nodes and a few verdicts; from the JSON form of `kraftlake quorum`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, listed
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.diagnosis.quorum_health import Verdict

_ROLES = {
    "voter": ("voter", Style.GOOD),
    "observer": ("no vote", Style.QUIET),
    "otherDirectory": ("no vote", Style.BAD),
    "unknown": ("unknown", Style.WARNING),
}


def show_quorum(terminal: Terminal, report: dict[str, Any], verdicts: Sequence[Verdict]) -> None:
    """Write the quorum, a row for each node and each missing voter, and the verdicts."""
    voters = report["voters"]
    rows = table("node", "directory id", "", "log", "epoch", "state", "", right=("node", "epoch"), whole="directory id")
    for node in report["nodes"]:
        rows.add_row(
            text((_or_dash(node["nodeId"]), Style.STRONG)),
            text((_or_dash(node["directoryId"]), Style.QUIET)),
            text(_ROLES[node["role"]]),
            text(_log(node)),
            text(_or_dash(node["lastEpoch"])),
            text(_election(node)),
            text(*_remarks(node, report["histories"])),
        )
    present = {(node["nodeId"], node["role"]) for node in report["nodes"]}
    for voter in voters:
        if not voter["here"] and (voter["id"], "voter") not in present:
            id_, directory = text((str(voter["id"]), Style.STRONG)), text((_or_dash(voter["directoryId"]), Style.QUIET))
            rows.add_row(id_, directory, text("voter"), *[text(NONE)] * 3, text(("not here", Style.BAD)))
    cluster = (report["clusterId"] or "of unknown id", Style.HEADING)
    kind = f"  {counted(len(voters), 'voter')}, kraft.version {report['kraftVersion']}"
    terminal.render(text(("cluster ", Style.STRONG), cluster, kind), text(), rows, *_endpoints(voters), text())
    for node in report["nodes"]:
        if node["fault"] is not None:  # a sentence, for which a column of the table is too narrow
            terminal.line(("✗ ", Style.BAD), f"{_name(node)} is not sound: {node['fault']}")
    for verdict in verdicts:
        terminal.line(("✓ ", Style.GOOD) if verdict.good else ("✗ ", Style.BAD), verdict.sentence)
        for held in verdict.held:
            terminal.line("  · ", str(held))


def _endpoints(voters: list[dict[str, Any]]) -> list[RenderableType]:
    """The addresses of the voters, as far as the log holds them."""
    known = [voter for voter in voters if voter["endpoints"]]
    rows = table("voter", "endpoints", right=("voter",))
    for voter in known:
        rows.add_row(text((str(voter["id"]), Style.STRONG)), text(", ".join(voter["endpoints"])))
    return [text(), rows] if known else []


def _name(node: dict[str, Any]) -> str:
    return _last_part(node["source"]) if node["nodeId"] is None else f"node {node['nodeId']}"


def _or_dash(value: object) -> str:
    return NONE if value is None else str(value)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _log(node: dict[str, Any]) -> str:
    start, end = node["startOffset"], node["endOffset"]
    if start < end:
        return f"{start} to {end - 1}"
    return f"up to {end - 1}" if end else NONE


def _election(node: dict[str, Any]) -> str:
    """The node's last election state, from its `quorum-state`."""
    if node["leaderEpoch"] is None:
        return NONE
    if node["leaderId"] is None:
        did = "no leader" if node["votedId"] is None else f"voted for {node['votedId']}"
    else:
        did = "leads" if node["leaderId"] == node["nodeId"] else f"follows {node['leaderId']}"
    return f"{did} in epoch {node['leaderEpoch']}"


def _remarks(node: dict[str, Any], histories: list[dict[str, Any]]) -> list[Piece]:
    """The differences from the node whose log goes furthest."""
    pieces: list[Piece] = [_last_part(node["source"])] if node["role"] == "unknown" else []
    if node["fault"] is not None:
        pieces.append(("not sound", Style.BAD))
    if node["role"] == "otherDirectory":
        pieces.append((f"not the directory of voter {node['nodeId']}", Style.BAD))
    if node["otherFrom"] is not None:
        is_changed = histories[node["history"]]["comparison"]["relation"] == "changed"
        another = f"another batch at {node['otherFrom']}" if is_changed else f"another log from {node['otherFrom']} on"
        pieces.append((another, Style.BAD))
    elif node["behind"] is None:
        pieces.append(("no offset in common with the others", Style.WARNING))
    elif node["behind"] > 0:
        pieces.append((f"{counted(node['behind'], 'offset')} behind", Style.WARNING))
    return listed(pieces)
