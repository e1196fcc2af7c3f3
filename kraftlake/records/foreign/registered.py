"""The foreign record types that this process knows, beside Kafka's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs

from kraftlake.records.control_records import CONTROL_NAMES
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import ForeignRecord, Message, Struct, field_specs, json_name, type_name
from kraftlake.runtime.errors import UsageError

FOREIGN_RECORDS: Final[dict[int, type[ForeignRecord]]] = {}
"""The registered types by api key."""

PASSED_OVER: Final[set[str]] = set()
"""The names of the types whose records a replay of this process has passed over."""

_TAKEN: Final = frozenset((*CONTROL_NAMES.values(), "UNKNOWN"))


@attrs.frozen
class DeclaredType:
    """A record type and the file that declares it."""

    cls: type[ForeignRecord]
    file: str


def record_class(api_key: int) -> type[Message] | None:
    """The metadata record type of a number, Kafka's or a foreign one; None for an unknown one."""
    return METADATA_RECORDS.get(api_key) or FOREIGN_RECORDS.get(api_key)


def is_passed_over(message: object) -> bool:
    """Whether a record is a foreign one, which a replay passes over; it is noted."""
    if not isinstance(message, ForeignRecord):
        return False
    PASSED_OVER.add(type_name(type(message)))
    return True


def register(declared: Iterable[DeclaredType]) -> None:
    """Let this process know the foreign types among those declared; all of them, or none where one is refused.

    A type of Kafka may be declared as it is, at the versions known here; at further versions its records stay unknown.
    Raises UsageError with the file of a type that has the number or the name of another one, of Kafka, of another file,
    or registered before.
    """
    foreign: dict[int, DeclaredType] = {}
    kafkas = {type_name(cls): cls for cls in METADATA_RECORDS.values()}
    for one in declared:
        of_kafka = METADATA_RECORDS.get(one.cls.API_KEY) or kafkas.get(type_name(one.cls))
        if of_kafka is not None:
            _check_same(one, DeclaredType(of_kafka, "Kafka 4.4"))  # type: ignore[arg-type]
            continue
        if type_name(one.cls) in _TAKEN:
            raise UsageError(f"{one.file}: {one.cls.__name__} has the name of another kind of record.")
        registered = [DeclaredType(cls, "a schema given before") for cls in FOREIGN_RECORDS.values()]
        for other in (*foreign.values(), *registered):
            if other.cls.API_KEY == one.cls.API_KEY or type_name(other.cls) == type_name(one.cls):
                _check_same(one, other)
                if other.cls.VERSIONS != one.cls.VERSIONS:
                    raise UsageError(f"{one.file} and {other.file} differ in the versions of {one.cls.__name__}.")
        foreign.setdefault(one.cls.API_KEY, one)
    FOREIGN_RECORDS.update({key: one.cls for key, one in foreign.items() if key not in FOREIGN_RECORDS})


@contextmanager
def registered(declared: Sequence[DeclaredType]) -> Iterator[None]:
    """Register types for a while."""
    before = dict(FOREIGN_RECORDS)
    register(declared)
    try:
        yield
    finally:
        FOREIGN_RECORDS.clear()
        FOREIGN_RECORDS.update(before)
        PASSED_OVER.clear()


def _check_same(one: DeclaredType, other: DeclaredType) -> None:
    """Raise UsageError unless two declarations of a number or name are one type."""
    mine, its = one.cls, other.cls
    if (mine.API_KEY, mine.__name__) != (its.API_KEY, its.__name__):
        raise UsageError(
            f"{one.file}: {mine.__name__} is of the apiKey {mine.API_KEY}, and by {other.file} "
            f"{its.__name__} is of the apiKey {its.API_KEY}: a name and a number belong together once."
        )
    for version in range(max(mine.VERSIONS.low, its.VERSIONS.low), _last_shared(mine, its) + 1):
        if _shape(mine, version) != _shape(its, version):
            raise UsageError(
                f"{one.file}: {mine.__name__} version {version} has other fields than {other.file} says: "
                f"{_first_difference(mine, its, version)}."
            )


def _last_shared(one: type[Message], other: type[Message]) -> int:
    assert one.VERSIONS.high is not None
    assert other.VERSIONS.high is not None, "the versions of a message are bounded"
    return min(one.VERSIONS.high, other.VERSIONS.high)


def _first_difference(one: type[Message], other: type[Message], version: int) -> str:
    mine, its = _shape(one, version), _shape(other, version)
    names = [*mine, *its]
    return next((name for name in names if mine.get(name) != its.get(name)), "their order")


def _shape(cls: type[Struct], version: int) -> Mapping[str, Any]:
    """What the bytes of a struct at a version depend on, by field; equal only in the same order."""
    fields = {name: spec for name, spec in field_specs(cls) if version in spec.versions}
    made: dict[str, Any] = {}
    for place, (name, spec) in enumerate(fields.items()):
        tag = spec.tag_at(version)
        made[json_name(name)] = (
            place if tag is None else None,
            _shape(spec.type, version) if isinstance(spec.type, type) else spec.type,
            spec.array, spec.nullable is not None and version in spec.nullable, tag,
            None if tag is None else attrs.fields_dict(cls)[name].default,
        )  # fmt: skip
    return made
