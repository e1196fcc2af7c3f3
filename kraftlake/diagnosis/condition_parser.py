"""Reads the text of a condition: a small language of comparisons, `and`, `or` and `not`.

condition   = conjunction ("or" conjunction)*
conjunction = negation ("and" negation)*
negation    = "not" negation | comparison
comparison  = operand [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in") operand]
operand     = number | text | "true" | "false" | "none" | list | count | thing | "len" "(" operand ")"
            | "(" condition ")"
thing       = name "(" values ")" ("." name ["(" values ")" | "[" values "]"])*
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import attrs

from kraftlake.diagnosis.conditions import (
    COMPARISONS,
    Comparison,
    Condition,
    ConditionNode,
    Joined,
    Length,
    ListOf,
    Literal,
    Named,
    Not,
    fault,
)
from kraftlake.diagnosis.things import DEFAULT, Thing, path_of
from kraftlake.image.cluster_counts import ClusterCounts
from kraftlake.image.cluster_health import HEALTH_COUNTS
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import did_you_mean

LONGEST: Final = 4000
_DEEPEST: Final = 40

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
        |(?P<text>"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*')
        |(?P<word>[A-Za-z_]\w*)
        |(?P<sign>==|!=|<=|>=|[<>()\[\],.-]))""",
    re.VERBOSE,
)
_SPACE: Final = re.compile(r"\s*")
_LITERALS: Final = {"true": True, "false": False, "none": None, "null": None}
_INSTEAD: Final = {"=": "==", "&": "and", "|": "or", "!": "not", "’": '"', "“": '"', "”": '"'}
_THINGS: Final = ("topic", "broker", "config", "feature", "acl", "quota")


def count_names() -> dict[str, str]:
    """The names of the counts of `kraftlake metrics`, and their shorter forms, each with the name of its field."""
    names = [field.name for field in attrs.fields(ClusterCounts)]
    short = {name.removesuffix("_count"): name for name in names}
    plural = {f"{name}s": full for name, full in short.items() if not name.endswith("s")}
    return {**plural, **short, **{name: name for name in (*names, *HEALTH_COUNTS)}}


def parse_condition(text: str) -> Condition:
    """The condition that a text states; raises UsageError, with the place, for any other text."""
    if len(text) > LONGEST:
        raise UsageError(f"The condition has {len(text):,} characters: {LONGEST:,} are the most.")
    parser = _Parser(text)
    root = parser.condition()
    if parser.token.kind:
        raise parser.unexpected("the end, `and` or `or`")
    return Condition(root=root, text=text)


class _Token(NamedTuple):
    """A piece of the text: its kind is a group of _TOKEN, empty at the end."""

    kind: str
    text: str
    place: int


class _Parser:
    """Reads a condition from left to right; `token` is the next piece."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._depth = 0
        self.token = self._next()

    def condition(self) -> ConditionNode:
        """Conditions joined by `or`, `and` binding closer."""
        return self._joined("or", lambda: self._joined("and", self._negation))

    def unexpected(self, wanted: str) -> UsageError:
        """The error of a token where something else is expected."""
        found = repr(self.token.text) if self.token.kind else "the end"
        return fault(self.token.place, f"{found} stands where {wanted} is expected")

    def _next(self) -> _Token:
        begin = _SPACE.match(self._text, self._end)
        assert begin is not None, "no blanks at all match, too"
        found = _TOKEN.match(self._text, self._end)
        if found is None:
            if begin.end() == len(self._text):
                return _Token("", "", len(self._text))
            raise self._unreadable(begin.end())
        self._end = found.end()
        assert found.lastgroup is not None, "every alternative has a name"
        return _Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))

    def _unreadable(self, place: int) -> UsageError:
        character = self._text[place]
        if character in "\"'":
            return fault(place, r"the text that begins here does not end; within a text only \" \' and \\ are escapes")
        if character.isdecimal():
            return fault(place, "a number has digits and at most one point")
        instead = _INSTEAD.get(character)
        return fault(place, f"{character!r} means nothing here" + (f"; write {instead}" if instead else ""))

    def _take(self) -> _Token:
        token, self.token = self.token, self._next()
        return token

    def _takes(self, *texts: str) -> bool:
        """Take the next token where it is one of these texts; returns whether it is."""
        if self.token.kind in ("sign", "word") and self.token.text.lower() in texts:
            self._take()
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self.unexpected(repr(sign))

    def _joined(self, word: str, part: Callable[[], ConditionNode]) -> ConditionNode:
        place = self.token.place
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(place=place, word=word, of=tuple(parts))

    def _negation(self) -> ConditionNode:
        place = self.token.place
        if self._takes("not"):
            return self._deeper(lambda: Not(place=place, of=self._negation()))
        return self._comparison()

    def _comparison(self) -> ConditionNode:
        place = self.token.place
        left = self._operand()
        found = self._operator()
        if found is None:
            return left
        made = Comparison(place=place, operator=found, left=left, right=self._operand())
        if self.token.kind and (self.token.text in COMPARISONS or self.token.text.lower() == "in"):
            raise fault(self.token.place, "two comparisons in a row: join them by `and`")
        return made

    def _operator(self) -> str | None:
        if self.token.kind == "sign" and self.token.text in COMPARISONS:
            return self._take().text
        if self._takes("not"):
            self._expect("in")
            return "not in"
        return "in" if self._takes("in") else None

    def _operand(self) -> ConditionNode:
        place = self.token.place
        if self._takes("("):
            found = self._deeper(self.condition)
            self._expect(")")
            return found
        if self._takes("["):
            return ListOf(place=place, of=tuple(self._until("]", lambda: self._deeper(self._operand))))
        if self.token.kind == "word" and self.token.text.lower() not in ("and", "or", "not", "in", *_LITERALS):
            return self._named()
        return self._literal()

    def _literal(self) -> Literal:
        """A number, a text, or a word that is a literal."""
        place = self.token.place
        if self._takes("-"):
            if self.token.kind != "number":
                raise self.unexpected("a number")
            return Literal(place=place, of=-self._number())
        kind, text = self.token.kind, self.token.text
        if kind == "number":
            return Literal(place=place, of=self._number())
        if kind == "text":
            self._take()
            return Literal(place=place, of=re.sub(r"\\(.)", r"\1", text[1:-1]))
        if kind == "word" and text.lower() in _LITERALS:
            self._take()
            return Literal(place=place, of=_LITERALS[text.lower()])
        raise self.unexpected("a value")

    def _number(self) -> int | float:
        place, text = self.token.place, self._take().text
        found = float(text) if {*text} & {*".eE"} else int(text)
        if math.isinf(found):
            raise fault(place, "the number is too large")
        return found

    def _named(self) -> ConditionNode:
        """A count, `len(…)`, or the value of a thing."""
        place, name = self.token.place, self._take().text
        if name == "len" and self._takes("("):
            of = self._deeper(self._operand)
            self._expect(")")
            return Length(place=place, of=of)
        counts = count_names()
        if name in counts:
            return Named(place=place, of=counts[name], text=counts[name])
        if name not in _THINGS:
            known = (*_THINGS, *counts)
            hint = did_you_mean(name, known, most=1) or f"there are {', '.join(known)}"
            raise fault(place, f"{name!r} is no name here; {hint}")
        names = [name]
        if self._takes("("):
            names += self._values(")")
        while self._takes("."):
            if self.token.kind != "word":
                raise self.unexpected("a name")
            names.append(self._take().text)
            if self._takes("("):
                names += self._values(")")
            elif self._takes("["):
                names += self._values("]")
        try:
            thing = Thing.parse(path_of(*names))
        except UsageError as error:
            raise fault(place, f"{str(error).rstrip('.')}") from None
        return Named(place=place, of=thing, text=_form(*names))

    def _values(self, end: str) -> list[str]:
        """The numbers and texts up to a closing sign; none is a default."""
        return [self._in_path(literal) for literal in self._until(end, self._literal)]

    def _in_path(self, literal: Literal) -> str:
        if isinstance(literal.of, bool):
            raise fault(literal.place, f"{literal} stands where a number or a text is expected")
        return DEFAULT if literal.of is None else str(literal.of)

    def _until(self, end: str, part: Callable[[], Any]) -> list[Any]:
        """Comma-separated parts up to a closing sign."""
        found: list[Any] = []
        while not self._takes(end):
            if found:
                self._expect(",")
            found.append(part())
        return found

    def _deeper(self, part: Callable[[], ConditionNode]) -> ConditionNode:
        if self._depth >= _DEEPEST:
            raise fault(self.token.place, f"it is nested more than {_DEEPEST} levels deep")
        self._depth += 1
        found = part()
        self._depth -= 1
        return found


def _form(kind: str, *names: str) -> str:
    """The value of a thing as a condition has it, by the names in its path."""
    if kind == "topic":
        topic, *partition = names
        tail = f".partition({partition[1]})" + "".join(f".{field}" for field in partition[2:]) if partition else ""
        return f"topic({_quoted(topic)}){tail}"
    if kind == "broker":
        return f"broker({names[0]})" + "".join(f".{field}" for field in names[1:])
    return f"{kind}({', '.join(map(_quoted, names))})"


def _quoted(name: str) -> str:
    return str(Literal(place=0, of=name))
