"""The fold of one shard: all records of some topics. Imports numpy, but not Spark."""

from __future__ import annotations

import numpy as np

from kraftlake import kernels
from kraftlake.delta import MetadataDelta, TopicsDelta
from kraftlake.delta.faults import place_of
from kraftlake.image import MetadataImage, TopicsImage
from kraftlake.records.metadata_records import ClearElrRecord, RemoveTopicRecord
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.changes.log_values import LogValues


class ShardFold:
    """Replays values of a shard's topics onto the empty image, and the ClearElrRecords of these topics.

    With `split_at`, records that take effect up to that offset make the base image, all later ones one metadata delta.
    `removed` are the offsets of RemoveTopicRecords with topics' names, `cleared` the offsets of ClearElrRecords that
    name a topic of the shard. Strict: a record that can't be replayed raises ReplayError, UnknownRecordError or
    CorruptDataError with its offset.
    """

    def __init__(self, split_at: int | None = None) -> None:
        self.removed: list[tuple[int, str]] = []
        self.cleared: list[int] = []
        self._split_at = split_at
        self._delta = MetadataDelta(MetadataImage.EMPTY)

    def replay(self, values: LogValues, effective_at: int | None = None) -> None:
        """Replay values that follow those before; all of them take effect at `effective_at`, or each at its offset."""
        if self._split_at is not None:
            if effective_at is None:
                cut = int(np.searchsorted(values.offsets, self._split_at, side="right"))
            else:
                cut = len(values) if effective_at <= self._split_at else 0
            if cut < len(values):
                self._replay(values.part(0, cut))
                self._split()
                values = values.part(cut, len(values))
        self._replay(values)

    def topics(self) -> TopicsImage:
        """The image of the shard's topics."""
        return self._topics.apply()

    def change(self) -> TopicsDelta:
        """The metadata delta of the records that took effect after `split_at`."""
        if self._split_at is not None:
            self._split()
        return self._topics

    def _split(self) -> None:
        self._split_at = None
        self._delta = MetadataDelta(MetadataImage(topics=self._topics.apply()))

    @property
    def _topics(self) -> TopicsDelta:
        return self._delta.get_or_create_topics_delta()

    def _replay(self, values: LogValues) -> None:
        done = 0
        for place in np.flatnonzero(values.keys == ClearElrRecord.API_KEY).tolist():
            message = values.message(place)
            if isinstance(message, ClearElrRecord) and message.topic_name:
                self._replay_values(values.part(done, place))
                if self._topics.holds_topic(message.topic_name):
                    self.cleared.append(int(values.offsets[place]))
                    self._replay_values(values.part(place, place + 1))
                done = place + 1
        self._replay_values(values.part(done, len(values)))

    def _replay_values(self, values: LogValues) -> None:
        count, done = len(values), 0
        if not count:
            return
        topics = self._topics
        if topics.takes_bulk and kernels.available():
            done, others = topics.replay_bulk(values.data, values.starts, values.stops, 0, count)
            for place, removed in others:
                if removed:
                    self.removed.append((int(values.offsets[place]), removed))
                else:
                    self._replay_one(values, place)
        for place in range(done, count):
            self._replay_one(values, place)

    def _replay_one(self, values: LogValues, place: int) -> None:
        offset = int(values.offsets[place])
        message = values.message(place)
        if not isinstance(message, RemoveTopicRecord):
            self._delta.replay(message, offset)
            return
        try:
            self.removed.append((offset, self._topics.replay_remove_topic(message)))
        except ReplayError as error:
            raise ReplayError(f"{place_of(message, offset)}{error}", offset=offset) from error
