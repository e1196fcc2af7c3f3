"""The plan of a cluster: its nodes, their addresses, their folders and their command lines."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final

import attrs

from kraftlake.protocol.address import Address
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.free_ports import free_ports
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.cluster_up.cluster_security import PROTOCOL, ClusterSecurity
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from kraftlake.settings.tables import is_heeded_by
from kraftlake.settings.uses import BROKER_ROLE, CONTROLLER_ROLE

HOST: Final = "127.0.0.1"
FIRST_CONTROLLER: Final = 101
"""The id of the first controller; the ids of brokers begin at 1."""
_MOST_BROKERS: Final = FIRST_CONTROLLER - 1
_OF_ONE_NODE: Final = {
    **dict.fromkeys(("node.id", "broker.id", "process.roles"), "each node has its own"),
    **dict.fromkeys(
        ("listeners", "advertised.listeners", "controller.listener.names"), "each node listens at a port from --port on"
    ),
    **dict.fromkeys(("log.dirs", "log.dir"), "each broker's logs lie below --data"),
}
"""Settings that can't come from a file shared by all nodes, with the reason."""
_LARGEST_PORT: Final = 65_535


class NodeKind(Enum):
    """The kind of a node."""

    CONTROLLER = "controller"
    BROKER = "broker"


@attrs.frozen(kw_only=True)
class NodePlan:
    """The plan of one node; `folder` is the place of its properties, its log file, and of a broker's logs.

    With `logs_allowed` the node's log has what its authorizer allows.
    """

    kind: NodeKind
    id: int
    lake: str
    listener: ListenerAddress
    folder: Path
    settings: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    logs_allowed: bool = False

    @property
    def name(self) -> str:
        """The node's kind and id: `broker 1`."""
        return f"{self.kind.value} {self.id}"

    @property
    def address(self) -> str:
        """The node's address, HOST:PORT."""
        return str(Address(self.listener.host, self.listener.port))

    @property
    def log_file(self) -> Path:
        """The node's log, one JSON object a line; earlier runs come first."""
        return self.folder / "log.jsonl"

    @property
    def properties_file(self) -> Path:
        """The file of the settings, which the node reads at its start; they may be secret."""
        return self.folder / "node.properties"

    @property
    def keystore(self) -> Path:
        """The file of the key and the certificate of a node with TLS."""
        return self.folder / "keystore.pem"

    @property
    def arguments(self) -> list[str]:
        """The arguments of `kraftlake`."""
        made = [self.kind.value, "--json", "--lake", self.lake, "--id", str(self.id)]
        made += ["--listener", str(self.listener), "--config", str(self.properties_file)]
        if self.kind is NodeKind.BROKER:
            made += ["--log-dirs", str(self.folder / "logs")]
        return made + ["-v"] * self.logs_allowed


@attrs.frozen(kw_only=True)
class ClusterPlan:
    """The nodes of a lake's cluster, and their `security`, None without any.

    `unheeded` are the settings that no node uses, each with the reason.
    """

    lake: str
    data: Path
    nodes: tuple[NodePlan, ...]
    security: ClusterSecurity | None = None
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
        security: ClusterSecurity | None = None,
    ) -> ClusterPlan:
        """Return a cluster whose nodes listen at ports from `port` on, brokers first; None selects free ports.

        Each node gets the settings that it uses, over those of the `security`. Raises UsageError for impossible numbers
        of nodes, and for a setting whose value is not of its type.
        """
        if not 1 <= brokers <= _MOST_BROKERS:
            raise UsageError(f"{brokers} brokers can't be: there are 1 to {_MOST_BROKERS}.")
        if not 1 <= controllers <= _MOST_BROKERS:
            raise UsageError(f"{controllers} controllers can't be: there are 1 to {_MOST_BROKERS}.")
        count = brokers + controllers
        if port is not None and not 1 <= port <= _LARGEST_PORT - count + 1:
            raise UsageError(f"{count} ports from {port} on can't be: ports go from 1 to {_LARGEST_PORT}.")
        ports = free_ports(count) if port is None else list(range(port, port + count))
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
        names = {NodeKind.BROKER: "PLAINTEXT" if security is None else PROTOCOL, NodeKind.CONTROLLER: "CONTROLLER"}
        nodes = tuple(
            NodePlan(
                kind=kind, id=id_, lake=lake, folder=data / f"{kind.value}-{id_}", settings=heeded[kind],
                listener=ListenerAddress(name=names[kind], host=HOST, port=at),
            )
            for (kind, id_), at in zip(ids, ports, strict=True)
        )  # fmt: skip
        if security is not None:
            nodes = tuple(_secured(node, security) for node in nodes)
        for node in nodes:
            _check(node)
        given.check()
        own = {name: why for name, why in _OF_ONE_NODE.items() if name in given.values}
        return cls(lake=lake, data=data, nodes=nodes, security=security, unheeded={**given.without_effect, **own})

    def of_kind(self, kind: NodeKind) -> tuple[NodePlan, ...]:
        """The nodes of a kind."""
        return tuple(node for node in self.nodes if node.kind is kind)

    def addresses(self, kind: NodeKind) -> str:
        """The addresses of the nodes of a kind, HOST:PORT,…"""
        return ",".join(node.address for node in self.of_kind(kind))


def _secured(node: NodePlan, security: ClusterSecurity) -> NodePlan:
    """Return a node with the settings of the security; a controller logs who was allowed what, as `blame` reads it."""
    settings = security.node_settings(node.keystore, node.settings)
    return attrs.evolve(node, settings=settings, logs_allowed=node.kind is NodeKind.CONTROLLER)


def _check(node: NodePlan) -> None:
    """Raise UsageError for values that a node would refuse, before any node is started."""
    if node.kind is NodeKind.BROKER:
        BrokerConfig(
            broker_id=node.id, lake=node.lake, log_dirs=(str(node.folder / "logs"),), listener=node.listener,
            settings=node.settings,
        )  # fmt: skip
    else:
        settings = NodeSettings(values=node.settings)
        ControllerServerConfig(lake=node.lake, node_id=node.id, listeners=(node.listener,), settings=settings)
