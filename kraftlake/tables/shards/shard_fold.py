"""The fold of one shard: all records of some topics. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np

from kraftlake.delta import MetadataDelta, TopicsDelta
from kraftlake.image import MetadataImage, MetadataProvenance, TopicsImage
from kraftlake.records.metadata_records import ClearElrRecord
from kraftlake.replay.log.delta_chunk import TopicsState
from kraftlake.replay.log.effective_records import EffectiveRecords, TransactionReader, standing_alone
from kraftlake.tables.shards.chunks import Chunk, Part


class ShardFold:
    """Replays a shard's chunks of BASE and LOG onto the empty image, and the ClearElrRecords of its topics.

    With `split_at`, records that take effect up to that offset make the base image, all later ones one metadata delta.
    Records of BASE take effect at `base_last`. Strict: a record that can't be replayed raises ReplayError,
    UnknownRecordError or CorruptDataError with its offset.
    """

    def __init__(self, split_at: int | None = None, base_last: int = -1) -> None:
        self._split_at = split_at
        self._base_last = base_last
        self._transactions = TransactionReader()
        self._delta = MetadataDelta(MetadataImage.EMPTY)

    @classmethod
    def of(cls, chunks: Iterable[Chunk], *, split_at: int | None = None, base_last: int = -1) -> ShardFold:
        """The fold of all chunks of a shard, in order."""
        fold = cls(split_at, base_last)
        for chunk in chunks:
            fold.take(chunk)
        return fold

    def take(self, chunk: Chunk) -> None:
        """Replay the records of a chunk, which follow those before."""
        records = standing_alone(chunk.records())
        if chunk.part == Part.BASE:
            self.replay(records.taking_effect(self._base_last, -1))
        else:
            for taken in self._transactions.take(records):
                self.replay(taken)

    def state(self, at: MetadataProvenance) -> TopicsState:
        """The shard after an offset: all partitions are as they are since then."""
        state, transactions = TopicsState.of_image(self.topics(), at), self._transactions
        return attrs.evolve(state, open_since=transactions.open_since, held=transactions.held)

    def replay(self, records: EffectiveRecords) -> None:
        """Replay records that follow those before."""
        if self._split_at is not None:
            cut = int(np.searchsorted(records.effective, self._split_at, side="right"))
            if cut < len(records):
                self._replay(records.part(0, cut))
                self._split()
                records = records.part(cut, len(records))
        self._replay(records)

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

    def _replay(self, records: EffectiveRecords) -> None:
        done = 0
        for place in np.flatnonzero(records.kinds == ClearElrRecord.API_KEY).tolist():
            message = records.message(place)
            if isinstance(message, ClearElrRecord) and message.topic_name:
                self._replay_all(records.part(done, place))
                if self._topics.holds_topic(message.topic_name):
                    self._replay_all(records.part(place, place + 1))
                done = place + 1
        self._replay_all(records.part(done, len(records)))

    def _replay_all(self, records: EffectiveRecords) -> None:
        count, done = len(records), 0
        if not count:
            return
        topics = self._topics
        if topics.takes_bulk:
            done, others = topics.replay_bulk(records.data, records.starts, records.stops, 0, count)
            for place in (place for place, removed in others if not removed):
                self._replay_one(records, place)
        for place in range(done, count):
            self._replay_one(records, place)

    def _replay_one(self, records: EffectiveRecords, place: int) -> None:
        self._delta.replay(records.message(place), int(records.offsets[place]))
