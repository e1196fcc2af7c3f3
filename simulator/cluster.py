"""A whole cluster in virtual time, from one seed: controllers, brokers, lake, network, disks, clients and faults."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import structlog

from kraftlake.controller.quorum import quorum_controller
from kraftlake.controller.quorum.bootstrap import format_lake
from kraftlake.metadata_log.maintenance.upkeep import UpkeepThread
from kraftlake.metadata_log.reading import tail
from kraftlake.metadata_log.storage import object_path
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replica_manager import node_to_controller_channel
from kraftlake.replica_manager.lifecycle import broker_lifecycle
from kraftlake.replica_manager.logs.disk.files import DiskFiles
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.log import without_logs
from kraftlake.server.broker import broker, broker_life
from kraftlake.server.controller import controller_server, leader_task, leader_watch
from kraftlake.server.requests.listener import RequestListener
from simulator import lake_store, nodes
from simulator import scheduler as scheduling
from simulator.admin import Admin
from simulator.compacted_logs import COMPACTED
from simulator.decoded_once import DecodedOnce
from simulator.disks import files_of_process
from simulator.faults import Faults
from simulator.idle_producers import EXPIRATION_MS
from simulator.invariants import NothingPromisedError
from simulator.judged_log import check_specification
from simulator.lake_disk import LakeDisk, disk_of_lake
from simulator.lake_store import BUCKET, LakeStore, LakeTrouble
from simulator.late_requests import LateRequests
from simulator.metadata_watch import MetadataWatch
from simulator.network import Network, NetworkTrouble, VirtualAbort, VirtualConnection, VirtualListener
from simulator.nodes import HOST, BrokerMachine, ControllerMachine, Node
from simulator.patching import patched
from simulator.peace import Peace
from simulator.promise import Promise
from simulator.replica_watch import ReplicaWatch
from simulator.scheduler import SECOND, Process, Scheduler
from simulator.specification import MIN_ISR
from simulator.workload import RACKS, Consumer, History, Producer

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
HOUR = 3600 * SECOND
_PEACE_NS = 600 * SECOND
"""How long the cluster has at the end of an hour, without faults, to become whole."""
_MOST_STEPS_AN_HOUR = 200_000
"""Four times as many as an hour takes: with more, nodes are busy with each other."""
_SESSION_MS = 60_000
_BROKER_SETTINGS = {
    "broker.heartbeat.interval.ms": "20000", "broker.session.timeout.ms": str(_SESSION_MS),
    "initial.broker.registration.timeout.ms": "300000", "replica.lag.time.max.ms": "80000",
    "replica.fetch.wait.max.ms": "25000", "replica.socket.timeout.ms": "40000", "replica.fetch.backoff.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "20000", "log.segment.delete.delay.ms": "30000",
    "auto.create.topics.enable": "false", "log.cleaner.backoff.ms": "60000",
    "log.cleaner.io.max.bytes.per.second": "2000", "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.threads": "2", "producer.id.expiration.ms": str(EXPIRATION_MS),
    "producer.id.expiration.check.interval.ms": "60000",
}  # fmt: skip
_CONTROLLER_SETTINGS = {
    "broker.session.timeout.ms": str(_SESSION_MS), "broker.heartbeat.interval.ms": "20000",
    "controller.quorum.fetch.timeout.ms": "70000", "metadata.max.idle.interval.ms": "30000",
    "default.replication.factor": "3", "min.insync.replicas": str(MIN_ISR),
}  # fmt: skip
_NAME = "lake"
LAKE = f"{BUCKET}/{_NAME}"
_ON_DISK = 0.3
"""The share of histories whose lake is a folder on a disk."""
_POLL_SECONDS = 6.0


def _relaxed() -> list[tuple[Any, str, Any]]:
    """Intervals at which nodes look for something, longer than in production, so that an hour costs little."""
    feed, upkeep = LakeFeed.__init__, UpkeepThread.__init__

    def slow_feed(self: LakeFeed, *arguments: Any, **options: Any) -> None:
        feed(self, *arguments, **{**options, "poll": _POLL_SECONDS, "idle_poll": None})

    def slow_upkeep(self: UpkeepThread, *arguments: Any, **options: Any) -> None:
        upkeep(self, *arguments, **{**options, "interval": 500.0})

    return [
        (quorum_controller, "POLL_MS", 7_000), (broker_life, "LOOK_SECONDS", 8.0),
        (broker_life, "UNANSWERED_SECONDS", 300.0),
        (controller_server, "_LOOK_SECONDS", 8.0), (broker, "_FLUSH_MS", 15_000), (broker, "_DELETION_MS", 60_000),
        (node_to_controller_channel, "_BACKOFF", Backoff(base=2.0, cap=20.0)), (tail, "_CHECKED_EVERY", 18.0),
        (broker_lifecycle, "_AFTER_CATCH_UP_MS", 1_000),
        (leader_watch, "_WAIT_MS", 20_000),
        (leader_task, "ANSWER_SECONDS", 40.0),
        (leader_task, "_BACKOFF", Backoff(base=0.5, cap=20.0)),
        (LakeFeed, "__init__", slow_feed), (UpkeepThread, "__init__", slow_upkeep),
    ]  # fmt: skip


@attrs.frozen(kw_only=True)
class Outcome:
    """What happened in an hour."""

    seed: int
    trace: int
    steps: int
    cpu_seconds: float
    records: int
    faults: Mapping[str, int]
    leader_moves: int
    commits: int
    claims: int
    reads: int
    follower_reads: int
    frames: int
    images_compared: int
    cleanings: int
    excused_batches: int
    """The number of committed batches that do not continue the one before of their producer, which was expired."""
    properties_judged: int
    """The number of specified properties of which the metadata log has something."""
    ended_early: str
    """What did not hold where Kafka promises nothing, and ended the history there; empty for a whole one."""
    states: tuple[int, ...] = attrs.field(repr=False)
    """The abstract states that partitions were in, see `simulator.states`."""

    def as_json(self) -> dict[str, Any]:
        """All of it, for another process."""
        return attrs.asdict(self)


class VirtualCluster:
    """The nodes of one history, and what they live in."""

    def __init__(self, seed: int, *, dense: bool = False, verbose: bool = False, logs: bool = False) -> None:
        self.seed, self._dense = seed, dense
        self.scheduler = Scheduler(seed)
        scheduling.activate(self.scheduler)
        self.chance = Random(self.scheduler.chance.getrandbits(64))
        self._verbose, self._logs = verbose, logs
        self.said: list[str] = []
        outside = self.scheduler.outside.extra
        self.network = outside["network"] = Network(self.scheduler)
        self._folder = TemporaryDirectory() if self.chance.random() < _ON_DISK else None
        on_disk = None if self._folder is None else LakeDisk(self.scheduler, Path(self._folder.name, "root"))
        self.lake: LakeStore | LakeDisk = on_disk or LakeStore(self.scheduler)
        outside["lake"] = self.lake
        lake = LAKE if on_disk is None else str(on_disk.root / _NAME)
        self.replicas = ReplicaWatch()
        self.replicas.note = self.note
        self.metadata = MetadataWatch(self.replicas)
        self.metadata.note = self.note
        self.lake.on_put = self.metadata.put
        self.history = History()
        self.faults = Faults(self)
        self.is_over = False
        self.properties_judged = 0
        self.ended_early = ""
        self.controllers = {
            id_: ControllerMachine(self.scheduler, self.network, id_, dict(_CONTROLLER_SETTINGS), lake)
            for id_ in (101, 102)
        }
        self.brokers: dict[int, BrokerMachine] = outside.setdefault("brokers", {})
        self.promise = Promise(self.scheduler.outside, self.brokers, lambda: self.replicas.newest)
        for id_ in range(1, self.chance.choice((3, 3, 4)) + 1):
            self.brokers[id_] = BrokerMachine(
                self.scheduler,
                self.network,
                id_,
                watch=self.replicas,
                lake=lake,
                settings=dict(_BROKER_SETTINGS),
                rack=RACKS[id_ % len(RACKS)],
            )
        late_requests = LateRequests(
            self.brokers,
            newest=lambda: self.replicas.newest,
            may_register=self.promise.may_register_late,
            note=self.note,
        )
        self.network.arrives_late = late_requests.arrives
        self.replicas.is_proposed_late = late_requests.is_proposed_late
        self.nodes: list[Node] = [*self.controllers.values(), *self.brokers.values()]
        for node in self.nodes:
            node.jump(self.chance.randrange(-5, 5) * SECOND)
        self.clients: list[Process] = []
        self.topics = [("one", 0), ("one", 1), ("two", 0), *((name, 0) for name in COMPACTED)]
        self.admin = Admin(self.topics, self.history, self.bootstrap, lambda: self.replicas.newest)

    @property
    def names(self) -> list[str]:
        """The names of all nodes and clients."""
        return [*(node.name for node in self.nodes), *(process.name for process in self.clients)]

    @property
    def bootstrap(self) -> list[Address]:
        """Where brokers are."""
        return [Address(HOST, broker.port) for broker in self.brokers.values()]

    def note(self, what: str) -> None:
        """Note something for whoever looks at a failure."""
        line = f"{self.scheduler.now_ns / SECOND:10.3f} {what}"
        self.said.append(line)
        if self._verbose:
            print(line, flush=True)

    def active_controller(self) -> ControllerMachine | None:
        """A controller that takes itself for the active one."""
        return next((one for one in self.controllers.values() if one.is_active), None)

    def lose_lake_power(self, lake: LakeDisk) -> None:
        """The machine of the lake's disk loses power, and all nodes with it."""
        for node in self.nodes:
            node.kill()
            self.promise.ended_unclean(node, lossy=False)
        lake.restart(self.chance)
        log = lake.root / _NAME / "log" / "_delta_log"
        self.metadata.cut_back(max(int(path.stem) for path in log.glob("*.json")))

    # a history

    def run(self, hours: float = 1.0) -> Outcome:
        """Run; raises AssertionError where an invariant does not hold, with the seed and the last events."""
        began = time.process_time()
        with self._virtual():
            try:
                self._run(round(hours * HOUR))
            except NothingPromisedError as end:
                self.ended_early = str(end)
                self.note(f"the history ends here: {end}")
            except Exception as fault:
                raise AssertionError(self._failure(fault)) from fault
        return Outcome(
            seed=self.seed, trace=self.scheduler.trace, steps=self.scheduler.steps,
            cpu_seconds=time.process_time() - began, records=self.history.records, faults=dict(self.faults.hits),
            leader_moves=self.replicas.leader_moves, commits=self.metadata.commits, claims=self.metadata.claims,
            reads=self.history.reads, follower_reads=self.history.follower_reads, frames=self.network.frames,
            images_compared=self.metadata.images_compared,
            cleanings=sum(one.compacted.cleanings for one in self.replicas.committed.values()),
            excused_batches=self.replicas.producers.excused, properties_judged=self.properties_judged,
            ended_early=self.ended_early,
            states=tuple(sorted(self.metadata.states)),
        )  # fmt: skip

    def _failure(self, fault: Exception) -> str:
        last = "\n".join(self.said[-30:])
        return (
            f"{type(fault).__name__}: {fault}\nat {self.scheduler.now_ns / SECOND:.3f} s of seed {self.seed}, after\n"
            f"{last}\nRepeat it: python -m simulator {self.seed}{' --dense' if self._dense else ''}"
        )

    @contextmanager
    def _virtual(self) -> Iterator[None]:
        replaced = {
            object_path._requests: lake_store.requests,
            Connection: VirtualConnection, Abort: VirtualAbort, RequestListener: VirtualListener,
            DiskFiles: files_of_process, disk_for: disk_of_lake, **DecodedOnce().replaced(), **self.promise.replaced(),
        }  # fmt: skip
        hooks = [*self.replicas.hooks(), *self.metadata.hooks(), *nodes.hooks(), *lake_store.hooks(), *_relaxed()]
        if isinstance(self.lake, LakeDisk):
            hooks += self.lake.hooks()
        scheduling.activate(self.scheduler)
        try:
            with self._noted_logs() if self._logs else without_logs(), patched(replaced, hooks):
                yield
        finally:
            for process in [*(node.process for node in self.nodes), *self.clients, self.scheduler.outside]:
                if process is not None:
                    self.scheduler.kill(process)
            scheduling.activate(None)
            if self._folder is not None:
                self._folder.cleanup()

    @contextmanager
    def _noted_logs(self) -> Iterator[None]:
        """Note what nodes log."""

        def note(_: Any, level: str, event: MutableMapping[str, Any]) -> Any:
            process = self.scheduler.process.name
            words = " ".join(f"{name}={value}" for name, value in event.items() if name != "event")
            self.note(f"{process} {level} {event['event']} {words}")
            raise structlog.DropEvent

        structlog.configure(processors=[note], cache_logger_on_first_use=False)
        try:
            yield
        finally:
            structlog.reset_defaults()

    def _run(self, duration_ns: int) -> None:
        self.scheduler.most_steps = _MOST_STEPS_AN_HOUR * max(duration_ns // HOUR, 1)
        self.lake.copy_of(new_lake())
        for node in self.nodes:
            node.start()
        self.scheduler.run(200 * SECOND)
        self._start_clients()
        self.scheduler.start(self.scheduler.outside, "faults", self._inject)
        self.scheduler.start(self.scheduler.outside, "supervisor", self._supervise)
        self.scheduler.run(duration_ns - _PEACE_NS)
        Peace(self).make(duration_ns)
        self.properties_judged = check_specification(self.lake, _NAME)

    def _start_clients(self) -> None:
        self._client("admin", self.admin, 60 * SECOND, setup=True)

    def _client(self, name: str, client: Any, *arguments: Any, setup: bool = False) -> Process:
        process = Process(self.scheduler, name)
        self.clients.append(process)
        client.is_stopped = lambda: self.is_over

        def run() -> None:
            if setup:
                self._set_up(client)
            client.run(*arguments)

        self.scheduler.start(process, name, run)
        return process

    def _set_up(self, admin: Admin) -> None:
        """Create the topics that stay, then start producers and consumers."""
        plain = {"internal.segment.bytes": "20000"}
        for name, partitions, configs in (
            ("one", 2, plain),
            ("two", 1, plain),
            *((n, 1, c) for n, c in COMPACTED.items()),
        ):
            while True:
                if admin.client.refresh() and name in admin.client.ids:
                    break
                try:
                    admin.create_topic(name, partitions, configs)
                except Exception as fault:  # the cluster is not ready yet
                    self.note(f"not created yet: {fault}")
                self.scheduler.sleep(10 * SECOND)
        for number in (1, 2):
            producer = Producer(number, self.topics, self.history, self.replicas, self.bootstrap)
            self._client(f"producer-{number}", producer, 25 * SECOND, 20)
        self._client("consumer", Consumer(self.topics, self.history, self.replicas, self.bootstrap), 20 * SECOND)

    def _inject(self) -> None:
        """Faults, some of them at the same time."""
        while not self.is_over:
            self.scheduler.sleep(self.chance.randrange((90 if self._dense else 150) * SECOND))
            if not self.is_over:
                self.scheduler.start(self.scheduler.outside, "fault", self.faults.inject)

    def stop_faults(self) -> None:
        """End the faults that are under way, and begin none; what they have done is left."""
        for task in list(self.scheduler.outside.tasks):
            if task.name in ("fault", "faults"):
                self.scheduler.end(task)
        self.network.cut.clear()
        self.network.refused.clear()
        self.network.failing.clear()
        self.network.trouble = NetworkTrouble()
        self.lake.trouble = LakeTrouble()
        for node in self.nodes:
            if node.process is not None:
                node.process.extra.pop("lake_trouble", None)
        self.lake.strike.disarm()

    def _supervise(self) -> None:
        """Start again what has ended by itself."""
        while True:
            self.scheduler.sleep(30 * SECOND)
            for node in self.nodes:
                if node.ends and not node.is_up:
                    why = node.ends.pop()
                    self.note(f"{node.name} has ended: {why}")
                    node.mend(why)
                    node.start_if_down()


@cache
def new_lake() -> dict[str, bytes]:
    """The objects of a formatted lake; the same for all histories."""
    running, own = scheduling.active(), Scheduler(0)
    scheduling.activate(own)
    store = own.outside.extra["lake"] = LakeStore(own)
    try:
        format_lake(LAKE, cluster_id=CLUSTER_ID)
    finally:
        scheduling.activate(running)
    return store.contents()
