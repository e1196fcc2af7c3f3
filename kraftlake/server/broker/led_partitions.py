"""Reaction of a broker that serves no clients to its election as a leader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.log import get_logger

_ELECTED: Final = (TransitionKind.BECAME_LEADER, TransitionKind.LEADER_UPDATED)
_SHOWN: Final = 20


class LedPartitions:
    """Checks the partitions that the broker leads after each change of leadership; a `TransitionListener`.

    A partition that this broker leads is unavailable. If other replicas are in sync, `leave` gets the partitions: in a
    controlled shutdown the controller elects another leader. If no other replica is in sync, the broker stays: an
    unclean election after its shutdown could elect a replica that lacks records which this one has. `schedule` runs an
    action later, on a thread that holds no lock.
    """

    def __init__(
        self, schedule: Callable[[Callable[[], None]], None], leave: Callable[[Sequence[TopicPartition]], None]
    ):
        self.manager: ReplicaManager | None = None
        """The replica manager; None before its creation."""
        self._schedule = schedule
        self._leave = leave
        self._alone: list[TopicPartition] = []
        self._log = get_logger(__name__)

    @property
    def alone(self) -> list[TopicPartition]:
        """The partitions that the broker leads as the only member of the ISR."""
        return list(self._alone)

    def __call__(self, transition: Transition) -> None:
        """Schedule a check if the transition changes a leadership."""
        if transition.kind in _ELECTED:
            self._schedule(self._look)

    def _look(self) -> None:
        assert self.manager is not None, "nothing is led before"
        here = {self.manager.context.broker_id}
        led = {one.topic_partition: one.in_sync.state.isr for one in self.manager.leader_partitions()}
        alone = sorted(name for name, isr in led.items() if isr == here)
        if alone and alone != self._alone:
            self._log.error("unavailable", count=len(alone), partitions=[str(name) for name in alone[:_SHOWN]], why=(
                "no other replica is in sync, and this broker serves nobody; it stays, so that nothing is lost. "
                "A Kafka broker with its node.id, started on its log directories, serves them"
            ))  # fmt: skip
        self._alone = alone
        if led and not alone:
            self._leave(sorted(led))
