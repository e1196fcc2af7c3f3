"""Whether a text is a regular expression of Java's: its syntax alone, nothing is matched.

Python's `re` has another syntax (no possessive quantifiers, no `\\p{L}`, no `[a&&b]`, no `(?<name>…)`), so it can't
decide. Source: java.util.regex.Pattern. The names of Unicode scripts and blocks are not looked up, a look-behind group
may be of any length, and the flag x (comments) is refused.
"""

from __future__ import annotations

import string
import unicodedata
from typing import Final

_END: Final = "\0"
_LETTERS: Final = frozenset(string.ascii_letters)
_OCTAL: Final = frozenset(string.octdigits)
_HEXADECIMAL: Final = frozenset(string.hexdigits)
_FLAGS: Final = frozenset("imsducU")
_CONTROLS: Final = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
_CLASSES: Final = frozenset("dDhHsSvVwW")
_OUTSIDE_CLASSES: Final = frozenset("ABGRXZbz123456789")
_NO_CHARACTER: Final = -1
_PROPERTIES: Final = """
    Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf L M N Z C P S LC LD L1
    all ASCII Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit javaLowerCase javaUpperCase
    javaAlphabetic javaIdeographic javaTitleCase javaDigit javaDefined javaLetter javaLetterOrDigit
    javaJavaIdentifierStart javaJavaIdentifierPart javaUnicodeIdentifierStart javaUnicodeIdentifierPart
    javaIdentifierIgnorable javaSpaceChar javaWhitespace javaISOControl javaMirrored
"""


def check_pattern(text: str) -> None:
    """ValueError with the reason where java.util.regex.Pattern.compile would refuse the text."""
    _Parser(_without_quotes(text)).parse()


def _without_quotes(text: str) -> str:
    r"""The same pattern with what stands between \Q and \E escaped character by character."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        if not text.startswith("\\Q", at):
            size = 2 if text[at] == "\\" else 1
            parts.append(text[at : at + size])
            at += size
            continue
        end = text.find("\\E", at + 2)
        quoted = text[at + 2 : end] if end >= 0 else text[at + 2 :]
        for place, character in enumerate(quoted):
            if character in string.digits:
                # an escape sequence of digits before the quote must not go on in it
                parts.append(character if place else f"\\x3{character}")
            else:
                parts.append(character if character in _LETTERS or character > "\x7f" else f"\\{character}")
        at = end + 2 if end >= 0 else len(text)
    return "".join(parts)


class _Parser:
    """A recursive descent over the pattern; `_at` is the place of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups: set[str] = set()

    def parse(self) -> None:
        self._alternatives()
        if self._at < len(self._text):
            raise ValueError("a closing parenthesis has no opening one")

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._text[place] if place < len(self._text) else _END

    def _read(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _ended(self) -> bool:
        return self._at >= len(self._text)

    def _alternatives(self) -> None:
        self._sequence()
        while self._peek() == "|":
            self._at += 1
            self._sequence()

    def _sequence(self) -> None:
        while not self._ended():
            match self._peek():
                case "(":
                    if not self._group():
                        continue
                case "[":
                    self._class(consume=True)
                case "\\" if self._peek(1) in "pP":
                    self._property()
                case "\\":
                    self._escape()
                case "|" | ")":
                    return
                case "?" | "*" | "+" as quantifier:
                    raise ValueError(f"nothing stands before {quantifier}")
                case "{":
                    pass
                case _:
                    self._at += 1
            self._quantifier()

    def _quantifier(self) -> None:
        character = self._peek()
        if character == "{":
            self._at += 1
            self._repetition()
        elif character in "?*+":
            self._at += 1
        else:
            return
        if self._peek() in "?+":
            self._at += 1

    def _repetition(self) -> None:
        low = self._number()
        high = low
        if self._peek() == ",":
            self._at += 1
            high = low if self._peek() == "}" else self._number(empty=0)
        if self._read() != "}":
            raise ValueError("a repetition is not closed by }")
        if high < low or high > 0x7FFFFFFF:
            raise ValueError("a repetition has an illegal range")

    def _number(self, empty: int | None = None) -> int:
        start = self._at
        while self._peek() in string.digits:
            self._at += 1
        digits = self._text[start : self._at]
        if not digits and empty is None:
            raise ValueError("{ is not followed by a number")
        return int(digits.lstrip("0")[:11] or empty or 0)

    def _group(self) -> bool:
        """Whether it is one that a quantifier can follow: flags alone are none."""
        self._at += 1
        if self._peek() == "?":
            self._at += 1
            kind = self._read()
            if kind == "<":
                if self._peek() in "=!":
                    self._at += 1
                else:
                    self._groups.add(self._new_name())
            elif kind not in ":>=!":
                self._at -= 1
                if self._flags() == ")":
                    return False
        self._alternatives()
        if self._read() != ")":
            raise ValueError("a group is not closed")
        return True

    def _flags(self) -> str:
        while self._peek() in _FLAGS:
            self._at += 1
        if self._peek() == "-":
            self._at += 1
            while self._peek() in _FLAGS or self._peek() == "x":
                self._at += 1
        end = self._read()
        if end == "x":
            raise ValueError("the flag x is not supported")
        if end not in (")", ":"):
            raise ValueError("a group begins with unknown flags")
        return end

    def _new_name(self) -> str:
        name = self._name()
        if name in self._groups:
            raise ValueError(f"the group {name} is defined twice")
        return name

    def _name(self) -> str:
        start = self._at
        while self._peek() in _LETTERS or (self._at > start and self._peek() in string.digits):
            self._at += 1
        name = self._text[start : self._at]
        if not name or self._read() != ">":
            raise ValueError("a group's name is letters and digits, closed by >")
        return name

    def _class(self, *, consume: bool) -> None:
        """A character class; without `consume` the right side of an intersection, whose ] is left to the left side.

        `left` and `last` say whether Java's parser holds sets of characters for all of it and for its last part;
        `bits` are single characters of Latin-1, which it keeps apart.
        """
        self._at += 1
        if self._peek() == "^" and self._text[self._at - 1] == "[":
            self._at += 1
        left = last = bits = False
        while True:
            character = self._peek()
            if character == _END and self._ended():
                raise ValueError("a character class is not closed")
            if character == "[":
                self._class(consume=True)
                left = last = True
            elif character == "&" and self._peek(1) == "&":
                self._at += 2
                right = self._right_side()
                last = last or right or (bits and not left)
                left = left or bits
                bits = False
                if not (last if left else right):
                    raise ValueError("an intersection of character classes lacks a side")
                left = True
            elif character == "]" and (left or bits):
                self._at += consume
                return
            else:
                last = self._range()
                left |= last
                bits |= not last

    def _right_side(self) -> bool:
        found = False
        while self._peek() not in ("]", "&"):
            nested = self._peek() == "["
            self._at -= not nested
            self._class(consume=nested)
            found = True
        return found

    def _range(self) -> bool:
        """Whether it is a set of characters, not one of Latin-1."""
        if self._peek() == "\\":
            if self._peek(1) in "pP":
                self._property()
                return True
            low = self._escape(in_class=True, in_range=self._peek(2) == "-")
            if low == _NO_CHARACTER:
                return True
        else:
            low = ord(self._read())
        if self._peek() == "-" and self._peek(1) not in ("[", "]"):
            self._at += 1
            escaped = self._peek() == "\\"
            high = self._escape(in_class=True, in_range=True) if escaped else ord(self._read())
            if high < low:
                raise ValueError("a range of characters is illegal")
            return True
        return low > 0xFF

    def _property(self) -> None:
        self._at += 2
        if self._peek() == "{":
            start = self._at + 1
            end = self._text.find("}", start)
            if end < 0:
                raise ValueError("the name of a property is not closed by }")
            name = self._text[start:end]
            self._at = end + 1
        else:
            name = self._read()
        if name in _PROPERTIES.split() or (name[:2] in ("Is", "In") and len(name) > 2):
            return
        raise ValueError(f"there is no property {name!r}")

    def _escape(self, *, in_class: bool = False, in_range: bool = False) -> int:
        """The character that an escape sequence stands for, -1 where it is none."""
        self._at += 1
        if self._ended():
            raise ValueError("a backslash stands at the end")
        kind = self._read()
        if kind == "v" and in_range:
            return 0x0B
        if kind in _CLASSES or (kind in _OUTSIDE_CLASSES and not in_class):
            if kind == "b" and self._text.startswith("{g", self._at):
                self._at += 2
                if self._read() != "}":
                    raise ValueError("\\b{g is not closed by }")
            return _NO_CHARACTER
        if kind in _CONTROLS:
            return _CONTROLS[kind]
        if kind == "k" and not in_class:
            if self._read() != "<" or self._name() not in self._groups:
                raise ValueError("\\k names no group before it")
            return _NO_CHARACTER
        if kind == "c" and not self._ended():
            return ord(self._read()) ^ 64
        if kind in "0xuN":
            return {"0": self._octal, "x": self._hexadecimal, "u": self._unicode, "N": self._named}[kind]()
        if kind in _LETTERS or kind in string.digits:
            raise ValueError(f"\\{kind} is no escape sequence here")
        return ord(kind)

    def _octal(self) -> int:
        start = self._at
        while self._at - start < 3 and self._peek() in _OCTAL:
            if self._at - start == 2 and self._text[start] > "3":
                break
            self._at += 1
        return self._code(self._text[start : self._at], 8)

    def _hexadecimal(self) -> int:
        if self._peek() != "{":
            self._at += 2
            return self._code(self._text[self._at - 2 : self._at], 16, size=2)
        end = self._text.find("}", self._at)
        digits = self._text[self._at + 1 : end] if end >= 0 else ""
        self._at = end + 1
        code = self._code(digits, 16)
        if code > 0x10FFFF:
            raise ValueError("a character's code is too large")
        return code

    def _unicode(self) -> int:
        self._at += 4
        return self._code(self._text[self._at - 4 : self._at], 16, size=4)

    def _code(self, digits: str, base: int, size: int | None = None) -> int:
        if not digits or not set(digits) <= _HEXADECIMAL or len(digits) != (size or len(digits)):
            raise ValueError("a character's code is malformed")
        return int(digits, base)

    def _named(self) -> int:
        end = self._text.find("}", self._at)
        if self._peek() != "{" or end < 0:
            raise ValueError("\\N is not followed by {NAME}")
        name = self._text[self._at + 1 : end]
        self._at = end + 1
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            raise ValueError(f"there is no character {name!r}") from None
