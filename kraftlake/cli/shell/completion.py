"""Completions of a line of the shell: names of commands, paths, options, fields."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import click

from kraftlake.cli.shell.commands import COMMANDS
from kraftlake.cli.shell.session import Session


class Candidate(NamedTuple):
    """A word that may replace the last `replaced` characters; `shown` is its form in a list."""

    word: str
    replaced: int
    shown: str


def candidates(session: Session, line: str) -> Iterator[Candidate]:
    """The completions of the last word of a line."""
    start, begun = _last_word(line)
    before = line[:start].split()
    length = len(line) - start
    if not before or before == ["man"]:
        yield from _of(COMMANDS, begun, length)
        return
    command = COMMANDS.get(before[0])
    if command is None:
        return
    if begun.startswith("-"):
        options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
        yield from _of([*(name for option in options for name in option.opts), "--help"], begun, length)
        return
    arguments = {parameter.name for parameter in command.params if isinstance(parameter, click.Argument)}
    if "field" in arguments and len(before) > 1:
        yield from _of(_fields(session, before[1]), begun, length)
    elif arguments & {"path", "paths"}:
        yield from _paths(session, begun, length, directories_only=command.name == "cd")


def _of(names: Iterable[str], begun: str, length: int) -> Iterator[Candidate]:
    for name in names:
        if name.startswith(begun):
            yield Candidate(f"{name} ", length, name)


def _fields(session: Session, path: str) -> Iterable[str]:
    from kraftlake.image.json_form import broker_json, partition_json
    from kraftlake.image.nodes.paths import matching

    found = next(matching(session.root, path, session.cwd), None)
    kind = None if found is None or found.node.subject is None else found.node.subject.kind
    return {"partition": partition_json.keys, "broker": broker_json.keys}.get(kind or "", ())


def _paths(session: Session, begun: str, length: int, *, directories_only: bool) -> Iterator[Candidate]:
    from kraftlake.image.nodes.paths import as_literal, matching, part_of

    parent, slash, name = begun.rpartition("/")
    found = next(matching(session.root, parent + slash or ".", session.cwd), None)
    for child in () if found is None else found.children():
        part = part_of(child.names[-1])
        if not part.startswith(name) and not as_literal(part).startswith(name):
            continue
        is_directory = child.node.is_directory
        if is_directory or not directories_only:
            word = shlex.quote(parent + slash + as_literal(part) + ("/" if is_directory else ""))
            yield Candidate(word if is_directory else f"{word} ", length, part + ("/" if is_directory else ""))


def _last_word(line: str) -> tuple[int, str]:
    """The start of the last word of a line, and the word without its quotes."""
    start, word, quote = 0, "", ""
    characters = iter(enumerate(line))
    for place, character in characters:
        if quote and character == quote:
            quote = ""
        elif quote == "'":
            word += character
        elif character == "\\":
            escaped = next(characters, None)
            word += "" if escaped is None else escaped[1]
        elif quote:
            word += character
        elif character in "'\"":
            quote = character
        elif character.isspace():
            start, word = place + 1, ""
        else:
            word += character
    return start, word
