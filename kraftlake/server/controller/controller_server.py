"""A controller's process: claims the lake's log or follows it, and answers brokers and clients.

Source: kafka.server.ControllerServer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final

import attrs

from kraftlake.controller.cluster.controllers import ControllerRegistrationRequest
from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.controller.quorum.bootstrap import open_controlled
from kraftlake.controller.quorum.embedded import WATCH_SECONDS
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.image.endpoint import Endpoint
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepThread
from kraftlake.protocol.address import Address
from kraftlake.publisher.authorizer import StandardAuthorizer
from kraftlake.publisher.dynamic_configs import ConfigType, DynamicConfigPublisher
from kraftlake.publisher.ignored_configs import IgnoredConfigsPublisher
from kraftlake.publisher.snapshot_generator import LakeSnapshotEmitter, SnapshotGenerator
from kraftlake.records.metadata_records import ControllerEndpoint, ControllerFeature
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.replay.loader.quorum_state import QuorumState, leader_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import LakeError, sentence_of
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.broker.broker_config_handler import BrokerConfigHandler, reconfigure_listener
from kraftlake.server.broker.serving.access import AccessHandlers
from kraftlake.server.broker.serving.configs import DescribeConfigsHandler
from kraftlake.server.controller.access_handlers import ACCESS_HANDLERS
from kraftlake.server.controller.broker_handlers import BROKER_HANDLERS
from kraftlake.server.controller.config_handlers import CONFIG_HANDLERS
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_metrics import register_controller
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.envelope_handler import envelope_handler
from kraftlake.server.controller.fetch_handlers import FetchHandlers
from kraftlake.server.controller.leader_watch import LeaderWatch
from kraftlake.server.controller.partition_handlers import PARTITION_HANDLERS
from kraftlake.server.controller.quorum_handlers import QUORUM_HANDLERS
from kraftlake.server.controller.quorum_view import QuorumView
from kraftlake.server.controller.registrar import Registrar
from kraftlake.server.controller.replica_progress import ReplicaProgress
from kraftlake.server.controller.served_log import ServedLog
from kraftlake.server.controller.token_handlers import TOKEN_HANDLERS
from kraftlake.server.controller.topic_handlers import TOPIC_HANDLERS
from kraftlake.server.lake_meters import LakeMeters
from kraftlake.server.lake_upkeep import LakeUpkeep
from kraftlake.server.node_life import NodeLife
from kraftlake.server.quotas.quota_managers import QuotaManagers
from kraftlake.server.quotas.quota_metrics import register_controller_quotas
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Dispatcher, Handler
from kraftlake.server.requests.handlers import SASL_HANDLERS
from kraftlake.server.requests.listener import RequestListener, end_points
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.tokens import SECRET_KEY

_POLL_SECONDS: Final = 0.005
"""The poll interval for the controller's own image; an active controller acts on a separate, up-to-date image."""
_IDLE_POLL_SECONDS: Final = 0.02
"""The poll interval while nothing changes."""
_LOOK_SECONDS: Final = 0.05
_SEEN_WITHIN_SECONDS: Final = 0.5
_EXEMPT: Final = ("fetch", "fetch_snapshot", "alter_partition", "envelope")
"""The requests of other nodes that no request quota applies to. Source: kafka.server.ControllerApis."""


class ControllerServer(NodeLife):
    """One controller process, from `run` until `stop` is set.

    The controller begins as a standby, which answers NOT_CONTROLLER with the leader, and claims the log when no
    controller writes it.
    """

    def __init__(
        self,
        config: ControllerServerConfig,
        *,
        stop: threading.Event,
        clock: Clock | None = None,
        metrics: MetricsAddress | None = None,
    ) -> None:
        log = get_logger(__name__).bind(controller=config.node_id)
        named, unheeded = f"Controller {config.node_id}", config.without_effect
        super().__init__(named, without_effect=unheeded, stop=stop, clock=clock, log=log, metrics=metrics)
        self._config = config
        self._faults = LoggingFaultHandler("controller")
        self.node: ControllerNode | None = None
        """The controller's parts; None before the start."""
        self.users = LoginUsers(config.settings.value(SECRET_KEY))
        """The users who can log in."""
        self.quotas = QuotaManagers(config.settings.value, self._clock)
        """The quotas of the controller's clients, and of those whose requests brokers forward."""
        self.listeners = [
            RequestListener(
                one.name, one.host, one.port, self._handle, limits=config.limits(one.name),
                security=config.security(one.name), users=self.users, rates=self.quotas.connections, clock=self._clock,
            )
            for one in config.listeners
        ]  # fmt: skip
        """The listeners, in the order of the configuration."""

    def _live(self, closing: ExitStack) -> None:
        """Run a controller.

        Raises LakeError for what is no controlled lake, or where another process is its controller of this id;
        EnvironmentFaultError where a listener can't be opened.
        """
        log = open_controlled(self._config.lake)
        for listener in self.listeners:
            closing.callback(listener.close)
            listener.start()
        if self._is_alone(log):
            self._serve(log, closing)
            self._leave()

    def _is_alone(self, log: MetadataLog) -> bool:
        """Wait until it is certain that no process of this node id leads; False if `stop` is set first.

        Raises LakeError if one leads: that process continues to write in its claimed epoch.
        """
        watched, own_id = MetadataLog.open(log.path), self._config.node_id
        until = self._clock.nanoseconds() + round(WATCH_SECONDS * 1e9)
        while leader_at(LakeReader(watched), watched.end_offset - 1) == own_id:
            epoch, end_offset = watched.epoch, watched.end_offset
            while watched.end_offset == end_offset:  # maintenance, by whomever, leaves it as it was
                if self._clock.nanoseconds() >= until:
                    return True
                if self._stop.wait(_LOOK_SECONDS):
                    return False
                watched.refresh()
            if watched.epoch == epoch:
                raise LakeError(
                    f"Controller {own_id} is active: another process of this id writes to {log.path}. Give another "
                    f"--id."
                )
        return True

    def unready(self) -> str | None:
        """See NodeLife."""
        node = self.node
        if node is None:
            return "it is starting, or waits for the end of another process of its id"
        if node.controller.is_active:
            return None
        if not node.view.published.is_set():
            return "it has not replayed the log yet"
        return "no controller leads the log" if node.view.leader_id < 0 else None

    def _serve(self, log: MetadataLog, stack: ExitStack) -> None:
        config, cluster_id = self._config, log.cluster_id or ""
        view = QuorumView()
        authorizer = None if config.authorizer is None else StandardAuthorizer(config.authorizer)
        controller = QuorumController(log, config.controller(cluster_id, ()), clock=self._clock)
        stack.callback(controller.close)
        node = ControllerNode(
            node_id=config.node_id, cluster_id=cluster_id, controller=controller, view=view,
            authorization=Authorization(authorizer), progress=ReplicaProgress(self._clock),
            listeners=end_points(config.advertised, self.listeners), settings=config.settings.values,
            delete_topic_enable=config.delete_topic_enable, heartbeat_timeout_ms=config.heartbeat_timeout_ms,
        )  # fmt: skip
        served = ServedLog(config.lake, self._clock)
        stack.callback(served.close)
        self.dispatcher = self._dispatcher_of(node, served)
        feed = LakeFeed(
            MetadataLog.open(config.lake), self._clock, self._faults, poll=_POLL_SECONDS, idle_poll=_IDLE_POLL_SECONDS
        )
        limits = (reconfigure_listener(one, of_controller=True) for one in self.listeners)
        settings = DynamicConfigPublisher(
            config.node_id, {ConfigType.BROKER: BrokerConfigHandler(node.static_settings, *limits)}, self._faults
        )
        loader = self._loader(
            node,
            feed,
            [
                view,
                IgnoredConfigsPublisher(config.node_id),
                settings,
                self.quotas.quotas,
                *self.users.publishers,
                *([] if authorizer is None else [authorizer]),
            ],
        )
        stack.callback(loader.close)
        removal = LakeUpkeep(config.lake, clock=self._clock)
        upkeep = UpkeepThread(
            Upkeep(config.lake), due=lambda: controller.is_active, remove=removal.remove_if_due
        )  # fmt: skip
        stack.callback(upkeep.close)
        listener, client = config.between_controllers, config.to_controllers
        registration = self._registration(node.listeners)
        registrar = Registrar(node, registration, listener=listener, client=client, end=self.end)
        stack.callback(registrar.close)
        registrar.start()
        if self._metrics is not None:
            lakes = LakeMeters({config.lake: config.lake}, self._clock)
            lakes.register(self.registry)
            stack.callback(lakes.run_alongside())
        watch = LeaderWatch(node, listener=listener, client=client)
        stack.callback(watch.close)
        watch.start()
        self.node = node
        self._log.info(
            "started", lake=config.lake, cluster_id=cluster_id,
            listeners=[f"{name}://{Address(one.host, one.port)}" for name, one in node.listeners.items()],
        )  # fmt: skip
        self._watch(node, loader, feed)

    def _dispatcher_of(self, node: ControllerNode, served: ServedLog) -> Dispatcher:
        self.fetches = FetchHandlers(node, served)
        commands = {
            **BROKER_HANDLERS, **TOPIC_HANDLERS, **CONFIG_HANDLERS, **PARTITION_HANDLERS, **QUORUM_HANDLERS,
            **ACCESS_HANDLERS, **TOKEN_HANDLERS,
        }  # fmt: skip
        access = AccessHandlers(node, self._config.settings.value(SECRET_KEY))
        handlers = {
            **{name: Handler(begin=partial(begin, node)) for name, begin in commands.items()},
            **self.fetches.handlers(),
            **SASL_HANDLERS,
            "envelope": envelope_handler(node, lambda: dispatcher),
            "describe_configs": Handler(begin=DescribeConfigsHandler(node, node)),
            "describe_user_scram_credentials": Handler(begin=access.scram_credentials),
            "describe_delegation_token": Handler(begin=access.tokens),
        }  # fmt: skip
        handlers |= {name: attrs.evolve(handlers[name], is_exempt=True) for name in _EXEMPT}
        dispatcher = Dispatcher(handlers, features=node.view.features, quotas=self.quotas, on_fault=self._log_fault)
        return dispatcher

    def _loader(self, node: ControllerNode, feed: LakeFeed, publishers: list[MetadataPublisher]) -> MetadataLoader:
        lake, clock, faults = self._config.lake, self._clock, self._faults
        loader = MetadataLoader(clock=clock, fault_handler=faults, high_watermark=lambda: feed.end_at_start)
        emitter = LakeSnapshotEmitter(lake, clock)
        if self._metrics is not None:
            register_controller_quotas(self.registry, self.quotas)
            publishers += register_controller(self.registry, node, loader, emitter, clock)

        def emit(image: MetadataImage, quorum: QuorumState) -> None:
            if node.controller.is_active:  # all controllers share one lake
                emitter.maybe_emit(image, quorum)

        snapshots = SnapshotGenerator(
            emit, clock, faults, policy=self._config.snapshots, quorum=lambda: loader.quorum,
        )  # fmt: skip
        loader.install_publishers([*publishers, snapshots])
        feed.start(loader)
        return loader

    def _registration(self, listeners: Mapping[str, Endpoint]) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._config.node_id,
            incarnation_id=Uuid.random(),
            listeners=tuple(
                ControllerEndpoint(name=name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                for name, one in listeners.items()
            ),
            features=tuple(
                ControllerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in SUPPORTED.items()
            ),
        )

    def _watch(self, node: ControllerNode, loader: MetadataLoader, feed: LakeFeed) -> None:
        """Log each change of the controller's leadership until the controller is to end."""
        logged: tuple[str, Mapping[str, int]] | None = None
        while not self._stop.is_set() and self._ended is None:
            if loader.stopped is not None:
                self.end(f"the metadata log can't be replayed: {sentence_of(loader.stopped).rstrip('.')}")
            elif feed.stopped is not None:
                self.end(f"the lake can't be read: {sentence_of(feed.stopped).rstrip('.')}")
            epoch, leader = node.controller.epoch, node.view.leader
            news: tuple[str, Mapping[str, int]] | None = None
            if epoch >= 0:
                news = ("active", {"epoch": epoch})
            elif node.view.published.is_set() and node.view.leader_id != node.node_id:
                news = ("standby", {"leader": node.view.leader_id, "epoch": leader.epoch})
            if news is not None and news != logged:
                self._log.info(news[0], **news[1])
                logged = news
            self._stop.wait(_LOOK_SECONDS)

    def _leave(self) -> None:
        """Resign when all appended records are durable and answered, and claim no leadership again."""
        assert self.node is not None, "it has started"
        was_active = self.node.controller.is_active
        self.node.controller.close()
        if was_active:
            self._log.info("resigned")
            self.fetches.wake()  # standbys that wait for more learn it by the answer
            if len(self.node.view.image.cluster.controllers) > 1:
                time.sleep(_SEEN_WITHIN_SECONDS)  # others, which were between two fetches, by that to their next one
