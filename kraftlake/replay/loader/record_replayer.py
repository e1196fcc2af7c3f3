"""Replays records into one metadata delta: one by one, or many at once by compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kraftlake.delta import MetadataDelta, TopicsDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.loader.record_faults import RECORD_FAULTS, UNDECODABLE, decode_record, type_of
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, ReplayError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


class RecordReplayer:
    """Gathers records in `delta`, a change of `image`. It knows no batches and no metadata transactions.

    Strict: a record that can't be replayed raises ReplayError, UnknownRecordError or CorruptDataError, and changes
    nothing. Lenient: the record is left out and listed in `skipped`.
    """

    def __init__(self, image: MetadataImage, *, lenient: bool) -> None:
        self.lenient = lenient
        self.skipped: list[SkippedRecord] = []
        self._snapshot: str | None = None
        """The snapshot that is being loaded, for messages."""
        self._begin_delta(image)

    def _begin_delta(self, image: MetadataImage) -> None:
        self.image = image
        self.delta = MetadataDelta(image, of_log=True)

    def _decoded(self, offset: int, value: bytes) -> AnyMessage | None:
        """The message in a value; None where it can't be decoded and is skipped."""
        try:
            return decode_record(value, offset)
        except CorruptDataError as error:
            self._skip_or_raise(offset, UNDECODABLE, error)
            return None

    def _replay_or_skip(self, offset: int, message: AnyMessage) -> None:
        try:
            self.delta.replay(message, offset)
        except RECORD_FAULTS as error:
            self._skip_or_raise(offset, type_of(message), error)

    def _skip_or_raise(self, offset: int, type_: str, error: KraftlakeError) -> None:
        if self._snapshot is not None:
            error = type(error)(f"Snapshot {self._snapshot}: {error}")
        if not self.lenient:
            raise error
        self.skipped.append(SkippedRecord(offset=offset, type=type_, reason=str(error)))

    @property
    def _takes_bulk(self) -> bool:
        topics = self.delta.topics_delta
        return topics is None or topics.takes_bulk

    def _replay_bulk(self, values: BatchValues, first: int, last: int) -> int:
        """Replay the records [first, last) of `values`, as indexes; returns the first that needs an object."""
        topics = self.delta.topics_delta or TopicsDelta(self.image.topics, of_log=self.delta.of_log)
        stop, others = topics.replay_bulk(
            values.data, values.starts, values.stops, first, last, following=values.following
        )
        if not topics.is_untouched:
            self.delta.topics_delta = topics
        for index, removed_topic in others:
            if removed_topic is not None:
                self.delta.get_or_create_configs_delta().replay_remove_topic(removed_topic)
                continue
            offset = values.base_offset + index
            message = self._decoded(offset, values.value(index))
            if message is not None:
                self._replay_or_skip(offset, message)
        return stop

    def _apply(self, provenance: MetadataProvenance) -> MetadataImage:
        """The image with the delta applied; a lenient replayer drops a delta that can't be applied."""
        try:
            return self.delta.apply(provenance)
        except ReplayError as error:
            first, last = self.image.provenance.offset + 1, provenance.offset
            fault = ReplayError(f"Offsets {first} to {last}: {error}", offset=error.offset)
            self._skip_or_raise(last, "CHANGES", fault)
            self.delta = MetadataDelta(self.image, of_log=True)
            return attrs.evolve(self.image, provenance=provenance)
