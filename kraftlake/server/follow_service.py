"""Follows many clusters in one process: a thread per cluster, one for the upkeep of lakes, one for the metrics."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.runtime.metrics_server import MetricsServer
from kraftlake.server.cluster_follower import ClusterFollower
from kraftlake.server.follow_config import FollowConfig
from kraftlake.server.follow_metrics import register_metrics
from kraftlake.server.lake_worker import LakeWorker

_UPKEEP_SECONDS = 60.0


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
        self._followers = [ClusterFollower(cluster, stop=stop, clock=clock) for cluster in config.clusters]
        self._worker = LakeWorker(self._followers, stop=stop, clock=clock, interval=upkeep_seconds)
        register_metrics(self.registry, [follower.status for follower in self._followers], clock)
        self._log = get_logger(__name__)

    def run(self) -> None:
        """Follow until `stop` is set, then finish the work in progress.

        Raises EnvironmentFaultError if the metrics can't be served; no following has begun then.
        """
        with ExitStack() as stack:
            metrics, url = self._config.metrics, None
            if metrics is not None:
                server = MetricsServer(self.registry, host=metrics.host, port=metrics.port, insecure=metrics.insecure)
                url = stack.enter_context(server).url
            self._log.info("started", clusters=len(self._followers), metrics=url)
            work = {f"kraftlake-follow-{follower.config.name}": follower.run for follower in self._followers}
            work["kraftlake-lakes"] = self._worker.run
            threads = [threading.Thread(target=run, name=name) for name, run in work.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self._log.info("ended")
