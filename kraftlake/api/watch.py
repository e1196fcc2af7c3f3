"""The events of a source that grows, as they are committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs
import pyarrow.compute as pc

from kraftlake.api.events import rows_of
from kraftlake.image.cluster_counts import ClusterCounts
from kraftlake.image.cluster_health import HEALTH_COUNTS, ClusterHealth
from kraftlake.replay.loader.quorum_state import leader_at
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.replay_base import check_unbroken
from kraftlake.tables.events.delta_events import DeltaEvents
from kraftlake.tables.events.events_table import EVENTS
from kraftlake.tables.metrics.cluster_counts import CLUSTER_COUNTS, COUNTS, ClusterCounter
from kraftlake.tables.metrics.count_changes import CountChanges

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.records.batch import RecordBatch
    from kraftlake.replay.live.open_live import LiveLog
    from kraftlake.replay.loader.manifest import SkippedRecord
    from kraftlake.replay.log.delta_chunk import DeltaChunk


@attrs.frozen(kw_only=True)
class WatchState:
    """The state after a step: of the cluster at `offset`, the last offset that was replayed.

    `leader` leads the quorum in `epoch`, None where the log does not name it; `timestamp` is that of the offset's batch
    in epoch milliseconds, -1 for none. The records from `offset` + 1 up to `seen_to` exist but are not known to be
    committed. `trouble` is a sentence while a temporary error prevents events.
    """

    leader: int | None
    epoch: int
    offset: int
    timestamp: int
    counts: ClusterCounts
    seen_to: int
    trouble: str | None
    health: ClusterHealth = ClusterHealth()


class Watch:
    """The events of a log from an offset on, then each as it is committed; the same as in `Source.events` of the whole.

    Iteration yields a dict of the table's columns for each event, and waits for the next one; `step` returns the
    present ones. Only the newest image is kept, and nothing of the log: a step costs as much as the records that it
    reads. For one thread; `close`, or a `with` statement, ends the watch. Raises, one sentence each, the errors of
    replaying a record, and those of `LiveLog.step` where the source is gone.
    """

    def __init__(
        self,
        live: LiveLog,
        first: int | None,
        *,
        cluster_id: str | None = None,
        show_secrets: bool = False,
        lenient: bool = False,
        of_brokers: frozenset[int] | None = None,
        poll: float = 0.5,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Initialize at the events of the offset `first`; None means from the next committed record on.

        `sleep` waits for a number of seconds between two steps of the iteration. Other options as for `Source.watch`.
        """
        reader, self._live = live.reader, live
        end = reader.end_offset
        self._from = end if first is None else first
        begin = min(self._from, end)
        self._replay = LogReplay(lenient=lenient)
        at = self._replay.begin_at(reader, begin - 1, cluster_id=cluster_id)
        at = attrs.evolve(at, image=attrs.evolve(at.image, provenance=self._replay.last))
        self._leader = None if self._replay.quorum.leader_id is not None else leader_at(reader, begin - 1)
        self._counter = ClusterCounter(at.image)
        self._events = DeltaEvents(at, show_secrets=show_secrets, of_brokers=of_brokers)
        self._backlog: Iterator[Iterator[DeltaChunk]] = iter(())
        if begin < end:
            if not lenient:
                check_unbroken(reader, begin, end - 1)
            self._backlog = self._replay.steps(reader, end - 1)
        self._poll, self._sleep = poll, sleep
        self.has_more = True
        """Whether the newest step has read a batch, so that the next one should come at once."""

    @property
    def image(self) -> MetadataImage:
        """The newest image."""
        return self._replay.image

    @property
    def state(self) -> WatchState:
        """The state after the last step."""
        at, leader = self._replay.last, self._replay.quorum.leader_id
        counts = dict(zip(COUNTS, self._counter.counts.tolist(), strict=True))
        return WatchState(
            leader=self._leader if leader is None else leader,
            epoch=at.epoch,
            offset=at.offset,
            timestamp=at.timestamp,
            counts=ClusterCounts(**{name: counts[name] for name in CLUSTER_COUNTS}),
            seen_to=self._live.seen_to,
            trouble=self._live.trouble,
            health=ClusterHealth(**{name: counts[name] for name in HEALTH_COUNTS}),
        )

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that a lenient watch left out."""
        return self._replay.skipped

    def step(self) -> Iterator[pa.Table]:
        """The events of the next batches, as tables of `events/`; does not wait, and may yield none."""
        for chunk in self._next_chunks():
            self._counter.take(CountChanges.of_chunk(chunk), chunk.others, with_first=False)
            rows = self._events.take(chunk).rows().cast(EVENTS.schema)
            yield rows.filter(pc.field("offset") >= self._from)

    def _next_chunks(self) -> Iterator[DeltaChunk]:
        held = next(self._backlog, None)
        self.has_more = held is not None
        return self._replay.take_parts(self._next_batches()) if held is None else held

    def _next_batches(self) -> Iterator[RecordBatch]:
        for batch in self._live.step():
            self.has_more = True
            yield batch

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict of the table's columns; waits for the next one."""
        while True:
            for table in self.step():
                yield from rows_of(table)
            if not self.has_more:
                self._sleep(self._poll)

    def close(self) -> None:
        """Release the resources of the source."""
        self._live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
