"""Typed access to the plain data of a declared file; every error names the file and the place in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

import attrs

from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import did_you_mean, shown


@attrs.frozen
class Fields:
    """A mapping in a file, with its place there (`t.yaml: topics.foo`)."""

    place: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, place: str, value: Any) -> Fields:
        """A value that has to be a mapping with texts as keys; None is an empty one."""
        if value is None:
            return cls(place, {})
        if not isinstance(value, dict):
            refuse(place, value, "a mapping")
        return cls(place, {config_text(f"{place}: a key", key): one for key, one in value.items()})

    def check_known(self, known: Collection[str]) -> None:
        """Raise CorruptDataError for a key that is not known."""
        for name in self.values:
            if name not in known:
                hint = did_you_mean(name, known, most=1) or f"the keys are {', '.join(known)}."
                raise CorruptDataError(f"{self.place}: the key {shown(name, 60)!r} is not known; {hint}")

    def at(self, name: str) -> str:
        """The place of a key."""
        return f"{self.place}.{shown(name, 60)}"

    def fields(self, name: str) -> Fields:
        """The mapping at a key, an empty one where it is missing."""
        return Fields.of(self.at(name), self.values.get(name))

    def each(self, name: str) -> list[Fields]:
        """The list of mappings at a key, an empty one where it is missing."""
        return [Fields.of(f"{self.at(name)}[{at}]", one) for at, one in enumerate(self.list_of(name))]

    def list_of(self, name: str) -> list[Any]:
        """The list at a key, an empty one where it is missing."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            refuse(self.at(name), value, "a list")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """The text at a key; a default stands for a missing one."""
        value = self.values.get(name, default)
        if not isinstance(value, str):
            refuse(self.at(name), value, "a text (quoted, where YAML would read it as another value)")
        return value

    def optional_text(self, name: str) -> str | None:
        """The text at a key, None for null or where it is missing."""
        return None if self.values.get(name) is None else self.text(name)

    def whole(self, name: str) -> int | None:
        """The whole number at a key, None where it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        return whole_number(self.at(name), value)

    def one_of(self, name: str, names: Mapping[int, str], default: str | None = None) -> int:
        """The number of the name at a key, in any case and with blanks, dashes or camel case between its words."""
        text = self.text(name, default)
        plain = {value.replace("_", ""): number for number, value in names.items()}
        wanted = "".join(one for one in text.upper() if one.isalnum())
        if wanted not in plain:
            hint = did_you_mean(text, names.values(), most=1) or f"these are {', '.join(names.values())}."
            raise CorruptDataError(f"{self.at(name)}: {shown(text, 60)!r} is not known; {hint}")
        return plain[wanted]


def whole_number(place: str, value: Any) -> int:
    """A value that has to be a whole number of 32 bits, not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        refuse(place, value, "a whole number")
    return value


def number(place: str, value: Any) -> float:
    """A value that has to be a number; JSON has the infinite ones as texts."""
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.replace("Infinity", "inf"))
    if not isinstance(value, int | float) or isinstance(value, bool):
        refuse(place, value, "a number")
    return float(value)


def config_text(place: str, value: Any) -> str:
    """The value of a config as Kafka has it: numbers and booleans of YAML are texts there, a list has commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, list):
        refuse(place, value, "a text or a number (quoted, where YAML would read it as another value)")
    return ",".join(config_text(place, one) for one in value)


def refuse(place: str, value: Any, wanted: str) -> NoReturn:
    """Raise CorruptDataError for a value that is not what it has to be."""
    held = "nothing" if value is None else shown(repr(value), 60)
    raise CorruptDataError(f"{place} is {held}, and has to be {wanted}.")
