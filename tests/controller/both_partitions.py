"""Commands on topics and partitions for a real Kafka controller and for ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kio.schema.alter_partition.v3 import request as isr
from kio.schema.alter_partition_reassignments.v1 import request as moves
from kio.schema.create_partitions.v3 import request as growth
from kio.schema.create_topics.v7 import request as new_topics
from kio.schema.delete_topics.v6 import request as old_topics
from kio.schema.elect_leaders.v2 import request as elections_rpc

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.alter_partition import IsrChange, alter_partition
from kraftlake.controller.replication.elections import ElectionType, elect_leaders
from kraftlake.controller.replication.reassignments import alter_partition_reassignments
from kraftlake.controller.replication.topics import (
    CreatableTopic,
    NewPartitions,
    create_partitions,
    create_topics,
    delete_topics,
)
from tests.controller.both_sides import MINUTE, BothSides, wire_uuid


class PartitionCommands(BothSides):
    """Each method is one command at both."""

    def create(
        self, name: str, *partitions: Sequence[int], configs: Mapping[str, str | None] | None = None, **counts: int
    ) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=counts.get("count", -1),
            replication_factor=counts.get("factor", -1),
            assignments=list(enumerate(partitions)),
            configs=configs or {},
        )
        self.create_all([topic])

    def create_all(self, topics: Sequence[CreatableTopic], *, validate_only: bool = False) -> None:
        """One request for all of them; a request that is refused as a whole is answered for each of its names."""
        request = new_topics.CreateTopicsRequest(
            topics=tuple(
                new_topics.CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.num_partitions,
                    replication_factor=topic.replication_factor,
                    assignments=tuple(
                        new_topics.CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
                        for number, replicas in topic.assignments
                    ),
                    configs=tuple(
                        new_topics.CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()
                    ),
                )
                for topic in topics
            ),
            timeout=MINUTE,
            validate_only=validate_only,
        )

        def theirs() -> Any:
            return {
                answer.name: int(answer.error_code)
                or [
                    answer.num_partitions,
                    answer.replication_factor,
                    {config.name: config.value for config in answer.configs or ()},
                ]
                for answer in self.rpc.ask(request).topics
            }

        def ours() -> Any:
            try:
                answers = self.ours.run(lambda state: create_topics(state, topics, validate_only=validate_only))
            except ControllerApiError as refusal:
                return {topic.name: int(refusal.error) for topic in topics}
            return {
                name: int(answer.error.error)
                or [answer.num_partitions, answer.replication_factor, dict(answer.configs)]
                for name, answer in answers.items()
            }

        self._step(f"create {topics}", theirs, ours)

    def delete(self, *names: str) -> None:
        states = (old_topics.DeleteTopicState(name=None, topic_id=wire_uuid(self._topic_id(0, name))) for name in names)
        request = old_topics.DeleteTopicsRequest(topics=tuple(states), timeout=MINUTE)
        ids = [self._topic_id(1, name) for name in names]
        self._step(
            f"delete {names}",
            lambda: sorted(int(answer.error_code) for answer in self.rpc.ask(request).responses),
            lambda: sorted(int(e.error) for e in self.ours.run(lambda state: delete_topics(state, ids)).values()),
        )

    def grow(self, name: str, count: int, *assignments: Sequence[int]) -> None:
        self.grow_all([NewPartitions(name=name, count=count, assignments=assignments or None)])

    def grow_all(self, topics: Sequence[NewPartitions], *, validate_only: bool = False) -> None:
        """One request for all of them."""
        request = growth.CreatePartitionsRequest(
            topics=tuple(
                growth.CreatePartitionsTopic(
                    name=topic.name,
                    count=topic.count,
                    assignments=topic.assignments
                    and tuple(growth.CreatePartitionsAssignment(broker_ids=tuple(each)) for each in topic.assignments),
                )
                for topic in topics
            ),
            timeout=MINUTE,
            validate_only=validate_only,
        )

        def ours() -> Any:
            answers = self.ours.run(lambda state: create_partitions(state, topics, validate_only=validate_only))
            return {name: int(error.error) for name, error in answers.items()}

        self._step(
            f"grow {topics}",
            lambda: {answer.name: int(answer.error_code) for answer in self.rpc.ask(request).results},
            ours,
        )

    def alter_isr(self, name: str, leader: int, *replicas: int, number: int = 0, **changes: int) -> None:
        topic = self.ours.image.topics.get_topic(name)
        assert topic is not None
        partition = topic.partitions[number]
        leader_epoch = partition.leader_epoch + changes.get("leader_epoch", 0)
        partition_epoch = partition.partition_epoch + changes.get("partition_epoch", 0)
        states = tuple(isr.BrokerState(broker_id=replica, broker_epoch=self._epoch(0, replica)) for replica in replicas)
        data = isr.PartitionData(
            partition_index=number,
            leader_epoch=leader_epoch,
            new_isr_with_epochs=states,
            leader_recovery_state=changes.get("recovery", 0),
            partition_epoch=partition_epoch,
        )
        request = isr.AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=self._epoch(0, leader),
            topics=(isr.TopicData(topic_id=wire_uuid(self._topic_id(0, name)), partitions=(data,)),),
        )
        change = IsrChange(
            topic_id=topic.id,
            partition_id=number,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            new_isr=[(replica, self._epoch(1, replica)) for replica in replicas],
            leader_recovery_state=changes.get("recovery", 0),
        )

        def theirs() -> Any:
            answer = self.rpc.ask(request)
            if answer.error_code:
                return int(answer.error_code)
            ((one,),) = [topic.partitions for topic in answer.topics]
            return int(one.error_code) or [one.leader_id, list(one.isr), one.leader_epoch, one.partition_epoch]

        def ours() -> Any:
            (one,) = self.ours.run(lambda state: alter_partition(state, leader, self._epoch(1, leader), [change]))
            after = one.partition
            return int(one.error) or (
                after and [after.leader, list(after.isr), after.leader_epoch, after.partition_epoch]
            )

        self._step(f"isr {name}-{number} {replicas} {changes or ''}", theirs, ours)

    def move(self, name: str, replicas: Sequence[int] | None, number: int = 0, *, any_factor: bool = True) -> None:
        wanted = None if replicas is None else tuple(replicas)
        partition = moves.ReassignablePartition(partition_index=number, replicas=wanted)
        request = moves.AlterPartitionReassignmentsRequest(
            timeout=MINUTE,
            allow_replication_factor_change=any_factor,
            topics=(moves.ReassignableTopic(name=name, partitions=(partition,)),),
        )

        def theirs() -> list[int]:
            return [int(p.error_code) for topic in self.rpc.ask(request).responses for p in topic.partitions]

        def ours() -> list[int]:
            answers = self.ours.run(
                lambda state: alter_partition_reassignments(
                    state, [((name, number), wanted)], allow_replication_factor_change=any_factor
                )
            )
            return [int(error.error) for error in answers.values()]

        self._step(f"move {name}-{number} {replicas}", theirs, ours)

    def elect(self, kind: ElectionType, *partitions: tuple[str, int]) -> None:
        named = tuple(elections_rpc.TopicPartitions(topic=name, partitions=(number,)) for name, number in partitions)
        request = elections_rpc.ElectLeadersRequest(
            election_type=kind.value, topic_partitions=named or None, timeout=MINUTE
        )

        def theirs() -> Any:
            answers = self.rpc.ask(request).replica_election_results
            return sorted((t.topic, p.partition_id, int(p.error_code)) for t in answers for p in t.partition_result)

        def ours() -> Any:
            answers = self.ours.run(lambda state: elect_leaders(state, kind, list(partitions) or None))
            return sorted((name, number, int(error.error)) for (name, number), error in answers.items())

        self._step(f"elect {kind.name} {partitions}", theirs, ours)
