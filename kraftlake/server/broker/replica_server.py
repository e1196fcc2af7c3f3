"""A broker of a KRaft cluster: replicates and joins ISRs, and serves no clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import attrs

from kraftlake.image.endpoint import Endpoint
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address, parse_addresses
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.broker.broker import Broker
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_life import LOOK_SECONDS, BrokerLife
from kraftlake.server.broker.broker_listener import BrokerListener
from kraftlake.server.broker.config_descriptions import with_own_configs
from kraftlake.server.broker.coordinator_lists import list_coordinated
from kraftlake.server.broker.directories import describe_log_dirs
from kraftlake.server.broker.metadata_feed import MetadataFeed
from kraftlake.server.broker.refusals import changes_configs_of
from kraftlake.server.broker.serving_brokers import ServingBrokers, listeners_of_others

_QUORUM_ANSWERS_WITHIN_SECONDS: Final = 60.0


class ReplicaServer(BrokerLife):
    """A broker of a KRaft cluster, which observes the quorum; once elected, it leaves, see `LedPartitions`."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        stop: threading.Event,
        cut_short: threading.Event | None = None,
        clock: Clock | None = None,
        metrics: MetricsAddress | None = None,
    ) -> None:
        super().__init__(config, stop=stop, cut_short=cut_short, clock=clock, metrics=metrics)
        self._addresses = parse_addresses(config.bootstrap)
        self._broker: Broker | None = None
        self._brokers: ServingBrokers | None = None
        self.listener = BrokerListener(
            config.listener.host, config.listener.port, self._serving_brokers, self._controllers_for,
            self._own, amend=self._with_own_configs,
        )  # fmt: skip

    @property
    def _security_protocol(self) -> SecurityProtocol:
        config = self._to_controllers.config
        return SecurityProtocol.of(tls=config.tls is not None, sasl=config.sasl is not None)

    def _serving_brokers(self) -> list[Address] | None:
        """Return the serving brokers to query.

        None before the first image, and if clients use TLS or SASL, which no other broker can take over.
        """
        is_plain = self._security_protocol is SecurityProtocol.PLAINTEXT
        return self._brokers.addresses() if is_plain and self._brokers is not None else None

    def _controllers_for(self, frame: bytes) -> list[Address] | None:
        """Return the controllers to query; None for a request that is not for controllers."""
        if self._broker is None or not changes_configs_of(frame, self._config.broker_id):
            return None
        return [] if self._broker.controller is None else [self._broker.controller]

    def _own(self, frame: bytes) -> bytes | None:
        """The answer to a request about this broker's own directories, groups or transactions.

        None for every other request. Only a broker that authenticates users can authorize a request for directories:
        while ACLs exist, every such request is refused.
        """
        broker = self._broker
        if broker is None:
            return None
        allowed, cordoned = not broker.cache.image.acls.acls, broker.cordoned_log_dirs
        return describe_log_dirs(frame, broker.logs, cordoned=cordoned, is_allowed=allowed) or list_coordinated(
            frame, lambda topic: any(one.topic_partition.topic == topic for one in broker.manager.leader_partitions())
        )

    def _with_own_configs(self, frame: bytes, answer: bytes) -> bytes:
        assert self._broker is not None, "serving brokers are known by the image"
        return with_own_configs(frame, answer, self._config, self._broker.cache.image.configs)

    def _open(self, closing: ExitStack) -> Broker | None:
        """Create the broker; raises NodeError if no controller answers at the start."""
        config = self._config
        cluster_id = self._cluster_id()
        if cluster_id is None:
            return None
        closing.callback(self.listener.close)
        self.listener.start()
        endpoint = Endpoint(
            host=config.listener.host, port=self.listener.port, security_protocol=self._security_protocol
        )
        abort = Abort()
        observer = QuorumObserver(
            self._addresses, connect=lambda address: self._to_controllers(address, abort=abort), cluster_id=cluster_id
        )
        broker = Broker(
            config, cluster_id=cluster_id, listeners={config.listener.name: endpoint},
            to_brokers=self._to_brokers, to_controllers=self._to_controllers,
            feed=MetadataFeed(observer, self.end, abort), controllers=lambda: self._addresses, clock=self._clock,
            end=self.end,
        )  # fmt: skip
        closing.callback(broker.close)
        self._broker = broker
        self._brokers = ServingBrokers(config.broker_id, config.listener.name, lambda: broker.cache.image)
        self._log.info(
            "started", cluster_id=cluster_id, log_dirs=list(broker.logs.directories), offline=list(broker.logs.offline),
            listener=str(attrs.evolve(config.listener, port=self.listener.port)),
            note="a partition that this broker leads is unavailable: put it last among the replicas",
        )  # fmt: skip
        return broker

    def _loaded(self, broker: Broker) -> None:
        self._check_listener(broker)

    def _cluster_id(self) -> str | None:
        """Return the quorum's cluster id, which must match the configured one, if any; None after `stop`."""
        retries = RetryPolicy(wait=self._stop.wait, report=self._log.warning, limit=_QUORUM_ANSWERS_WITHIN_SECONDS)
        with (
            self._abort_at_stop() as abort,
            QuorumObserver(
                self._addresses,
                connect=lambda address: self._to_controllers(address, abort=abort),
                cluster_id=self._config.cluster_id,
            ) as observer,
        ):
            while not self._stop.is_set():
                try:
                    _reach(observer)
                except NodeError as fault:
                    if not self._stop.is_set():
                        retries.failed(fault)
                else:
                    retries.succeeded()
                    return observer.cluster_id
        return None

    @contextmanager
    def _abort_at_stop(self) -> Iterator[Abort]:
        """Return an abort of connections that is set when `stop` is."""
        abort, done = Abort(), threading.Event()

        def watch() -> None:
            while not done.wait(LOOK_SECONDS):
                if self._stop.is_set():
                    abort.set()
                    return

        thread = threading.Thread(target=watch, name="first-contact-stop", daemon=True)
        thread.start()
        try:
            yield abort
        finally:
            done.set()
            thread.join()

    def _check_listener(self, broker: Broker) -> None:
        """End the broker before it is unfenced if no leader is reachable: no other broker has the named listener."""
        name = self._config.listener.name
        others = listeners_of_others(broker.cache.image, self._config.broker_id)
        if others and name not in others:
            theirs = ", ".join(sorted(others))
            self.end(f"no other broker has a listener {name} (they have {theirs}): give --listener the name of one")


def _reach(observer: QuorumObserver) -> None:
    """Send the leader the requests that a broker needs. Raises as `QuorumObserver.fetch`."""
    with suppress(SnapshotNeededError):
        observer.fetch(ObservedLog(OffsetAndEpoch(offset=0, epoch=0)), wait_ms=0)
