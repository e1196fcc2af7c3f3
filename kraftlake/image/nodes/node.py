"""The nodes of a tree: directories, which create their children on access, and leaves, which have a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias


class Subject(NamedTuple):
    """The part of an image that a node shows: a kind, and a key among those of its kind.

    Kind and key of a topic, partition, broker, config, feature, ACL or quota are those of
    `kraftlake.diagnosis.things.Thing`. The other kinds are controller (id), resource (ConfigResource), entity
    (ClientQuotaEntity), mechanism (number), credential (mechanism, user), token (id), and parts as a whole, whose key
    is None.
    """

    kind: str
    key: Any = None


class Leaf:
    """A node with a value: `text` as Kafka's shell prints it, `value` as the JSON of `kraftlake image` has it."""

    is_directory = False

    def __init__(self, subject: Subject | None, text: Callable[[], str], value: Callable[[], Any]) -> None:
        self.subject = subject
        self._text = text
        self._value = value

    @property
    def text(self) -> str:
        """The value in one line; it may hold any character."""
        return self._text()

    @property
    def value(self) -> Any:
        """The value in JSON form."""
        return self._value()


class Directory:
    """A node with children, which are created on access; their names are listed once.

    `child` gets a name and returns None where there is no such child.
    """

    is_directory = True

    def __init__(
        self, subject: Subject | None, names: Callable[[], Iterable[str]], child: Callable[[str], Node | None]
    ) -> None:
        self.subject = subject
        self._names = names
        self.child = child

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the children, in the order in which they are listed: numbers by size, other names by letters."""
        return tuple(self._names())

    @property
    def value(self) -> dict[str, Any]:
        """The values of all children in JSON form, by name."""
        return {name: child.value for name in self.names if (child := self.child(name)) is not None}


Node: TypeAlias = Directory | Leaf


def fixed(subject: Subject | None, children: Mapping[str, Node]) -> Directory:
    """A directory of a few existing children."""
    return Directory(subject, lambda: children, children.get)


def number(name: str) -> int | None:
    """The number that a name spells; None for another name, also for a number in another form, such as 007."""
    return int(name) if name.isascii() and name.isdecimal() and str(int(name)) == name else None
