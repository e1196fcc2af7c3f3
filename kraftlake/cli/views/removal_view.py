"""The answer of `kraftlake removal-check` as lines of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.runtime.words import counted, in_words

if TYPE_CHECKING:
    from kraftlake.diagnosis.removal.removal_check import RemovalCheck

_FEW = 6


def show_removal(terminal: Terminal, found: RemovalCheck, target: str | None) -> None:
    """Write what lies on the broker, what its loss takes, and the moves in numbers; up to a few names of each."""
    state = "fenced" if found.fenced else "active"
    terminal.line(
        (f"broker {found.broker}", Style.HEADING), (f"  {state}, at offset {found.provenance.offset}", Style.QUIET)
    )
    if found.is_empty:
        terminal.line(("empty", Style.GOOD), ": no replica lies on it")
    else:
        lies = f"{counted(len(found.replicas), 'replica')}, {found.leads} of them leaders"
        terminal.line(("holds     ", Style.QUIET), lies, *_named("of internal topics", found.internal))
        for directory, count in found.directories.items():
            terminal.line(("          ", Style.QUIET), f"{counted(count, 'replica')} in directory {directory}")
    if found.is_controller or found.is_voter:
        role = "a voter of the quorum" if found.is_voter else "registered as a controller"
        terminal.line(("also      ", Style.QUIET), f"node {found.broker} is {role}: remove it there by itself")
    for words, names in (("offline", found.offline), ("below min.insync.replicas", found.under_min_isr)):
        if names:
            terminal.line(("its loss  ", Style.QUIET), f"{len(names)} {words}", *_named("", names))
    if found.moves.targets or found.moves.stuck:
        _show_moves(terminal, found)
    if target is not None:
        terminal.line(("wrote     ", Style.QUIET), target, (", for kafka-reassign-partitions", Style.QUIET))


def _show_moves(terminal: Terminal, found: RemovalCheck) -> None:
    places = in_words([f"{count} to broker {broker}" for broker, count in sorted(found.moves.gained.items())])
    proof = ("proved by the controller's rules", Style.GOOD) if found.is_proved else ("not proved", Style.BAD)
    moves = f"{len(found.moves.targets)}: {places}; " if places else "none; "
    terminal.line(("moves     ", Style.QUIET), moves, proof)
    for words, names in (
        ("in fewer racks afterwards", found.moves.fewer_racks),
        ("with no broker to go to", found.moves.stuck),
        ("still on it afterwards", found.left),
        ("worse off afterwards", found.harmed),
        ("refused by the controller", tuple(found.refused)),
    ):
        if names:
            terminal.line(("          ", Style.QUIET), (f"{len(names)} {words}", Style.WARNING), *_named("", names))


def _named(words: str, names: Sequence[str]) -> list[tuple[str, Style]]:
    if not names:
        return []
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    head = f", {len(names)} {words}: " if words else ": "
    return [(f"{head}{', '.join(names[:_FEW])}{more}", Style.QUIET)]
