"""The life of a broker's process: registration, recovery, unfencing and controlled shutdown."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from kraftlake.protocol.node_connector import NodeConnector, connector_of
from kraftlake.replica_manager.lifecycle.broker_lifecycle import LifecycleState
from kraftlake.replica_manager.lifecycle.broker_lifecycle_manager import BrokerLifecycleManager
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.broker.broker import Broker
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_metrics import register_broker
from kraftlake.server.node_life import NodeLife

_LEAVES_WITHIN_SECONDS: Final = 300.0
"""The longest duration of a controlled shutdown."""
UNANSWERED_SECONDS: Final = 4.0
"""The time for which a broker asks for a controlled shutdown where no controller answers."""
LOOK_SECONDS: Final = 0.1
_LARGEST_BATCH: Final = 100 * 1024 * 1024
_UNREADY: Final = {
    LifecycleState.NOT_RUNNING: "it has not found its controllers yet",
    LifecycleState.STARTING: "it catches up with the metadata log",
    LifecycleState.RECOVERY: "it is fenced: it loads its logs, or no controller has unfenced it",
    LifecycleState.PENDING_CONTROLLED_SHUTDOWN: "it leaves by a controlled shutdown",
    LifecycleState.SHUTTING_DOWN: "it has left the cluster",
}


class BrokerLife(NodeLife):
    """One broker process, from `run` until `stop` is set; `cut_short` also ends its controlled shutdown.

    The broker follows the metadata log, registers, recovers its logs with the first image, asks to be unfenced, and
    then applies the metadata. Source: kafka.server.BrokerServer.
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
        log = get_logger(__name__).bind(broker_id=config.broker_id)
        named, unheeded = f"Broker {config.broker_id}", config.without_effect
        super().__init__(named, without_effect=unheeded, stop=stop, clock=clock, log=log, metrics=metrics)
        self._lifecycle: BrokerLifecycleManager | None = None
        self._config = config
        self._cut_short = cut_short or threading.Event()
        if config.serves:
            to_brokers, to_controllers = config.to_brokers, config.to_controllers
        else:
            to_brokers = to_controllers = connector_of(config.command_config, warn=self._log.warning).config
        largest = config.replication.replica_fetch_response_max_bytes + _LARGEST_BATCH
        self._to_brokers = NodeConnector(config=to_brokers, max_response_bytes=largest)
        self._to_controllers = NodeConnector(config=to_controllers, max_response_bytes=largest)

    @abstractmethod
    def _open(self, closing: ExitStack) -> Broker | None:
        """Create the broker and its listener, which `closing` closes; None if `stop` was set meanwhile."""

    def _loaded(self, broker: Broker) -> None:
        """Process the first image, before the broker asks to be unfenced."""

    def _live(self, closing: ExitStack) -> None:
        """Run a broker.

        Raises UsageError for a log directory that can't be this broker's, KafkaStorageError where none can be used,
        EnvironmentFaultError where the listener can't be opened.
        """
        broker = self._open(closing)
        if broker is None:
            return
        self._lifecycle = broker.lifecycle
        register_broker(self.registry, broker, self._clock)
        broker.start()
        if self._wait(broker, lambda: broker.lifecycle.state >= LifecycleState.RECOVERY):
            broker.install()
            if self._wait(broker, lambda: broker.publisher.first_publish_done):
                self._log.info("logs_loaded", logs=len(broker.logs.logs()), strays=broker.logs.stray_folders)
                self._loaded(broker)
                if self._ended is None:
                    broker.lifecycle.set_ready_to_unfence()
                    self._wait(broker, lambda: False)
        self._leave(broker)

    def unready(self) -> str | None:
        """See NodeLife."""
        state = LifecycleState.NOT_RUNNING if self._lifecycle is None else self._lifecycle.state
        return _UNREADY.get(state)

    def _wait(self, broker: Broker, done: Callable[[], bool]) -> bool:
        """Wait for `done`; returns False if the broker is to end first."""
        while True:
            if broker.lifecycle.state is LifecycleState.SHUTTING_DOWN:
                self.end(broker.lifecycle.fault or "the controller has let it shut down")
            if broker.is_replaced:
                self.end(f"another process has registered as broker {self._config.broker_id} after it")
            if broker.loader.stopped is not None:
                self.end(f"the metadata log can't be replayed: {str(broker.loader.stopped).rstrip('.')}")
            if self._ended is not None or self._stop.is_set():
                return False
            if done():
                return True
            self._stop.wait(LOOK_SECONDS)

    def _leave(self, broker: Broker) -> None:
        """Perform a controlled shutdown, as far as the controller answers.

        A broker with an outdated registration skips it. Without `controlled.shutdown.enable` the broker leaves at once,
        and stays the leader until its session ends. So does one that no controller answers, after a few seconds.
        """
        if broker.is_replaced or not self._config.value("controlled.shutdown.enable"):
            return
        if broker.led_partitions.alone:
            self._log.warning("leaves_unavailable", partitions=[str(name) for name in broker.led_partitions.alone])
        broker.manager.begin_controlled_shutdown()
        broker.lifecycle.begin_controlled_shutdown()
        began = time.monotonic()
        while (
            broker.lifecycle.await_state(LifecycleState.SHUTTING_DOWN, LOOK_SECONDS) is not LifecycleState.SHUTTING_DOWN
        ):
            if self._cut_short.is_set():
                self.end("a second signal has cut its controlled shutdown short, so it may still be in ISRs")
                return
            within = _LEAVES_WITHIN_SECONDS if broker.lifecycle.got_shutdown_answer else UNANSWERED_SECONDS
            if time.monotonic() - began >= within:
                self._log.warning("shuts_down_without_the_controllers_leave", waited_s=within)
                return
