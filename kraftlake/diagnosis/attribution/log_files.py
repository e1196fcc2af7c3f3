"""The authorizer logs of nodes, read from plain and compressed files and from archives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from kraftlake.diagnosis.attribution.authorizer_lines import AuthorizerLine, parse_line
from kraftlake.diagnosis.attribution.causes import REQUESTS
from kraftlake.kafka_files.archives.text_files import TextFile, text_files
from kraftlake.kafka_files.file_names import unpacked_name
from kraftlake.runtime.errors import CorruptDataError, UsageError
from kraftlake.runtime.words import shown

_BLOCK: Final = 4 * 1024 * 1024
_LONGEST_LINE: Final = 16 * 1024 * 1024
_CHANGES: Final = re.compile(rb" for request = (?:%s) with " % "|".join(dict.fromkeys(REQUESTS)).encode())
_DECISIONS: Final = re.compile(rb"Principal = [^\n]*")
_OF_CONTROLLERS: Final = re.compile(
    rb" for request = (?:Envelope|BrokerHeartbeat|BrokerRegistration|AlterPartition) with "
)
_ENDS: Final = b" with resourceRefCount = "
_ROTATED: Final = re.compile(r"(\.(?:log|json|txt|out))\b.*|(?:[.-][0-9][0-9.T:_-]*)$")


@attrs.define
class NodeLines:
    """The lines of one node's log on requests that change metadata, with the file of each; rotated files together.

    `ends` are lines at the ends of its files, on whatever requests; `allowed`: the log has lines of allowed operations;
    `leads`: it has those of requests that only an active controller gets. `unreadable` are torn lines, and those that
    can be read in more than one way; `dateless` those without a date and a time.
    """

    name: str
    lines: list[tuple[AuthorizerLine, str]] = attrs.field(factory=list)
    ends: list[AuthorizerLine] = attrs.field(factory=list)
    allowed: bool = False
    leads: bool = False
    unreadable: Counter[str] = attrs.field(factory=Counter)
    dateless: int = 0


def read_logs(paths: Sequence[str]) -> list[NodeLines]:
    """The logs of nodes in files and archives: those that differ by rotation alone are one node's.

    Of several, one may be a log of JSON objects without a line of the logger. Raises UsageError where any other file
    has no line of it or none has a date, else as `text_files`.
    """
    nodes: dict[str, NodeLines] = {}
    for path in paths:
        files = text_files(path, lambda name: "authorizer" in name.lower())
        if not files:
            raise UsageError(
                f"The archive {path} has no file with authorizer in its name: unpack it, and name the files."
            )
        before = sum(len(node.ends) for node in nodes.values())
        dateless = sum(node.dateless for node in nodes.values())
        for file in files:
            _read(file, nodes.setdefault(_node_of(file.name), NodeLines(_node_of(file.name))))
        if any(file.file.size for file in files) and before == sum(len(node.ends) for node in nodes.values()):
            if dateless < sum(node.dateless for node in nodes.values()):
                raise UsageError(
                    f"The lines of {path} have no date and time before the message: "
                    "kraftlake reads those of log4j's %d with a date, and of JSON layouts."
                )
            if len(paths) > 1 and all(next(_blocks(file), b"{").startswith(b"{") for file in files):
                continue  # the log of a node of a lake that was not asked for anything, as a standby controller
            raise UsageError(
                f"{path} has no line of kafka.authorizer.logger (Principal = … is Allowed operation = …): "
                "name the kafka-authorizer.log of a controller."
            )
    return [node for node in nodes.values() if node.ends]


def _node_of(name: str) -> str:
    """The name that the rotated files of one log have in common."""
    folder, slash, file = unpacked_name(name).rpartition("/")
    return f"{folder}{slash}{_ROTATED.sub(lambda match: match[1] or '', file)}"


def _read(file: TextFile, node: NodeLines) -> None:
    for block in _blocks(file):
        node.allowed = node.allowed or b" is Allowed " in block
        node.leads = node.leads or _OF_CONTROLLERS.search(block) is not None
        if torn := sum(_ENDS not in line for line in _DECISIONS.findall(block)):
            node.unreadable[file.name] += torn
        for match in _CHANGES.finditer(block):
            line = parse_line(_line_at(block, match.start()))
            if line is None:
                node.unreadable[file.name] += 1
            elif line.time is None:
                node.dateless += 1
            else:
                node.lines.append((line, file.name))
        _note_ends(block, node)


def _note_ends(block: bytes, node: NodeLines) -> None:
    """Keep the first and the last line of a block, on whatever request."""
    for step in (block.find, block.rfind):
        at = step(_ENDS)
        line = parse_line(_line_at(block, at)) if at >= 0 else None
        if line is not None and line.time is None:
            node.dateless += 1
        elif line is not None:
            node.ends.append(line)


def _line_at(block: bytes, position: int) -> str:
    begin, end = block.rfind(b"\n", 0, position) + 1, block.find(b"\n", position)
    return block[begin : len(block) if end < 0 else end].rstrip(b"\r").decode("utf-8", "backslashreplace")


def lines_of(file: TextFile) -> Iterator[str]:
    """The lines of a text file."""
    for block in _blocks(file):
        yield from block.decode("utf-8", "backslashreplace").split("\n")


def _blocks(file: TextFile) -> Iterator[bytes]:
    """The file in blocks of whole lines."""
    stream, position, rest = file.file.open(), 0, b""
    try:
        while part := stream.read_at(position, _BLOCK):
            position += len(part)
            block = rest + part
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            if len(rest) > _LONGEST_LINE:
                raise CorruptDataError(f"{shown(file.name)} is no log: a line of it has more than {len(rest):,} bytes")
            if end:
                yield block[:end]
    finally:
        stream.close()
    if rest:
        yield rest
