"""The kinds of values on the command line: sources, offsets, times, record types."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kraftlake.cli.options.source_names import brokers_of, config_names, partitions_of, things_of, topics_of
from kraftlake.cli.output.formats import FORMATS, JSON, TEXT
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import LogTime, is_whole_number, length_of_time, offset_or_time, time_of
from kraftlake.runtime.words import did_you_mean, in_words

if TYPE_CHECKING:
    from kraftlake.server.node_config import ListenerAddress

_Choices = Callable[[click.Context], Sequence[str]]
_LONGEST = 10**9
"""The longest length of time: thirty years in seconds, more in minutes."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


class PathParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A path or URI, unchanged: its kind is found by reading it."""

    def __init__(self, name: str, schemes: Sequence[str] = ()) -> None:
        self.name = name
        self._schemes = schemes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path or URI as given: not empty, and with a known scheme, if any."""
        if not value:
            self.fail("it is empty; '.' is the current folder.", param, ctx)
        scheme, found, _ = str(value).partition("://")
        if found and _SCHEME.fullmatch(scheme) and scheme not in self._schemes:
            known = "".join(f", or {known}://…" for known in self._schemes)
            self.fail(f"{value!r} has a scheme that is not known here: give a path{known}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete file names in the shell."""
        return [CompletionItem(incomplete, type="file")]


def regular_file(path: str, what: str) -> Path:
    """The path of a file that is written, `what` it becomes; click.UsageError where it can't be one."""
    target = Path(path)
    if path == "-" or (target.exists() and not target.is_file()):
        raise click.UsageError(f"{path} is no regular file, and {what} is one: name a file.")
    return target


class CountParameter(click.IntRange):
    """A whole number within bounds, of 64 bits at most, named `whole number` in errors."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """The placeholder of a number in help."""
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; its users, such as `islice`, take 64 bits."""
        number: int = super().convert(value, param, ctx)
        if number >= 2**63:
            self.fail(f"{value} needs more than 64 bits: the largest is {2**63 - 1}.", param, ctx)
        return number


class MeasureParameter(click.FloatRange):
    """A number within bounds, with a fraction or without, for lengths of time; it is finite."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; neither infinite, nor NaN, which passes all bounds, nor more than a sleep may take."""
        number: float = super().convert(value, param, ctx)
        if not number <= _LONGEST:
            self.fail(f"{value!r} is not a number up to {_LONGEST:,}.", param, ctx)
        return number


class ParsedParameter(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A value that a function reads; a UsageError of the function is the error of the option.

    The shell completes those of the `choices` that begin as the word does, ignoring its case; they may depend on the
    command line so far. `shown` stands for a value in `--help`, by default the name.
    """

    def __init__(
        self, name: str, parse: Callable[..., Any], choices: _Choices = lambda _: (), *, shown: str = ""
    ) -> None:
        self.name = name
        self._parse = parse
        self._choices = choices
        self._shown = shown

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:  # noqa: ARG002
        """The placeholder of a value in help."""
        return self._shown or None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as the function reads it."""
        try:
            return self.parse(value, ctx)
        except UsageError as fault:
            self.fail(str(fault), param, ctx)

    def parse(self, value: Any, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The value as the function reads it; raises UsageError."""
        return self._parse(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete the names of the choices."""
        start = incomplete.lower()
        return [CompletionItem(choice) for choice in self._choices(ctx) if choice.lower().startswith(start)]


class TimeParameter(ParsedParameter):
    """A value with a time in it, in the zone of `--tz` where it names none."""

    def parse(self, value: Any, ctx: click.Context | None) -> Any:
        """The value as the function reads it, with the zone as a second argument."""
        zone = None if ctx is None else ctx.params.get("zone")
        return self._parse(value, zone if isinstance(zone, tzinfo) else UTC)


class ListParameter(ParsedParameter):
    """Comma-separated values, as a tuple; the function returns one value for each, or a tuple of several."""

    def parse(self, value: Any, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Each value as the function reads it."""
        given = [one.strip() for one in value.split(",") if one.strip()] or [value]
        made = map(self._parse, given)
        return tuple(one for value in made for one in (value if isinstance(value, tuple) else (value,)))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the last value of the list."""
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{one.value}") for one in super().shell_complete(ctx, param, last)]


def words_parameter(name: str, words: Sequence[str], what: str) -> ListParameter:
    """A list of some words, each a `name`; the error of any other one says that it is no `what`."""

    def word(value: str) -> str:
        if value not in words:
            hint = did_you_mean(value, words, most=1) or f"the {name}s are {', '.join(words)}."
            raise UsageError(f"{value!r} is no {what}; {hint}")
        return value

    return ListParameter(name, word, lambda _: words)


def _offset(value: Any, *, lowest: int = 0) -> int:
    """A Kafka offset, an int of at least `lowest`; −1 stands for the empty image where it is allowed."""
    try:
        offset = int(value)
    except ValueError:
        raise UsageError(f"{value!r} is not an offset: give a whole number.") from None
    if offset < lowest:
        raise UsageError(f"{offset} is not an offset: the lowest is {lowest}.")
    if offset >= 2**63:
        raise UsageError(f"{offset} is not an offset: it needs more than Kafka's 64 bits.")
    return offset


def _broker(value: Any, of: str = "a broker") -> int:
    """The id of a broker, or another node: an int that fits Kafka's 32 bits and is not negative."""
    try:
        broker = int(value)
    except ValueError:
        raise UsageError(f"{value!r} is not {of}'s id: give a whole number.") from None
    if not 0 <= broker < 2**31:
        raise UsageError(f"{broker} is not {of}'s id: they go from 0 to {2**31 - 1}.")
    return broker


def _setting(value: str) -> tuple[str, str]:
    """`NAME=VALUE`, a setting of Kafka's."""
    name, equals, setting = value.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{value!r} sets nothing: give a setting as in log.retention.hours=48.")
    return name.strip(), setting.strip()


def _listener(value: str) -> ListenerAddress:
    """`NAME://HOST:PORT`, as in Kafka's listeners."""
    from kraftlake.server.node_config import parse_listener

    return parse_listener(value)


def _topic_id(value: str) -> str:
    """The id of a topic in 22 characters, as this log's records have it."""
    from kraftlake.records.uuid import Uuid

    try:
        return str(Uuid.from_string(value))
    except ValueError:
        raise UsageError(f"{value!r} is not a topic's id: it has 22 letters, digits, '-' and '_'.") from None


def _moment(value: Any, zone: tzinfo, *, lowest: int = 0) -> int | datetime | LogTime:
    """A moment in a log: a whole number is an offset, anything else a time."""
    if isinstance(value, str) and is_whole_number(value):
        return _offset(value, lowest=lowest)
    return offset_or_time(value, zone)


def _fixed_time(value: Any, zone: tzinfo) -> datetime:
    """A time that does not count from the end of a log, for options without one."""
    time = time_of(value, zone)
    if isinstance(time, LogTime):
        raise UsageError(f"{value!r} counts from the end of a log: give ISO 8601 (2026-11-21T08:00:00Z).")
    return time


def _before_the_end(value: Any) -> LogTime:
    """A length of time before the end of the log."""
    return LogTime(text=f"now-{value}", back=length_of_time(value))


def _zone(value: str) -> tzinfo:
    """A time zone: its IANA name, UTC, or hours and minutes from UTC such as +01:00."""
    import zoneinfo

    if value.upper() in ("UTC", "Z"):
        return UTC
    if found := re.fullmatch(r"([+-])(\d\d):?([0-5]\d)", value):
        off = timedelta(hours=int(found[2]), minutes=int(found[3]))
        if off < timedelta(days=1):
            return timezone(off if found[1] == "+" else -off)
    try:
        return zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(value, zoneinfo.available_timezones()) or "give a name such as Europe/Berlin, or +01:00."
        raise UsageError(f"{value!r} is not a time zone: {hint}") from None


def _partition(value: str) -> str:
    """A partition as Kafka's tools print it: its topic and its number, as in foo-3."""
    if not re.fullmatch(r".+-\d+", value, re.DOTALL):
        raise UsageError(f"{value!r} is not a partition: give its topic and its number, as in foo-3.")
    return value


def _named_partition(value: str) -> tuple[str, int]:
    """A partition's topic and its number."""
    topic, _, number = _partition(value).rpartition("-")
    return topic, int(number)


def _principal(value: str) -> str:
    """A principal, `Type:name`; its name may have any characters."""
    from kraftlake.diagnosis.access.question import checked_principal

    return checked_principal(value)


def _pair(value: str) -> tuple[str, str]:
    """`KEY=VALUE`; the value may be empty."""
    key, equals, held = value.partition("=")
    if not key or not equals:
        raise UsageError(f"{value!r} is not of the form KEY=VALUE.")
    return key, held


def mapping(_: click.Context, parameter: click.Parameter, given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A callback of a parameter that takes several PAIRs: they are a mapping, each key once."""
    for key, times in Counter(key for key, _ in given).items():
        if times > 1:
            raise click.BadParameter(f"{key!r} is named twice.", param=parameter)
    return dict(given)


def _record_type(value: str) -> str:
    """A record type as Kafka's dump tool prints it; in any case, with or without `_RECORD`, or as Kafka's classes."""
    by_plain = {_plain_type(name): name for name in _record_types()}
    wanted = _plain_type(value)
    if wanted in by_plain:
        return by_plain[wanted]
    hint = did_you_mean(value, by_plain.values(), _plain_type) or f"the types are {', '.join(by_plain.values())}."
    raise UsageError(f"{value!r} is not a record type; {hint}")


def _some_time(value: Any) -> timedelta:
    """A positive length of time."""
    length = value if isinstance(value, timedelta) else length_of_time(value)
    if not length:
        raise UsageError(f"{value!r} is no time at all: give 15m, 2h or 3d.")
    return length


def _record_types(_: click.Context | None = None) -> Sequence[str]:
    from kraftlake.replay.queries.record_types import known_types

    return known_types()


def _event_kind(value: str) -> tuple[str, ...]:
    """The kinds of events that a kind, a shell pattern or a word of KIND_WORDS stands for."""
    from kraftlake.tables.events.events_table import KIND_WORDS, KINDS

    wanted = value.lower().replace("-", "_").replace(" ", "_")
    patterns = KIND_WORDS.get(wanted) or KIND_WORDS.get(wanted.removesuffix("s"), (wanted,))
    found = [kind for pattern in patterns for kind in fnmatch.filter(KINDS, pattern)]
    if not found:
        hint = did_you_mean(wanted, [*KINDS, *KIND_WORDS]) or f"the kinds are {', '.join(KINDS)}."
        raise UsageError(f"{value!r} is not a kind of event; {hint}")
    return tuple(found)


def _event_kinds(_: click.Context) -> Sequence[str]:
    from kraftlake.tables.events.events_table import KIND_WORDS, KINDS

    return [*KINDS, *KIND_WORDS]


def _format_of(value: str, formats: Sequence[str] = FORMATS) -> str:
    """A format of answers, one of some; logs are not the rows of a table."""
    if value in formats:
        return value
    raise UsageError(f"there is no {value} of it: give {in_words(formats, 'or')}.")


def _plain_type(name: str) -> str:
    return name.upper().replace("_", "").replace("-", "").replace(" ", "").removesuffix("RECORD")


_LAKE_SCHEMES = ("s3", "file")
SOURCE = PathParameter("source", _LAKE_SCHEMES)
LAKE = PathParameter("lake", _LAKE_SCHEMES)
OUTPUT = PathParameter("file")
CONFIG = PathParameter("file")
BROKER = ParsedParameter("broker", _broker, brokers_of, shown="ID")
NODE = ParsedParameter("node", partial(_broker, of="a node"), shown="ID")
SETTING = ParsedParameter("setting", _setting, shown="NAME=VALUE")
LISTENER = ParsedParameter("listener", _listener, shown="NAME://HOST:PORT")
BROKERS = ListParameter("broker", _broker, brokers_of, shown="ID")
TOPICS = ListParameter("topic", str, topics_of, shown="NAME")
RACKS = ListParameter("rack", str, shown="NAME")
TOPIC_ID = ParsedParameter("topic id", _topic_id, shown="ID")
NAMED_PARTITION = ParsedParameter("partition", _named_partition)
PRINCIPAL = ParsedParameter("principal", _principal, shown="TYPE:NAME")
PAIR = ParsedParameter("pair", _pair, shown="KEY=VALUE")
CONFIG_PAIR = ParsedParameter("pair", _pair, config_names, shown="KEY=VALUE")
THING = ParsedParameter("thing", str, things_of)
PARTITIONS = ListParameter("partition", _partition, partitions_of, shown="NAME-N")
TIME = TimeParameter("time", time_of, shown="T")
FIXED_TIME = TimeParameter("time", _fixed_time, shown="T")
MOMENT = TimeParameter("moment", _moment, shown="N")
MOMENT_OR_EMPTY = TimeParameter("moment", partial(_moment, lowest=-1), shown="N")
LENGTH_OF_TIME = ParsedParameter("length of time", _some_time, shown="TIME")
BEFORE_THE_END = ParsedParameter("length of time", _before_the_end, shown="TIME")
ZONE = ParsedParameter("time zone", _zone, shown="ZONE")
_SERVICE_FORMATS = (TEXT, JSON)
OUTPUT_FORMAT = ParsedParameter("format", _format_of, lambda _: FORMATS)
SERVICE_FORMAT = ParsedParameter("format", partial(_format_of, formats=_SERVICE_FORMATS), lambda _: _SERVICE_FORMATS)
TYPES = ListParameter("type", _record_type, _record_types)
KINDS = ListParameter("kind", _event_kind, _event_kinds)
