"""The processes of a cluster, from start to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.node_process import NodeProcess

_HURRY_SECONDS: Final = 3.0
"""The time that nodes have after a request to hurry before they are killed."""


class ClusterProcesses:
    """Starts the nodes, detects nodes that have ended, and ends the others in an order that loses nothing.

    Brokers end first, each by a controlled shutdown, for which they need a controller; then the standby controllers, so
    that none takes over in vain; the active controller ends last. A node that has ended is not restarted. For one
    thread, which has to live as long as the nodes. Only `close` waits.
    """

    def __init__(self, plan: ClusterPlan, *, now: Callable[[], float] = time.monotonic) -> None:
        self.nodes = [NodeProcess(node) for node in plan.nodes]
        self._now = now
        self._reported: set[NodeProcess] = set()
        self._asked: set[NodeProcess] = set()
        self.is_leaving = False
        self._killed_at: float | None = None

    def start(self) -> None:
        """Start all nodes. Raises OSError if a folder can't be made; `close` ends the nodes that already run."""
        for node in self.nodes:
            node.start()

    @property
    def is_over(self) -> bool:
        """Whether no node runs."""
        return not any(node.is_running for node in self.nodes)

    def newly_ended(self) -> list[NodeProcess]:
        """The nodes that have ended since the last call, for any reason."""
        ended = [node for node in self.nodes if node not in self._reported and node.ending is not None]
        self._reported.update(ended)
        return ended

    def leave(self) -> None:
        """Begin to end all nodes in order."""
        self.is_leaving = True

    def hurry(self) -> None:
        """End all nodes at once, in no order."""
        self.is_leaving = True
        if self._killed_at is None:
            self._killed_at = self._now() + _HURRY_SECONDS
            for node in self.nodes:
                node.ask_to_end()

    def step(self, leader: int | None) -> None:
        """Stop the nodes that are next in the order; `leader` is the id of the active controller, if known.

        Rotates long log files.
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
        """Kill the nodes that still run."""
        for node in self.nodes:
            node.kill()
