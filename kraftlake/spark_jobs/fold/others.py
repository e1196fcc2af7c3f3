"""The fold of the records of no topic: few, and folded in the process that started the job. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.records.metadata_records import ClearElrRecord
from kraftlake.records.serde import AnyMessage, decode_control
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.spark_jobs.fold.chunks import BASE, CHECK, Chunk
from kraftlake.tables.changes.log_values import LogValues
from kraftlake.tables.changes.transactions import TransactionFilter


@attrs.frozen(kw_only=True)
class FoldedOthers:
    """An image without topics and provenance, the state of the quorum, and the begin of an open transaction."""

    image: MetadataImage
    quorum: QuorumState
    open_since: int | None


def fold_others(
    chunks: Iterable[Chunk], *, removed: Iterable[tuple[int, str]] = (), cleared: Iterable[int] = ()
) -> FoldedOthers:
    """Fold the chunks for no shard, in any order.

    `removed` are the offsets at which shards removed topics, and the topics' names: their configs are removed too.
    `cleared` are the offsets of ClearElrRecords whose topic a shard has. Raises what a replay raises, with its offset.
    """
    gathered = _Gathered()
    for chunk in sorted(chunks, key=lambda chunk: (chunk.part, chunk.first)):
        if chunk.part != CHECK:
            gathered.take(chunk)
    delta = MetadataDelta(MetadataImage.EMPTY)
    for message in gathered.of_the_base:
        delta.replay(message)
    known = frozenset(cleared)
    for offset, event in sorted([*gathered.effective, *removed], key=lambda pair: pair[0]):
        if isinstance(event, str):
            delta.get_or_create_configs_delta().replay_remove_topic(event)
        elif not isinstance(event, ClearElrRecord):
            delta.replay(event, offset)
        elif event.topic_name and offset not in known:
            raise ReplayError(
                f"offset {offset}, CLEAR_ELR_RECORD: topic {event.topic_name!r} does not exist.", offset=offset
            )
    if delta.topics_delta is not None and not delta.topics_delta.is_untouched:
        raise CorruptDataError("a record of a topic has a frame that Kafka does not write, so no shard has taken it.")
    image = delta.apply(MetadataImage.EMPTY.provenance)
    return FoldedOthers(image=image, quorum=gathered.quorum, open_since=gathered.filter.open_since)


class _Gathered:
    """The records of chunks in their order: control records at once, others where they take effect."""

    def __init__(self) -> None:
        self.quorum = QuorumState()
        self.filter = TransactionFilter[LogValues]()
        self.of_the_base: list[AnyMessage] = []
        self.effective: list[tuple[int, AnyMessage]] = []

    def take(self, chunk: Chunk) -> None:
        values, first = chunk.values(), 0
        types = chunk.control_types()
        for place in (types >= 0).nonzero()[0].tolist():
            self.quorum = self.quorum.after(decode_control(int(types[place]), values.value(place)).message)
            self._take(values.part(first, place), chunk.part)
            first = place + 1
        self._take(values.part(first, len(values)), chunk.part)

    def _take(self, values: LogValues, part: int) -> None:
        if part == BASE:
            self.of_the_base += map(values.message, range(len(values)))
            return
        for taken, _ in self.filter.take(values, values.keys):
            for each in taken:
                self.effective += _numbered(each)


def _numbered(values: LogValues) -> Iterator[tuple[int, AnyMessage]]:
    for place in range(len(values)):
        yield int(values.offsets[place]), values.message(place)
