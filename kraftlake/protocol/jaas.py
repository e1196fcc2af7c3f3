"""The login module and its options in `sasl.jaas.config`.

Source: org.apache.kafka.common.security.JaasConfig, which reads one entry of a JAAS file without its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

_TOKEN: Final = re.compile(
    r"""(?:\s | //[^\r\n]* | /\*.*?\*/)*
    (?: "(?P<double>(?:\\.|[^"\\\r\n])*)"
      | '(?P<single>(?:\\.|[^'\\\r\n])*)'
      | (?P<sign>[=;{}])
      | (?P<word>(?:(?!//|/\*)[^\s=;{}"'])+)
      | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}
_SEMICOLON: Final = ("sign", ";")
_END: Final = ("end", "")
_ENDS: Final = (_END, _END, _END)
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


@attrs.frozen(kw_only=True)
class JaasEntry:
    """A login module, by its class name, and its options."""

    module: str
    options: Mapping[str, str] = attrs.field(repr=False)


def parse_jaas(text: str) -> JaasEntry:
    """Parse `MODULE required KEY=VALUE KEY="VALUE";`, for one module.

    Raises ValueError; the message is the rest of a sentence that begins with the text's name, and contains no values.
    """
    tokens = [*_tokens(text), *_ENDS]
    entry, at = _entry(tokens, 0)
    if tokens[at] is not _END:
        raise ValueError("has something after the semicolon: one login module is taken")
    return entry


def parse_jaas_file(text: str) -> dict[str, tuple[JaasEntry, ...]]:
    """Parse a JAAS file, `NAME { MODULE required KEY=VALUE; … };` …: the login modules by the name of their entry.

    Raises ValueError as `parse_jaas`. Source: javax.security.auth.login.Configuration.
    """
    tokens = [*_tokens(text), *_ENDS]
    found, at = dict[str, tuple[JaasEntry, ...]](), 0
    while tokens[at] is not _END:
        (_, name), brace = tokens[at : at + 2]
        if brace != ("sign", "{"):
            raise ValueError("has a name without a brace after it")
        at, entries = at + 2, list[JaasEntry]()
        while tokens[at] != ("sign", "}"):
            entry, at = _entry(tokens, at)
            entries.append(entry)
        if tokens[at + 1] != _SEMICOLON:
            raise ValueError("has a brace that closes without a semicolon after it")
        found[name] = tuple(entries)
        at += 2
    return found


def _entry(tokens: list[tuple[str, str]], at: int) -> tuple[JaasEntry, int]:
    """Return the login module that begins at a token, and the position after it."""
    (kind, module), (_, flag) = tokens[at : at + 2]
    if kind != "word" or flag.lower() not in _FLAGS:
        raise ValueError("does not begin with a login module and the word 'required'")
    at, options = at + 2, dict[str, str]()
    while tokens[at] != _SEMICOLON:
        key, sign, value = tokens[at : at + 3]
        if key is _END:
            raise ValueError("does not end with a semicolon")
        if key[0] != "word" or sign != ("sign", "=") or value[0] not in ("word", "text"):
            raise ValueError(f"has no KEY=VALUE as option {len(options) + 1} of the login module")
        options[key[1]] = value[1]
        at += 3
    return JaasEntry(module=module, options=options), at + 1


def _tokens(text: str) -> list[tuple[str, str]]:
    """Yield the kind (word, text for a quoted one, sign) and the content of each token."""
    found: list[tuple[str, str]] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("has a quotation mark or a comment that is not closed")
        kind = str(match.lastgroup)
        if kind == "end":
            return found
        content = match[kind]
        found.append(("text", _ESCAPE.sub(_character, content)) if kind in ("double", "single") else (kind, content))
        position = match.end()


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 8)) if match[1] else _CONTROLS.get(match[2], match[2])
