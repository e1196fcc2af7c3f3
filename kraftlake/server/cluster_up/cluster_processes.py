"""The processes of a cluster, from their start to their end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.node_process import NodeProcess

_HURRY_SECONDS: Final = 3.0
"""How long nodes that were told to hurry have before they are killed."""


class ClusterProcesses:
    """Starts the nodes, notes which have ended, and ends the others in an order that loses nothing.

    Brokers first, each by its controlled shutdown, for which they need a controller; then the standby controllers, so
    that none takes over in vain; the active one last. A node that has ended is not started again. For one thread,
    which has to live as long as the nodes. Nothing here waits but `close`.
    """

    def __init__(self, plan: ClusterPlan, *, now: Callable[[], float] = time.monotonic) -> None:
        self.nodes = [NodeProcess(node) for node in plan.nodes]
        self._now = now
        self._told: set[NodeProcess] = set()
        self._asked: set[NodeProcess] = set()
        self.is_leaving = False
        self._killed_at: float | None = None

    def start(self) -> None:
        """Start all nodes. Raises OSError where a folder can't be made; the nodes that run then are for `close`."""
        for node in self.nodes:
            node.start()

    @property
    def is_over(self) -> bool:
        """Whether no node runs any more."""
        return not any(node.is_running for node in self.nodes)

    def newly_ended(self) -> list[NodeProcess]:
        """The nodes that have ended since the last call, for whatever reason."""
        ended = [node for node in self.nodes if node not in self._told and node.ending is not None]
        self._told.update(ended)
        return ended

    def leave(self) -> None:
        """Begin to end all nodes in order."""
        self.is_leaving = True

    def hurry(self) -> None:
        """End all nodes without waiting for any other."""
        self.is_leaving = True
        if self._killed_at is None:
            self._killed_at = self._now() + _HURRY_SECONDS
            for node in self.nodes:
                node.ask_to_end()

    def step(self, leader: int | None) -> None:
        """Ask those nodes to end whose turn it is; `leader` is the id of the active controller, as far as known.

        Log files that have become long are rotated.
        """
        for node in self.nodes:
            node.rotate_log()
        if not self.is_leaving:
            return
        if self._killed_at is not None:
            if self._now() >= self._killed_at:
                self.close()
            return
        for stage in self._stages(leader):
            running = [node for node in stage if node.is_running]
            for node in running:
                if node not in self._asked:
                    self._asked.add(node)
                    node.ask_to_end()
            if running:
                return

    def _stages(self, leader: int | None) -> Iterable[list[NodeProcess]]:
        controllers = [node for node in self.nodes if node.plan.kind is NodeKind.CONTROLLER]
        yield [node for node in self.nodes if node.plan.kind is NodeKind.BROKER]
        yield [node for node in controllers if node.plan.id != leader]
        yield controllers

    def close(self) -> None:
        """Kill what still runs."""
        for node in self.nodes:
            node.kill()
