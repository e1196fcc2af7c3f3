"""Follows many clusters in one process: a thread per cluster, one for the upkeep of lakes, one for the metrics."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext

from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.health import Health
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.server.cluster_follower import ClusterFollower
from kraftlake.server.cluster_status import FollowState
from kraftlake.server.follow_config import FollowConfig
from kraftlake.server.follow_doctor import FollowDoctor, register_doctor
from kraftlake.server.follow_metrics import register_metrics
from kraftlake.server.lake_meters import LakeMeters
from kraftlake.server.lake_worker import LakeWorker

_UPKEEP_SECONDS = 60.0
_DELIVERY_SECONDS = 3.0
_MANY = 100
_QUIET_SECONDS = 1.0
"""The pause after no-op records from _MANY clusters on: less CPU at rest, for changes that are seen a second later."""
_NAMED = 5
"""The number of clusters that an answer on health names."""


class FollowService:
    """Keeps the lakes of a configuration up to date with their quorums until `stop` is set.

    The client of a quorum blocks, so each cluster has a thread: its network, disk and faults do not affect other
    clusters.
    """

    def __init__(
        self,
        config: FollowConfig,
        *,
        stop: threading.Event,
        clock: Clock | None = None,
        upkeep_seconds: float = _UPKEEP_SECONDS,
    ) -> None:
        clock = clock or SystemClock()
        self.registry = MetricsRegistry()
        self._config = config
        pause = _QUIET_SECONDS if len(config.clusters) >= _MANY else 0.0
        self._followers = [
            ClusterFollower(cluster, stop=stop, clock=clock, quiet_pause=pause) for cluster in config.clusters
        ]
        self._stop = stop
        self._threads: list[threading.Thread] = []
        lakes = LakeMeters({cluster.name: cluster.lake for cluster in config.clusters}, clock)
        self._worker = LakeWorker(self._followers, lakes, stop=stop, clock=clock, interval=upkeep_seconds)
        self._notifiers = [] if config.notify is None else config.notify.open()
        self._doctor = FollowDoctor(self._followers, self._notifiers, stop=stop)
        statuses = [follower.status for follower in self._followers]
        lakes.register(self.registry)
        register_metrics(self.registry, statuses, clock)
        register_doctor(self.registry, statuses, self._notifiers)
        self._log = get_logger(__name__)

    def run(self) -> None:
        """Follow until `stop` is set, then finish the work in progress.

        Raises EnvironmentFaultError if the metrics can't be served; no following has begun then.
        """
        with self._serving() as url:
            self._log.info("started", clusters=len(self._followers), metrics=url)
            work = {f"kraftlake-follow-{follower.config.name}": follower.run for follower in self._followers}
            work |= {"kraftlake-lakes": self._worker.run, "kraftlake-doctor": self._doctor.run}
            threads = [threading.Thread(target=run, name=name) for name, run in work.items()]
            notices = [threading.Thread(target=one.run, args=(self._stop,), daemon=True) for one in self._notifiers]
            for thread in (*threads, *notices):
                thread.start()
            self._threads = [*threads, *notices]
            for thread in threads:
                thread.join()
            for notifier, thread in zip(self._notifiers, notices, strict=True):
                notifier.outbox.wake()
                thread.join(_DELIVERY_SECONDS)  # what is cut short is delivered again after the next start
            self._log.info("ended")

    def _serving(self) -> AbstractContextManager[str | None]:
        if self._config.metrics is None:
            return nullcontext()
        from kraftlake.runtime.metrics_server import served  # imports prometheus_client

        return served(self.registry, self._config.metrics, self.health)

    @property
    def health(self) -> Health:
        """Dead with a thread that has ended unasked, unready while a cluster is not followed."""
        return Health(dead=self._dead, unready=self._unready)

    def _dead(self) -> str | None:
        stopped = {
            f"kraftlake-follow-{one.config.name}"
            for one in self._followers
            if one.status.state is FollowState.STOPPED  # for good, which a new start does not change
        }
        ended = [one.name for one in self._threads if not one.is_alive() and one.name not in stopped]
        return f"the thread {ended[0]} has ended" if ended and not self._stop.is_set() else None

    def _unready(self) -> str | None:
        if self._stop.is_set():
            return "it is to end"
        others = [one.status for one in self._followers if one.status.state is not FollowState.FOLLOWING]
        if not others:
            return None
        named = ", ".join(f"{one.name} is {one.state}" for one in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        return f"{len(others)} of {len(self._followers)} clusters are not followed: {named}{more}"
