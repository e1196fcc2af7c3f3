"""A source of metadata and all queries on it: the result of `kraftlake.open`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.api.sql import SqlSource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.arguments import instance, path_text, several, text, whole
from kraftlake.runtime.errors import OffsetError, UsageError
from kraftlake.runtime.moments import Moment

if TYPE_CHECKING:
    from kraftlake.api.events import Events
    from kraftlake.api.metrics import Metrics
    from kraftlake.api.watch import Watch
    from kraftlake.diagnosis.bisection import Bisected
    from kraftlake.diagnosis.thing_changes import Change
    from kraftlake.diagnosis.things import Thing
    from kraftlake.diagnosis.trial.steps import Step
    from kraftlake.diagnosis.trial.what_if import WhatIf
    from kraftlake.image.diff import ImageDiff
    from kraftlake.metadata_log.chain import ChainLink
    from kraftlake.records.log_record import LogRecord
    from kraftlake.replay.live.committed_tail import AskQuorum
    from kraftlake.replay.queries.changes import LogChanges
    from kraftlake.replay.queries.export import ExportReport
    from kraftlake.replay.queries.local_changes import LocalChanges
    from kraftlake.replay.reading.progress import Progress
    from kraftlake.replay.verify.findings import VerifyReport


_LARGEST = 2**63 - 1


class Source(SqlSource):
    """A lake, a metadata directory, a segment, a snapshot file, an archive or a quorum, opened by `kraftlake.open`.

    A moment is an offset (an int) or a time (text or a datetime, in UTC unless it names a zone); milliseconds since
    1970 are given as `at_time`. Text is ISO 8601, or relative to the end of the log, where `now` is the time of the
    newest record: `now-15m`, `07:46` (the last one that the log reaches), `yesterday`. Ranges include both ends: a time
    as `from_offset` means the first record written since then, a time as `to_offset` the last record written up to
    then, None for the end of the log.

    Offsets are Kafka's; `start_offset` is the first one of the log, `end_offset` the one after the last. A snapshot
    file alone has no log: its one image is the one at `end_offset - 1`, and its records are the snapshot's own, with
    offsets that count from 0.
    """

    def _repr_html_(self) -> str:
        from kraftlake.runtime.html import html_table

        facts = {
            "path": self.path,
            "cluster": self.cluster_id or "of unknown id",
            "offsets": f"{self.start_offset} to {self.end_offset - 1}",
            "snapshots": len(self.snapshots),
        }
        return html_table(facts.items(), caption=f"{type(self).__name__}: {self.kind.name.lower()}")

    def records(
        self,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[LogRecord]:
        """The records of a range in offset order, control records and no-ops included.

        `types` are names such as TOPIC_RECORD or LEADER_CHANGE; None is all of them. Raises OffsetError at once where
        an offset is not in the source, BrokenFileError where offsets between them are missing, UsageError where the
        range runs backwards or a type does not exist.
        """
        from kraftlake.replay.queries.record_types import checked_types
        from kraftlake.replay.reading.replay_base import check_unbroken

        first, last = self.offset_range(from_offset, to_offset)
        self._check_held(first, last)
        if not self._is_snapshot:
            check_unbroken(
                self.reader,
                self.start_offset if first is None else first,
                self.end_offset - 1 if last is None else last,
            )
        return self._records(first, last, checked_types(types))

    def _records(self, first: int | None, last: int | None, types: frozenset[str] | None) -> Iterator[LogRecord]:
        from kraftlake.records.log_record import log_records

        begin, end = first or 0, _LARGEST if last is None else last
        for batch in self.batches(first, last):
            if types is None and begin <= batch.base_offset and batch.last_offset <= end:
                yield from log_records(batch)
                continue
            for record in log_records(batch):
                if begin <= record.offset <= end and (types is None or record.type in types):
                    yield record

    def _check_held(self, *offsets: int | None) -> None:
        wanted = [offset for offset in offsets if offset is not None]
        start, end = self.start_offset, self.end_offset
        if self._is_snapshot and wanted:
            start, end = 0, sum(batch.record_count for batch in self.batches())
        for offset in wanted:
            if not start <= offset < end:
                held = f"offsets {start} to {end - 1}" if end > start else "no offsets"
                raise OffsetError(f"Offset {offset} is not in {self.name}, which holds {held}.")

    def image(
        self,
        at: Moment | None = None,
        *,
        at_time: Moment | None = None,
        from_snapshot: bool | None = None,
        lenient: bool = False,
    ) -> MetadataImage:
        """The cluster after replaying all offsets up to and including a moment; None is the end of the log.

        `at_time` is a time, too, and an int there is milliseconds since 1970. The replay starts from the nearest
        finished snapshot; `from_snapshot` False reads the log alone, True requires a snapshot. By default a record that
        can't be replayed raises ReplayError or UnknownRecordError naming its offset; with `lenient` it is skipped, and
        `replay` names the skipped ones. Raises OffsetError where there is no such image.
        """
        return self.replay(at, at_time=at_time, from_snapshot=from_snapshot, lenient=lenient).image

    def metrics(self, at: Moment | None = None, *, at_time: Moment | None = None, lenient: bool = False) -> Metrics:
        """The controller's metrics at a moment, and each broker's partition counts: `kraftlake metrics`. As `image`."""
        from kraftlake.api.metrics import Metrics

        return Metrics.of(self.image(at, at_time=at_time, lenient=lenient))

    def local_changes(
        self,
        broker: int,
        from_offset: Moment,
        to_offset: Moment | None = None,
        *,
        from_snapshot: bool | None = None,
        lenient: bool = False,
        progress: Progress | None = None,
    ) -> LocalChanges:
        """The effect of one metadata delta of the offsets (from_offset, to_offset] on `broker`.

        Unlike a range, the delta starts from the image at `from_offset`, whose own record is not part of it; -1 is the
        empty image. `to_offset` None is the end. `progress` as for `replay`. Raises as `image` does.
        """
        from kraftlake.replay.loader.fold import changes_between
        from kraftlake.replay.queries.local_changes import LocalChanges

        broker = whole(broker, "a broker's id", least=0)
        if from_offset is None:
            raise UsageError("Local changes need the offset or time that they start from; -1 is the empty image.")
        first, last = self.offset_at(from_offset), None if to_offset is None else self.offset_at(to_offset)
        if last is None:
            # A start past the end is an offset that is missing, not a range that runs backwards.
            last = max(first, self.last_image_offset)
        if first > last:
            raise UsageError(f"Local changes from offset {first} to {last} run backwards.")
        self._refuse_snapshot()
        loader = changes_between(
            self.reader, first, last, from_snapshot=from_snapshot, lenient=lenient, progress=progress
        )
        return LocalChanges.of(loader, broker, first, last)

    def changes(
        self, from_offset: Moment | None = None, to_offset: Moment | None = None, *, lenient: bool = False
    ) -> LogChanges:
        """Each change of a range in turn: its delta, and the images before and after it.

        A change is that of a log batch, or of a whole metadata transaction at its end. Raises as `LogChanges` does.
        """
        from kraftlake.replay.queries.changes import LogChanges

        self._refuse_snapshot()
        first, last = self.offset_range(from_offset, to_offset)
        return LogChanges(self.reader, first, last, lenient=lenient, cluster_id=self.cluster_id)

    def events(
        self,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        *,
        show_secrets: bool = False,
        lenient: bool = False,
        of_brokers: Iterable[int] | None = None,
    ) -> Events:
        """The events of a range, one for each thing that a change touched: `kraftlake events`.

        `of_brokers` leaves only the events of these brokers themselves, of the partitions that they host before or
        after the change, and of topics that were created, extended or deleted with such partitions. Sensitive configs
        are `(redacted)` unless `show_secrets`. Raises as `changes` does.
        """
        from kraftlake.api.events import Events

        self._refuse_snapshot()
        first, last = self.offset_range(from_offset, to_offset)
        brokers = _broker_ids(of_brokers)
        return Events(self, first, last, show_secrets=show_secrets, lenient=lenient, of_brokers=brokers)

    def watch(
        self,
        from_offset: Moment | None = None,
        *,
        poll: float = 0.5,
        show_secrets: bool = False,
        lenient: bool = False,
        of_brokers: Iterable[int] | None = None,
        include_uncommitted: bool = False,
        quorum: AskQuorum | None = None,
    ) -> Watch:
        """The events from a moment on, then each as it is committed: `kraftlake watch`; None means from now on.

        The source is a lake, the directory of a node, or a quorum. For a directory, the events are those that the log
        itself shows to be committed, with `quorum` (which returns the quorum's current position) also those that the
        quorum has committed, and with `include_uncommitted` all of them. The source is polled for new batches every
        `poll` seconds. `show_secrets` and `of_brokers` as for `events`. Raises UsageError where the source does not
        grow, OffsetError where it lacks the offset.
        """
        from kraftlake.api.watch import Watch
        from kraftlake.replay.live.open_live import open_live

        self._refuse_snapshot()
        if not isinstance(poll, (int, float)) or isinstance(poll, bool) or not 0 < poll < math.inf:
            raise UsageError(f"{poll!r} is no poll interval: give a number of seconds above 0.")
        brokers = _broker_ids(of_brokers)
        first, _ = self.offset_range(from_offset)
        if first is not None and first != self.end_offset:
            self._check_held(first)
        live = open_live(self, poll=poll, include_uncommitted=include_uncommitted, quorum=quorum)
        try:
            return Watch(
                live,
                first,
                cluster_id=self.cluster_id,
                show_secrets=show_secrets,
                lenient=lenient,
                of_brokers=brokers,
                poll=poll,
            )
        except BaseException:
            live.close()
            raise

    def diff(self, before: Moment, after: Moment, *, lenient: bool = False) -> ImageDiff:
        """The differences between the images at two moments; the offset -1 is the empty image."""
        from kraftlake.image.diff import diff_images

        images = [MetadataImage.EMPTY if at == -1 else self.image(at, lenient=lenient) for at in (before, after)]
        return diff_images(*images)

    def blame(
        self, thing: str, at: Moment | None = None, *, at_time: Moment | None = None, lenient: bool = False
    ) -> Change:
        """The record that gave a thing its value at a moment: `kraftlake blame`; None is the end of the log.

        `thing` is a path such as `topic/foo/partition/3/isr`, `broker/2/fenced`, `config/TOPIC/foo/retention.ms` or
        `feature/metadata.version`. Raises NoSuchThingError where the thing does not exist then, UsageError for an
        invalid path, else as `image`.
        """
        from kraftlake.diagnosis.blaming import blame

        return blame(self, self._thing(thing), self.offset_at(at, at_time=at_time), lenient=lenient)

    def blame_all(
        self, thing: str, at: Moment | None = None, *, at_time: Moment | None = None, lenient: bool = False
    ) -> list[Change]:
        """Every record that changed a thing up to a moment, the newest last. As `blame`."""
        from kraftlake.diagnosis.blaming import blame_all

        return blame_all(self, self._thing(thing), self.offset_at(at, at_time=at_time), lenient=lenient)

    def bisect(
        self,
        condition: str,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        *,
        lenient: bool = False,
    ) -> Bisected:
        """The first offset of a range from which a condition holds: `kraftlake bisect` (docs/questions.md).

        `condition` is, for example, `offline_partitions > 0 and broker(3).fenced`. Raises NoSuchThingError where it
        never holds, UsageError for an invalid condition, else as `image`.
        """
        from kraftlake.diagnosis.bisection import bisect
        from kraftlake.diagnosis.condition_parser import parse_condition

        parsed = parse_condition(text(condition, "a condition"))
        return bisect(self, parsed, *self.offset_range(from_offset, to_offset), lenient=lenient)

    def what_if(
        self,
        *steps: str | Step,
        at: Moment | None = None,
        at_time: Moment | None = None,
        each_broker: bool = False,
        each_rack: bool = False,
        lenient: bool = False,
    ) -> WhatIf:
        """The controller's reaction to some steps at a moment: `kraftlake what-if`; nothing is written.

        A step is a `kraftlake.api.Step`, or text: `lose-broker 2`, `lose-rack a`, `restart 3`, `reassign FILE`,
        `catch-up`. `each_broker` and `each_rack` request the effect of each single loss after the steps. Raises
        NoSuchThingError for an unknown broker or rack, UsageError for an invalid step, else as `image`.
        """
        from kraftlake.diagnosis.trial.steps import Step
        from kraftlake.diagnosis.trial.what_if import what_if

        taken = [Step.parse(one) if isinstance(one, str) else instance(one, Step, "a step") for one in steps]
        image = self.image(at, at_time=at_time, lenient=lenient)
        return what_if(image, taken, each_broker=each_broker, each_rack=each_rack)

    @staticmethod
    def _thing(path: str) -> Thing:
        from kraftlake.diagnosis.things import Thing

        return Thing.parse(text(path, "the path of a thing"))

    def verify(
        self, *, at_least: ChainLink | str | None = None, spec: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Run every check: see `replay.verify`; `at_least` also as text, OFFSET or OFFSET:HASH.

        `spec`: judge the log by the properties of Kafka's specifications, too.
        """
        from kraftlake.replay.verify.verification import verify_source

        if isinstance(at_least, str):
            from kraftlake.metadata_log.chain import ChainLink

            at_least = ChainLink.parse(at_least)
        return verify_source(self, at_least=at_least, spec=spec, progress=progress)

    def export(
        self,
        path: str | os.PathLike[str],
        at: Moment | None = None,
        *,
        allow_loss: bool = False,
        lenient: bool = False,
    ) -> ExportReport:
        """Write the image at a moment as a KRaft snapshot file: see `kraftlake.replay.queries.export`."""
        from kraftlake.replay.queries.export import export

        return export(self, Path(path_text(path)), at, allow_loss=allow_loss, lenient=lenient)


def _broker_ids(given: Iterable[int] | None) -> frozenset[int] | None:
    if given is None:
        return None
    return frozenset(whole(one, "a broker's id", least=0) for one in several(given, "a list of brokers"))


def open_source(
    source: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    node: int | None = None,
    command_config: str | os.PathLike[str] | None = None,
    schemas: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
) -> Source:
    """Open any source of a metadata log; its content determines its kind. `kraftlake.open` is this function.

    A folder is searched for metadata directories, `-` is stdin. `node` chooses one of several nodes' logs by its id.
    `HOST:PORT[,HOST:PORT…]` or `kafka://…` are controllers of a live quorum, from which everything committed is
    fetched; `command_config` is the properties file of Kafka's own tools, for TLS and SASL, and `warn` gets a sentence
    on each unsafe setting in it. `cluster_id` names the cluster where no file beside the log does. `schemas` is a
    folder of files in Kafka's message format: this process knows the record types that they declare from then on, and
    no image changes by records of these types. Raises NotASourceError for a path without a log, or with several of
    which none is chosen, CorruptDataError for a broken one, UsageError where `cluster_id` contradicts the source's own
    or a schema is refused, NodeError for a quorum that does not answer.
    """
    if schemas is not None:
        from kraftlake.kafka_files.message_files import declared_types
        from kraftlake.records.foreign.registered import register

        register(declared_types(os.fspath(schemas)))
    return Source.open(
        source, cluster_id=cluster_id, node=node, command_config=command_config, progress=progress, warn=warn
    )
