"""The images of a log whose deltas the tables of a run share: topics from their store, all else by few objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.effective_records import UNKNOWN_KIND
from kraftlake.replay.log.partition_store import TOPIC_KINDS

if TYPE_CHECKING:
    from kraftlake.replay.loader.quorum_state import QuorumState
    from kraftlake.replay.log.log_replay import LogReplay

_OF_TOPICS: Final = frozenset(TOPIC_KINDS)


class DeltaImages:
    """Makes an image on request."""

    def __init__(self, replay: LogReplay, image: MetadataImage) -> None:
        """Begin with an image; `replay` has the deltas that follow it."""
        self.replay = replay
        self._others = attrs.evolve(image, topics=TopicsImage.EMPTY)
        """The image without topics."""
        self._topics: TopicsImage | None = image.topics
        """The topics, None where the store has newer ones."""

    @property
    def provenance(self) -> MetadataProvenance:
        """That of the image."""
        return self.replay.provenance

    @property
    def quorum(self) -> QuorumState:
        """The state of the quorum by the control records so far."""
        return self.replay.quorum

    @property
    def image(self) -> MetadataImage:
        """The image after the last delta."""
        if self._topics is None:
            self._topics = self.replay.store.topics()
        return attrs.evolve(self._others, topics=self._topics, provenance=self.provenance)

    @property
    def topic_counts(self) -> tuple[int, int]:
        """The number of topics, and of partitions."""
        if self._topics is not None:
            return self._topics.topic_count, self._topics.partition_count
        return self.replay.store.topic_count, self.replay.store.count

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Take deltas, after the store. Raises for any record that can't be replayed."""
        if chunk.records.are_of((*TOPIC_KINDS, UNKNOWN_KIND)).any():
            self._topics = None
        self._take_others(chunk)

    def _take_others(self, chunk: DeltaChunk) -> None:
        """Replay all but the records of partitions; the configs of a topic are deleted with it."""
        records, names = chunk.records, chunk.partitions.names.topics
        removed = {record: names[topic].as_py() for _, topic, record in chunk.partitions.removed.tolist()}
        others = np.flatnonzero(~records.are_of((*TOPIC_KINDS, NoOpRecord.API_KEY)))
        if not len(others) and not removed:
            return
        delta = MetadataDelta(self._others, of_log=True)
        for record in sorted({*others.tolist(), *removed}):
            if record in removed:
                delta.get_or_create_configs_delta().replay_remove_topic(removed[record])
                continue
            offset = int(records.offsets[record])
            message = decode_record(records.value(record), offset)
            if getattr(message, "API_KEY", None) not in _OF_TOPICS:
                delta.replay(message, offset)
        self._others = delta.apply(self._others.provenance)
