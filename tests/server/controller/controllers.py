"""Controllers of ours for tests: in threads of this process, or as processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.free_ports import free_ports
from kraftlake.server.cluster_up.cluster_plan import NodeKind, NodePlan
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_server import ControllerServer
from kraftlake.server.node_config import ListenerAddress, NodeSettings, parse_listener
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.controller.kafka_rpc import KafkaRpc
from tests.server.node_process import KilledNode
from tests.waiting import PATIENCE, wait_for

Place = TypeVar("Place", bound=str | Path)
QUICK = {"controller.quorum.fetch.timeout.ms": "300", "metadata.max.idle.interval.ms": "100"}
"""A standby claims the log within a second."""
PROCESSES = {"controller.quorum.fetch.timeout.ms": "1500"}
"""Of processes, which a busy machine may leave waiting for a second: nobody takes over from one that lives."""


def new_lake(path: Place, cluster_id: str = CLUSTER_ID) -> Place:
    """An empty controlled lake of the newest release."""
    bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(), timestamp=1_700_000_000_000)
    contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
    MetadataLog.create(path, cluster_id, "controlled", contents=contents, durability="os")
    return path


@attrs.define(kw_only=True)
class ControllerThread:
    """A controller in a thread of this process."""

    server: ControllerServer
    stop: threading.Event
    thread: threading.Thread
    faults: list[BaseException]
    _rpcs: list[KafkaRpc] = attrs.field(init=False, factory=list)

    @property
    def address(self) -> str:
        """HOST:PORT of its listener."""
        return f"127.0.0.1:{self.server.listeners[0].port}"

    @property
    def node(self) -> Any:
        """Its parts."""
        assert self.server.node is not None
        return self.server.node

    def rpc(self) -> KafkaRpc:
        """A new connection, which ends with the controller."""
        self._rpcs.append(KafkaRpc(self.address))
        return self._rpcs[-1]

    def await_active(self) -> None:
        """Wait until it leads, is registered, and its own image says so."""

        def leads() -> bool:
            assert not self.faults, self.faults
            node = self.server.node
            return bool(
                node is not None
                and node.controller.is_active
                and node.view.leader_id == node.node_id
                and node.node_id in node.view.image.cluster.controllers
            )

        wait_for(leads, "the controller leads")

    def end(self) -> None:
        """Stop it, and wait."""
        self.stop.set()
        self.thread.join(PATIENCE)
        for rpc in self._rpcs:
            rpc.close()
        assert not self.thread.is_alive()


@contextmanager
def started_controller(lake: Path, node_id: int = 100, **settings: str) -> Iterator[ControllerThread]:
    """A controller in a thread, with quick elections; a setting is written with _ in place of the dots."""
    values = {**QUICK, **{name.replace("_", "."): value for name, value in settings.items()}}
    config = ControllerServerConfig(
        lake=str(lake), node_id=node_id, listeners=(parse_listener("CONTROLLER://127.0.0.1:0"),),
        settings=NodeSettings(values=values),
    )  # fmt: skip
    stop, faults = threading.Event(), list[BaseException]()
    server = ControllerServer(config, stop=stop)

    def run() -> None:
        try:
            server.run()
        except BaseException as fault:
            faults.append(fault)

    made = ControllerThread(server=server, stop=stop, thread=threading.Thread(target=run, daemon=True), faults=faults)
    made.thread.start()
    try:
        wait_for(lambda: server.node is not None or faults, "the controller has started")
        yield made
    finally:
        made.end()


def controller_process(lake: str | Path, folder: Path, node_id: int) -> KilledNode:
    """`kraftlake controller` as a process; not started."""
    (port,) = free_ports(1)
    plan = NodePlan(
        kind=NodeKind.CONTROLLER,
        id=node_id,
        lake=str(lake),
        listener=ListenerAddress(name="CONTROLLER", host="127.0.0.1", port=port),
        folder=folder / str(node_id),
        settings=PROCESSES,
    )
    return KilledNode(plan)
