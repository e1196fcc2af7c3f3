"""A verification report as text."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.runtime.words import counted

SHOWN_PROBLEMS = 20


def show_verify_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write a check list, the problems by offset, the notes, and the verdict with the first bad offset."""
    checked, problems = report["checked"], report["problems"]
    in_snapshots = sum(problem["inSnapshot"] for problem in problems)
    if checked["batches"]:
        batches = counted(checked["batches"], "batch", "batches")
        offsets = f"offsets {report['startOffset']} to {report['endOffset'] - 1}"
        checks = "CRCs, order, epochs, decoding, transactions, replay, references"
        read = f"{counted(checked['records'], 'record')} in {batches}, {offsets}"
        _check(terminal, len(problems) + report["moreProblems"] - in_snapshots, read, of=checks)
    if checked["snapshots"]:
        compared = f"{checked['snapshotsCompared']} of them compared with the replay of the log"
        _check(terminal, in_snapshots, f"{counted(checked['snapshots'], 'snapshot')} read, {compared}")
    if report.get("spec") is not None:
        _show_spec(terminal, report["spec"])
    for problem in problems[:SHOWN_PROBLEMS]:
        terminal.line(("  ✗ ", Style.BAD), problem_words(problem))
    more = len(problems) - SHOWN_PROBLEMS + report["moreProblems"]
    if more > 0:
        terminal.line(("  … ", Style.BAD), f"{counted(more, 'problem')} more: --json has the first thousand")
    if report["tornTail"] is not None:
        rest = "everything before it is used; of a log that was copied while it was written the next copy has the rest"
        terminal.line(("  • ", Style.QUIET), f"{problem_words(report['tornTail'])}: {rest}")
    for note in report["notes"]:
        terminal.line(("  • ", Style.QUIET), note)
    if report["chain"] is not None:
        words = "The chain of hashes over the lake's rows ends with"
        terminal.line(("  • ", Style.QUIET), f"{words} {report['chain']}: --at-least holds the lake to it later.")
    if report["sound"]:
        terminal.line(("sound", Style.GOOD))
        return
    first = report["firstBadOffset"]
    where = "" if first is None else f": the first bad offset is {first}"
    terminal.line(("unsound", Style.BAD), where)


def _show_spec(terminal: Terminal, spec: dict[str, Any]) -> None:
    """Write a check list of the specified properties that were judged, and what violates them."""
    judged = [one for one in spec["properties"] if one["judged"]]
    if spec["toOffset"] is not None:
        offsets = f"offsets {spec['fromOffset']} to {spec['toOffset']}"
        read = f"{counted(len(judged), 'property', 'properties')} of Kafka's specifications judged, {offsets}"
        violations = spec["violations"]
        if violations:
            more = len(violations) + spec["moreViolations"]
            terminal.line(("✗ ", Style.BAD), f"{read}: {counted(more, 'violation')}")
        else:
            terminal.line(("✓ ", Style.GOOD), read)
        for one in violations[:SHOWN_PROBLEMS]:
            bug = "" if one["knownBug"] is None else f" Known: {one['knownBug']}."
            place = f"offset {one['offset']}, {one['record']}, {one['property']}: "
            terminal.line(("  ✗ ", Style.BAD), f"{place}{one['sentence']}{bug}")
        more = len(violations) - SHOWN_PROBLEMS + spec["moreViolations"]
        if more > 0:
            terminal.line(("  … ", Style.BAD), f"{counted(more, 'violation')} more: --json has the first thousand")
    if spec["stopped"] is not None:
        terminal.line(("  • ", Style.QUIET), f"The specifications were judged no further: {spec['stopped']}")


def problem_words(problem: dict[str, Any]) -> str:
    """The place of a problem, as far as it is known, and its description."""
    places = [problem["file"]] if problem["file"] is not None else []
    if problem["position"] is not None:
        places.append(f"position {problem['position']}")
    if problem["offset"] is not None:
        places.append(f"{'snapshot ' if problem['inSnapshot'] else ''}offset {problem['offset']}")
    return ", ".join(places) + (": " if places else "") + str(problem["message"])


def _check(terminal: Terminal, problems: int, words: str, *, of: str = "") -> None:
    """Write the objects and the checks of one line of the list; for failed checks, the number of problems."""
    if problems:
        terminal.line(("✗ ", Style.BAD), f"{words}: {counted(problems, 'problem')}")
    else:
        terminal.line(("✓ ", Style.GOOD), f"{words}: {of}" if of else words)
