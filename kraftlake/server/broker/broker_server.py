"""A broker of a lake's cluster: leads, follows, and serves clients. Source: kafka.server.BrokerServer."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Final

import attrs

from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.controller.quorum.bootstrap import open_controlled
from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_queue import KafkaEventQueue
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.broker.broker import Broker
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_config_handler import reconfigure_listener
from kraftlake.server.broker.broker_life import BrokerLife
from kraftlake.server.broker.lake_metadata_feed import LakeMetadataFeed
from kraftlake.server.broker.serving.apis import broker_handlers
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.broker.serving.producer_ids import ProducerIdManager, allocated_by
from kraftlake.server.quotas.quota_managers import QuotaManagers
from kraftlake.server.quotas.quota_metrics import register_broker_quotas
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Dispatcher
from kraftlake.server.requests.listener import RequestListener, end_points
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.tokens import SECRET_KEY
from kraftlake.server.requests.versions_answers import NodeFeatures

_FORWARDING_MS: Final = 60_000
"""The maximum time a client's request waits for an active controller. Source: kafka.server.BrokerServer."""


class BrokerServer(BrokerLife):
    """A broker that tails the log of `config.lake`, and answers producers, consumers, followers and administrators.

    The listener answers from the first image on; until then connections are closed.
    """

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
        assert config.lake is not None, "a broker without a lake is a ReplicaServer"
        self._lake = config.lake
        self.broker: Broker | None = None
        """The broker; None before its creation."""
        self.users = LoginUsers(config.value(SECRET_KEY))
        """The users who can log in."""
        self.quotas = QuotaManagers(config.value, self._clock)
        """The quotas of the broker's clients."""
        self.listeners = [
            RequestListener(
                one.name, one.host, one.port, self._handle, limits=config.limits(one.name),
                security=config.security(one.name), users=self.users, rates=self.quotas.connections, clock=self._clock,
            )
            for one in config.listeners
        ]  # fmt: skip
        """The listeners, the one between brokers first."""

    def _open(self, closing: ExitStack) -> Broker | None:
        """Create the broker.

        Raises LakeError if the path holds no lake, or a lake that no kraftlake controller writes.
        """
        config = self._config
        log = open_controlled(self._lake)
        for listener in self.listeners:
            closing.callback(listener.close)
            listener.start()
        feed = LakeMetadataFeed(log, self._clock, self.end, listener=config.controller_listener)
        broker = Broker(
            config, cluster_id=log.cluster_id or "", listeners=end_points(config.advertised, self.listeners),
            followers=(self.quotas.quotas, *self.users.publishers),
            to_brokers=self._to_brokers, to_controllers=self._to_controllers,
            feed=feed, controllers=feed.controllers, clock=self._clock, end=self.end,
        )  # fmt: skip
        closing.callback(broker.close)
        self.broker = broker
        register_broker_quotas(self.registry, self.quotas)
        for listener in self.listeners:
            broker.settings.add(reconfigure_listener(listener))
        expirations = KafkaEventQueue(self._clock, "expiration-reaper")
        closing.callback(expirations.close)
        ExpirationReaper(broker.delayed, expirations)
        ids = broker.to_controller("producer-ids")
        self._producer_ids = ProducerIdManager(
            allocated_by(ids, config.broker_id, lambda: broker.lifecycle.broker_epoch)
        )
        self._forwarding = ForwardingManager(broker.to_controller("forwarding", _FORWARDING_MS).ask)
        for listener in self.listeners:
            closing.callback(listener.close)  # before the logs are, to which a request in hand may append
        self._log.info(
            "started", cluster_id=broker.cluster_id, log_dirs=list(broker.logs.directories),
            offline=list(broker.logs.offline),
            listeners=[
                str(attrs.evolve(one, port=bound.port))
                for one, bound in zip(config.listeners, self.listeners, strict=True)
            ],
        )  # fmt: skip
        return broker

    def _loaded(self, broker: Broker) -> None:
        """Begin to answer, since the first image is available."""
        self.dispatcher = self._dispatcher_of(broker)
        self._producer_ids.prefetch()  # an idempotent producer need not wait for the first block

    def _dispatcher_of(self, broker: Broker) -> Dispatcher:
        config = self._config
        context = ServingContext(
            broker_id=config.broker_id, cluster_id=broker.cluster_id, cache=broker.cache, manager=broker.manager,
            authorization=Authorization(broker.authorizer),
        )  # fmt: skip
        slots = config.replication.max_incremental_fetch_session_cache_slots
        handlers = broker_handlers(
            context, config, server=RequestServer(broker.manager, broker.delayed),
            sessions=FetchManager(FetchSessionCache(self._clock, slots)), forwarding=self._forwarding,
            producer_ids=self._producer_ids, leader_quota=broker.leader_quota, logs=broker.logs,
            cordoned=lambda: broker.cordoned_log_dirs,
        )  # fmt: skip

        def features() -> NodeFeatures:
            finalized = broker.cache.features()
            return NodeFeatures(supported=SUPPORTED, finalized=finalized.levels, epoch=finalized.epoch)

        return Dispatcher(handlers, features=features, quotas=self.quotas, on_fault=self._log_fault)
