"""The metrics and the health of a process that keeps one lake, or its tables, up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import attrs

from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.health import Health
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricName, MetricsRegistry
from kraftlake.server.cluster_status import ClusterStatus, FollowState
from kraftlake.server.follow_metrics import register_following
from kraftlake.server.lake_meters import LakeMeters

if TYPE_CHECKING:
    from kraftlake.records.batch import RecordBatch
    from kraftlake.replay.imports.follow_log import FollowStep
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.tables.catch_up.table_run import RunResult


@attrs.define
class TableUpdates:
    """The updates of derived tables since the start: their number, the time of the last (epoch ms), and the rows."""

    count: int = 0
    last_ms: int = 0
    rows: int = 0


def register_updates(registry: MetricsRegistry, updates: TableUpdates) -> None:
    """Register `kraftlake_tables_…`."""
    for name, text, read in (
        ("updates", "Updates since the start.", lambda: updates.count),
        ("last_update_timestamp_seconds", "When tables were last written, epoch s.", lambda: updates.last_ms / 1000),
        ("rows", "Rows written since the start.", lambda: updates.rows),
    ):
        registry.gauge(MetricName("kraftlake", "tables", name), text, read)


class ObservedLake:
    """What a process reports of its lake, whose name in the label `cluster` is its path or URI.

    The lake is measured from the first step on, which may have made it. Without an address nothing is measured.
    """

    def __init__(self, lake: str, stack: ExitStack, *, is_served: bool) -> None:
        self.registry = MetricsRegistry()
        self.status = ClusterStatus(name=lake)
        self._clock = SystemClock()
        self._meters = LakeMeters({lake: lake}, self._clock)
        self._stack = stack
        self._waits = is_served
        self._unready: str | None = "it has not brought the lake up to date yet"
        self._updates = TableUpdates()

    def follow(self) -> None:
        """Register what a follower of a quorum or a directory reports, and the lake."""
        register_following(self.registry, [self.status], self._clock)
        self._meters.register(self.registry)

    def update_tables(self) -> None:
        """Register what an updater of derived tables reports, and the lake."""
        self._meters.register(self.registry)
        register_updates(self.registry, self._updates)

    @property
    def unready(self) -> str | None:
        """Why the lake is not up to date: one line, None while it is."""
        if self.status.state is FollowState.WAITING:
            return "the quorum can't be reached"
        return self._unready

    def took(self, step: FollowStep) -> None:
        """Take a step of a follower."""
        self.status.end_offset = step.end_offset
        self.status.state = FollowState.FOLLOWING
        self._began()

    def saw(self, step: FollowStep) -> None:
        """Take how far the followed directory goes, committed or not."""
        self.status.seen_to = step.seen_to

    def appended(self, batches: Sequence[RecordBatch]) -> None:
        """Take batches that were appended to the lake."""
        self.status.end_offset = batches[-1].last_offset + 1
        self.status.timestamp = batches[-1].timestamp

    def wrote(self, result: RunResult) -> None:
        """Take an update of derived tables."""
        self._updates.count += 1
        self._updates.last_ms = self._clock.milliseconds()
        self._updates.rows = sum(result.rows.values())
        self._began()

    def waits(self) -> None:
        """Note that the quorum can't be reached."""
        self.status.state = FollowState.WAITING

    def answered(self, high_watermark: int) -> None:
        """Note an answer of the quorum; −1 where its high watermark is not known."""
        status = self.status
        status.fetched_ms = self._clock.milliseconds()
        status.high_watermark = max(status.high_watermark, high_watermark)
        if status.state is FollowState.WAITING:
            status.state = FollowState.STARTING if self._unready else FollowState.FOLLOWING

    def _began(self) -> None:
        self._unready = None
        if self._waits:
            self._waits = False
            self._stack.callback(self._meters.run_alongside())


@contextmanager
def observed_lake(
    lake: str, address: MetricsAddress | None, register: Callable[[ObservedLake], object]
) -> Iterator[ObservedLake]:
    """Serve the metrics of a lake's process within the context; only `register` them without an address.

    Raises EnvironmentFaultError where the address is taken.
    """
    with ExitStack() as stack:
        observed = ObservedLake(lake, stack, is_served=address is not None)
        register(observed)
        if address is not None:
            from kraftlake.runtime.metrics_server import served  # imports prometheus_client

            url = stack.enter_context(served(observed.registry, address, Health(unready=lambda: observed.unready)))
            get_logger(__name__).info("serves_metrics", url=url)
        yield observed
