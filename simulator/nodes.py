"""Controllers and brokers as processes of a simulation: they start, crash, lose power, are suspended and leave."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replica_manager.lifecycle.broker_lifecycle import LifecycleState
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from kraftlake.server.broker.broker import Broker
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_server import BrokerServer
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_server import ControllerServer
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from simulator import threads
from simulator.disks import VirtualFiles
from simulator.invariants import violated
from simulator.network import Network
from simulator.replica_watch import ReplicaWatch
from simulator.scheduler import Process, Scheduler, active

HOST = "127.0.0.1"
LOG_DIRS = ("d1", "d2")


class Node(ABC):
    """A machine, on which a process runs or not."""

    def __init__(self, scheduler: Scheduler, network: Network, name: str) -> None:
        self.scheduler, self.network, self.name = scheduler, network, name
        self.process: Process | None = None
        self.skew_ns = 0
        self.ends: list[str] = []
        """Why its processes have ended by themselves."""
        self._stop: threads.Event | None = None

    @property
    def is_up(self) -> bool:
        """Whether its process runs, suspended or not."""
        return self.process is not None and self.process.alive

    def start(self) -> None:
        """Start the process."""
        assert not self.is_up, f"{self.name} runs"
        process = self.process = Process(self.scheduler, self.name, skew_ns=self.skew_ns)
        process.extra["node"] = self
        self._stop = threads.Event()
        self._prepare(process)
        self.scheduler.start(process, "main", lambda: self._run(process))

    def start_if_down(self) -> None:
        """Start the process unless it runs."""
        if not self.is_up:
            self.start()

    def _run(self, process: Process) -> None:
        try:
            self._serve()
        except KraftlakeError as fault:
            self.ends.append(str(fault))
        # whatever threads are left end with the main one, as daemons do
        self.scheduler.after(0, lambda: self._ended(process))

    def _ended(self, process: Process) -> None:
        if process.alive:
            self.scheduler.kill(process)
            self._release(process)

    @property
    def is_leaving(self) -> bool:
        """Whether its process was asked to end, and has not."""
        return self.is_up and self._stop is not None and self._stop.is_set()

    def leave(self) -> None:
        """Ask the process to end in order."""
        if self._stop is not None:
            self._stop.set()

    @abstractmethod
    def mend(self, why: str) -> None:
        """Do what an operator is asked to do by a process that has ended, which said why."""

    def kill(self) -> None:
        """End the process at once."""
        process = self.process
        if process is not None and process.alive:
            self.scheduler.kill(process)
            self._release(process)

    def _release(self, process: Process) -> None:
        """Break the connections of a process that has ended."""
        self.network.process_ended(process)

    def suspend(self) -> None:
        """Stop the process as SIGSTOP does."""
        if self.process is not None:
            self.scheduler.suspend(self.process)

    def resume(self) -> None:
        """Let a suspended process go on."""
        if self.process is not None and self.process.frozen:
            self.scheduler.resume(self.process)

    def jump(self, nanoseconds: int) -> None:
        """Change the wall clock of the machine."""
        self.skew_ns += nanoseconds
        if self.process is not None:
            self.process.skew_ns = self.skew_ns

    @abstractmethod
    def _prepare(self, process: Process) -> None:
        """Give the new process what its machine has."""

    @abstractmethod
    def _serve(self) -> None:
        """Run the node until it is asked to leave; on the process's main thread."""


class ControllerMachine(Node):
    """A controller."""

    def __init__(self, scheduler: Scheduler, network: Network, id_: int, settings: dict[str, str], lake: str) -> None:
        super().__init__(scheduler, network, f"controller-{id_}")
        self.id, self._settings, self._lake = id_, settings, lake

    @property
    def is_active(self) -> bool:
        """Whether it takes itself for the active controller."""
        controller = None if self.process is None or not self.is_up else self.process.extra.get("controller")
        return controller is not None and bool(controller.is_active)

    def mend(self, why: str) -> None:
        """It asks for nothing."""

    def _prepare(self, process: Process) -> None:
        """It has nothing but the lake."""

    def _serve(self) -> None:
        config = ControllerServerConfig(
            lake=self._lake, node_id=self.id, settings=NodeSettings(values=self._settings),
            listeners=(ListenerAddress(name="CONTROLLER", host=HOST, port=9000 + self.id),),
        )  # fmt: skip
        assert self._stop is not None
        ControllerServer(config, stop=self._stop).run()  # type: ignore[arg-type]


def hooks() -> list[tuple[Any, str, Any]]:
    """Let processes know their brokers and controllers; no fault of theirs is one of our code."""
    handle = LoggingFaultHandler.handle_fault

    def new_handle(handler: LoggingFaultHandler, what: str, cause: BaseException | None = None) -> None:
        if not isinstance(cause, KraftlakeError | OSError | None):
            violated(f"{active().process.name}: {what}: {cause!r}")
        handle(handler, what, cause)

    return [
        (LoggingFaultHandler, "handle_fault", new_handle),
        (Broker, "__init__", _noted(Broker, "broker")),
        (QuorumController, "__init__", _noted(QuorumController, "controller")),
    ]


def _noted(kind: type[Any], name: str) -> Any:
    made = kind.__init__

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        active().process.extra[name] = self

    return init


class BrokerMachine(Node):
    """A broker, with its disks."""

    def __init__(
        self, scheduler: Scheduler, network: Network, id_: int, *, watch: ReplicaWatch, settings: dict[str, str],
        lake: str, rack: str,
    ) -> None:  # fmt: skip
        super().__init__(scheduler, network, f"broker-{id_}")
        self.id, self._settings, self._lake, self._rack = id_, settings, lake, rack
        self._watch = watch
        self.files = VirtualFiles(scheduler.outside.chance)
        for directory in LOG_DIRS:
            self.files.make_folder(directory)
        self.files.sync_folder("")
        self.port = 9000 + id_

    def _prepare(self, process: Process) -> None:
        self.files.restart()
        self.files.process = process
        process.extra["files"] = self.files

    def _serve(self) -> None:
        config = BrokerConfig(
            broker_id=self.id, lake=self._lake, log_dirs=LOG_DIRS, rack=self._rack,
            listener=ListenerAddress(name="PLAINTEXT", host=HOST, port=self.port), settings=self._settings,
        )  # fmt: skip
        assert self._stop is not None
        BrokerServer(config, stop=self._stop).run()  # type: ignore[arg-type]

    def _release(self, process: Process) -> None:
        super()._release(process)
        self._watch.forget(process)
        self.files.restart()

    def mend(self, why: str) -> None:
        """Remove the log that ends earlier where a replica has two: a directory was offline when the other was made."""
        doubled = re.search(r"(\S+) and (\S+) are logs of one replica", why)
        if doubled is not None:
            self.files.remove_durably(min(doubled.groups(), key=self._last_segment))

    def _last_segment(self, folder: str) -> tuple[str, int]:
        """The name and the size of the last segment of a log."""
        names = [name for name in self.files.content_names(folder) if name.endswith(".log")]
        return (names[-1], len(self.files.content(f"{folder}/{names[-1]}"))) if names else ("", 0)

    def cut_power(self) -> None:
        """End the process, and lose what was not synced."""
        if self.process is not None:
            self.process.extra["power_is_cut"] = True
        self.kill()
        self.files.power_cut()

    @property
    def is_sound(self) -> bool:
        """Whether its disks work: otherwise it may lose something at any time, and is started again when they do."""
        return not self.files.faults and not self.files.space

    def heal(self) -> None:
        """Give the machine disks that work."""
        self.files.faults.clear()
        self.files.space.clear()
        self.files.slow = 0.0

    # what invariants ask

    @property
    def _broker(self) -> Any:
        return None if self.process is None or not self.process.alive else self.process.extra.get("broker")

    @property
    def is_running(self) -> bool:
        """Whether the broker takes itself for one that is in service."""
        return self._broker is not None and self._broker.lifecycle.state is LifecycleState.RUNNING

    @property
    def broker_epoch(self) -> int:
        """The epoch of the registration of the process, −1 without one."""
        return -1 if self._broker is None else int(self._broker.lifecycle.broker_epoch)

    def is_registered(self, image: MetadataImage) -> bool:
        """Whether the process is the one that the controllers know."""
        known = image.cluster.brokers.get(self.id)
        return known is not None and self._broker is not None and known.epoch == self.broker_epoch

    def partition(self, name: TopicPartition) -> Any:
        """A partition that the broker hosts, None where it does not, or is offline."""
        broker = self._broker
        return None if broker is None else broker.manager.online_partition(name)

    def log(self, name: TopicPartition) -> Any:
        """The log of a replica, None where there is none."""
        log = None if self._broker is None else self._broker.logs.get_log(name)
        return None if log is None or self.is_offline(log) else log

    def is_offline(self, log: Any) -> bool:
        """Whether the directory of a log has failed for this process."""
        return self._broker is not None and log.directory in self._broker.logs.offline

    @property
    def image(self) -> MetadataImage:
        """The image that the broker answers from."""
        return MetadataImage.EMPTY if self._broker is None else self._broker.cache.image
