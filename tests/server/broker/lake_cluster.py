"""A cluster of a lake within one process: controllers and brokers, each in a thread, with their listeners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_server import BrokerServer
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_server import ControllerServer
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.waiting import PATIENCE, wait_for

QUICK = {"broker.heartbeat.interval.ms": "300", "replica.fetch.backoff.ms": "100"}
SESSION = {"broker.session.timeout.ms": "60000", "controller.quorum.fetch.timeout.ms": "1000"}
"""No machine is so slow that a broker that lives is fenced."""
SHORT_SESSION = {"broker.session.timeout.ms": "3000"}
"""Of controllers whose brokers are started again: they can't register before the session of the last time is over."""


def format_lake(lake: Path) -> None:
    """What `kraftlake format` makes."""
    bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(), timestamp=1_700_000_000_000)
    contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
    MetadataLog.create(lake, CLUSTER_ID, "controlled", contents=contents, durability="os")


class Member:
    """A node in a thread; an error that ended it is raised by `stop`."""

    def __init__(self, make: Callable[[threading.Event], Any]) -> None:
        self._stop = threading.Event()
        self.server = make(self._stop)
        self._fault: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.server.run()
        except BaseException as fault:
            self._fault = fault

    def stop(self) -> None:
        self._stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "it has not ended"
        if self._fault is not None:
            raise self._fault

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault


class LakeCluster:
    """The members by id; `admin` asks any broker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        format_lake(self.lake)
        self.members: dict[int, Member] = {}

    def start_controller(self, node_id: int, **settings: str) -> None:
        config = ControllerServerConfig(
            lake=str(self.lake), node_id=node_id,
            listeners=(ListenerAddress(name="CONTROLLER", host="127.0.0.1", port=0),),
            settings=NodeSettings(values=SESSION | dict(settings)),
        )  # fmt: skip
        self.members[node_id] = Member(lambda stop: ControllerServer(config, stop=stop))

    def start_broker(self, node_id: int, settings: Mapping[str, str] | None = None, **more: Any) -> None:
        config = BrokerConfig(
            broker_id=node_id, lake=str(self.lake), log_dirs=(str(self.folder / f"broker-{node_id}"),),
            listener=ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0),
            settings={**QUICK, **(settings or {})},
            **more,
        )  # fmt: skip
        self.members[node_id] = Member(lambda stop: BrokerServer(config, stop=stop))

    def address_of(self, node_id: int) -> str:
        return f"127.0.0.1:{self.members[node_id].server.listeners[0].port}"

    @property
    def brokers(self) -> str:
        """The bootstrap servers."""
        return ",".join(self.address_of(id_) for id_ in self.members if id_ < 100)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers, "socket.timeout.ms": 10_000})

    def make_topic(self, name: str, partitions: int, replicas: int = 1) -> None:
        """Create a topic, and wait until brokers lead it, which is after their caches have it."""
        admin = self.admin()  # its end would take the request along
        admin.create_topics([NewTopic(name, partitions, replicas)])[name].result(PATIENCE)

        def led() -> bool:
            managers = [member.server.broker.manager for id_, member in self.members.items() if id_ < 100]
            leaders = [one for manager in managers for one in manager.leader_partitions()]
            return sum(one.topic_partition.topic == name for one in leaders) == partitions

        self.wait_for(led, f"the leaders of {name}")

    def wait_for(self, holds: Callable[[], Any], what: str = "") -> Any:
        """The first true answer, while no member has ended by an error."""

        def checked() -> Any:
            for member in self.members.values():
                member.check()
            return holds()

        return wait_for(checked, what)

    def await_unfenced(self, *ids: int) -> None:
        """Wait until these brokers are alive for each of them."""

        def alive() -> bool:
            for id_ in ids:
                broker = self.members[id_].server.broker
                if broker is None:
                    return False
                brokers = broker.cache.image.cluster.brokers
                if not all(other in brokers and not brokers[other].fenced for other in ids):
                    return False
            return True

        self.wait_for(alive, f"brokers {ids} to be unfenced")

    def stop(self) -> None:
        """Brokers first."""
        for id_ in sorted(self.members):
            self.members.pop(id_).stop()


@contextmanager
def lake_cluster(
    folder: Path,
    *,
    brokers: tuple[int, ...] = (1, 2, 3),
    controllers: tuple[int, ...] = (101,),
    settings: Mapping[str, str] | None = None,
) -> Iterator[LakeCluster]:
    """A cluster whose brokers are all alive; the settings are those of the controllers."""
    cluster = LakeCluster(folder)
    try:
        for id_ in controllers:
            cluster.start_controller(id_, **(settings or {}))
        for id_ in brokers:
            cluster.start_broker(id_)
        cluster.await_unfenced(*brokers)
        yield cluster
    finally:
        cluster.stop()
