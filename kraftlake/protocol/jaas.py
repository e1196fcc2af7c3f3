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
      | (?P<sign>[=;])
      | (?P<word>(?:(?!//|/\*)[^\s=;"'])+)
      | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}
_SEMICOLON: Final = ("sign", ";")
_END: Final = ("end", "")
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
    tokens = [*_tokens(text), _END, _END, _END]
    (kind, module), (_, flag) = tokens[:2]
    if kind != "word" or flag.lower() not in _FLAGS:
        raise ValueError("does not begin with a login module and the word 'required'")
    at, options = 2, dict[str, str]()
    while tokens[at] != _SEMICOLON:
        key, sign, value = tokens[at : at + 3]
        if key is _END:
            raise ValueError("does not end with a semicolon")
        if key[0] != "word" or sign != ("sign", "=") or value[0] not in ("word", "text"):
            raise ValueError(f"has no KEY=VALUE as option {len(options) + 1} of the login module")
        options[key[1]] = value[1]
        at += 3
    if tokens[at + 1] is not _END:
        raise ValueError("has something after the semicolon: one login module is taken")
    return JaasEntry(module=module, options=options)


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
