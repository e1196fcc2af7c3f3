"""Requests that arrive when their client has given them up, and that harm a cluster of Kafka's as they do ours.

A simulated cluster loses them, so that what they do there is no fault of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.ids import kafka_id
from kraftlake.records.uuid import Uuid
from kraftlake.server.requests.messages import api_of, request_in
from simulator.nodes import BrokerMachine
from simulator.scheduler import Process


class LateRequests:
    """Which late requests of brokers arrive.

    - A registration that arrives without its broker learning of it makes the next one count as that of a broker that
      has ended not in order. It is lost while that broker may not end so.
    - A proposal of an ISR may be refused, as its follower is fenced, and an earlier copy of it be accepted later, when
      the leader has gone on without that follower: its partition epoch is still the newest one. It is lost where the
      leader has gone on by then. Where it does so while the copy waits in the controller, see `is_proposed_late`.
    """

    def __init__(
        self,
        brokers: Mapping[int, BrokerMachine],
        *,
        newest: Callable[[], MetadataImage],
        may_register: Callable[[BrokerMachine], bool],
        note: Callable[[str], None],
    ) -> None:
        self._brokers = brokers
        self._newest = newest
        self._may_register = may_register
        self._note = note
        self._proposed: set[tuple[Uuid, int, int]] = set()
        """The partitions of late proposals that arrived, and the partition epochs that they name."""

    def is_proposed_late(self, topic_id: Uuid, partition: int, partition_epoch: int) -> bool:
        """Whether a late proposal may have led to a partition's state with this epoch."""
        return (topic_id, partition, partition_epoch - 1) in self._proposed

    def arrives(self, sender: Process, frame: bytes) -> bool:
        """Whether a late request arrives."""
        api, arrives = api_of(frame), True
        if api == "broker_registration":
            arrives = self._may_register(sender.extra["node"])
        elif api == "alter_partition":
            arrives = not self._was_given_up(request_in(frame))
        if not arrives:
            self._note(f"a late {api} of {sender.name} is lost")
        return arrives

    def _was_given_up(self, body: Any) -> bool:
        """Whether the request has a proposal that nothing but its leader's state tells from a new one."""
        leader, topics = self._brokers[int(body.broker_id)], self._newest().topics
        for topic in body.topics:
            topic_id = kafka_id(topic.topic_id)
            for one in topic.partitions:
                number = int(one.partition_index)
                state = topics.get_partition(topic_id, number)
                if state is None or state.partition_epoch != one.partition_epoch:
                    continue
                led = leader.partition(TopicPartition(topics.topics_by_id()[topic_id].name, number))
                if led is not None and led.topic_id == topic_id and not led.in_sync.state.is_inflight:
                    return True
                self._proposed.add((topic_id, number, state.partition_epoch))
        return False
