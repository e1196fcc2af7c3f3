"""Creates the fetchers of a broker whose leaders are reached over the network: each a state machine with a thread."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
from kraftlake.replica_manager.fetch.log_dir_fetcher import LogDirFetcher
from kraftlake.replica_manager.fetch.remote_end_point import RemoteLeaderEndPoint
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.runtime.fault_handler import FaultHandler


@attrs.frozen(kw_only=True)
class FetcherThreads:
    """The two `FetcherFactory` functions of a replica manager: for other brokers' leaders, and for log directories.

    `manager` returns the replica manager, whose constructor needs both. Source: kafka.server.ReplicaFetcherManager,
    kafka.server.ReplicaAlterLogDirsManager.
    """

    manager: Callable[[], ReplicaManager]
    connect: NodeConnector
    fault_handler: FaultHandler
    follower_quota: ReplicationQuota | None = None
    log_dirs_quota: ReplicationQuota | None = None

    def of_leader(self, fetcher_id: int, leader: BrokerEndPoint) -> ReplicaFetcherThread:
        """Create a fetcher of another broker's partitions."""
        manager = self.manager()
        context = manager.context
        end_point = RemoteLeaderEndPoint(
            leader,
            self.connect,
            replica_id=context.broker_id,
            timeout_s=context.config.replica_socket_timeout_ms / 1000,
        )
        return self._thread(ReplicaFetcher(fetcher_id, end_point, manager, quota=self.follower_quota))

    def of_log_dirs(self, fetcher_id: int, leader: BrokerEndPoint) -> ReplicaFetcherThread:
        """Create a fetcher that moves replicas between log directories; the leader is this broker."""
        return self._thread(LogDirFetcher(fetcher_id, leader, self.manager(), quota=self.log_dirs_quota))

    def _thread(self, fetcher: ReplicaFetcher) -> ReplicaFetcherThread:
        backoff_ms = self.manager().context.config.replica_fetch_backoff_ms
        return ReplicaFetcherThread(fetcher, backoff_ms=backoff_ms, fault_handler=self.fault_handler)
