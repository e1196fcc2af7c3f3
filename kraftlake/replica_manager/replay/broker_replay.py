"""Replays a log for one broker: the transitions of its ReplicaManager at each delta, and the record behind each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import load_snapshot, loader_at
from kraftlake.replay.loader.manifest import LogDeltaManifest, SkippedRecord
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import (
    check_covered,
    check_unbroken,
    choose_base,
    first_image_offset,
    readable_batches,
    usable_snapshots,
)
from kraftlake.replica_manager.replay.causes import Cause, RecordIndex, UnpublishedRecords, causes_of
from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.arguments import instance, whole
from kraftlake.runtime.errors import OffsetError
from kraftlake.runtime.moments import Moment

SNAPSHOT = "SNAPSHOT"
"""The type of a cause that is a whole snapshot; its offset is the snapshot's last one."""


@attrs.frozen(kw_only=True, weakref_slot=False)
class ReplayStep:
    """One published delta: its offsets, the image after it, and the broker's transitions with their causes.

    `timestamp` is in epoch ms. `delta` is None for the snapshot that a replay starts with.
    """

    first_offset: int
    offset: int
    epoch: int
    timestamp: int
    delta: MetadataDelta | None = attrs.field(repr=False)
    image: MetadataImage = attrs.field(repr=False)
    transitions: tuple[tuple[Transition, Cause | None], ...] = ()


class BrokerReplay:
    """Replays a range of a source for a broker, both ends included, with the range of `kraftlake.Source`.

    The broker starts with the image before `from_offset`; without `from_offset`, with the empty image, or with the
    snapshot that the log starts from. Each batch is one delta, and so is each metadata transaction. `broker` has the
    state after the last step taken. Raises OffsetError if the source lacks the images, UsageError for a range whose end
    is before its start.
    """

    def __init__(
        self,
        source: LogSource,
        broker_id: int,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        *,
        lenient: bool = False,
        inter_broker_listener: str | None = None,
        num_replica_fetchers: int = 1,
    ) -> None:
        instance(source, LogSource, "a Source, such as kraftlake.open gives")
        broker_id = whole(broker_id, "a broker's id", least=0)
        first, last = source.offset_range(from_offset, to_offset)
        whole(num_replica_fetchers, "a number of fetchers", least=1)
        self.source = source
        self.from_offset = first
        self._make_broker = partial(
            ReplayedBroker,
            broker_id,
            inter_broker_listener=inter_broker_listener,
            num_replica_fetchers=num_replica_fetchers,
        )
        self.to_offset = source.last_image_offset if last is None else last
        self.lenient = lenient
        self.broker = self._make_broker(listener=self._happened)
        self.skipped: Sequence[SkippedRecord] = ()
        self._transitions: list[Transition] = []
        self._steps: list[ReplayStep] = []
        self._records = UnpublishedRecords()
        self._loads_snapshot = False
        self.base_image = MetadataImage.EMPTY
        """The image that the broker started with."""
        self._loader: MetadataBatchLoader | None = None
        self._first: ReplayStep | None = None
        self._begin()

    @property
    def offset(self) -> int:
        """The offset of the broker's image."""
        return self.broker.image.offset

    def _happened(self, transition: Transition) -> None:
        self._transitions.append(transition)

    def _begin(self) -> None:
        reader, at = self.source.reader, self.from_offset
        if self.source.kind is SourceKind.SNAPSHOT:
            if at is not None and at > self.to_offset:
                raise OffsetError(f"{reader.name} is a snapshot: its one image is the one at offset {self.to_offset}.")
            replay = self.source.replay(self.to_offset, lenient=self.lenient)
            self.skipped = replay.skipped
            self._first = self._started_with(replay.image)
            return
        # raises where there is no such image, and names those that exist
        choose_base(reader, self.to_offset, lenient=self.lenient)
        if at is not None and at > self.source.last_image_offset + 1:
            choose_base(reader, at, lenient=self.lenient)  # raises, and names the requested offset
        if at is None and reader.start_offset > 0:
            # an older snapshot has an image, but the log does not go on from it
            first = first_image_offset(reader, reader.start_offset - 1)
            first = self.to_offset if first is None else min(first, self.to_offset)
            loader = loader_at(reader, first, in_one_delta=True, lenient=self.lenient)
            image = loader.take_image()
            self._first = self._started_with(image)
        elif at is None or at == 0:
            loader = MetadataBatchLoader(lenient=self.lenient)
        else:
            loader = loader_at(reader, at - 1, lenient=self.lenient)
            self.base_image = loader.take_image()
            self.broker.start(self.base_image)
            self._transitions.clear()
        self.skipped = loader.skipped
        check_covered(reader, loader.last_offset, min(self.to_offset, reader.end_offset - 1))
        if not self.lenient:
            check_unbroken(reader, loader.last_offset + 1, self.to_offset)
        loader.publish_to(self._published)
        self._records.published(loader.last_offset)
        self._loader = loader

    def _started_with(self, image: MetadataImage) -> ReplayStep:
        self.broker.start(image)
        return self._step(image.offset, None, image)

    def steps(self) -> Iterator[ReplayStep]:
        """Yield each published delta after its application. To be called once."""
        if self._first is not None and self._first.offset <= self.to_offset:
            yield self._first
        loader, to = self._loader, self.to_offset
        if loader is None:
            return
        reader = self.source.reader
        if loader.last_offset < min(to, reader.end_offset - 1):
            for batch in readable_batches(reader, loader.last_offset + 1, to, loader.lost):
                self._records.add(batch)
                loader.load_batch(batch, to_offset=to)
                loader.flush()
                if self._steps:
                    yield from self._taken()
        if loader.last_offset < to:
            yield from self._ahead_of_log(loader, to)

    def again(self, steps: Sequence[ReplayStep]) -> ReplayedBroker:
        """Return another broker after `steps`, the first steps of this replay."""
        broker = self._make_broker(listener=lambda _: None)
        if not self.base_image.is_empty():
            broker.start(self.base_image)
        for step in steps:
            if step.delta is None:
                broker.start(step.image)
            else:
                broker.publish(step.delta, step.image)
        return broker

    def _ahead_of_log(self, loader: MetadataBatchLoader, to: int) -> Iterator[ReplayStep]:
        """Load the snapshots that are ahead of the log, as a broker that is far behind does."""
        for snapshot in usable_snapshots(self.source.reader):
            if loader.last_offset < snapshot.end_offset - 1 <= to:
                self._loads_snapshot = True
                load_snapshot(loader, snapshot)
                loader.flush()
                yield from self._taken()

    def _taken(self) -> Iterator[ReplayStep]:
        steps, self._steps = self._steps, []
        yield from steps

    def _causes(
        self, transitions: Sequence[Transition], delta: MetadataDelta | None, image: MetadataImage
    ) -> Sequence[Cause | None]:
        if self._loads_snapshot or delta is None:
            return [Cause(image.offset, SNAPSHOT)] * len(transitions)
        index = RecordIndex(self._records.messages(image.offset), self.broker.broker_id)
        restarted = any(transition.kind is TransitionKind.BROKER_STARTED for transition in transitions)
        return causes_of(transitions, index, delta.image, image, restarted=restarted)

    def _published(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        if self._loads_snapshot:
            self.broker.load_snapshot(delta, image)
        else:
            self.broker.publish(delta, image)
        self._steps.append(self._step(manifest.base_offset, delta, image))
        self._records.published(image.offset)

    def _step(self, first_offset: int, delta: MetadataDelta | None, image: MetadataImage) -> ReplayStep:
        """Return the step with the transitions reported since the last one."""
        transitions, self._transitions = self._transitions, []
        causes = self._causes(transitions, delta, image) if transitions else ()
        return ReplayStep(
            first_offset=first_offset,
            offset=image.offset,
            epoch=image.provenance.epoch,
            timestamp=image.provenance.timestamp,
            delta=delta,
            image=image,
            transitions=tuple(zip(transitions, causes, strict=True)),
        )
