"""A quorum as a table of its nodes and a few verdicts; from the JSON form of `kraftlake quorum`."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, counted, listed

_ROLES = {
    "voter": ("voter", Style.GOOD),
    "observer": ("no vote", Style.QUIET),
    "otherDirectory": ("no vote", Style.BAD),
    "unknown": ("unknown", Style.WARNING),
}


def show_quorum(terminal: Terminal, report: dict[str, Any]) -> None:
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
            text(*_remarks(node)),
        )
    told = {(node["nodeId"], node["role"]) for node in report["nodes"]}
    for voter in voters:
        if not voter["here"] and (voter["id"], "voter") not in told:
            id_, directory = text((str(voter["id"]), Style.STRONG)), text((_or_dash(voter["directoryId"]), Style.QUIET))
            rows.add_row(id_, directory, text("voter"), *[text(NONE)] * 3, text(("not here", Style.BAD)))
    cluster = (report["clusterId"] or "of unknown id", Style.HEADING)
    kind = f"  {counted(len(voters), 'voter')}, kraft.version {report['kraftVersion']}"
    terminal.render(text(("cluster ", Style.STRONG), cluster, kind), text(), rows, *_endpoints(voters), text())
    for good, words in _verdicts(report):
        terminal.line(("✓ ", Style.GOOD) if good else ("✗ ", Style.BAD), words)


def _endpoints(voters: list[dict[str, Any]]) -> list[RenderableType]:
    """Where the voters are reached, as far as the log holds it: from kraft.version 1 on."""
    known = [voter for voter in voters if voter["endpoints"]]
    rows = table("voter", "endpoints", right=("voter",))
    for voter in known:
        rows.add_row(text((str(voter["id"]), Style.STRONG)), text(", ".join(voter["endpoints"])))
    return [text(), rows] if known else []


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


def _remarks(node: dict[str, Any]) -> list[Piece]:
    """The differences from the node with the longest log."""
    pieces: list[Piece] = [_last_part(node["source"])] if node["role"] == "unknown" else []
    if node["fault"] is not None:
        pieces.append((node["fault"], Style.BAD))
    if node["role"] == "otherDirectory":
        pieces.append((f"not the directory of voter {node['nodeId']}", Style.BAD))
    if node["otherFrom"] is not None:
        pieces.append((f"from {node['otherFrom']} on not what the furthest log has: it will be cut off", Style.BAD))
    elif node["behind"]:
        pieces.append((f"{counted(node['behind'], 'offset')} behind", Style.WARNING))
    return listed(pieces)


def _verdicts(report: dict[str, Any]) -> list[tuple[bool, str]]:
    """Sentences on election, completeness and majority, each with whether it is good."""
    voters = report["voters"]
    if not voters:
        return [(False, "none of these logs names its voters: it has neither a leader change nor a snapshot that does")]
    here = sum(voter["here"] for voter in voters)
    are = f"{here} of {counted(len(voters), 'voter')} {'is' if 1 in (here, len(voters)) else 'are'} here"
    if any(node["role"] == "voter" and node["fault"] is not None for node in report["nodes"]):
        are += " and sound"
    needs = f"{report['needed']} {'is' if report['needed'] == 1 else 'are'} needed"
    electable = " or ".join(map(str, report["electable"]))
    verdicts = [
        (True, f"{are}, {needs}: they can elect {electable}")
        if electable
        else (False, f"{are}, {needs}: no leader can be elected of these alone")
    ]
    if report["hasAllCommitted"]:
        verdicts.append((True, "all that was ever committed is in the furthest of these logs"))
    else:
        verdicts.append((False, "what the other voters committed without these may be missing in all of these logs"))
    if report["onMajority"] is not None:
        verdicts.append((True, f"a majority of the voters has the offsets up to {report['onMajority']}"))
    further = [
        node
        for node in report["nodes"]
        if node["role"] != "voter" and not node["behind"] and node["fault"] is None and node["otherFrom"] is None
    ]
    behind = [node["behind"] > 0 for node in report["nodes"] if node["role"] == "voter"]
    if further and behind and all(behind):
        named = "a source" if further[0]["nodeId"] is None else f"node {further[0]['nodeId']}"
        verdicts.append((False, f"the log of {named}, which has no vote, goes further than those of all voters here"))
    return verdicts
