"""The kinds of values on the command line: sources, offsets, times, record types."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
from click.shell_completion import CompletionItem

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import is_whole_number, offset_or_time, time_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


class PathParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A path or URI, left as it is: what it holds is found out by reading it."""

    def __init__(self, name: str, schemes: Sequence[str] = ()) -> None:
        self.name = name
        self._schemes = schemes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path or URI as it was given: not empty, and of a scheme that is known here, where it has one."""
        if not value:
            self.fail("it is empty; '.' is the current folder.", param, ctx)
        scheme, found, _ = str(value).partition("://")
        if found and _SCHEME.fullmatch(scheme) and scheme not in self._schemes:
            known = "".join(f", or {known}://…" for known in self._schemes)
            self.fail(f"{value!r} has a scheme that is not known here: give a path{known}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Let the shell complete file names."""
        return [CompletionItem(incomplete, type="file")]


class CountParameter(click.IntRange):
    """A whole number within bounds, named `whole number` in errors."""

    name = "whole number"


class MeasureParameter(click.FloatRange):
    """A number within bounds, with a fraction or without."""

    name = "number"


class OffsetParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A Kafka offset; −1 is allowed where it stands for the empty image."""

    name = "offset"

    def __init__(self, lowest: int = 0) -> None:
        self.lowest = lowest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """An int of at least `lowest` that fits Kafka's 64 bits."""
        try:
            offset = int(value)
        except ValueError:
            self.fail(f"{value!r} is not an offset: give a whole number.", param, ctx)
        if offset < self.lowest:
            self.fail(f"{offset} is not an offset: the lowest is {self.lowest}.", param, ctx)
        if offset >= 2**63:
            self.fail(f"{offset} is not an offset: it needs more than Kafka's 64 bits.", param, ctx)
        return offset


class BrokerParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """The id of a broker."""

    name = "broker"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """An int that fits Kafka's 32 bits and is not negative."""
        try:
            broker = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a broker's id: give a whole number.", param, ctx)
        if not 0 <= broker < 2**31:
            self.fail(f"{broker} is not a broker's id: they go from 0 to {2**31 - 1}.", param, ctx)
        return broker


class TopicIdParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """The id of a topic, as Kafka prints it."""

    name = "topic id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The 22 characters, as this log's records have them."""
        from kraftlake.records.uuid import Uuid

        try:
            return str(Uuid.from_string(value))
        except ValueError:
            self.fail(f"{value!r} is not a topic's id: it has 22 letters, digits, '-' and '_'.", param, ctx)


class TimeParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A moment: ISO 8601 (UTC unless it names a zone) or milliseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """An aware datetime in UTC."""
        try:
            return time_of(value)
        except UsageError as fault:
            self.fail(str(fault), param, ctx)


class MomentParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A moment in a log: a whole number is an offset, anything else a time in ISO 8601."""

    name = "moment"

    def __init__(self, lowest: int = 0) -> None:
        self._offset = OffsetParameter(lowest)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | datetime:
        """An offset, or an aware datetime in UTC."""
        if isinstance(value, str) and is_whole_number(value):
            return self._offset.convert(value, param, ctx)
        try:
            return offset_or_time(value)
        except UsageError as fault:
            self.fail(str(fault), param, ctx)


class RecordTypeParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A record type, in any case, with or without `_RECORD`, or in the spelling of Kafka's classes."""

    name = "type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The type as Kafka's dump tool prints it."""
        from kraftlake.replay import RECORD_TYPES

        wanted = _plain_type(value)
        found = next((name for name in RECORD_TYPES if wanted == _plain_type(name)), None)
        if found is not None:
            return found
        close = difflib.get_close_matches(wanted, [_plain_type(name) for name in RECORD_TYPES], n=3, cutoff=0.5)
        close += [
            plain for plain in map(_plain_type, RECORD_TYPES) if wanted and wanted in plain and plain not in close
        ]
        near = [name for name in RECORD_TYPES if _plain_type(name) in close]
        hint = f"did you mean {_or(near)}?" if near else f"the types are {', '.join(RECORD_TYPES)}."
        raise click.BadParameter(f"{value!r} is not a record type; {hint}", ctx, param)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete the names of the types."""
        from kraftlake.replay import RECORD_TYPES

        return [CompletionItem(name) for name in RECORD_TYPES if name.startswith(incomplete.upper())]


class EventKindParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A kind of event, or a shell pattern that some kinds match."""

    name = "kind"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The kind or pattern in lower case, with underscores."""
        kinds = _event_kinds()
        wanted = str(value).lower().replace("-", "_")
        if not fnmatch.filter(kinds, wanted):
            near = difflib.get_close_matches(wanted, kinds, n=3, cutoff=0.5)
            hint = f"did you mean {_or(near)}?" if near else f"the kinds are {', '.join(kinds)}."
            raise click.BadParameter(f"{value!r} is not a kind of event; {hint}", ctx, param)
        return wanted

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete the names of the kinds."""
        return [CompletionItem(kind) for kind in _event_kinds() if kind.startswith(incomplete)]


def _event_kinds() -> list[str]:
    from kraftlake.tables.events.table import KINDS

    return list(KINDS)


def _plain_type(name: str) -> str:
    return name.upper().replace("_", "").replace("-", "").replace(" ", "").removesuffix("RECORD")


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


_LAKE_SCHEMES = ("s3", "file")
SOURCE = PathParameter("source", _LAKE_SCHEMES)
LAKE = PathParameter("lake", _LAKE_SCHEMES)
OUTPUT = PathParameter("file")
OFFSET = OffsetParameter()
BROKER = BrokerParameter()
TOPIC_ID = TopicIdParameter()
TIME = TimeParameter()
MOMENT = MomentParameter()
MOMENT_OR_EMPTY = MomentParameter(lowest=-1)
RECORD_TYPE = RecordTypeParameter()
EVENT_KIND = EventKindParameter()
