"""Strings from a log made safe to show: nothing in them may steer the terminal or the layout."""

from __future__ import annotations

import re
import unicodedata

_SUSPECT = re.compile(r"[^\x20-\x7e]")
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Control characters, invisible format characters (text direction among them), lone surrogates, private use, unknown,
# and the two separators that break lines.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """`text` with every character that a terminal would act on, or not show, written as an escape (`\\x1b`)."""
    return text if text.isascii() and text.isprintable() else _SUSPECT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES:
        return character
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
