"""The state of a cluster of processes: the state of each node, and the counts of its image."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from kraftlake.image.broker_partitions import BrokerCounts
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.uuid import Uuid
from kraftlake.server.cluster_up.cluster_plan import NodeKind
from kraftlake.server.cluster_up.node_offsets import LedOffsets
from kraftlake.server.cluster_up.node_process import NodeProcess

if TYPE_CHECKING:
    from kraftlake.api import WatchState


class NodeState(Enum):
    """The current state of a node."""

    STARTING = "starting"
    """The process runs, and the node has not registered."""
    ACTIVE = "active"
    """A controller that leads the log."""
    STANDBY = "standby"
    """A controller that follows the log."""
    FENCED = "fenced"
    UP = "up"
    """A broker that is neither fenced nor leaving."""
    LEAVING = "leaving"
    LEFT = "left"
    """The process has ended as requested."""
    DOWN = "down"
    """The process has ended without a request."""


@attrs.frozen(kw_only=True)
class NodeView:
    """One node's state; `ending` is the way in which it ended, None while it runs.

    Counts and offsets are those of known brokers.
    """

    name: str
    id: int
    kind: NodeKind
    address: str
    pid: int | None
    state: NodeState
    ending: str | None = None
    counts: BrokerCounts | None = None
    offsets: LedOffsets | None = None


@attrs.frozen(kw_only=True)
class ClusterState:
    """The nodes of a cluster, and the counts of its log; `leader` is None while no running node leads the log."""

    nodes: tuple[NodeView, ...]
    log: WatchState
    leader: int | None
    replicas_out_of_isr: int

    @property
    def is_up(self) -> bool:
        """Whether all nodes are up, and one of them leads the log."""
        ready = {NodeState.ACTIVE, NodeState.STANDBY, NodeState.UP}
        return self.leader is not None and all(node.state in ready for node in self.nodes)


def incarnations(image: MetadataImage) -> dict[int, Uuid]:
    """The incarnations of the registered nodes: each process registers with a new one."""
    brokers, controllers = image.cluster.brokers.values(), image.cluster.controllers.values()
    return {node.id: node.incarnation_id for node in brokers} | {node.id: node.incarnation_id for node in controllers}


def state_of(
    node: NodeProcess, image: MetadataImage, earlier: Mapping[int, Uuid], leader: int | None, *, is_leaving: bool
) -> NodeState:
    """The state of a node; `earlier` are the incarnations from before its start."""
    if node.ending is not None:
        return NodeState.LEFT if node.ended_well else NodeState.DOWN
    if node.is_asked_to_end or (is_leaving and node.plan.kind is NodeKind.BROKER):
        return NodeState.LEAVING
    id_ = node.plan.id
    if incarnations(image).get(id_) in (None, earlier.get(id_)):
        return NodeState.STARTING
    if node.plan.kind is NodeKind.CONTROLLER:
        return NodeState.ACTIVE if leader == id_ else NodeState.STANDBY
    broker = image.cluster.brokers[id_]
    if broker.in_controlled_shutdown:
        return NodeState.LEAVING
    return NodeState.FENCED if broker.fenced else NodeState.UP
