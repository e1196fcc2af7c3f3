"""Administrators of the simulated cluster: topics come and go, configs change, replicas move, leaders are elected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.uuid import Uuid
from simulator.client import Client, milliseconds
from simulator.scheduler import active
from simulator.workload import History

_TIMEOUT = milliseconds(30_000)
_TOPIC = 2
_SET = 0


class Admin:
    """Asks brokers, which forward to the active controller."""

    def __init__(
        self,
        topics: list[tuple[str, int]],
        history: History,
        bootstrap: list[Address],
        newest: Callable[[], MetadataImage],
    ) -> None:
        self.topics, self.history, self._newest = topics, history, newest
        self.client = Client(bootstrap)
        self.is_stopped: Callable[[], bool] = lambda: False
        self.made: list[str] = []
        """Topics that come and go."""
        self.retention: dict[str, tuple[int, int]] = {}
        """The retention.ms that each topic was last given by an acknowledged change, while no other may have been, and
        when that was acknowledged.
        """
        self._asked: set[str] = set()
        self._in_doubt: set[str] = set()
        self._count = 0

    def run(self, pause_ns: int) -> None:
        """Change something now and then until the end."""
        chance = active().process.chance
        acts = (self.create, self.delete, self.configure, self.configure, self.reassign, self.elect)
        while not self.is_stopped():
            if self.client.refresh():
                act = chance.choice(acts)
                try:
                    error = act()
                except NodeError:
                    error = ErrorCode.NETWORK_EXCEPTION
                self.history.count(act.__name__, error)
            active().sleep(chance.randrange(2 * pause_ns))

    def create_topic(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> ErrorCode:
        """Create a topic with three replicas. Raises NodeError."""

        def make(module: Any) -> Any:
            named = tuple(module.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items())
            topic = module.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=3, assignments=(), configs=named
            )
            return module.CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False)

        answer = self.client.ask_any("create_topics", range(7, 8), make)
        error: ErrorCode = answer.topics[0].error_code
        if error == ErrorCode.NONE:
            self.history.created[name] = Uuid(answer.topics[0].topic_id.bytes)
        return error

    def create(self) -> ErrorCode:
        """Create a topic that will be deleted."""
        self._count += 1
        name = f"brief-{self._count}"
        self.made.append(name)
        return self.create_topic(name, 1)

    def delete(self) -> ErrorCode:
        """Delete one of them."""
        chance = active().process.chance
        if not self.made:
            return ErrorCode.NONE
        name = chance.choice(self.made)
        self.history.deleted.add(name)

        def make(module: Any) -> Any:
            return module.DeleteTopicsRequest(topic_names=(name,), timeout=_TIMEOUT)

        answer = self.client.ask_any("delete_topics", range(5, 6), make)
        error: ErrorCode = answer.responses[0].error_code
        if error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self.made.remove(name)
        return error

    def configure(self) -> ErrorCode:
        """Change a topic's config."""
        chance = active().process.chance
        name = chance.choice([topic for topic, _ in self.topics])
        value = chance.randrange(10**8, 10**9)
        if name in self.retention:
            del self.retention[name]  # unless an answer comes, either value may be
        elif name in self._asked:
            self._in_doubt.add(name)  # an earlier request without an answer may be carried out at any time
        self._asked.add(name)

        def make(module: Any) -> Any:
            config = module.AlterableConfig(name="retention.ms", config_operation=_SET, value=str(value))
            resource = module.AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=(config,))
            return module.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

        answer = self.client.ask_any("incremental_alter_configs", range(2), make)
        error: ErrorCode = answer.responses[0].error_code
        if error == ErrorCode.NONE and name not in self._in_doubt:
            self.retention[name] = value, active().now_ns
        return error

    def reassign(self) -> ErrorCode:
        """Give a partition's replicas another order, or other brokers."""
        chance = active().process.chance
        name, partition = chance.choice(self.topics)
        brokers = sorted(self.client.brokers.keys() - self._still_eligible(name, partition))
        replicas = chance.sample(brokers, min(3, len(brokers)))
        if len(replicas) < 3:
            return ErrorCode.NONE

        def make(module: Any) -> Any:
            one = module.ReassignablePartition(partition_index=partition, replicas=tuple(replicas))
            topic = module.ReassignableTopic(name=name, partitions=(one,))
            return module.AlterPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=(topic,))

        answer = self.client.ask_any("alter_partition_reassignments", range(1), make)
        if answer.error_code != ErrorCode.NONE:
            error: ErrorCode = answer.error_code
            return error
        one_error: ErrorCode = answer.responses[0].partitions[0].error_code
        return one_error

    def _still_eligible(self, name: str, partition: int) -> set[int]:
        """The brokers that a reassignment has taken a partition from and left among the eligible leaders, as in Kafka.

        They have deleted their replica. Where they get it back, one may be elected that has nothing.
        """
        topic = self._newest().topics.get_topic(name)
        state = None if topic is None else topic.partitions.get(partition)
        return set() if state is None else {*state.elr} - {*state.replicas}

    def elect(self) -> ErrorCode:
        """Elect the preferred leaders of all partitions."""

        def make(module: Any) -> Any:
            return module.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout=_TIMEOUT)

        answer = self.client.ask_any("elect_leaders", range(2, 3), make)
        error: ErrorCode = answer.error_code
        return error
