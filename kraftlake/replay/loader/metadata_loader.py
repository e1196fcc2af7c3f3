"""The loader of a running process: committed batches in, each new image out to the publishers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.from_empty import delta_from_empty
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import extend, load_snapshot
from kraftlake.replay.loader.loader_metrics import MetadataLoaderMetrics
from kraftlake.replay.loader.manifest import (
    LeaderAndEpoch,
    LoaderManifest,
    LogDeltaManifest,
    SkippedRecord,
    SnapshotManifest,
)
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.replay.loader.quorum_state import QuorumState, leader_at
from kraftlake.replay.reading.replay_base import choose_base, images_end
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import KraftlakeError, QueueFullError, RefusedReadError, ReplayError, UsageError
from kraftlake.runtime.event_order import EventQueueClosedError, earliest
from kraftlake.runtime.event_queue import EventQueue, FunctionEvent, KafkaEventQueue
from kraftlake.runtime.fault_handler import FaultHandler

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LogReader, SnapshotReader

QUEUE_LIMIT = 1_000
"""The number of commits that may wait to be handled."""
_RETRY_INITIALIZING_NS = 100_000_000


class MetadataLoader:
    """Replays committed batches and calls publishers with each new image, on one thread.

    Nothing is published before the loader has reached `high_watermark()`, the offset after the last one that is known
    to be committed, and has seen a record that is not a control record. A publisher's first update is the change from
    the empty image to the current one, whenever it is installed; after that it sees each change once.

    One delta holds what a call of `handle_commit` brings; a metadata transaction is published as a whole or never.
    The last image does not depend on how calls divide the log.

    Strict: a record that can't be replayed stops the loader. Whole batches before it are published (unless the loader
    was still catching up), `fault_handler` gets the error, `stopped` keeps it, and later batches are ignored. Lenient:
    such records are left out, listed in `skipped` and counted in each manifest.

    `fault_handler` gets a publisher's error with its name; the other publishers are called.

    Source: org.apache.kafka.image.loader.MetadataLoader.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        fault_handler: FaultHandler,
        high_watermark: Callable[[], int | None],
        queue: EventQueue | None = None,
        metrics: MetadataLoaderMetrics | None = None,
        lenient: bool = False,
    ) -> None:
        self.metrics = metrics or MetadataLoaderMetrics()
        self.queue: EventQueue = queue or KafkaEventQueue(
            clock, "metadata-loader", limit=QUEUE_LIMIT, on_idle=self.metrics.idle.record
        )
        self.image = MetadataImage.EMPTY
        """The newest image; publishers have it unless the loader is still catching up."""
        self.stopped: KraftlakeError | None = None
        self.skipped: list[SkippedRecord] = []
        self._clock = clock
        self._fault_handler = fault_handler
        self._high_watermark = high_watermark
        self._lenient = lenient
        self._catching_up = True
        self._leader = LeaderAndEpoch.UNKNOWN
        self._uninitialized: dict[str, MetadataPublisher] = {}
        self._publishers: dict[str, MetadataPublisher] = {}
        self._unpublished: list[RecordBatch] | None = []
        """Batches since the last image, None where not all of them are at hand."""
        self._skips_published = 0
        self._batch_loader = self._batch_loader_on(MetadataImage.EMPTY)

    # Called on any thread.

    def handle_commit(self, batches: Sequence[RecordBatch]) -> None:
        """Take batches that are committed, in order and without gaps.

        Raises QueueFullError when too many calls wait, EventQueueClosedError after `close`.
        """
        self._append("Handling a commit", lambda: self.load(batches))

    def handle_load_snapshot(self, snapshot: SnapshotReader) -> Future[None]:
        """Take a snapshot in place of the log up to its end; the future is done when it has been read.

        Raises as `handle_commit`.
        """
        return self._append(f"Loading snapshot {snapshot.name}", lambda: self.load_snapshot(snapshot))

    @property
    def leader(self) -> LeaderAndEpoch:
        """The quorum's leader, by the log or by `handle_leader_change`."""
        return self._leader

    @property
    def applied_offset(self) -> int:
        """The last offset of the newest image that the publishers, if there are any, have had; -1 before the first.

        Source: org.apache.kafka.image.loader.MetadataLoader.lastAppliedOffset.
        """
        return self.metrics.last_applied.offset

    def handle_leader_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        """Take in the quorum's leader from a newer source than the log. Raises as `handle_commit`."""
        self._append("Handling a leader change", lambda: self._change_leader(leader_and_epoch))

    def install_publishers(self, publishers: Sequence[MetadataPublisher]) -> Future[None]:
        """Add publishers; the future is done when they are added, before their first update.

        It raises UsageError where a name is taken; then no publisher is added.
        """
        return self._append("Installing publishers", lambda: self._install(publishers))

    def remove_and_close_publisher(self, publisher: MetadataPublisher) -> Future[None]:
        """Remove a publisher and close it, between two updates; the future raises UsageError if it is not there."""
        return self._append(f"Removing publisher {publisher.name}", lambda: self._remove(publisher))

    def close(self) -> None:
        """Handle the waiting calls, then close all publishers; later calls are refused."""
        self.queue.close()
        for publisher in [*self._uninitialized.values(), *self._publishers.values()]:
            self._call(publisher, "being closed", publisher.close)
        self._uninitialized.clear()
        self._publishers.clear()

    # Called on the loader's own thread.

    @property
    def next_offset(self) -> int:
        """The offset that the next batch begins at."""
        return self._batch_loader.last_offset + 1

    @property
    def quorum(self) -> QuorumState:
        """The state of the quorum in the control records so far."""
        return self._batch_loader.quorum

    def load(self, batches: Sequence[RecordBatch]) -> None:
        """Replay batches into one delta and publish it: `handle_commit` on the loader's thread."""
        if self.stopped is not None:
            return
        started_ns = self._clock.nanoseconds()
        try:
            for batch in batches:
                if self._unpublished is not None:
                    self._unpublished.append(batch)
                self._batch_loader.load_batch(batch)
                if self._unpublished is None:
                    self._batch_loader.flush()
            self._batch_loader.flush()
        except Exception as fault:  # an unexpected error must not leave half a batch either
            self._publish_up_to_fault(fault)
        self.metrics.batch_size = sum(len(batch.values) for batch in batches)
        self.metrics.batch_processing_time_ns = self._clock.nanoseconds() - started_ns
        self.metrics.skipped_records = len(self.skipped)
        self._take_leader_of_log()

    def load_snapshot(self, snapshot: SnapshotReader, reader: LogReader | None = None) -> None:
        """`handle_load_snapshot` on the loader's thread: publishers get the change to the snapshot.

        `reader` is the log that the snapshot is of: by that it is known who led at its end.

        Raises RefusedReadError, and nothing has changed then: the snapshot may be loaded again.
        """
        if self.stopped is not None:
            return
        started_ns = self._clock.nanoseconds()
        loader = self._batch_loader_on(self.image, self.quorum)
        if snapshot.epoch > self._batch_loader.last.epoch:
            loader.quorum = attrs.evolve(self.quorum, leader_id=None)
        change = self._gathered(loader, reader, lambda: load_snapshot(loader, snapshot))
        if change is not None:
            self._unpublished = []
            self._publish(*change, self._snapshot_manifest(change[1], started_ns))
            self._take_leader_of_log()

    def catch_up(self, reader: LogReader) -> None:
        """Load all of `reader`, from its newest snapshot on: the fast start. Raises as `load_snapshot`."""
        assert self.image.is_empty(), "only an empty loader catches up"
        loader, last = self._batch_loader_on(MetadataImage.EMPTY), images_end(reader) - 1

        def gather() -> None:
            if last >= 0:
                extend(loader, reader, last, base=choose_base(reader, last))

        change = self._gathered(loader, reader, gather)
        if change is None:
            return
        self.image = change[1]
        self._unpublished = None if loader.in_transaction else []
        if not self._uninitialized:
            self.metrics.applied(self.image)
        self._take_leader_of_log()
        self._schedule_initializing(0)

    def _batch_loader_on(self, image: MetadataImage, quorum: QuorumState | None = None) -> MetadataBatchLoader:
        loader = MetadataBatchLoader(
            image, lenient=self._lenient, publish=self._publish_log_delta, quorum=quorum, clock=self._clock
        )
        loader.skipped = self.skipped
        return loader

    def _gathered(
        self, loader: MetadataBatchLoader, reader: LogReader | None, gather: Callable[[], None]
    ) -> tuple[MetadataDelta, MetadataImage] | None:
        """Continue with a loader that has gathered records in bulk: the change; None if that stopped it.

        Where a read is refused, nothing has changed.
        """
        skips, loader.publish = len(self.skipped), None
        try:
            gather()
            change = loader.take_change()
            _find_leader(loader, reader)
        except RefusedReadError:
            del self.skipped[skips:]
            raise
        except Exception as fault:
            self._stop(fault)
            return None
        self.metrics.handle_load_snapshot_count += loader.base_name is not None
        loader.publish = self._publish_log_delta
        self._batch_loader = loader
        return change

    def _publish_up_to_fault(self, fault: Exception) -> None:
        """Replay the batches since the last image one by one, so that those before the faulty one are published."""
        batches, self._unpublished = self._unpublished, []
        if batches is None:
            self._stop(fault)
            return
        del self.skipped[self._skips_published :]
        self._batch_loader = self._batch_loader_on(self.image, self.quorum)
        try:
            for batch in batches:
                self._unpublished.append(batch)
                self._batch_loader.load_batch(batch)
                self._batch_loader.flush()
        except Exception as culprit:
            self._stop(culprit)

    def _stop(self, fault: Exception) -> None:
        self.stopped = fault if isinstance(fault, KraftlakeError) else ReplayError(f"{type(fault).__name__}: {fault}")
        self.metrics.load_errors += 1
        self._batch_loader = self._batch_loader_on(self.image, self.quorum)
        self._fault_handler.handle_fault(f"Replaying the metadata log after offset {self.image.offset}", fault)

    def _publish_log_delta(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        self._unpublished = [b for b in self._unpublished or () if b.last_offset > image.offset]
        self._skips_published = len(self.skipped)
        self._publish(delta, image, manifest)

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: LoaderManifest) -> None:
        self.image = image
        if self._still_catching_up():
            return
        for publisher in self._publishers.values():
            what = f"publishing the image at offset {image.offset}"
            self._call(publisher, what, publisher.on_metadata_update, delta, image, manifest)
        self.metrics.applied(image)
        if self._uninitialized:
            self._schedule_initializing(0)

    def _call(self, publisher: MetadataPublisher, what: str, method: Callable[..., None], *arguments: object) -> bool:
        """Call a method of a publisher and report its error; returns whether it succeeded."""
        try:
            method(*arguments)
        except Exception as fault:
            self.metrics.apply_errors += 1
            self._fault_handler.handle_fault(f"Publisher {publisher.name}, {what}", fault)
            return False
        return True

    def _still_catching_up(self) -> bool:
        high_watermark = self._high_watermark()
        self.metrics.high_watermark = high_watermark
        if self._catching_up:
            reached = high_watermark is not None and self.image.offset >= high_watermark - 1
            self._catching_up = not (reached and self._batch_loader.seen_record)
        return self._catching_up

    def _schedule_initializing(self, delay_ns: int) -> None:
        deadline = earliest(self._clock.nanoseconds() + delay_ns)
        event = FunctionEvent(self._initialize, self._initializing_failed)
        self.queue.schedule_deferred("initialize-publishers", deadline, event)

    def _initialize(self) -> None:
        """Give the new publishers the whole image."""
        if not self._uninitialized:
            return
        if self._still_catching_up():
            self._schedule_initializing(_RETRY_INITIALIZING_NS)
            return
        started_ns = self._clock.nanoseconds()
        image, delta = self.image, delta_from_empty(self.image)
        manifest = self._snapshot_manifest(image, started_ns)
        while self._uninitialized:
            publisher = self._uninitialized.pop(next(iter(self._uninitialized)))
            what = f"getting everything up to offset {image.offset}"
            if self._call(publisher, what, self._introduce, publisher, delta, manifest):
                self._publishers[publisher.name] = publisher
        self.metrics.applied(image)

    def _initializing_failed(self, fault: Exception) -> None:
        if isinstance(fault, EventQueueClosedError):
            return  # new publishers are closed without an update
        self._fault_handler.handle_fault("Initializing new publishers", fault)
        self._schedule_initializing(_RETRY_INITIALIZING_NS)

    def _introduce(self, publisher: MetadataPublisher, delta: MetadataDelta, manifest: SnapshotManifest) -> None:
        publisher.on_metadata_update(delta, self.image, manifest)
        publisher.on_controller_change(self._leader)

    def _snapshot_manifest(self, image: MetadataImage, started_ns: int) -> SnapshotManifest:
        return SnapshotManifest(
            provenance=image.provenance,
            elapsed_ns=self._clock.nanoseconds() - started_ns,
            num_skipped=len(self.skipped),
        )

    def _take_leader_of_log(self) -> None:
        leader_id, epoch = self.quorum.leader_id, self._batch_loader.last.epoch
        if epoch > self._leader.epoch:
            self._change_leader(LeaderAndEpoch(leader_id=leader_id, epoch=epoch))

    def _change_leader(self, leader: LeaderAndEpoch) -> None:
        self._leader = leader
        self.metrics.current_controller_id = -1 if leader.leader_id is None else leader.leader_id
        for publisher in self._publishers.values():
            self._call(publisher, f"getting {leader}", publisher.on_controller_change, leader)

    def _install(self, publishers: Sequence[MetadataPublisher]) -> None:
        taken = {*self._publishers, *self._uninitialized}
        for publisher in publishers:
            if publisher.name in taken:
                raise UsageError(f"A publisher named {publisher.name!r} is installed already.")
            taken.add(publisher.name)
        self._uninitialized.update((publisher.name, publisher) for publisher in publishers)
        self._schedule_initializing(0)

    def _remove(self, publisher: MetadataPublisher) -> None:
        for known in (self._publishers, self._uninitialized):
            if known.get(publisher.name) is publisher:
                del known[publisher.name]
                self._call(publisher, "being closed", publisher.close)
                return
        raise UsageError(f"Publisher {publisher.name!r} is not installed.")

    def _append(self, what: str, function: Callable[[], None]) -> Future[None]:
        """Call `function` on the loader's thread; its error goes to the future, and to the fault handler unless the
        caller caused it.
        """
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()

        def run() -> None:
            function()
            done.set_result(None)

        def fail(error: Exception) -> None:
            done.set_exception(error)
            if not isinstance(error, (UsageError, QueueFullError, EventQueueClosedError)):
                self._fault_handler.handle_fault(what, error)

        if not self.queue.append(FunctionEvent(run, fail)):
            done.result()
        return done


def _find_leader(loader: MetadataBatchLoader, reader: LogReader | None) -> None:
    """Find the leader in the log if the loaded records do not name it, as those of a snapshot."""
    if loader.quorum.leader_id is None and reader is not None and loader.last_offset < reader.end_offset:
        loader.quorum = attrs.evolve(loader.quorum, leader_id=leader_at(reader, loader.last_offset))
