"""The options that commands share, given to each of them by one decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import SHARED_SECTION, Argument, Command, Option, argument, option
from kraftlake.cli.options.parameters import (
    BEFORE_THE_END,
    BROKERS,
    CONFIG,
    MOMENT,
    NODE,
    OUTPUT_FORMAT,
    PAIR,
    PARTITIONS,
    PRINCIPAL,
    SERVICE_FORMAT,
    SETTING,
    SOURCE,
    TIME,
    TOPIC_ID,
    TOPICS,
    ZONE,
    CountParameter,
    PathParameter,
    TimeParameter,
    mapping,
)
from kraftlake.cli.options.schemas import SCHEMAS, note_passed_over
from kraftlake.cli.output.words import moment
from kraftlake.cli.output.zone import shown_in
from kraftlake.cli.selection.cut import Cut
from kraftlake.runtime.errors import OffsetError

_SOURCE_HELP = (
    "A Kafka metadata directory, segment, snapshot file, archive or bundle of these, - (stdin), a lake, or HOST:PORT "
    "of the controllers of a live quorum."
)

from_option = option("--from", "first", type=MOMENT, help="From this offset or time on: ISO 8601, now-15m, 07:46.")
to_option = option("--to", "last", type=MOMENT, help="Up to this offset or time, itself included.")


last_option = option(
    "--last",
    "since",
    type=BEFORE_THE_END,
    help="The last 15m, 2h or 3d before the end of the log, as --from now-15m.",
)
limit_option = option("--limit", type=CountParameter(min=1), help="At most the first N lines.")
_tail_option = option("--tail", type=CountParameter(min=1), help="The last N lines alone.")
hosted_option = option("--hosted", is_flag=True, help="With --broker: also the partitions that it hosts.")
COMMAND_CONFIG = "For HOST:PORT: the properties of TLS and SASL that Kafka's own tools take."
command_config_option = option("--command-config", section=SHARED_SECTION, metavar="FILE", help=COMMAND_CONFIG)
schemas_option = option("--schemas", **SCHEMAS)
live_cluster_id_option = option(
    "--cluster-id",
    section=SHARED_SECTION,
    metavar="ID",
    help="For HOST:PORT: the cluster's id, which controllers give to administrators alone.",
)

log_dirs_option = option(
    "--log-dirs",
    multiple=True,
    type=PathParameter("directory"),
    metavar="DIR",
    help="Compare this log directory of a broker with the image. Repeatable. Nothing is ever changed.",
)
config_option = option("--config", type=CONFIG, help="A properties file with Kafka's names.")
settings_option = option(
    "--override",
    "settings",
    type=SETTING,
    multiple=True,
    help="A setting of Kafka's, such as log.retention.hours=48; it goes over those of a file. Repeatable.",
)
insecure_option = option(
    "--insecure-listeners",
    "insecure",
    is_flag=True,
    help="Allow listeners without TLS, PLAINTEXT and SASL_PLAINTEXT, that other machines reach.",
)
_sources_argument = argument(
    "sources",
    type=SOURCE,
    nargs=-1,
    required=True,
    metavar="SOURCE...",
    help="A metadata directory, bundle, archive or lake; or the directories of all controllers that are left; or "
    "HOST:PORT of the controllers of a live quorum.",
)

Decorator: TypeAlias = "Callable[[Callable[..., None]], Callable[..., None]]"


def together(*decorators: Decorator) -> Decorator:
    """The decorators as one, in their order."""
    return lambda function: functools.reduce(lambda made, decorate: decorate(made), reversed(decorators), function)


def sources_options(function: Callable[..., None]) -> Callable[..., None]:
    """The argument of a command that compares the logs of a quorum's nodes, and the options to ask a live one."""
    return _sources_argument(command_config_option(live_cluster_id_option(schemas_option(function))))


def list_option(*names: str, **declared: Any) -> Decorator:
    """An option of a ListParameter: repeated, or with commas between values."""
    return option(*names, multiple=True, callback=lambda _ctx, _param, given: sum(given, ()), **declared)


def pairs_option(*names: str, **declared: Any) -> Decorator:
    """An option that is repeated, of `KEY=VALUE`, as a mapping."""
    return option(*names, multiple=True, callback=mapping, **{"type": PAIR, **declared})


def topics_option(only: str) -> Decorator:
    """The option `--topic`, a pattern for topic names; `only` begins its help."""
    return list_option("--topic", "topics", type=TOPICS, help=f"{only}; * and ? match. Repeatable, or A,B.")


def partitions_option(only: str) -> Decorator:
    """The option `--partition`; `only` begins its help."""
    return list_option("--partition", "partitions", type=PARTITIONS, help=f"{only}. Repeatable.")


def brokers_option(only: str) -> Decorator:
    """The option `--broker`; `only` begins its help."""
    return list_option("--broker", "brokers", type=BROKERS, help=f"{only}. Repeatable, or 1,2.")


def principals_option(only: str) -> Decorator:
    """The option `--principal`; a name may have commas, so each has an option of its own. `only` begins its help."""
    return option("--principal", "principals", type=PRINCIPAL, multiple=True, help=f"{only}. Repeatable.")


def topic_ids_option(only: str) -> Decorator:
    """The option `--topic-id`, one topic even where its name was used again; `only` begins its help."""
    return option("--topic-id", "topic_ids", type=TOPIC_ID, multiple=True, help=f"{only}. Repeatable.")


def range_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options `--from`, `--to` and `--last`: `first` and `last` of a range."""
    return from_option(to_option(last_option(function)))


def cut_options(everything: str) -> Decorator:
    """The options `--limit`, `--tail` and `--all`, whose help is `everything`; the function gets them as a `cut`."""
    all_option = option("--all", "everything", is_flag=True, help=everything)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, limit: int | None, tail: int | None, everything: bool, **options: Any) -> None:
            if limit is not None and tail is not None:
                raise click.UsageError("Give either --limit or --tail, not both.")
            function(*args, cut=Cut(limit, tail, everything), **options)

        return limit_option(_tail_option(all_option(run)))

    return decorate


def check_hosted(brokers: Sequence[int], *, hosted: bool) -> None:
    """Refuse --hosted without a broker."""
    if hosted and not brokers:
        raise click.UsageError("--hosted is about the partitions of a broker: give --broker.")


_LIKE_MILLISECONDS = 10**11
"""The smallest nonexistent offset that looks like a time: milliseconds since 1970, in 1973."""


@contextmanager
def _hinting_at_times(given: Iterable[object], *, at_time: bool) -> Iterator[None]:
    """Explain in an OffsetError how to give a time, where a `given` offset looks like one."""
    try:
        yield
    except OffsetError as error:
        times = [one for one in given if isinstance(one, int) and one >= _LIKE_MILLISECONDS]
        if not times:
            raise
        way = "with --at-time" if at_time else f"as ISO 8601: {moment(times[0]).replace(' ', 'T')}"
        raise OffsetError(f"{error} If {times[0]} is a time, give it {way}.") from None


def shared_options(
    *, source: bool, replays: bool, at: bool, secrets: bool, long: bool, times: bool, answers: bool
) -> list[Option]:
    """The shared options of a command that reads a `source`, `replays` it, `at` a moment, could show `secrets`.

    The answers of a `long` one have a pager on a terminal. One that takes or shows `times` has their zone. One that
    `answers` nothing has logs in place of rows.
    """
    shared = functools.partial(Option, section=SHARED_SECTION)
    moments = "The state after offset N, or at a time: ISO 8601, 07:46, now-15m."
    time = "The state at a time; a whole number is milliseconds since 1970."
    zones = "The zone of times: of those given that name none, and of those shown (not in JSON)."
    strict = "Stop at what is missing, damaged or can't be replayed (the default), or skip it and say so."
    colours = "Colours: auto heeds NO_COLOR and whether stdout is a terminal."
    ways = click.Choice(["auto", "always", "never"])
    format_ = OUTPUT_FORMAT if answers else SERVICE_FORMAT
    formats = "How to answer: text (the default), json, csv or markdown." if answers else "The logs: text or json."
    options = (
        (at, Option(["--at", "--at-offset", "at_offset"], type=MOMENT, help=moments)),
        (at, Option(["--at-time"], type=TIME, help=time)),
        (True, shared(["--output"], type=format_, help=formats)),
        (True, shared(["--json", "as_json"], is_flag=True, help="The same as --output json: JSON, nothing else.")),
        (secrets, shared(["--show-secrets"], is_flag=True, help="Show keys and sensitive configs as they are.")),
        (source and replays, shared(["--strict/--lenient", "strict"], default=True, help=strict)),
        (source, shared(["--node"], type=NODE, help="Of the logs of several nodes, that of this one.")),
        (source, shared(["--cluster-id"], metavar="ID", help="The cluster's id, if no meta.properties has it.")),
        (source, shared(["--command-config"], metavar="FILE", help=COMMAND_CONFIG)),
        (source, Option(["--schemas"], **SCHEMAS)),
        (times, shared(["--tz", "zone"], type=ZONE, is_eager=True, help=zones)),
        (True, shared(["--color"], type=ways, default="auto", help=colours)),
        (
            long,
            shared(["--no-pager"], is_flag=True, help="On a terminal: no pager (PAGER, or less) for a long answer."),
        ),
        (True, shared(["-v", "--verbose"], count=True, help="Log to stderr what is done; -vv in every detail.")),
    )
    return [option for wanted, option in options if wanted]


def command(
    question: str,
    *,
    name: str = "",
    section: str = "Commands",
    source: bool = True,
    replays: bool = True,
    at: bool = False,
    secrets: bool = False,
    long: bool = False,
    answers: bool = True,
) -> Callable[[Callable[..., None]], Command]:
    """Make a function the command of its name, with the shared options gathered in its first argument, a `Call`.

    `question` is the line in the list of commands: the question that the command answers.
    """

    def decorate(function: Callable[..., None]) -> Command:
        @functools.wraps(function)
        def run(**options: Any) -> None:
            call = Call(options)
            since = options.pop("since", None)
            if since is not None:
                if options["first"] is not None:
                    raise click.UsageError("Give either --last or where the range begins, not both.")
                options["first"] = since
            with shown_in(call.zone), _hinting_at_times((call.at, *options.values()), at_time=at):
                function(call, **options)
            note_passed_over(call.terminal)

        made: Command = click.command(
            name or function.__name__.strip("_").replace("_", "-"), cls=Command, section=section, short_help=question
        )(run)
        if source:
            made.params.insert(0, Argument(["source"], type=SOURCE, required=True, help=_SOURCE_HELP))
        times = source or at or any(isinstance(parameter.type, TimeParameter) for parameter in made.params)
        made.params += shared_options(
            source=source, replays=replays, at=at, secrets=secrets, long=long, times=times, answers=answers
        )
        return made

    return decorate
