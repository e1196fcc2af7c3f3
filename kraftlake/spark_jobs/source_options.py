"""The options of the source `kraft`, for reads and for streams.

What decodes records is imported where records are asked for: Spark starts several Pythons to plan a stream of offsets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.tables.record_scan import RecordScan

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
TYPED: Final = "typed"
LOG: Final = "log"
OFFSETS: Final = "offsets"
"""The values of the option `columns`: a row's columns are typed, or the log's own; or a row is a step of a stream."""
OFFSETS_COLUMNS: Final = "first BIGINT NOT NULL, last BIGINT NOT NULL"
"""The first and the last offset of a step, in Spark's words."""

_READ: Final = ("startOffset", "endOffset")
_STREAM: Final = ("startingOffset", "maxRecordsPerTrigger")
_BOTH: Final = ("type", "columns", "showSecrets")
_NAMES: Final = {name.lower(): name for name in (*_READ, *_STREAM, *_BOTH)}


@attrs.frozen(kw_only=True)
class SourceOptions:
    """The options of a read or stream of the source.

    A read takes the offsets [`first`, `last`]; None means the source's own. A stream begins at the offset `starting`,
    or at the EARLIEST or after the LATEST offset at its start, and takes up to `max_records` in a step.
    """

    path: str
    only: str | None
    columns: str
    show_secrets: bool
    first: int | None
    last: int | None
    starting: int | str | None
    max_records: int | None
    given: frozenset[str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """The options from Spark's mapping; raises UsageError for one that is unknown or invalid."""
        given = {name.lower(): value for name, value in options.items()}
        path = given.pop("path", None)
        if not path or "paths" in given:
            raise UsageError('format("kraft") reads one source: load("SOURCE")')
        for name in given.keys() - _NAMES.keys():
            hint = did_you_mean(name, _NAMES.values(), most=1) or f"there are {', '.join(_NAMES.values())}"
            raise UsageError(f'format("kraft") has no option {name}: {hint}')
        starting: int | str | None = given.get("startingoffset", EARLIEST).lower()
        if starting not in (EARLIEST, LATEST):
            starting = _offset_of("startingOffset", given["startingoffset"], f"an offset, {EARLIEST} or {LATEST}")
        most = _offset_of("maxRecordsPerTrigger", given.get("maxrecordspertrigger"), "a number of records")
        if most == 0:
            raise UsageError("the option maxRecordsPerTrigger is at least 1")
        made = cls(
            # Executors have other working directories.
            path=path if "://" in path else str(os.path.abspath(path)),  # noqa: PTH100 - of a text
            only=_type_of(given.get("type")),
            columns=_one_of("columns", given.get("columns", TYPED), (TYPED, LOG, OFFSETS)),
            show_secrets=_one_of("showSecrets", given.get("showsecrets", "false"), ("true", "false")) == "true",
            first=_offset_of("startOffset", given.get("startoffset")),
            last=_offset_of("endOffset", given.get("endoffset")),
            starting=starting,
            max_records=most,
            given=frozenset(given),
        )
        if made.columns == LOG and not made.show_secrets:
            raise UsageError(
                "with columns=log the payloads show secrets as they are: set the option showSecrets to true as well"
            )
        return made

    @property
    def schema(self) -> pa.Schema:
        """The available columns of records."""
        from kraftlake.records.typed_rows import typed_schema

        return typed_schema(self._columns_of)

    def scan(self, wanted: pa.Schema, first: int, last: int) -> RecordScan:
        """The scan of columns, some of `schema`, at the offsets [first, last]; raises UsageError for another column."""
        from kraftlake.records.typed_rows import checked_schema
        from kraftlake.tables.record_scan import RecordScan

        return RecordScan(
            source=self.path,
            wanted=checked_schema(wanted, self._columns_of),
            only=self.only,
            own_columns=self.columns == LOG,
            show_secrets=self.show_secrets,
            first=first,
            last=last,
        )

    def check_read(self) -> None:
        """Raises UsageError for an option that only streams have."""
        if self.columns == OFFSETS:
            raise UsageError(f"columns={OFFSETS} is of streams, and each of its rows a step: a read has typed or log")
        self._refuse(_STREAM, "streams: a read", _READ)

    def check_stream(self) -> None:
        """Raises UsageError for an option that only reads have."""
        self._refuse(_READ, "reads: a stream", _STREAM)

    @property
    def _columns_of(self) -> str | None:
        """The type whose rows have these columns; rows of an unknown type have the log's own."""
        from kraftlake.records.serde import UNKNOWN

        return UNKNOWN if self.columns == LOG else self.only

    def _refuse(self, names: tuple[str, ...], of: str, others: tuple[str, ...]) -> None:
        for name in names:
            if name.lower() in self.given:
                raise UsageError(f"{name} is an option of {of} has {' and '.join(others)}")


def _type_of(text: str | None) -> str | None:
    if text is None:
        return None
    from kraftlake.tables.record_scan import type_of

    return type_of(text)


def _offset_of(option: str, text: str | None, what: str = "an offset") -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}", text):
        raise UsageError(f"the option {option} is {what}, not {text!r}")
    return int(text)


def _one_of(option: str, text: str, values: tuple[str, ...]) -> str:
    if text.lower() not in values:
        raise UsageError(f"the option {option} is {', '.join(values[:-1])} or {values[-1]}, not {text!r}")
    return text.lower()
