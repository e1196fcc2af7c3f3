"""A controller's process until ControllerServer is there."""

from __future__ import annotations

from contextlib import ExitStack

from kraftlake.controller import ControllerConfig, ControllerRegistrationRequest, QuorumController, register_controller
from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.metadata_log import MetadataLog
from kraftlake.records.metadata_records import ControllerEndpoint
from kraftlake.records.uuid import Uuid
from kraftlake.replay import LakeFeed, MetadataLoader
from kraftlake.runtime import LoggingFaultHandler, SystemClock
from kraftlake.server.controller.broker_handlers import broker_handlers
from kraftlake.server.controller.config_handlers import config_handlers
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.envelope_handler import envelope_handler
from kraftlake.server.controller.fetch_handlers import FetchHandlers
from kraftlake.server.controller.partition_handlers import partition_handlers
from kraftlake.server.controller.quorum_handlers import quorum_handlers
from kraftlake.server.controller.quorum_view import QuorumView
from kraftlake.server.controller.replica_progress import ReplicaProgress
from kraftlake.server.controller.served_log import ServedLog
from kraftlake.server.controller.topic_handlers import topic_handlers
from kraftlake.server.requests import dispatcher, handlers
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.listener import RequestListener
from tests.simulation.virtual import threads


class InterimController:
    def __init__(self, config: ControllerConfig, lake, host: str, port: int, *, stop, feed_poll: float) -> None:
        self.config, self.lake, self.host, self.port, self.stop = config, lake, host, port, stop
        self.feed_poll = feed_poll
        self.controller = None

    def run(self) -> None:
        from kraftlake.server.broker import broker_server

        clock, faults = SystemClock(), LoggingFaultHandler("controller")
        with ExitStack() as closing:
            view = QuorumView()
            feed = LakeFeed(MetadataLog.open(self.lake), clock, faults, poll=self.feed_poll)
            loader = MetadataLoader(clock=clock, fault_handler=faults, high_watermark=lambda: feed.end_at_start)
            closing.callback(loader.close)
            loader.install_publishers([view])
            feed.start(loader)
            controller = self.controller = QuorumController(MetadataLog.open(self.lake), self.config)
            closing.callback(controller.close)
            node = ControllerNode(
                node_id=self.config.node_id, cluster_id=self.config.cluster_id, controller=controller, view=view,
                authorization=Authorization(), progress=ReplicaProgress(clock),
            )
            log = ServedLog(self.lake, clock)
            closing.callback(log.close)
            made = {
                **broker_handlers(node), **config_handlers(node), **partition_handlers(node), **quorum_handlers(node),
                **topic_handlers(node), **FetchHandlers(node, log).handlers(),
                "envelope": envelope_handler(node, lambda: served),
            }
            tell = lambda what, fault: faults.handle_fault(what, fault)
            served = dispatcher.Dispatcher(handlers.apis_of(made, tell), features=view.features, tell=tell)
            listener = broker_server.RequestListener("CONTROLLER", self.host, self.port, served.handle)
            listener.start()
            closing.callback(listener.close)
            request = ControllerRegistrationRequest(
                controller_id=self.config.node_id, incarnation_id=Uuid.random(),
                listeners=(ControllerEndpoint(name="PLAINTEXT", host=self.host, port=self.port, security_protocol=0),),
                features=(),
            )
            registered = False
            while not self.stop.is_set():
                mine = view.image.cluster.controllers.get(self.config.node_id)
                if mine is None or mine.incarnation_id != request.incarnation_id:
                    if controller.is_active:
                        controller.submit(lambda state: register_controller(state, request))
                self.stop.wait(5.0)
