"""The clients that made a change, as lines below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.runtime.words import in_words

_WITNESSES = {"who": "by ", "audit": "audit: by "}


def show_who(terminal: Terminal, form: Mapping[str, Any], indent: int) -> None:
    """Write a line for each kind of witness that was asked about a change; nothing where none was."""
    for words, style in who_words(form):
        terminal.line(" " * indent, (words, style))


def who_words(form: Mapping[str, Any]) -> Iterator[tuple[str, Style]]:
    """The sentence of each kind of witness, from the fields `who` and `audit` of a change."""
    for name, by in _WITNESSES.items():
        found = form.get(name)
        if found is None:
            continue
        if found["reason"] is None:
            yield f"{by}{client_words(found)}", Style.NAME
        elif found["candidates"]:
            clients = in_words([client_words(one) for one in found["candidates"]], "or")
            yield f"{by}{clients}: {found['reason']}", Style.WARNING
        else:
            yield f"{by}unknown: {found['reason']}", Style.QUIET


def client_words(client: Mapping[str, Any]) -> str:
    """A client in words: its principal, host and request."""
    host = "" if client["host"] is None else f" from {client['host']}"
    return f"{client['principal']}{host}, {client['request']}"
