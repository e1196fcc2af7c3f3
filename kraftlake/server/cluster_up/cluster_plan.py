"""Which nodes a cluster has, where they listen, where their files lie, and how they are started."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Final

import attrs

from kraftlake.runtime.errors import UsageError
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from kraftlake.settings.tables import is_heeded_by
from kraftlake.settings.uses import BROKER_ROLE, CONTROLLER_ROLE

HOST: Final = "127.0.0.1"
FIRST_CONTROLLER: Final = 101
"""The id of the first controller; brokers count from 1."""
_MOST_BROKERS: Final = FIRST_CONTROLLER - 1
_OF_ONE_NODE: Final = {
    **dict.fromkeys(("node.id", "broker.id", "process.roles"), "each node has its own"),
    **dict.fromkeys(
        ("listeners", "advertised.listeners", "controller.listener.names"), "each node listens at a port from --port on"
    ),
    **dict.fromkeys(("log.dirs", "log.dir"), "each broker's logs lie below --data"),
}
"""Why settings can't come from a file for all nodes."""
_LARGEST_PORT: Final = 65_535


class NodeKind(Enum):
    """What a node is."""

    CONTROLLER = "controller"
    BROKER = "broker"

    @property
    def listener(self) -> str:
        """The name of its listener."""
        return "PLAINTEXT" if self is NodeKind.BROKER else "CONTROLLER"


@attrs.frozen(kw_only=True)
class NodePlan:
    """One node; `folder` is to have what it tells, and a broker's logs."""

    kind: NodeKind
    id: int
    lake: str
    port: int
    folder: Path
    settings: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """Its kind and id: `broker 1`."""
        return f"{self.kind.value} {self.id}"

    @property
    def address(self) -> str:
        """Where it listens, HOST:PORT."""
        return f"{HOST}:{self.port}"

    @property
    def log_file(self) -> Path:
        """What it tells, one JSON object a line; that of its earlier lives first."""
        return self.folder / "log.jsonl"

    @property
    def arguments(self) -> list[str]:
        """Those of `kraftlake`."""
        made = [self.kind.value, "--json", "--lake", self.lake, "--id", str(self.id)]
        made += ["--listener", f"{self.kind.listener}://{self.address}"]
        if self.kind is NodeKind.BROKER:
            made += ["--log-dirs", str(self.folder / "logs")]
        for name, value in self.settings.items():
            made += ["--override", f"{name}={value}"]
        return made


@attrs.frozen(kw_only=True)
class ClusterPlan:
    """The nodes of a cluster of a lake. `unheeded` are the settings that no node heeds, each with the reason."""

    lake: str
    data: Path
    nodes: tuple[NodePlan, ...]
    unheeded: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls,
        lake: str,
        data: Path,
        *,
        brokers: int = 3,
        controllers: int = 2,
        port: int | None = None,
        settings: NodeSettings | None = None,
    ) -> ClusterPlan:
        """A cluster whose nodes listen at ports from `port` on, brokers first; None takes free ones.

        Each node gets those of the settings that it heeds. Raises UsageError for numbers that can't be, and for a
        setting that has no value of its kind.
        """
        if not 1 <= brokers <= _MOST_BROKERS:
            raise UsageError(f"{brokers} brokers can't be: there are 1 to {_MOST_BROKERS}.")
        if not 1 <= controllers <= _MOST_BROKERS:
            raise UsageError(f"{controllers} controllers can't be: there are 1 to {_MOST_BROKERS}.")
        count = brokers + controllers
        if port is not None and not 1 <= port <= _LARGEST_PORT - count + 1:
            raise UsageError(f"{count} ports from {port} on can't be: ports go from 1 to {_LARGEST_PORT}.")
        ports = _free_ports(count) if port is None else list(range(port, port + count))
        ids = [(NodeKind.BROKER, number) for number in range(1, brokers + 1)]
        ids += [(NodeKind.CONTROLLER, FIRST_CONTROLLER + number) for number in range(controllers)]
        given = settings or NodeSettings()
        heeded = {
            kind: {
                name: value
                for name, value in given.values.items()
                if name not in _OF_ONE_NODE and is_heeded_by(role, name)
            }
            for kind, role in ((NodeKind.BROKER, BROKER_ROLE), (NodeKind.CONTROLLER, CONTROLLER_ROLE))
        }
        nodes = tuple(
            NodePlan(
                kind=kind, id=id_, lake=lake, port=at, folder=data / f"{kind.value}-{id_}", settings=heeded[kind]
            )
            for (kind, id_), at in zip(ids, ports, strict=True)
        )  # fmt: skip
        for node in nodes:
            _check(node)
        given.check()
        own = {name: why for name, why in _OF_ONE_NODE.items() if name in given.values}
        return cls(lake=lake, data=data, nodes=nodes, unheeded={**given.without_effect, **own})

    def of_kind(self, kind: NodeKind) -> tuple[NodePlan, ...]:
        """The nodes of a kind."""
        return tuple(node for node in self.nodes if node.kind is kind)

    def addresses(self, kind: NodeKind) -> str:
        """Where the nodes of a kind listen, HOST:PORT,…"""
        return ",".join(node.address for node in self.of_kind(kind))


def _check(node: NodePlan) -> None:
    """Raise UsageError for what the node itself would refuse, before any of them is started."""
    if node.kind is NodeKind.BROKER:
        listener = ListenerAddress(name=node.kind.listener, host=HOST, port=node.port)
        BrokerConfig(
            broker_id=node.id, lake=node.lake, log_dirs=(str(node.folder / "logs"),), listener=listener,
            settings=node.settings,
        )  # fmt: skip
    else:
        address = ListenerAddress(name=node.kind.listener, host=HOST, port=node.port)
        settings = NodeSettings(values=node.settings)
        ControllerServerConfig(lake=node.lake, node_id=node.id, listeners=(address,), settings=settings)


def _free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
