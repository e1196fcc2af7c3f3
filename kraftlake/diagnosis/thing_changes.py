"""The lines of changes of things: the record that gave each value, and the offset from which it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.watched_things import FoundRecord, WatchedThings
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import CONTROL_NAMES, VotersRecord
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord
from kraftlake.records.serde import AnyMessage, UnknownRecord
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.loader.record_faults import RECORD_FAULTS, UNDECODABLE, decode_record, type_of
from kraftlake.replay.log.log_position import LogPosition
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.replay_base import (
    broken_ranges,
    choose_base,
    has_beginning,
    readable_batches,
    usable_snapshots,
)
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True, repr=False)
class Change:
    """A change of a thing's value by a record.

    `offset`, `timestamp` (epoch ms, None for none), `epoch` and `type` are those of the record, as `kraftlake log` has
    them; `since` and `since_time` the offset at which it takes effect, and its time: they differ for a record within a
    metadata transaction. `before` and `after` are the thing's values in their JSON form, secrets as they are; None is
    for nothing.

    `or_earlier`: no record, but the snapshot with which the log begins, had the value already. `type` is None, `before`
    unknown and None, and `offset` the last one that the snapshot holds.
    """

    thing: Thing
    offset: int
    timestamp: int | None
    epoch: int
    type: str | None
    before: Any
    after: Any
    since: int
    since_time: int | None
    or_earlier: bool = False

    def __repr__(self) -> str:
        before, after = map(self.thing.shown, (self.before, self.after))
        return f"<Change of {self.thing} by {self.type} at offset {self.offset}: {before} → {after}>"

    def to_json(self, *, show_secrets: bool = False) -> dict[str, Any]:
        """A line of `kraftlake blame --json`; secrets are `(redacted)` unless `show_secrets`."""
        values = (self.before, self.after)
        before, after = values if show_secrets else map(self.thing.shown, values)
        form = {
            "thing": self.thing.text,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "epoch": self.epoch,
            "type": self.type,
            "before": before,
            "after": after,
        }
        if self.since != self.offset:
            form["effectiveOffset"] = self.since
        return form | ({"orEarlier": True} if self.or_earlier else {})


@attrs.frozen(kw_only=True)
class Changes:
    """The changes of things up to an offset.

    `lines` has those of each thing in the order in which they took effect. `skipped` are the records that a lenient
    reading left out.
    """

    lines: dict[Thing, list[Change]]
    skipped: tuple[SkippedRecord, ...] = ()


def changes_of(
    source: LogSource, things: Iterable[Thing], at: int, *, newest_only: bool = False, lenient: bool = False
) -> Changes:
    """The lines of changes of things up to and including the offset `at`, each line with at least one change.

    Things without a change are left out. With `newest_only` a line has its last change alone. Only records that can
    change one of the things are decoded and replayed, on top of the empty image or, where the log starts above 0, of
    the snapshot that covers its start; where that log is damaged, of the newest snapshot up to `at`.

    Raises OffsetError where there is no image at `at`, and the errors of replaying a record: with `lenient` such
    records are left out.
    """
    watched = list(dict.fromkeys(things))
    begins = begins_of(source, at, lenient=lenient)
    for begin in begins:
        try:
            return _Fold(source, watched, begin, newest_only=newest_only).up_to(at)
        except RECORD_FAULTS:
            if begin == begins[-1] and not lenient:
                raise
    return _Fold(source, watched, begins[-1], newest_only=newest_only, lenient=True).up_to(at)


def changes_after(source: LogSource, things: Iterable[Thing], begin: int, at: int, *, lenient: bool = False) -> Changes:
    """The lines of changes of things after the image at the offset `begin`, -1 for the empty one, up to `at`.

    The values there are the first of each line. Raises as `changes_of`.
    """
    return _Fold(source, list(dict.fromkeys(things)), begin, newest_only=False, lenient=lenient).up_to(at)


def begins_of(source: LogSource, at: int, *, lenient: bool = False) -> Sequence[int]:
    """The offsets of the images from which to replay up to `at`, -1 for the empty image.

    The first image covers most of the log, the second one needs the least of it.
    """
    reader = source.reader
    if source.kind is SourceKind.SNAPSHOT:
        return [source.replay(at).image.offset]  # raises where that is another one
    base = choose_base(reader, at, lenient=lenient)
    newest = -1 if base is None else base.end_offset - 1
    start, end = reader.start_offset, reader.end_offset
    known = [-1] if has_beginning(reader) else []
    known += [one.end_offset - 1 for one in usable_snapshots(reader) if start <= one.end_offset <= at + 1]
    whole = (one for one in known if (one == at or at < end) and not broken_ranges(reader, one + 1, at))
    return list(dict.fromkeys([next(whole, newest), newest]))


def image_after(source: LogSource, begin: int, *, lenient: bool = False) -> MetadataImage:
    """The image at an offset from `begins_of`."""
    return state_after(source, begin, lenient=lenient)[0]


def state_after(source: LogSource, begin: int, *, lenient: bool = False) -> tuple[MetadataImage, QuorumState]:
    """The image at an offset from `begins_of`, and the state of the quorum."""
    if begin < 0 and source.kind is not SourceKind.SNAPSHOT:
        return MetadataImage.EMPTY, QuorumState()
    replay = source.replay(begin, lenient=lenient)
    return replay.image, replay.quorum


class _Effective(NamedTuple):
    """A record that takes effect at an offset and time."""

    found: FoundRecord
    message: Any
    since: int
    since_time: int


class _Fold(LogPosition[tuple[FoundRecord, Any]]):
    """Replays the records that can change things, one by one, and collects the changes."""

    def __init__(
        self, source: LogSource, things: Sequence[Thing], begin: int, *, newest_only: bool, lenient: bool = False
    ) -> None:
        super().__init__(lenient=lenient)
        self._reader: LogReader = source.reader
        self._newest_only = newest_only
        self._begin = begin
        self._image, self.quorum = state_after(source, begin, lenient=lenient)
        self._voters = [thing for thing in things if thing.kind == "voter"]
        self._delta = MetadataDelta(self._image, of_log=True)
        self._watched = WatchedThings(things, self._image)
        states = [(thing, thing.state(self._image, self.quorum)) for thing in things]
        self._states = {thing: (state, thing.compared(state)) for thing, state in states}
        self._newest: dict[Thing, tuple[_Effective, Any, Any]] = {}
        """The record that changed each thing last, and the thing's states before and after."""
        provenance = self._image.provenance
        time = _or_none(provenance.timestamp)
        self._lines = {
            thing: [
                Change(
                    thing=thing, offset=begin, timestamp=time, epoch=provenance.epoch, type=None,
                    before=None, after=thing.value_of(state), since=begin, since_time=time, or_earlier=True,
                )
            ]
            for thing, state in states
            if thing.value_of(state) is not None
        }  # fmt: skip

    def up_to(self, at: int) -> Changes:
        """The changes up to and including an offset."""
        for record in self._effective(at):
            self._replay(record)
        self._lines |= {thing: [_change(thing, *newest)] for thing, newest in self._newest.items()}
        return Changes(lines=self._lines, skipped=tuple(self.skipped))

    def _effective(self, at: int) -> Iterator[_Effective]:
        """The records that take effect up to `at`; those of a metadata transaction at its end."""
        first = self._begin + 1
        if first > at:
            return
        lost = self.lost
        chunks = readable_batches(self._reader, first, at, lost) if lost else chunks_of(self._reader, first, at)
        for chunk in chunks:
            if self._voters and isinstance(chunk, RecordBatch) and chunk.control:
                self._take_voters(chunk, max(first, chunk.base_offset), min(at, chunk.last_offset))
            for found in self._watched.candidates(chunk):
                if first <= found.offset <= at:
                    yield from self._taking_effect(found)

    def _take_voters(self, batch: RecordBatch, first: int, last: int) -> None:
        """Add the changes of voters by a control batch: its records take effect where they stand."""
        for change in self.take_control(batch, first, last):
            if not isinstance(change.message, VotersRecord):
                continue
            record = _Effective(
                FoundRecord(change.offset, change.epoch, change.time, b""), change.message, change.offset, change.time
            )
            states = [thing.state(self._image, change.state) for thing in self._voters]
            self._add(record, self._voters, states)

    def _taking_effect(self, found: FoundRecord) -> Iterator[_Effective]:
        try:
            message = decode_record(found.value, found.offset)
        except CorruptDataError as fault:
            self.leave_out(found.offset, UNDECODABLE, fault)
            return
        for one, of_one in self.take_record(message, found.offset, (found, message)):
            yield _Effective(one, of_one, found.offset, found.time)

    def _replay(self, record: _Effective) -> None:
        message = record.message
        things = self._watched.changed_by(message)
        if not things and not isinstance(message, UnknownRecord):
            return
        is_of_partition = isinstance(message, (PartitionRecord, PartitionChangeRecord))
        try:
            if not is_of_partition:
                self._apply()
            self._delta.replay(message, record.found.offset)
        except RECORD_FAULTS as fault:
            self.leave_out(record.found.offset, type_of(message), fault)
            return
        if is_of_partition:  # most records: what they change is in the delta, and images are made for the others only
            topic = self._delta.get_or_create_topics_delta().changed_topic(message.topic_id)
            state = None if topic is None else topic.partition(message.partition_id)
            self._add(record, things, [state] * len(things))
        else:
            self._apply()
            self._add(record, things, [thing.state(self._image) for thing in things])

    def _apply(self) -> None:
        image = self._delta.apply(self._image.provenance)
        if image is not self._image:
            self._image, self._delta = image, MetadataDelta(image, of_log=True)

    def _add(self, record: _Effective, things: Sequence[Thing], states: Sequence[Any]) -> None:
        """Add the changes of things to these states by a record."""
        for thing, state in zip(things, states, strict=True):
            before, compared = self._states[thing]
            now = thing.compared(state)
            if now == compared:
                continue
            self._states[thing] = state, now
            if self._newest_only:
                self._newest[thing] = record, before, state
            else:
                self._lines.setdefault(thing, []).append(_change(thing, record, before, state))


def _change(thing: Thing, record: _Effective, before: Any, after: Any) -> Change:
    """The change of a thing by a record from one state to another."""
    found = record.found
    return Change(
        thing=thing, offset=found.offset, timestamp=_or_none(found.time), epoch=found.epoch,
        type=_type_of(record.message), before=thing.value_of(before), after=thing.value_of(after),
        since=record.since, since_time=_or_none(record.since_time),
    )  # fmt: skip


def _type_of(message: AnyMessage) -> str:
    return CONTROL_NAMES[message.API_KEY] if isinstance(message, VotersRecord) else type_of(message)


def _or_none(time: int) -> int | None:
    return None if time < 0 else time
