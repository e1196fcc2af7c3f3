"""The names by which record types are selected."""

from __future__ import annotations

from collections.abc import Iterable

from kraftlake.records.control_records import CONTROL_NAMES
from kraftlake.records.foreign.registered import FOREIGN_RECORDS
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import type_name
from kraftlake.runtime.arguments import texts
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import did_you_mean

RECORD_TYPES: tuple[str, ...] = (*map(type_name, METADATA_RECORDS.values()), *CONTROL_NAMES.values(), "UNKNOWN")
"""Every value that `LogRecord.type` can have without foreign types: metadata and control records, unknown ones."""


def known_types() -> tuple[str, ...]:
    """Every value that `LogRecord.type` can have in this process."""
    return (*RECORD_TYPES, *map(type_name, FOREIGN_RECORDS.values()))


def checked_types(types: Iterable[str] | None) -> frozenset[str] | None:
    """The names in upper case; UsageError for one that is not a record type. None stays None: all types."""
    if types is None:
        return None
    given = texts([types] if isinstance(types, str) else types, "the name of a record type")
    names = frozenset(name.upper() for name in given)
    known = known_types()
    for name in sorted(names - {*known}):
        hint = did_you_mean(name, known) or f"there are {', '.join(sorted(known))}."
        raise UsageError(f"{name} is no record type; {hint}")
    return names
