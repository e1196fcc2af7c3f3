"""A diagnosis as Markdown for a ticket, and as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from kraftlake.cli.output.formats import markdown_text as md
from kraftlake.cli.output.visible import visible
from kraftlake.cli.views import doctor_words as words
from kraftlake.diagnosis.doctor.finding import Severity

if TYPE_CHECKING:
    from kraftlake.diagnosis.doctor.diagnosis import Diagnosis
    from kraftlake.diagnosis.doctor.finding import Finding


def markdown_page(diagnosis: Diagnosis) -> Iterator[str]:
    """The lines of the page."""
    yield f"# Cluster {md(diagnosis.cluster_id or 'of unknown id')}: {md(words.verdict(diagnosis))}"
    yield ""
    yield f"- at {md(words.heading(diagnosis))}"
    yield f"- {md(words.summary(diagnosis))}"
    yield f"- quorum: {md(words.quorum(diagnosis))}"
    for follower in words.followers(diagnosis):
        yield f"  - {md(follower)}"
    for finding in diagnosis.findings:
        yield ""
        yield f"## {finding.severity.word}: {md(finding.sentence)}"
        yield ""
        if since := words.since(diagnosis, finding):
            yield f"- since {md(since)}"
        shown, more = words.shown_groups(finding)
        for group in shown:
            when = "" if group.since is None else f" ({words.place(group.since)})"
            yield f"- {md(words.things(group.things))}: {md(group.reason)}{when}"
        if more:
            yield f"- … {more:,} more"
        yield f"- more: {_code(finding.command)}"
        for one in finding.helps:
            yield f"- what helps: {md(one.action)}"
            for label, detail in words.why_and_cost(one):
                yield f"  - {label}: {md(detail)}"


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text has in a row."""
    shown = visible(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


_STYLE = """
:root { color-scheme: light dark; --line: #8884; --critical: #c62828; --warning: #b26a00; --info: #1565c0; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-left-width: .4rem; border-radius: .3rem; padding: .8rem 1rem;
  margin: 1rem 0; }
section.critical { border-left-color: var(--critical); } section.warning { border-left-color: var(--warning); }
section.info { border-left-color: var(--info); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td { border-top: 1px solid var(--line); padding: .3rem .8rem .3rem 0; vertical-align: top; overflow-wrap: anywhere; }
code { font-size: .9em; }
""".strip()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)
"""A policy that loads and runs nothing; only the page's own style is allowed."""


def html_page(diagnosis: Diagnosis) -> str:
    """The page: without scripts, links and pictures; every string of the log is escaped."""
    title = f"Cluster {_html(diagnosis.cluster_id or 'of unknown id')}: {_html(words.verdict(diagnosis))}"
    facts = [
        ("at", words.heading(diagnosis)),
        ("holds", words.summary(diagnosis)),
        ("quorum", "; ".join([words.quorum(diagnosis), *words.followers(diagnosis)])),
        ("sources", ", ".join(diagnosis.sources)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{_list(facts)}\n"
        + "".join(_section(diagnosis, finding) for finding in diagnosis.findings)
        + "</body>\n</html>\n"
    )


def _section(diagnosis: Diagnosis, finding: Finding) -> str:
    since = words.since(diagnosis, finding)
    facts = [("since", since)] if since else []
    facts += [("check", finding.check), ("more", finding.command)]
    for one in finding.helps:
        facts += [("what helps", one.action), *words.why_and_cost(one)]
    rows = "".join(
        f"<tr><td>{_html(', '.join(group.things))}</td><td>{_html(group.reason)}</td>"
        f"<td>{_html('' if group.since is None else words.place(group.since))}</td></tr>\n"
        for group in finding.groups
    )
    return (
        f'<section class="{finding.severity.word}">\n<h2>{finding.severity.word}: {_html(finding.sentence)}</h2>\n'
        f"{_list(facts)}\n<details{'' if finding.severity is Severity.INFO else ' open'}>"
        f"<summary>{len(finding.groups):,} in detail</summary>\n<table>\n{rows}</table></details>\n</section>\n"
    )


def _list(facts: list[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{_html(name)}</dt><dd>{_html(fact)}</dd>' for name, fact in facts)}</dl>"


def _html(text: str) -> str:
    return escape(visible(text))
