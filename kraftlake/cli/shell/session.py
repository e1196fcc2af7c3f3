"""The state of a shell: its source, its moment, and its current directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.parameters import MOMENT, MOMENT_OR_EMPTY
from kraftlake.runtime.words import did_you_mean

if TYPE_CHECKING:
    from datetime import datetime

    from kraftlake.api import Source
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.image.nodes.node import Directory
    from kraftlake.image.nodes.paths import FoundNode
    from kraftlake.runtime.moments import LogTime


class Session:
    """A shell, or one command of it; at the end of the source unless `call` names a moment.

    `cwd` has the names from the root to the current directory, `lines` what has been typed, the oldest first.
    `has_ended` is set by `exit`.
    """

    def __init__(self, call: Call, source: Source) -> None:
        self.call = call
        self.source = source
        self.cwd: tuple[str, ...] = ()
        self.lines: list[str] = []
        self.has_ended = False
        self._context = click.get_current_context()  # has the zone of times that name none
        self.image: MetadataImage = call.replay(source, call.at).image

    @cached_property
    def root(self) -> Directory:
        """The root of the image's nodes."""
        return self.root_of(self.image)

    def root_of(self, image: MetadataImage) -> Directory:
        """The root of the nodes of an image of the source."""
        from importlib.metadata import version

        from kraftlake.image.nodes.image_nodes import root_node

        return root_node(image, version=version("kraftlake"), show_secrets=self.call.show_secrets)

    def moment(self, text: str, *, or_empty: bool = False) -> int | datetime | LogTime:
        """The moment of a text, also -1 for the empty image where `or_empty`; raises click.UsageError for no moment."""
        parameter = MOMENT_OR_EMPTY if or_empty else MOMENT
        try:
            moment: int | datetime | LogTime = parameter.convert(text, None, self._context)
        except click.BadParameter as fault:
            raise click.UsageError(fault.message, click.get_current_context()) from None
        return moment

    def move_to(self, at: int | datetime | LogTime | None) -> None:
        """Load the image at a moment, None for the end; where the directory is missing, move up to one that exists."""
        self.call.warn_past_end(self.source, at)
        self.image = self.call.replay(self.source, at).image
        self.__dict__.pop("root", None)
        was = self.cwd
        while self.find_one(self.cwd) is None:
            self.cwd = self.cwd[:-1]
        if self.cwd != was:
            from kraftlake.image.nodes.paths import path_of

            self.call.terminal.note(
                f"{path_of(was)} is not there at offset {self.image.offset}: this is {path_of(self.cwd)}"
            )

    def find_one(self, names: tuple[str, ...]) -> FoundNode | None:
        """The node at the end of names from the root, None where there is none."""
        from kraftlake.image.nodes.node import Directory
        from kraftlake.image.nodes.paths import FoundNode

        node: Any = self.root
        for name in names:
            node = node.child(name) if isinstance(node, Directory) else None
        return None if node is None else FoundNode(names, node)

    def find(self, patterns: Sequence[str]) -> tuple[list[FoundNode], str]:
        """The nodes that match patterns, by default the current directory, and a sentence on what is missing.

        The sentence is empty where each pattern matches something.
        """
        from kraftlake.image.nodes.paths import matching

        found = [list(matching(self.root, pattern, self.cwd)) for pattern in patterns or (".",)]
        missing = [pattern for pattern, nodes in zip(patterns, found, strict=False) if not nodes]
        return [one for nodes in found for one in nodes], "; ".join(map(self._missing, missing))

    @contextmanager
    def found(self, patterns: Sequence[str]) -> Iterator[list[FoundNode]]:
        """The same as `find`; raises ClickException at the end of the context where something is missing."""
        found, missing = self.find(patterns)
        yield found
        if missing:
            raise click.ClickException(missing)

    def find_single(self, pattern: str) -> FoundNode:
        """The one node that matches a pattern; ClickException where none does, UsageError where several do."""
        found, missing = self.find([pattern])
        if missing:
            raise click.ClickException(missing)
        if len(found) > 1:
            raise click.UsageError(f"{pattern} matches {len(found):,} nodes: give one.")
        return found[0]

    def _missing(self, pattern: str) -> str:
        """The message for a pattern that matches nothing: the names like it, in the first directory that lacks it."""
        from kraftlake.image.nodes.node import Directory
        from kraftlake.image.nodes.paths import matching, part_of

        parts = pattern.rstrip("/").split("/")
        for count in range(len(parts) - 1, -1, -1):
            within = "/".join(parts[:count]) or ("/" if pattern.startswith("/") and count else ".")
            found = next(matching(self.root, within, self.cwd), None)
            if found is None:
                continue
            if not isinstance(found.node, Directory):
                near = f"{found.path} has no nodes below it"
            else:
                near = did_you_mean(parts[count], map(part_of, found.node.names))
            break
        else:
            near = ""
        return f"there is no node {pattern} at offset {self.image.offset}" + (f": {near}" if near else "")

    def note_moment(self) -> None:
        """Write the offset and the time of the image."""
        from kraftlake.cli.output.theme import Style
        from kraftlake.cli.output.words import moment

        provenance = self.image.provenance
        if self.call.answered(provenance.to_json()):
            return
        self.call.terminal.line(
            "offset ", (str(provenance.offset), Style.NUMBER), f", epoch {provenance.epoch}, ",
            moment(provenance.timestamp),
        )  # fmt: skip
