"""One run of a command: what its shared options say, how it reads sources, and how it answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.output.formats import JSON, TEXT, RowWriter, Table, json_text, table_of
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.zone import in_zone
from kraftlake.cli.selection.topic_names import any_matches
from kraftlake.runtime.errors import CorruptDataError, ReplayError, UnknownRecordError
from kraftlake.runtime.moments import LogTime, iso
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.cli.output.progress import Progress
    from kraftlake.cli.selection.cut import Cut
    from kraftlake.diagnosis.attribution.attribution import Attribution
    from kraftlake.diagnosis.attribution.witnesses import Witnesses
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.replay.loader.fold import Replay
    from kraftlake.replay.loader.manifest import SkippedRecord
    from kraftlake.replay.queries.source import LogSource


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
        self.output = _format(options.pop("output"), as_json=options.pop("as_json"))
        self.strict: bool = options.pop("strict", True)
        self.node: int | None = options.pop("node", None)
        self.cluster_id: str | None = options.pop("cluster_id", None)
        self.command_config: str | None = options.pop("command_config", None)
        self._config_is_for_source = options.get("quorum") is None or _is_quorum(options.get("source"))
        self.show_secrets: bool = options.pop("show_secrets", False)
        if not options.pop("no_pager", True) and self.in_words:
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

    @property
    def as_json(self) -> bool:
        """Whether JSON is asked for."""
        return self.output == JSON

    @property
    def in_words(self) -> bool:
        """Whether text is asked for, which people read."""
        return self.output == TEXT

    def log_as_service(self) -> None:
        """Send what the rooms log to stderr, in the format asked for."""
        from kraftlake.cli.output.logs import log_as_service

        log_as_service(as_json=self.as_json, debug=self.verbose, colours=self.terminal.error_colour)

    def answer(self, form: dict[str, Any], show: Callable[[Terminal, dict[str, Any]], None]) -> None:
        """Answer with one object: as text `show` writes what it says."""
        if not self.answered(form):
            show(self.terminal, form)

    def answered(self, form: dict[str, Any], table: Callable[[dict[str, Any]], Table] | None = None) -> bool:
        """Write one object in the format asked for, or its `table`; False where that is text, which is to be drawn."""
        if self.as_json:
            sys.stdout.write(f"{json_text(form)}\n")
        elif not self.in_words:
            self.write_rows(table_of(form, self.output) if table is None else table(form))
        return not self.in_words

    def check_whole(self, cut: Cut) -> None:
        """Refuse to cut what is one object in JSON."""
        if self.as_json and cut.is_cut:
            raise click.UsageError(
                "--limit and --tail cut what is drawn, and --json prints one whole object: give one or the other."
            )

    def write_rows(self, table: Table) -> None:
        """Write rows as they come, in a format that is not text."""
        RowWriter(self.output).write_table(table)

    @cached_property
    def row_writer(self) -> RowWriter:
        """The writer of single rows, in a format other than text."""
        return RowWriter(self.output)

    def open(self, source: str, *, warn_torn: bool = True) -> Source:
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
        if warn_torn and opened.torn is not None:
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

    def attribution(self, source: LogSource, witnesses: Witnesses | None) -> Attribution | None:
        """The attribution of a source's records to clients, by witnesses; None without any. Says what is in these."""
        if witnesses is None:
            return None
        from kraftlake.diagnosis.attribution.attribution import Attribution

        found = Attribution(source, witnesses)
        for note in found.notes():
            self.terminal.note(note)
        return found

    def warn_changes_begin(self, source: Source, what: str) -> None:
        """Warn where the answers on a whole log begin later than its records; `what` is such as `events begin`."""
        begin = source.changes_begin
        if begin > source.start_offset:
            self.terminal.warn(
                f"{what} at offset {begin}: from {source.start_offset} to there the log has records but no image"
            )

    def _note_times(self, source: Source) -> None:
        counted_ = [time for time in self._times if isinstance(time, LogTime)]
        fixed = [time for time in self._times if isinstance(time, datetime)] if self.zone is None else []
        resolved = [f"{time.text} is {in_zone(source.time_of(time))}" for time in counted_]
        resolved += [f"{iso(time)} is {in_zone(time)}" for time in fixed]
        end = source.last_time if counted_ else None
        if resolved:
            ends = "" if end is None else f" ({source.name} ends at {in_zone(end)})"
            self.terminal.note(f"{', '.join(resolved)}{ends}")

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
            fork = "; --schemas declares a fork's types" if isinstance(fault, UnknownRecordError) else ""
            raise click.ClickException(
                f"{str(fault).rstrip('.')}. {way_out}--lenient goes on without it{fork}."
            ) from None

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

        sentences, nothing = unknown_names(
            sources, topics=topics, topic_ids=topic_ids, partitions=partitions, brokers=brokers
        )
        if nothing and not found:
            raise click.ClickException("; ".join(sentences))
        for sentence in sentences:
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


def _is_quorum(source: Any) -> bool:
    from kraftlake.protocol.address import are_addresses

    return isinstance(source, str) and are_addresses(source)


def _format(given: str | None, *, as_json: bool) -> str:
    """The format that --output and --json name together."""
    if as_json and given not in (None, JSON):
        raise click.UsageError("--json is short for --output json: give one of them.")
    return JSON if as_json else given or TEXT
