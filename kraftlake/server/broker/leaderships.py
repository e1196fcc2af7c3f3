"""What a broker that serves nobody does when it is elected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.log import get_logger

_ELECTED: Final = (TransitionKind.BECAME_LEADER, TransitionKind.LEADER_UPDATED)
_SHOWN: Final = 20


class Leaderships:
    """Looks at what the broker leads after each change of it; a `TransitionListener`.

    A partition that it leads is unavailable. Where other replicas are in sync, `leave` gets the partitions: with a
    controlled shutdown the controller elects another leader. Where none is, the broker stays: if it left, an unclean
    election could make a replica the leader that lacks records which this one has. `schedule` runs an action later, on
    a thread that holds no lock.
    """

    def __init__(
        self, schedule: Callable[[Callable[[], None]], None], leave: Callable[[Sequence[TopicPartition]], None]
    ):
        self.manager: ReplicaManager | None = None
        """The replica manager, once it is made."""
        self._schedule = schedule
        self._leave = leave
        self._alone: list[TopicPartition] = []
        self._log = get_logger(__name__)

    @property
    def alone(self) -> list[TopicPartition]:
        """The partitions that the broker leads and whose ISR is the broker alone."""
        return list(self._alone)

    def __call__(self, transition: Transition) -> None:
        """Look again, if the transition is about a leadership."""
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
