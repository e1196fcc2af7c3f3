"""The answers of `kraftlake can`, as lines of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.views.lines import LineTimes
from kraftlake.diagnosis.access.answers import Effect
from kraftlake.image.json_form import acl_json
from kraftlake.image.kafka_names import acl_words
from kraftlake.publisher.acl_cache import WILDCARD
from kraftlake.publisher.authorizer import WILDCARD_PRINCIPAL
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.diagnosis.access.answers import Access, ResourceAcl
    from kraftlake.diagnosis.access.changes import AccessHistory
    from kraftlake.diagnosis.access.question import Question
    from kraftlake.publisher.authorizer import Decision

_STYLES = {True: Style.GOOD, False: Style.BAD}
_EFFECTS = {
    Effect.ALLOWS: Style.GOOD, Effect.DENIES: Style.BAD, Effect.OTHER_HOST: Style.WARNING,
    Effect.OTHER_OPERATION: Style.QUIET,
}  # fmt: skip
_WIDTH = max(len(effect.value) for effect in _EFFECTS)


def show_access(terminal: Terminal, access: Access) -> None:
    """Write the answer in a line, and one for each exception."""
    terminal.line(_verdict(access.allowed), ": ", *_reason(access, access.decision))
    for pieces in _exceptions(access):
        terminal.line("  ", *pieces)


def show_why(terminal: Terminal, acls: Sequence[ResourceAcl]) -> None:
    """Write a line for each ACL of the resource; those of other principals are counted."""
    for one in acls:
        if one.effect in _EFFECTS:
            effect = (f"  {one.effect.value:<{_WIDTH}}  ", _EFFECTS[one.effect])
            terminal.line(effect, *_acl(one.acl_id, one.acl))
    others = Counter(one.effect for one in acls)[Effect.OTHER_PRINCIPAL]
    if others or not acls:
        text = f"{counted(others, 'ACL')} of other principals" if others else "the resource has no ACL"
        terminal.line((f"  {text}", Style.QUIET))


def show_who(terminal: Terminal, question: Question, found: Sequence[Access]) -> None:
    """Write a line for each principal that may, and where all others may, for those that may not."""
    if not found:
        terminal.line((f"nobody may {question.words}", Style.QUIET))
    width = max((len(_named(one)) for one in found), default=0)
    for access in found:
        terminal.line(
            _verdict(access.allowed), "  ", (f"{_named(access):<{width}}  ", Style.NAME),
            *_reason(access, access.decision),
        )  # fmt: skip
        for pieces in _exceptions(access):
            terminal.line("  ", *pieces)


def show_changes(terminal: Terminal, history: AccessHistory) -> None:
    """Write a line for each change of the answer: offset, epoch, time, the answer and what made it."""
    times = LineTimes(terminal)
    for one in history.changes:
        if one.change is None:
            since = "the log begins" if history.begin < 0 else f"this snapshot or earlier, offset {history.begin}"
            reason = _reason(one.access, one.access.decision)
            terminal.line(_verdict(one.access.allowed), (f"  since {since}: ", Style.QUIET), *reason)
        else:
            form = one.change.to_json()
            time = times.of(-1 if form["timestamp"] is None else form["timestamp"])
            head = (f"{form['offset']:>8}", Style.NUMBER), (f" {form['epoch']:>3}  {time}  ", Style.QUIET)
            did = "ACL added: " if form["before"] is None else "ACL removed: " if form["after"] is None else "ACL now: "
            words = acl_words(form["after"] or form["before"])
            terminal.line(*head, _verdict(one.access.allowed), f"  {did}{words}  ", (form["thing"], Style.QUIET))
        for pieces in _exceptions(one.access):
            terminal.line("  ", *pieces)


def _named(access: Access) -> str:
    others = "all others" if access.principal == WILDCARD_PRINCIPAL else access.principal
    return others if access.host == WILDCARD else f"{others} from {access.host}"


def _verdict(allowed: bool) -> Piece:
    return ("allowed" if allowed else "denied", _STYLES[allowed])


def _reason(access: Access, decision: Decision) -> Iterator[Piece]:
    if decision.acl is None:
        yield decision.rule.replace("the resource", access.question.resource)
    else:
        yield from _acl(decision.acl_id, decision.acl)


def _acl(acl_id: Any, acl: Any) -> Iterator[Piece]:
    yield acl_words(acl_json(acl))
    yield f"  acl/{acl_id}", Style.QUIET


def _exceptions(access: Access) -> Iterator[list[Piece]]:
    for one in access.exceptions:
        yield ["but ", _verdict(one.decision.allowed), f" from {one.region.pattern}: ", *_reason(access, one.decision)]
