"""What Kafka promises of records that a broker had not synced when it ended, and when it promises nothing (KIP-966)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kraftlake.controller.cluster import brokers as registrations
from kraftlake.controller.state import ControllerState
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from simulator.invariants import PROMISES_NOTHING
from simulator.nodes import BrokerMachine, Node
from simulator.scheduler import Process


class Promise:
    """Which brokers may crash and lose something, so that what is committed has to be there all the same.

    A broker that does not end in order counts as one that may have lost what it had not synced, whether it has or not:
    the controller takes it off the lists of those that may lead. Where as many as min.insync.replicas do so at a time,
    one that has lost something may be elected.
    """

    def __init__(
        self, outside: Process, brokers: Mapping[int, BrokerMachine], newest: Callable[[], MetadataImage]
    ) -> None:
        self._outside, self._brokers, self._newest = outside, brokers, newest
        self._unclean: dict[BrokerMachine, tuple[bool, Process | None]] = {}
        """The brokers that have ended not in order, until they are in sync again: whether they may have lost something,
        and the process that has ended.
        """

    def may_crash(self, node: Node) -> bool:
        """Whether a node may end at once: no other broker has lost something that it has not copied again."""
        self._settle()
        return not any(is_lossy for other, (is_lossy, _) in self._unclean.items() if other is not node)

    def may_lose(self, node: BrokerMachine) -> bool:
        """Whether a broker may lose what it has not synced: all others are in sync since they ended not in order."""
        self._settle()
        return all(other is node for other in self._unclean)

    def ended_unclean(self, node: Node, *, lossy: bool) -> None:
        """The process of a node has ended or will end not in order, and perhaps loses something."""
        if isinstance(node, BrokerMachine):
            was_lossy, _ = self._unclean.get(node, (False, None))
            self._unclean[node] = (lossy or was_lossy, node.process)

    def may_register_late(self, node: BrokerMachine) -> bool:
        """Whether a broker may be registered that does not learn of it: its next one counts as ended not in order."""
        if not self.may_crash(node):
            return False
        self._unclean.setdefault(node, (False, None))
        return True

    def replaced(self) -> dict[Any, Any]:
        """The functions to replace while the simulation runs, and by what."""
        register = registrations.register_broker

        def new_register(state: ControllerState, request: BrokerRegistrationRequest) -> Any:
            known = state.registration(request.broker_id)
            if (
                known is not None
                and known.incarnation_id != request.incarnation_id
                and request.previous_broker_epoch not in (-1, known.epoch)
            ):
                self.counts_as_crashed(self._brokers[request.broker_id])
            return register(state, request)

        return {register: new_register}

    def counts_as_crashed(self, node: BrokerMachine) -> None:
        """A broker that ended in order counts as one that did not, since it had not learned of its last registration.

        Kafka promises nothing any more where another one has lost something.
        """
        if not self.may_crash(node):
            self._outside.extra[PROMISES_NOTHING] = True
        self._unclean.setdefault(node, (False, None))

    def _settle(self) -> None:
        for node, (_, ended) in list(self._unclean.items()):
            if node.process is not ended and node.is_sound and self._is_in_sync(node):
                del self._unclean[node]

    def _is_in_sync(self, node: BrokerMachine) -> bool:
        image = self._newest()
        if not node.is_registered(image) or image.cluster.brokers[node.id].fenced:
            return False
        return all(
            node.id in state.isr
            for topic in image.topics.topics_by_id().values()
            for state in topic.partitions.values()
            if node.id in state.replicas
        )
