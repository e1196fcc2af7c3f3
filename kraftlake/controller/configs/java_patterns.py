"""Checks the syntax of Java's regular expressions, without matching.

Python's `re` has another syntax (no `\\p{L}`, no `[a&&b]`, no `(?<name>…)`), and so have the libraries for Python, so
none of them can decide. Source: java.util.regex.Pattern. The names of Unicode scripts and blocks are not looked up, a
look-behind group may have any length, and the flag x (comments) is refused.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_NAME: Final = "[A-Za-z][A-Za-z0-9]*"
_QUOTE: Final = re.compile(r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_ESCAPE: Final = re.compile(
    rf"""\\(?:
        (?P<set> [dDhHsSvVwW] )
      | (?P<property> [pP] (?: \{{ [^}}]* \}} | . ) )
      | (?P<outside> [ABGRXZz1-9] | b(?:\{{g\}})? | k<(?P<group>{_NAME})> )
      | (?P<character> 0 [0-3]? [0-7]{{1,2}} | x [0-9A-Fa-f]{{2}} | x \{{ [0-9A-Fa-f]+ \}} | u [0-9A-Fa-f]{{4}}
          | N \{{ [^}}]* \}} | c . | [aefnrt] | [^A-Za-z0-9] )
    )""",
    re.DOTALL | re.VERBOSE,
)
"""An escape sequence: a set of characters, one that is legal `outside` of classes only, or a single character."""
_GROUP: Final = re.compile(
    rf"\((?:\?(?:[:>=!]|<[=!]|<(?P<name>{_NAME})>|[imsducU]*(?:-[imsducUx]*)?(?P<flags>[:)]))|(?!\?))"
)
_QUANTIFIER: Final = re.compile(r"(?:[?*+]|\{(?P<low>[0-9]+)(?:,(?P<high>[0-9]*))?\})[?+]?")
_CONTROLS: Final = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
_PROPERTIES: Final = """
    Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf L M N Z C P S LC LD L1
    all ASCII Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit javaLowerCase javaUpperCase
    javaAlphabetic javaIdeographic javaTitleCase javaDigit javaDefined javaLetter javaLetterOrDigit
    javaJavaIdentifierStart javaJavaIdentifierPart javaUnicodeIdentifierStart javaUnicodeIdentifierPart
    javaIdentifierIgnorable javaSpaceChar javaWhitespace javaISOControl javaMirrored
"""


def check_pattern(text: str) -> None:
    """Raise ValueError with the reason if java.util.regex.Pattern.compile would refuse the text."""
    _Parser(_QUOTE.sub(_unquoted, text)).parse()


def _unquoted(found: re.Match[str]) -> str:
    r"""The characters between \Q and \E, escaped one by one; any other escape sequence as it is."""
    quoted = found["quoted"]
    if quoted is None:
        return found[0]
    escaped = re.sub(r"[^0-9A-Za-z\x80-\U0010ffff]", r"\\\g<0>", quoted)
    # a digit must not continue an escape sequence before the quote
    return re.sub(r"\A[0-9]", r"\\x3\g<0>", escaped)


class _Parser:
    """A recursive descent over the pattern; `_at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups: set[str] = set()

    def parse(self) -> None:
        self._alternatives()
        if self._at < len(self._text):
            raise ValueError("a closing parenthesis has no opening one")

    def _peek(self, ahead: int = 0) -> str:
        """The next character; empty at the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _take(self, token: re.Pattern[str], problem: str) -> re.Match[str]:
        """Read a token; raises ValueError with the problem if the token is missing."""
        found = token.match(self._text, self._at)
        if found is None:
            raise ValueError(problem)
        self._at = found.end()
        return found

    def _alternatives(self) -> None:
        self._sequence()
        while self._peek() == "|":
            self._at += 1
            self._sequence()

    def _sequence(self) -> None:
        while True:
            match self._peek():
                case "" | "|" | ")":
                    return
                case "(":
                    if not self._group():
                        continue
                case "[":
                    self._class()
                case "\\":
                    self._escape()
                case "?" | "*" | "+" as quantifier:
                    raise ValueError(f"there is nothing before {quantifier}")
                case "{":
                    pass
                case _:
                    self._at += 1
            self._quantifier()

    def _quantifier(self) -> None:
        if self._peek() not in tuple("{?*+"):
            return
        found = self._take(_QUANTIFIER, "a repetition is not of the form {N}, {N,} or {N,M}")
        if found["low"] is not None:
            low, high = (int(digits.lstrip("0")[:11] or 0) for digits in (found["low"], found["high"] or found["low"]))
            if not low <= high <= 0x7FFFFFFF:
                raise ValueError("a repetition has an illegal range")

    def _group(self) -> bool:
        """Read a group; returns whether a quantifier may follow, which is not the case after flags alone."""
        found = self._take(_GROUP, "a group begins with an unknown construct, an illegal name or unknown flags")
        if found["flags"] == ")":
            return False
        name = found["name"]
        if name in self._groups:
            raise ValueError(f"the group {name} is defined twice")
        if name is not None:
            self._groups.add(name)
        self._alternatives()
        if self._peek() != ")":
            raise ValueError("a group is not closed")
        self._at += 1
        return True

    def _class(self) -> None:
        self._at += 2 if self._peek(1) == "^" else 1
        self._class_members()
        self._at += 1

    def _class_members(self) -> None:
        """The members of a character class, up to its ].

        `left` and `last` record whether Java's parser has a set of characters for all members and for the last one;
        `bits` are single characters of Latin-1, which Java keeps separately.
        """
        left = last = bits = False
        while True:
            match self._peek():
                case "":
                    raise ValueError("a character class is not closed")
                case "[":
                    self._class()
                    left = last = True
                case "&" if self._peek(1) == "&":
                    self._at += 2
                    right = self._right_side()
                    last = last or right or (bits and not left)
                    left = left or bits
                    bits = False
                    if not (last if left else right):
                        raise ValueError("an intersection of character classes lacks a side")
                    left = True
                case "]" if left or bits:
                    return
                case _:
                    last = self._range()
                    left |= last
                    bits |= not last

    def _right_side(self) -> bool:
        """Read the right side of an intersection; returns whether one exists."""
        found = False
        while self._peek() not in ("]", "&"):
            if self._peek() == "[":
                self._class()
            else:
                self._class_members()
            found = True
        return found

    def _range(self) -> bool:
        """Read a member of a class; returns whether it is a set of characters, not a single one of Latin-1."""
        low = self._member(in_range=self._peek(2) == "-")
        if low is None:
            return True
        if self._peek() == "-" and self._peek(1) not in ("[", "]"):
            self._at += 1
            high = self._member(in_range=True)
            if high is None or high < low:
                raise ValueError("a range of characters is illegal")
            return True
        return low > 0xFF

    def _member(self, *, in_range: bool) -> int | None:
        """Read the next character in a class and return its code, None for a set of characters."""
        if self._peek() == "\\":
            if in_range and self._peek(1) == "v":
                self._at += 2
                return 0x0B
            return self._escape(in_class=True)
        if not self._peek():
            raise ValueError("a character class is not closed")
        self._at += 1
        return ord(self._text[self._at - 1])

    def _escape(self, *, in_class: bool = False) -> int | None:
        """Return the code of an escape sequence's character, None if it is not a single character."""
        problem = f"{self._text[self._at : self._at + 2]} is no escape sequence here"
        found = self._take(_ESCAPE, problem)
        if found["outside"] and in_class:
            raise ValueError(problem)
        if found["group"] and found["group"] not in self._groups:
            raise ValueError("\\k names no group before it")
        if found["property"]:
            name = found["property"][1:].removeprefix("{").removesuffix("}")
            if name not in _PROPERTIES.split() and not (name[:2] in ("Is", "In") and len(name) > 2):
                raise ValueError(f"there is no property {name!r}")
        return _code(found["character"]) if found["character"] else None


def _code(escape: str) -> int:
    """Return the code of a character, by its escape sequence without the backslash."""
    kind, digits = escape[0], escape[1:].strip("{}")
    if kind == "0":
        return int(digits, 8)
    if kind in ("x", "u"):
        code = int(digits, 16)
        if code > 0x10FFFF:
            raise ValueError("a character's code is too large")
        return code
    if kind == "c":
        return ord(escape[1]) ^ 64
    if kind == "N":
        try:
            return ord(unicodedata.lookup(digits))
        except (KeyError, TypeError):
            raise ValueError(f"there is no character {digits!r}") from None
    return _CONTROLS.get(kind, ord(kind))
