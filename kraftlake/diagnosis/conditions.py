"""Conditions on the state of a cluster: `offline_partitions > 0 and broker(3).fenced`. Parsed by `condition_parser`.

A condition is a tree of nodes. Values are those of the image's JSON: numbers, texts, truth values, lists. A thing that
does not exist has the value None, and every comparison with it but `== none` and `!= none` is unknown, hence None:
neither the comparison nor its opposite holds.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.diagnosis.things import Thing
from kraftlake.runtime.errors import UsageError

Values: TypeAlias = Mapping["Thing | str", Any]
"""The value of each thing, and of each count by its name."""


@attrs.frozen(kw_only=True)
class ConditionNode:
    """A part of a condition; `place` is its place in the text, counted from 0."""

    place: int = attrs.field(eq=False)

    def value(self, values: Values) -> Any:
        """The node's value; raises UsageError where values of different kinds are compared."""
        raise NotImplementedError

    def parts(self) -> Iterator[ConditionNode]:
        """The nodes within this one."""
        yield from ()


@attrs.frozen(kw_only=True)
class Literal(ConditionNode):
    """A number, a text, true, false or none."""

    of: Any

    def value(self, values: Values) -> Any:  # noqa: ARG002
        """See Node."""
        return self.of

    def __str__(self) -> str:
        if isinstance(self.of, str):
            escaped = self.of.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return "none" if self.of is None else str(self.of).lower()


@attrs.frozen(kw_only=True)
class ListOf(ConditionNode):
    """A list of values."""

    of: tuple[ConditionNode, ...]

    def value(self, values: Values) -> Any:
        """See Node."""
        return [node.value(values) for node in self.of]

    def parts(self) -> Iterator[ConditionNode]:
        """See Node."""
        yield from self.of

    def __str__(self) -> str:
        return f"[{', '.join(map(_grouped, self.of))}]"


@attrs.frozen(kw_only=True)
class Named(ConditionNode):
    """The value of a thing, or a count by its name; `text` is its form in the condition."""

    of: Thing | str
    text: str

    def value(self, values: Values) -> Any:
        """See Node."""
        return values[self.of]

    def __str__(self) -> str:
        return self.text


@attrs.frozen(kw_only=True)
class Length(ConditionNode):
    """The number of members of a list; None for none."""

    of: ConditionNode

    def value(self, values: Values) -> Any:
        """See Node."""
        found = self.of.value(values)
        if found is not None and not isinstance(found, list):
            raise self._fault(found)
        return None if found is None else len(found)

    def parts(self) -> Iterator[ConditionNode]:
        """See Node."""
        yield self.of

    def _fault(self, found: Any) -> UsageError:
        return fault(self.of.place, f"len counts the members of a list, and {self.of} is {_kind(found)}")

    def __str__(self) -> str:
        return f"len({_grouped(self.of)})"


@attrs.frozen(kw_only=True)
class Comparison(ConditionNode):
    """Two values compared; `operator` is a key of COMPARISONS."""

    operator: str
    left: ConditionNode
    right: ConditionNode

    def value(self, values: Values) -> bool | None:
        """See Node."""
        left, right = self.left.value(values), self.right.value(values)
        if self.operator in ("==", "!=") and _NONE in (self.left, self.right):
            return (left is right) == (self.operator == "==")
        if left is None or right is None:
            return None
        if self.operator in ("in", "not in"):
            return self._is_in(left, right) == (self.operator == "in")
        left, right = _as_numbers(left, right)
        kinds = _kind(left), _kind(right)
        if kinds[0] != kinds[1]:
            raise fault(self.place, f"{self.left} is {kinds[0]} and {self.right} is {kinds[1]}, so they do not compare")
        if self.operator not in ("==", "!=") and kinds[0] not in _ORDERED:
            raise fault(self.place, f"{self.left} is {kinds[0]}, which compares with == and != only")
        return bool(_COMPARE[self.operator](left, right))

    def _is_in(self, left: Any, right: Any) -> bool:
        if not isinstance(right, list):
            raise fault(self.right.place, f"after `in` stands a list, and {self.right} is {_kind(right)}")
        alike = [one for one in right if _kind(one) == _kind(left)]
        if right and not alike:
            raise fault(self.place, f"{self.left} is {_kind(left)}, and {self.right} has none such")
        return left in alike

    def parts(self) -> Iterator[ConditionNode]:
        """See Node."""
        yield self.left
        yield self.right

    def __str__(self) -> str:
        return f"{_grouped(self.left)} {self.operator} {_grouped(self.right)}"


@attrs.frozen(kw_only=True)
class Not(ConditionNode):
    """The negation of a condition."""

    of: ConditionNode

    def value(self, values: Values) -> bool | None:
        """See Node."""
        found = truth(self.of, values)
        return None if found is None else not found

    def parts(self) -> Iterator[ConditionNode]:
        """See Node."""
        yield self.of

    def __str__(self) -> str:
        return f"not {self.of}" if not isinstance(self.of, Joined) else f"not ({self.of})"


@attrs.frozen(kw_only=True)
class Joined(ConditionNode):
    """Conditions joined by `word`: `and` or `or`."""

    word: str
    of: tuple[ConditionNode, ...]

    def value(self, values: Values) -> bool | None:
        """See Node."""
        decides = self.word == "or"
        found = [truth(node, values) for node in self.of]
        return decides if decides in found else None if None in found else not decides

    def parts(self) -> Iterator[ConditionNode]:
        """See Node."""
        yield from self.of

    def __str__(self) -> str:
        closer = ("and",) if self.word == "or" else ()
        grouped = (isinstance(node, Joined) and node.word not in closer for node in self.of)
        return f" {self.word} ".join(
            f"({node})" if group else str(node) for node, group in zip(self.of, grouped, strict=True)
        )


def _grouped(node: ConditionNode) -> str:
    return f"({node})" if isinstance(node, (Joined, Comparison, Not)) else str(node)


_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
COMPARISONS: Final = (*_COMPARE, "in", "not in")
"""The operators of comparisons."""

_ORDERED: Final = ("a number", "a text")


def truth(node: ConditionNode, values: Values) -> bool | None:
    """Whether a node holds, None where unknown; raises UsageError for a value that is neither true nor false.

    A whole topic, partition, broker or ACL holds where it exists, and else does not.
    """
    found = node.value(values)
    if isinstance(node, Named) and isinstance(node.of, Thing) and node.of.is_entity:
        return found is not None
    if isinstance(found, bool) or found is None:
        return found
    kind = _kind(found)
    example = {"a number": " > 0", "a text": ' == "…"', "a list": " == [1, 2]"}.get(kind, " != none")
    raise fault(node.place, f"{node} is {kind} and no condition: compare it, as in {node}{example}")


def _as_numbers(left: Any, right: Any) -> tuple[Any, Any]:
    """The numbers to compare: a text next to a number becomes its number, as the values of configs are texts."""
    if _kind(left) == "a number" and isinstance(right, str):
        return left, _number(right)
    if _kind(right) == "a number" and isinstance(left, str):
        return _number(left), right
    return left, right


def _number(text: str) -> Any:
    """The number that a text shows, else the text."""
    if not _PLAIN_NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


_PLAIN_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if value is None:
        return "none"
    return "a text" if isinstance(value, str) else "a list" if isinstance(value, list) else "no single value"


def fault(place: int, message: str) -> UsageError:
    """The error of a condition at a place in its text."""
    return UsageError(f"The condition at character {place + 1}: {message}.")


@attrs.frozen(kw_only=True)
class Condition:
    """A condition on the state of a cluster: `text` is its given form, `str` a plain text of the same condition."""

    root: ConditionNode
    text: str = attrs.field(eq=False)

    def __str__(self) -> str:
        return str(self.root)

    @property
    def names(self) -> frozenset[Thing | str]:
        """The things, and the counts by name, that the condition depends on."""
        return frozenset(node.of for node in _all(self.root) if isinstance(node, Named))

    def holds(self, values: Values) -> bool:
        """Whether the condition holds; `values` has all `names`. UsageError for values of incomparable kinds."""
        return truth(self.root, values) is True


_NONE: Final = Literal(place=0, of=None)


def _all(node: ConditionNode) -> Iterator[ConditionNode]:
    yield node
    for part in node.parts():
        yield from _all(part)
