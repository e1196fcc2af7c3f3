"""Java's properties files, read and written as by Kafka's tools and servers. Source: java.util.Properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LINES_TO_SKIP: Final = re.compile(r"(?:[ \t\f\r\n]+|\\(?>\r\n|\r|\n)(?!\Z)|[#!][^\r\n]*)*")
_LOGICAL_LINE: Final = re.compile(r"(?:\\(?:\r\n|.|\Z)|[^\\\r\n])*", re.DOTALL)
_ESCAPE_OR_CONTINUATION: Final = re.compile(r"\\(?:(?:\r\n|\r|\n|\Z)[ \t\f]*|(.))", re.DOTALL)
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED_IN_KEYS: Final = re.compile(r"[\\=:#! ]|[^ -~]")
_ESCAPED_IN_VALUES: Final = re.compile(r"\A |\\|[^ -~]")
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(content: bytes) -> dict[str, str]:
    """Parse the values by key; of a repeated key, the last value counts.

    A key ends at `=`, `:` or a blank; `#` and `!` begin comments; a backslash at the end continues a line. The text is
    UTF-8, or ISO-8859-1 if it is not valid UTF-8 (Java itself always reads ISO-8859-1). Raises ValueError for an
    incomplete `\\uXXXX`; the message contains no part of the content.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("iso-8859-1")
    found: dict[str, str] = {}
    position = 0
    while True:
        position = _match(_LINES_TO_SKIP, text, position).end()
        if position == len(text):
            return found
        line = _match(_LOGICAL_LINE, text, position)
        joined = _ESCAPE_OR_CONTINUATION.sub(lambda match: match[0] if match[1] else "", line[0])
        key = _match(_KEY, joined, 0)
        found[_unescaped(key[1])] = _unescaped(joined[key.end() :])
        position = line.end()


def format_properties(values: Mapping[str, str]) -> bytes:
    """Write values by key, a line each, so that `parse_properties` and Java read the same."""
    lines = (
        f"{_ESCAPED_IN_KEYS.sub(_escape, key)}={_ESCAPED_IN_VALUES.sub(_escape, value)}\n"
        for key, value in values.items()
    )
    return "".join(lines).encode("ascii")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    for letter, control in _CONTROLS.items():
        if character == control:
            return f"\\{letter}"
    if " " <= character <= "~":
        return f"\\{character}"
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _match(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str]:
    found = pattern.match(text, position)
    assert found is not None, "the pattern matches the empty string"
    return found


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(_character, text)
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")  # joins the halves of a pair
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair stands alone") from None


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2] == "u":
        raise ValueError("\\u is not followed by four hexadecimal digits")
    return _CONTROLS.get(match[2], match[2])
