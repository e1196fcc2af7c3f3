"""A what-if on a terminal: the steps, the leaders, the partitions, the returns, and the risk tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType

from kraftlake.cli.output.drawing import PlainTable, table, text
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE
from kraftlake.cli.views.doctor_words import things
from kraftlake.cli.views.metrics_view import named, title
from kraftlake.diagnosis.leadership import broker_words
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.diagnosis.trial.risks import Risk
    from kraftlake.diagnosis.trial.what_if import WhatIf

ALL_BROKERS = 24
"""The number of brokers up to which all are listed; of more, only those whose leaders or states change."""
_COLUMNS = {
    "offline": "offline",
    "under_min_isr": "under min ISR",
    "recovering": "may lack records",
    "reassigning": "being moved",
}
_ALWAYS = ("offline", "under_min_isr")
_UNCHANGED = "on a copy in memory, by the rules of Kafka's controller: no live cluster is changed, nothing is written"


def show_what_if(terminal: Terminal, answer: WhatIf) -> None:
    """Write the answer, and its verdict in one line at the end."""
    terminal.line(*title(answer.provenance.to_json()))
    terminal.line((_UNCHANGED, Style.QUIET))
    parts: list[RenderableType] = []
    if answer.steps:
        parts += [_steps(answer), _leaders(answer), *_partitions(answer)]
    for heading, risks in (("broker", answer.each_broker), ("rack", answer.each_rack)):
        if risks is not None:
            empty = text(
                f"no {heading} has a broker that is not fenced" if heading == "rack" else "every broker is fenced"
            )
            parts.append(_risks(heading, risks, after=bool(answer.steps)) if risks else empty)
    for part in parts:
        terminal.render(text(), part)
    terminal.line()
    for one in answer.steps:
        for note in one.notes:
            terminal.line(("note: ", Style.NAME), f"{one.step.words}: {note}")
        for name, reason in one.refused.items():
            terminal.line(("refused: ", Style.BAD), (name, Style.NAME), f": {reason}")
    terminal.line(*_verdict(answer))


def _steps(answer: WhatIf) -> PlainTable:
    """A row for each stage of each step, with the change since the row before."""
    rows = [("", "as it is", answer.before)]
    for number, one in enumerate(answer.steps, start=1):
        action = one.step.words
        rows += [(f"{number}", f"{action}: {stage.name}", stage.standing) for stage in one.stages]
    columns = {
        name: heading
        for name, heading in _COLUMNS.items()
        if name in _ALWAYS or any(getattr(standing, name) for _, _, standing in rows)
    }
    drawn = table("", "step", *columns.values(), right=("", *columns.values()))
    before = answer.before
    for step, words, standing in rows:
        cells = [_count(len(getattr(standing, name)), len(getattr(before, name))) for name in columns]
        drawn.add_row(text((step, Style.QUIET)), text((words, Style.STRONG)), *cells)
        before = standing
    return drawn


def _count(now: int, before: int) -> RenderableType:
    """`47 (+6)`; an increase is styled as bad."""
    change: Piece = (f" ({now - before:+,})", Style.BAD if now > before else Style.GOOD) if now != before else ""
    return text((f"{now:,}" if now else NONE, Style.WARNING if now else Style.QUIET), change)


def _leaders(answer: WhatIf) -> PlainTable:
    """A row for each broker: the partitions that it leads before and after."""
    before, after = answer.before.leaders, answer.after.leaders
    fenced = {id_ for one in answer.steps for id_ in one.fenced}
    known = answer.image.cluster.brokers
    shown = sorted({*known, *before, *after})
    if len(shown) > ALL_BROKERS:
        shown = [id_ for id_ in shown if id_ in fenced or before.get(id_, 0) != after.get(id_, 0)]
    drawn = table("broker", "rack", "after", "led before", "led after", right=("broker", "led before", "led after"))
    for id_ in shown:
        broker = known.get(id_)
        fault = "not registered" if broker is None else "fenced" if broker.fenced else ""
        state = text((fault, Style.WARNING) if fault else ("active", Style.GOOD))
        was, now = before.get(id_, 0), after.get(id_, 0)
        change = (f" ({now - was:+,})", Style.QUIET) if now != was else ""
        rack = "" if broker is None else broker.rack or NONE
        drawn.add_row(text((f"{id_}", Style.STRONG)), text(rack), state, text(_number(was)), text(_number(now), change))
    return drawn


def _number(count: int) -> str:
    return f"{count:,}" if count else NONE


def _partitions(answer: WhatIf) -> Iterator[RenderableType]:
    """The partitions that change, by kind of change, and those that lost brokers bring back."""
    before, after = answer.before, answer.after
    changes = (
        ("go offline", Style.BAD, before.offline, after.offline),
        ("offline meanwhile", Style.BAD, {*before.offline, *after.offline}, _meanwhile(answer)),
        ("come online", Style.GOOD, after.offline, before.offline),
        ("under min ISR", Style.WARNING, before.under_min_isr, after.under_min_isr),
        ("in sync again", Style.GOOD, after.under_min_isr, before.under_min_isr),
        ("may lack records", Style.BAD, before.recovering, after.recovering),
    )
    rows = table("", "", "partitions", right=("",))
    for heading, style, one, other in changes:
        names = sorted({*other}.difference(one))
        if names:
            rows.add_row(text((heading, Style.HEADING)), text((f"{len(names):,}", style)), text(*named(names)))
    if rows.row_count:
        yield rows
    for back in answer.returns if after.offline else ():
        starts = "starts" if len(back.brokers) == 1 else "start"
        brokers = f"{broker_words(back.brokers)} {starts} again after a crash"
        pieces: list[Piece] = [("if ", Style.QUIET), (brokers, Style.STRONG), ": "]
        count = len(back.online)
        if not count:
            yield text(*pieces, "no partition without a leader gets one")
            continue
        pieces.append((f"{count:,} of {counted(len(after.offline), 'offline partition')} get a leader", Style.GOOD))
        if back.recovering:
            pieces += [", ", (f"{len(back.recovering):,} of these one that may lack records", Style.WARNING)]
        yield text(*pieces)


def _meanwhile(answer: WhatIf) -> set[str]:
    """The partitions that are offline at some stage, and neither before nor after."""
    every = {name for one in answer.steps for stage in one.stages for name in stage.standing.offline}
    return every.difference(answer.before.offline, answer.after.offline)


def _risks(heading: str, risks: Sequence[Risk], *, after: bool) -> PlainTable:
    """A row for each loss, the worst first."""
    lost = f"{'then ' if after else ''}losing {heading}"
    columns = ("leads", "go offline", "under min ISR", "may lack records")
    drawn = table(lost, *columns, "which go offline", right=columns if heading == "rack" else (lost, *columns))
    for risk in sorted(risks, key=lambda risk: (-len(risk.offline), -len(risk.under_min_isr))):
        name = text((risk.rack or f"{risk.brokers[0]}", Style.STRONG))
        if risk.rack is not None:
            name.append_text(text((f" ({broker_words(risk.brokers)})", Style.QUIET)))
        numbers = ((risk.offline, Style.BAD), (risk.under_min_isr, Style.WARNING), (risk.recovering, Style.BAD))
        cells = [text((_number(len(names)), style if names else Style.QUIET)) for names, style in numbers]
        which = text((things(risk.offline), Style.NAME)) if risk.offline else text()
        drawn.add_row(name, text(_number(risk.leads)), *cells, which)
    return drawn


def _verdict(answer: WhatIf) -> list[Piece]:
    """The verdict: partitions that go offline, or single losses that would take some offline."""
    if answer.steps:
        gone = len({*answer.after.offline}.difference(answer.before.offline))
        still, meanwhile = len(answer.after.offline) - gone, len(_meanwhile(answer))
        effects = [f"{counted(gone, 'partition')} {'goes' if gone == 1 else 'go'} offline"] if gone else []
        if meanwhile:
            effects.append(f"{counted(meanwhile, 'partition')} {'is' if meanwhile == 1 else 'are'} offline meanwhile")
        if still:
            effects.append(f"{counted(still, 'partition')} {'is' if still == 1 else 'are'} offline before and after")
        if gone or meanwhile:
            return [("✗ ", Style.BAD), "; ".join(effects)]
        return [("✓ ", Style.GOOD), "; ".join(["no partition goes offline", *effects])]
    risks = [*(answer.each_broker or ()), *(answer.each_rack or ())]
    hurting = sum(bool(risk.offline) for risk in risks)
    if hurting:
        which = (
            "this loss takes"
            if len(risks) == 1
            else f"{hurting} of {len(risks)} losses {'takes' if hurting == 1 else 'take'}"
        )
        return [("✗ ", Style.BAD), f"{which} partitions offline"]
    return [("✓ ", Style.GOOD), "no single loss takes a partition offline"]
