"""The events of a source that grows, as they are committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from kraftlake.api.events import rows_of
from kraftlake.publisher import ControllerMetadataMetrics
from kraftlake.replay import ChangeFold, check_unbroken, leader_at, readable_batches
from kraftlake.tables import event_tables

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.image import ClusterCounts, MetadataImage
    from kraftlake.records.batch import RecordBatch
    from kraftlake.replay import LiveLog, Published, SkippedRecord

_BATCHES: Final = 256
"""The most batches of a step through what the log held at the beginning."""


@attrs.frozen(kw_only=True)
class WatchState:
    """What is known after a step: the state of the cluster at `offset`, the last one that was replayed.

    `leader` leads the quorum in `epoch`, None where the log does not tell; `timestamp` is that of the offset's batch
    in epoch milliseconds, -1 for none. The records from `offset` + 1 up to `seen_to` are there but not known to be
    committed. `trouble` is a sentence while nothing comes because of something that may pass.
    """

    leader: int | None
    epoch: int
    offset: int
    timestamp: int
    counts: ClusterCounts
    seen_to: int
    trouble: str | None


class Watch:
    """Events of a log from an offset on, then each as it is committed: those that `Source.events` gives of the whole.

    Iterating gives a dict of the table's columns an event, and waits for the next one; `step` gives what there is.
    The newest image is kept and nothing of the log: a step costs as much as what it reads. For one thread; `close`, or
    a `with` statement, ends it. Raises, one sentence each, what the replay of a record raises, and what `LiveLog.step`
    raises where the source is gone.
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
        """Begin with the events of the offset `first`, None for what is committed from now on.

        `sleep` waits for a number of seconds between two steps of the iteration. Other options as for `Source.watch`.
        """
        reader, self._live = live.reader, live
        end = reader.end_offset
        self._from = end if first is None else first
        begin = min(self._from, end)
        self._changes = ChangeFold.after(reader, begin - 1, lenient=lenient, cluster_id=cluster_id)
        loader = self._changes.loader
        self._leader = loader.quorum.leader_id
        if self._leader is None:
            self._leader = leader_at(reader, begin - 1)
        self._metrics = ControllerMetadataMetrics(loader.image)
        self._backlog: Iterator[RecordBatch] | None = None
        if begin < end:
            if not lenient:
                check_unbroken(reader, begin, end - 1)
            self._backlog = readable_batches(reader, begin, end - 1, loader.lost)
        self._kept: dict[str, Any] = {"show_secrets": show_secrets, "of_brokers": of_brokers}
        self._poll, self._sleep = poll, sleep
        self.has_more = True
        """Whether the newest step has read a batch, so that the next one should come at once."""

    @property
    def image(self) -> MetadataImage:
        """The newest image."""
        return self._changes.loader.image

    @property
    def state(self) -> WatchState:
        """The state after the last step."""
        at = self._changes.loader.provenance
        return WatchState(
            leader=self._leader,
            epoch=at.epoch,
            offset=at.offset,
            timestamp=at.timestamp,
            counts=self._metrics.counts,
            seen_to=self._live.seen_to,
            trouble=self._live.trouble,
        )

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that a lenient watch left out."""
        return self._changes.loader.skipped

    def step(self) -> Iterator[pa.Table]:
        """The events of the next batches, as tables of `events/`; does not wait, and may give nothing."""
        return event_tables(self._replayed(), after=self._from - 1, **self._kept)

    def _replayed(self) -> Iterator[Published]:
        self.has_more = False
        for batch in self._next_batches():
            self.has_more = True
            for change in self._changes.take(batch):
                self._metrics.on_metadata_update(change.delta, change.image, change.manifest)
                yield change
            leader = self._changes.loader.quorum.leader_id
            self._leader = self._leader if leader is None else leader

    def _next_batches(self) -> Iterator[RecordBatch]:
        if self._backlog is not None:
            for number, batch in enumerate(self._backlog, 1):
                yield batch
                if number == _BATCHES:
                    return
            self._backlog = None
        yield from self._live.step()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict of the table's columns; waits for the next one."""
        while True:
            for table in self.step():
                yield from rows_of(table)
            if not self.has_more:
                self._sleep(self._poll)

    def close(self) -> None:
        """Release what the source holds open."""
        self._live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
