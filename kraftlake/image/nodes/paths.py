"""Paths of nodes, and the patterns that match them.

A name is a part of a path as it is, except for a slash in it (`%2F`), a percent sign (`%25`), a name of dots alone
(`%2E`), and the empty name (`%`). A path may also have names in the form that Kafka's shell prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from kraftlake.image.nodes.node import Directory, Node

Names = tuple[str, ...]
"""The names from the root to a node."""

_EMPTY: Final = "%"
_SPECIAL: Final = re.compile(r"([*?{}\\])")
_ESCAPES: Final = {"%25": "%", "%2F": "/", "%2E": "."}
_ESCAPE: Final = re.compile("|".join(_ESCAPES))
_ANY: Final = {"*": ".*", "?": "."}


@attrs.frozen
class FoundNode:
    """A node and the names that lead to it."""

    names: Names
    node: Node

    @property
    def path(self) -> str:
        """The node's absolute path."""
        return path_of(self.names)

    def children(self) -> Iterator[FoundNode]:
        """The children of a directory in their order; none for a leaf."""
        if isinstance(self.node, Directory):
            for name in self.node.names:
                child = self.node.child(name)
                if child is not None:
                    yield FoundNode((*self.names, name), child)

    def below(self) -> Iterator[FoundNode]:
        """The node and all nodes below it, each before its children."""
        yield self
        for child in self.children():
            yield from child.below()


def path_of(names: Names) -> str:
    """The absolute path of names from the root."""
    return "/" + "/".join(map(part_of, names))


def part_of(name: str) -> str:
    """A name as a part of a path."""
    shown = name.replace("%", "%25").replace("/", "%2F") or _EMPTY
    return shown.replace(".", "%2E") if shown in (".", "..") else shown


def as_literal(part: str) -> str:
    """A part of a path as a pattern that matches it alone."""
    return _SPECIAL.sub(r"\\\1", part)


def matching(root: Directory, pattern: str, within: Names = ()) -> Iterator[FoundNode]:
    """The nodes whose paths match a pattern, which begins at the names `within` unless it begins with a slash.

    In a part of it `*` and `?` stand for any characters and any one, `{a,b}` for one of several, and a backslash
    escapes the next character. Groups can't be nested. Empty where no node matches.
    """
    parts: list[str] = []
    for part in [*([] if pattern.startswith("/") else map(_literal_part, within)), *pattern.split("/")]:
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return _walk(FoundNode((), root), parts)


def _literal_part(name: str) -> str:
    return as_literal(part_of(name))


def _walk(found: FoundNode, parts: Sequence[str]) -> Iterator[FoundNode]:
    if not parts:
        yield found
        return
    directory = found.node
    if not isinstance(directory, Directory):
        return
    regex = _regex(parts[0])
    if regex is not None:
        for name in directory.names:
            if regex.fullmatch(part_of(name)) or regex.fullmatch(name):
                child = directory.child(name)
                if child is not None:
                    yield from _walk(FoundNode((*found.names, name), child), parts[1:])
        return
    for taken in range(1, len(parts) + 1):  # more than one for a name with a slash, as Kafka prints it
        for name in _spelled("/".join(parts[:taken])):
            child = directory.child(name)
            if child is not None:
                yield from _walk(FoundNode((*found.names, name), child), parts[taken:])
                return


def _spelled(part: str) -> Iterator[str]:
    """The names that a part without wildcards may mean, the likeliest first."""
    plain = re.sub(r"\\(.)", r"\1", part)
    decoded = _ESCAPE.sub(lambda escape: _ESCAPES[escape.group()], plain)
    yield from dict.fromkeys(("" if plain == _EMPTY else decoded, part, plain))


def _regex(part: str) -> re.Pattern[str] | None:
    """The regex of a part of a pattern; None where it has no wildcards, or a group that does not end."""
    made, has_wildcard, in_group = "", False, False
    characters = iter(part)
    for character in characters:
        if character == "\\":
            made += re.escape(next(characters, "\\"))
        elif character in _ANY:
            made, has_wildcard = made + _ANY[character], True
        elif character == "{":
            if in_group:
                return None
            made, has_wildcard, in_group = made + "(?:", True, True
        elif in_group and character in ",}":
            made += "|" if character == "," else ")"
            in_group = character == ","
        else:
            made += re.escape(character)
    return re.compile(made, re.DOTALL) if has_wildcard and not in_group else None
