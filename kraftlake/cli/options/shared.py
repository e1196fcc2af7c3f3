"""The options that commands share, given to each of them by one decorator."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from kraftlake.cli.options.command import SHARED_SECTION, Argument, Command, Example, Option, option
from kraftlake.cli.options.parameters import (
    BEFORE_THE_END,
    BROKERS,
    MOMENT,
    NODE,
    PARTITIONS,
    SOURCE,
    TIME,
    TOPIC_ID,
    TOPICS,
    ZONE,
    CountParameter,
    TimeParameter,
)
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.words import moment
from kraftlake.cli.output.zone import in_zone, shown_in
from kraftlake.cli.selection.topic_names import any_matches
from kraftlake.runtime.errors import CorruptDataError, OffsetError, ReplayError, UnknownRecordError
from kraftlake.runtime.moments import LogTime, iso
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.cli.output.progress import Progress
    from kraftlake.image import MetadataImage
    from kraftlake.replay.loader.fold import Replay
    from kraftlake.replay.loader.manifest import SkippedRecord

# the headings under which `kraftlake --help` lists the commands
LOOK = "What do you want to know?"
MOVE = "Bring a log in, take a snapshot out"
UPKEEP = "Keep a lake in order"
ENGINE = "Make a lake and its tables"
RUN = "Run a cluster on a lake"
CHANGE = "Change a controlled lake, as its controller"

SAMPLE = "samples/kafka-4.4/log/__cluster_metadata-0"
"""The source in every example: a real log that lies in the repository."""
_SOURCE_HELP = (
    "A Kafka metadata directory, segment, snapshot file, archive or bundle of these, - (stdin), a lake, or HOST:PORT "
    "of the controllers of a live quorum."
)

from_option = option(
    "--from", "first", type=MOMENT, metavar="N", help="From this offset or time on: ISO 8601, now-15m, 07:46."
)
to_option = option("--to", "last", type=MOMENT, metavar="N", help="Up to this offset or time, itself included.")


last_option = option(
    "--last",
    "since",
    type=BEFORE_THE_END,
    metavar="TIME",
    help="The last 15m, 2h or 3d before the end of the log, as --from now-15m.",
)
limit_option = option("--limit", type=CountParameter(min=1), metavar="N", help="At most the first N lines.")
tail_option = option("--tail", type=CountParameter(min=1), metavar="N", help="The last N lines alone.")
hosted_option = option("--hosted", is_flag=True, help="With --broker: also the partitions that it hosts.")
COMMAND_CONFIG = "For HOST:PORT: the properties of TLS and SASL that Kafka's own tools take."
command_config_option = option("--command-config", section=SHARED_SECTION, metavar="FILE", help=COMMAND_CONFIG)
live_cluster_id_option = option(
    "--cluster-id",
    section=SHARED_SECTION,
    metavar="ID",
    help="For HOST:PORT: the cluster's id, which controllers tell administrators alone.",
)

Decorator: TypeAlias = "Callable[[Callable[..., None]], Callable[..., None]]"


def list_option(*names: str, **declared: Any) -> Decorator:
    """An option of a ListParameter: repeated, or with commas between values."""
    return option(*names, multiple=True, callback=lambda _ctx, _param, given: sum(given, ()), **declared)


def topics_option(only: str) -> Decorator:
    """The option `--topic`, a pattern for topic names; `only` begins its help."""
    return list_option(
        "--topic", "topics", type=TOPICS, metavar="NAME", help=f"{only}; * and ? match. Repeatable, or A,B."
    )


def partitions_option(only: str) -> Decorator:
    """The option `--partition`; `only` begins its help."""
    return list_option("--partition", "partitions", type=PARTITIONS, metavar="NAME-N", help=f"{only}. Repeatable.")


def brokers_option(only: str) -> Decorator:
    """The option `--broker`; `only` begins its help."""
    return list_option("--broker", "brokers", type=BROKERS, metavar="ID", help=f"{only}. Repeatable, or 1,2.")


def topic_ids_option(only: str) -> Decorator:
    """The option `--topic-id`, one topic even where its name was used again; `only` begins its help."""
    return option("--topic-id", "topic_ids", type=TOPIC_ID, multiple=True, metavar="ID", help=f"{only}. Repeatable.")


def check_cut(limit: int | None, tail: int | None, *, whole_json: bool = False) -> None:
    """Refuse a limit at both ends, and any where the answer is JSON that is never cut (`whole_json`)."""
    if limit is not None and tail is not None:
        raise click.UsageError("Give either --limit or --tail, not both.")
    if whole_json and (limit is not None or tail is not None):
        raise click.UsageError(
            "--limit and --tail cut what is drawn, and --json prints one whole object: give one or the other."
        )


def check_hosted(brokers: Sequence[int], *, hosted: bool) -> None:
    """Refuse --hosted without a broker."""
    if hosted and not brokers:
        raise click.UsageError("--hosted is about the partitions of a broker: give --broker.")


class Call:
    """One run of a command: what its shared options say.

    `at` is the offset or time asked for, None for the end of the log.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._times = [one for one in options.values() if isinstance(one, (datetime, LogTime))]
        self.terminal = Terminal(options.pop("color"))
        zone: tzinfo | None = options.pop("zone", None)
        own = zone is None and self.terminal.interactive and bool(os.environ.get("TZ"))
        self.zone = None if own else zone or UTC
        """The zone that times are shown in; None is this machine's, which TZ names, on a terminal."""
        self.as_json: bool = options.pop("as_json")
        self.strict: bool = options.pop("strict", True)
        self.node: int | None = options.pop("node", None)
        self.cluster_id: str | None = options.pop("cluster_id", None)
        self.command_config: str | None = options.pop("command_config", None)
        self._config_is_for_source = options.get("quorum") is None
        self.show_secrets: bool = options.pop("show_secrets", False)
        if not options.pop("no_pager", True) and not self.as_json:
            from kraftlake.cli.output.pager import pager_command

            self.terminal.pager = pager_command()
        self._has_offset = "at_offset" in options
        at_offset: int | datetime | LogTime | None = options.pop("at_offset", None)
        at_time: datetime | LogTime | None = options.pop("at_time", None)
        if at_offset is not None and at_time is not None:
            raise click.UsageError("Give either --at or --at-time, not both.")
        self.at: int | datetime | LogTime | None = at_time if at_offset is None else at_offset
        verbosity: int = options.pop("verbose")
        self.verbose = verbosity > 0
        if verbosity:
            from kraftlake.cli.output.logs import log_to_stderr

            log_to_stderr(debug=verbosity > 1)

    def answer(self, form: dict[str, Any], show: Callable[[Terminal, dict[str, Any]], None]) -> None:
        """Print a JSON form with --json, else let `show` write what it says."""
        if self.as_json:
            self.terminal.json(form)
        else:
            show(self.terminal, form)

    def open(self, source: str, *, tell_torn: bool = True) -> Source:
        """The source at a path or URI, of any kind; warns of its torn tail and its gaps.

        Says which times those that were given are, if they count from the log's end or are shown in another zone.
        """
        import kraftlake

        with self.progress() as progress:
            opened = kraftlake.open(
                source,
                cluster_id=self.cluster_id,
                node=self.node,
                command_config=self.command_config if self._config_is_for_source else None,
                warn=self.terminal.warn,
                progress=progress,
            )
        self._note_times(opened)
        self.warn_past_end(opened, self.at)
        if tell_torn and opened.torn is not None:
            self.terminal.warn(str(opened.torn))
        for broken in opened.broken_ranges:
            self.terminal.warn(
                f"{broken.fault.file}: {broken.fault.message}: from offset {broken.last + 1} on a state "
                "is known only where a snapshot lies between the gap and it"
            )
        if not opened.has_offsets:
            self.terminal.warn(
                f"{opened.name} is not named END-EPOCH.checkpoint, so its offset is unknown: -1 stands for it"
            )
        return opened

    def warn_changes_begin(self, source: Source, what: str) -> None:
        """Warn where what is told of a whole log begins later than its records; `what` is such as `events begin`."""
        begin = source.changes_begin
        if begin > source.start_offset:
            self.terminal.warn(
                f"{what} at offset {begin}: from {source.start_offset} to there the log has records but no image"
            )

    def _note_times(self, source: Source) -> None:
        counted_ = [time for time in self._times if isinstance(time, LogTime)]
        fixed = [time for time in self._times if isinstance(time, datetime)] if self.zone is None else []
        told = [f"{time.text} is {in_zone(source.time_of(time))}" for time in counted_]
        told += [f"{iso(time)} is {in_zone(time)}" for time in fixed]
        end = source.last_time if counted_ else None
        if told:
            ends = "" if end is None else f" ({source.name} ends at {in_zone(end)})"
            self.terminal.note(f"{', '.join(told)}{ends}")

    def progress(self) -> AbstractContextManager[Progress | None]:
        """A callback for the progress of work that may take long; see `late_progress_bars`."""
        from kraftlake.cli.output.progress import late_progress_bars

        return late_progress_bars(self.terminal)

    def replay(self, source: Source, at: int | datetime | LogTime | None) -> Replay:
        """The image at `at`; warns of records that a lenient replay skipped."""
        with self.progress() as progress, self.suggest_lenient():
            replay = source.replay(at, lenient=not self.strict, progress=progress)
        self.warn_skipped(replay.skipped)
        if replay.open_since is not None:
            self.terminal.warn(
                f"a metadata transaction is open since offset {replay.open_since}: its records take effect at its end, "
                f"so none of them is in the image at offset {replay.image.offset}"
            )
        elif replay.aborted is not None and replay.image.is_empty():
            first, last = replay.aborted
            self.terminal.warn(f"the image is empty: the metadata transaction of offsets {first} to {last} was aborted")
        return replay

    @contextmanager
    def suggest_lenient(self, before: str = "") -> Iterator[None]:
        """Add to the error of a stopped replay the options that continue.

        `before` says how to get what is before the offset in its `{}`, by default --at-offset where there is that.
        """
        before = before or ("--at-offset {} shows the state before it" if self._has_offset else "")
        try:
            yield
        except (CorruptDataError, ReplayError, UnknownRecordError) as fault:
            offset: int | None = getattr(fault, "offset", None)
            if offset is None or not str(getattr(fault, "file", ".log")).endswith(".log"):
                raise  # of a snapshot, or of a lake's own files: nothing passes over those
            way_out = f"{before.format(offset - 1)}, and " if before and offset > 0 else ""
            raise click.ClickException(f"{str(fault).rstrip('.')}. {way_out}--lenient goes on without it.") from None

    def warn_past_end(self, source: Source, at: int | datetime | LogTime | None) -> None:
        """Warn where the time of an image is after the last batch: the log does not reach that time."""
        if not isinstance(at, datetime):
            return
        last = source.last_time
        if last is not None and at > last:
            self.terminal.warn(
                f"{source.name} ends at {iso(last)}, before the time asked for, {iso(at)}: what is shown is its end, "
                f"offset {source.last_image_offset}"
            )

    def check_names(
        self,
        *sources: Source,
        topics: Sequence[str] = (),
        topic_ids: Sequence[str] = (),
        partitions: Sequence[str] = (),
        brokers: Sequence[int] = (),
        found: bool,
    ) -> None:
        """Warn of names that no offset of the sources knows; a ClickException where therefore nothing can match.

        Reads the logs where nothing was `found`, or something beside what one of several names may lack: topics, ids
        and partitions select together what any of them names, brokers select among that.
        """
        together = (len(topics) + len(topic_ids) + len(partitions), len(brokers))
        if not any(together) or (found and max(together) < 2):
            return
        from kraftlake.cli.selection.known_names import unknown_names

        told, nothing = unknown_names(
            sources, topics=topics, topic_ids=topic_ids, partitions=partitions, brokers=brokers
        )
        if nothing and not found:
            raise click.ClickException("; ".join(told))
        for sentence in told:
            self.terminal.warn(sentence)

    def note_ignored(self, *images: MetadataImage) -> None:
        """Say once which configs the log sets that no image has, since Kafka 4.4 does not know them."""
        words = next(filter(None, (image.configs.ignored_words for image in reversed(images))), "")
        if words:
            self.terminal.note(f"the log sets configs that Kafka 4.4 does not know and ignores: {words}")

    def warn_unknown_names(
        self, image: MetadataImage, *, topics: Sequence[str] = (), brokers: Iterable[int] = ()
    ) -> None:
        """Warn of topics that no name matches, and of brokers that are not registered: probably typing errors."""
        where = f"at offset {image.offset}"
        if topics and not any_matches(image.topics, topics):
            self.terminal.warn(f"no topic matches {', '.join(topics)} {where}")
        for broker in brokers:
            self.warn_unregistered(broker, image.cluster.brokers, where=where)

    def warn_unregistered(self, broker: int, registered: Iterable[int], *, where: str) -> None:
        """Warn where nothing is found of a broker that is not registered: its id looks like a mistake."""
        known = sorted(registered)
        if broker not in known:
            self.terminal.warn(
                f"broker {broker} is not registered {where} and hosts nothing; "
                f"registered brokers: {', '.join(map(str, known)) or 'none'}"
            )

    def warn_skipped(self, skipped: Sequence[SkippedRecord]) -> None:
        """Say which records a lenient replay left out."""
        if skipped:
            first = skipped[0]
            self.terminal.warn(
                f"{counted(len(skipped), 'record')} skipped that can't be replayed, the first at offset {first.offset} "
                f"({first.reason}): what is shown is not what the cluster had"
            )


_LIKE_MILLISECONDS = 10**11
"""From which number on an offset that does not exist looks like a time: milliseconds since 1970, in 1973."""


@contextmanager
def _hinting_at_times(given: Iterable[object], *, at_time: bool) -> Iterator[None]:
    """Say in an OffsetError how a time is given, where an offset that was `given` looks like one."""
    try:
        yield
    except OffsetError as error:
        times = [one for one in given if isinstance(one, int) and one >= _LIKE_MILLISECONDS]
        if not times:
            raise
        way = "with --at-time" if at_time else f"as ISO 8601: {moment(times[0]).replace(' ', 'T')}"
        raise OffsetError(f"{error} If {times[0]} is a time, give it {way}.") from None


def shared_options(*, source: bool, replays: bool, at: bool, secrets: bool, long: bool, times: bool) -> list[Option]:
    """The shared options of a command that reads a `source`, `replays` it, `at` a moment, could show `secrets`.

    The answers of a `long` one have a pager on a terminal. One that takes or shows `times` has their zone.
    """
    shared = functools.partial(Option, section=SHARED_SECTION)
    moments = "The state after offset N, or at a time: ISO 8601, 07:46, now-15m."
    time = "The state at a time; a whole number is milliseconds since 1970."
    zones = "The zone of times: of those given that name none, and of those shown (not in JSON)."
    strict = "Stop at what is missing, damaged or can't be replayed (the default), or skip it and say so."
    colours = "Colours: auto heeds NO_COLOR and whether stdout is a terminal."
    ways = click.Choice(["auto", "always", "never"])
    options = (
        (at, Option(["--at", "--at-offset", "at_offset"], type=MOMENT, metavar="N", help=moments)),
        (at, Option(["--at-time"], type=TIME, metavar="T", help=time)),
        (True, shared(["--json", "as_json"], is_flag=True, help="Print JSON, nothing else.")),
        (secrets, shared(["--show-secrets"], is_flag=True, help="Show keys and sensitive configs as they are.")),
        (source and replays, shared(["--strict/--lenient", "strict"], default=True, help=strict)),
        (source, shared(["--node"], type=NODE, metavar="ID", help="Of the logs of several nodes, that of this one.")),
        (source, shared(["--cluster-id"], metavar="ID", help="The cluster's id, if no meta.properties has it.")),
        (source, shared(["--command-config"], metavar="FILE", help=COMMAND_CONFIG)),
        (times, shared(["--tz", "zone"], type=ZONE, is_eager=True, metavar="ZONE", help=zones)),
        (True, shared(["--color"], type=ways, default="auto", help=colours)),
        (
            long,
            shared(["--no-pager"], is_flag=True, help="On a terminal: no pager (PAGER, or less) for a long answer."),
        ),
        (True, shared(["-v", "--verbose"], count=True, help="Log to stderr what is done; -vv in every detail.")),
    )
    return [option for wanted, option in options if wanted]


def command(
    name: str,
    *,
    section: str,
    question: str,
    examples: Sequence[Example],
    source: bool = True,
    replays: bool = True,
    at: bool = False,
    secrets: bool = False,
    long: bool = False,
) -> Callable[[Callable[..., None]], Command]:
    """Make a function a command, with the shared options gathered in its first argument, a `Call`.

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

        made: Command = click.command(
            name, cls=Command, section=section, examples=tuple(examples), short_help=question
        )(run)
        if source:
            made.params.insert(0, Argument(["source"], type=SOURCE, required=True, help=_SOURCE_HELP))
        times = source or at or any(isinstance(parameter.type, TimeParameter) for parameter in made.params)
        made.params += shared_options(source=source, replays=replays, at=at, secrets=secrets, long=long, times=times)
        return made

    return decorate
