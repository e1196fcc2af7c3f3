"""A broker of a real cluster: it replicates and joins ISRs, and serves nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from kraftlake.image import Endpoint
from kraftlake.protocol import (
    Abort,
    Address,
    NodeConnector,
    NodeError,
    ObservedLog,
    OffsetAndEpoch,
    QuorumObserver,
    SnapshotNeededError,
    connector_of,
    parse_addresses,
)
from kraftlake.replay import Patience
from kraftlake.replica_manager import LifecycleState
from kraftlake.runtime import Clock, KraftlakeError, SystemClock, get_logger
from kraftlake.server.broker.broker import Broker
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_listener import BrokerListener
from kraftlake.server.broker.config_changes import changes_configs_of
from kraftlake.server.broker.config_descriptions import with_own_configs
from kraftlake.server.broker.coordinator_lists import list_coordinated
from kraftlake.server.broker.directories import describe_log_dirs
from kraftlake.server.broker.neighbours import Neighbours, listeners_of_others

_LEAVES_WITHIN_SECONDS: Final = 300.0
"""How long a controlled shutdown may take."""
_QUORUM_ANSWERS_WITHIN_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_LARGEST_BATCH: Final = 100 * 1024 * 1024
_PROTOCOLS: Final = {(False, False): 0, (True, False): 1, (False, True): 2, (True, True): 3}
"""Kafka's numbers of PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL, by TLS and SASL."""


class BrokerEndedError(KraftlakeError):
    """The broker has ended although nobody asked it to."""


class BrokerServer:
    """One process of a broker, from `run` until `stop` is set; `cut_short` ends its controlled shutdown, too.

    It observes the quorum, registers, recovers its logs with the first image, asks to be unfenced, and follows what it
    is told to. Elected, it leaves in a controlled way, see `Leaderships`. Source: kafka.server.BrokerServer.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        stop: threading.Event,
        cut_short: threading.Event | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._stop = stop
        self._cut_short = cut_short or threading.Event()
        self._clock = clock or SystemClock()
        self._ended: str | None = None
        """Why it ends although nobody asked it to."""
        self._log = get_logger(__name__).bind(broker_id=config.broker_id)
        connector = connector_of(config.command_config, tell=self._log.warning)
        largest = config.replication.replica_fetch_response_max_bytes + _LARGEST_BATCH
        self._connect = NodeConnector(config=connector.config, max_response_bytes=largest)
        self._addresses = parse_addresses(config.bootstrap)
        self._broker: Broker | None = None
        self._neighbours: Neighbours | None = None
        self.listener = BrokerListener(
            config.listener.host, config.listener.port, self._neighbours_to_ask, self._controllers_to_ask,
            self._own, amend=self._with_own_configs,
        )  # fmt: skip

    @property
    def _security_protocol(self) -> int:
        config = self._connect.config
        return _PROTOCOLS[config.tls is not None, config.sasl is not None]

    def _neighbours_to_ask(self) -> list[Address] | None:
        """None before there is an image, and where clients use TLS or SASL: no neighbour can be asked for them."""
        is_plain = self._security_protocol == 0
        return self._neighbours.addresses() if is_plain and self._neighbours is not None else None

    def _controllers_to_ask(self, frame: bytes) -> list[Address] | None:
        """None for a request that is for no controller."""
        if self._broker is None or not changes_configs_of(frame, self._config.broker_id):
            return None
        return [] if self._broker.controller is None else [self._broker.controller]

    def _own(self, frame: bytes) -> bytes | None:
        """The answer to a question about what this broker itself has or coordinates; None for every other request.

        Nobody but a broker that knows its users can tell who may ask for directories: while there are ACLs, nobody may.
        """
        broker = self._broker
        if broker is None:
            return None
        allowed, cordoned = not broker.cache.image.acls.acls, self._config.cordoned_log_dirs
        return describe_log_dirs(frame, broker.logs, cordoned=cordoned, is_allowed=allowed) or list_coordinated(
            frame, lambda topic: any(one.topic_partition.topic == topic for one in broker.manager.leader_partitions())
        )

    def _with_own_configs(self, frame: bytes, answer: bytes) -> bytes:
        assert self._broker is not None, "neighbours are known by the image"
        return with_own_configs(frame, answer, self._config, self._broker.cache.image.configs)

    def run(self) -> None:
        """Be a broker until `stop` is set.

        Raises NodeError where no controller answers at the start, UsageError for a log directory that can't be this
        broker's, KafkaStorageError where none can be used, EnvironmentFaultError where the listener can't be opened,
        BrokerEndedError where the broker has ended by itself.
        """
        config = self._config
        with ExitStack() as stack:
            cluster_id = self._cluster_id()
            if cluster_id is None:
                return
            stack.callback(self.listener.close)
            self.listener.start()
            endpoint = Endpoint(
                host=config.listener.host, port=self.listener.port, security_protocol=self._security_protocol
            )
            broker = Broker(
                config, cluster_id=cluster_id, listeners={config.listener.name: endpoint}, connect=self._connect,
                clock=self._clock, end=self.end,
            )  # fmt: skip
            stack.callback(broker.close)
            self._broker = broker
            self._neighbours = Neighbours(config.broker_id, config.listener.name, lambda: broker.cache.image)
            self._live(broker, cluster_id)
        if self._ended is not None:
            raise BrokerEndedError(f"Broker {config.broker_id} has ended: {self._ended}.")

    def _cluster_id(self) -> str | None:
        """The id of the quorum's cluster, which has to be the configured one where there is one; None after `stop`."""
        patience = Patience(wait=self._stop.wait, tell=self._log.warning, limit=_QUORUM_ANSWERS_WITHIN_SECONDS)
        with (
            self._abort_at_stop() as abort,
            QuorumObserver(
                self._addresses,
                connect=lambda address: self._connect(address, abort=abort),
                cluster_id=self._config.cluster_id,
            ) as observer,
        ):
            while not self._stop.is_set():
                try:
                    _reach(observer)
                except NodeError as fault:
                    if not self._stop.is_set():
                        patience.failed(fault)
                else:
                    patience.succeeded()
                    return observer.cluster_id
        return None

    @contextmanager
    def _abort_at_stop(self) -> Iterator[Abort]:
        """An abort of connections that is set when `stop` is."""
        abort, done = Abort(), threading.Event()

        def watch() -> None:
            while not done.wait(_LOOK_SECONDS):
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

    def _live(self, broker: Broker, cluster_id: str) -> None:
        config = self._config
        self._log.info(
            "started", cluster_id=cluster_id, log_dirs=list(broker.logs.directories), offline=list(broker.logs.offline),
            listener=f"{config.listener.name}://{config.listener.host}:{self.listener.port}",
            note="a partition that this broker leads is unavailable: put it last among the replicas",
        )  # fmt: skip
        broker.start()
        if self._wait(broker, lambda: broker.lifecycle.state >= LifecycleState.RECOVERY):
            broker.install()
            if self._wait(broker, lambda: broker.publisher.first_publish_done):
                self._log.info("logs_loaded", logs=len(broker.logs.logs()), strays=broker.logs.stray_folders)
                self._check_listener(broker)
                if self._ended is None:
                    broker.lifecycle.set_ready_to_unfence()
                    self._wait(broker, lambda: False)
        self._leave(broker)

    def _check_listener(self, broker: Broker) -> None:
        """End before it is unfenced where it could reach no leader: nobody has a listener of the name."""
        name = self._config.listener.name
        others = listeners_of_others(broker.cache.image, self._config.broker_id)
        if others and name not in others:
            theirs = ", ".join(sorted(others))
            self.end(f"no other broker has a listener {name} (they have {theirs}): give --listener the name of one")

    def _wait(self, broker: Broker, done: Callable[[], bool]) -> bool:
        """Wait; returns False where the broker is to end before `done`."""
        while True:
            if broker.lifecycle.state is LifecycleState.SHUTTING_DOWN:
                self.end(broker.lifecycle.fault or "the controller has let it shut down")
            if broker.loader.stopped is not None:
                self.end(f"the metadata log can't be replayed: {str(broker.loader.stopped).rstrip('.')}")
            if self._ended is not None or self._stop.is_set():
                return False
            if done():
                return True
            self._stop.wait(_LOOK_SECONDS)

    def _leave(self, broker: Broker) -> None:
        """Controlled shutdown, as far as the controller answers."""
        if broker.leaderships.alone:
            self._log.warning("leaves_unavailable", partitions=[str(name) for name in broker.leaderships.alone])
        broker.manager.begin_controlled_shutdown()
        broker.lifecycle.begin_controlled_shutdown()
        until = time.monotonic() + _LEAVES_WITHIN_SECONDS
        while (
            broker.lifecycle.await_state(LifecycleState.SHUTTING_DOWN, _LOOK_SECONDS)
            is not LifecycleState.SHUTTING_DOWN
        ):
            if self._cut_short.is_set():
                self.end("a second signal has cut its controlled shutdown short, so it may still be in ISRs")
                return
            if time.monotonic() >= until:
                self._log.warning("shuts_down_without_the_controllers_leave", waited_s=_LEAVES_WITHIN_SECONDS)
                return

    def end(self, why: str) -> None:
        """End the broker; `why` is told by `run`."""
        self._ended = self._ended or why


def _reach(observer: QuorumObserver) -> None:
    """Ask the leader for what a broker asks it for. Raises as `QuorumObserver.fetch`."""
    with suppress(SnapshotNeededError):
        observer.fetch(ObservedLog(OffsetAndEpoch(offset=0, epoch=0)), wait_ms=0)
