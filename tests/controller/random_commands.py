"""Random valid and invalid commands for a controlled cluster, for property tests of histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kraftlake.controller.cluster.brokers import maybe_fence_stale_broker, unregister_broker
from kraftlake.controller.cluster.features import FeatureUpdate, UpgradeType, update_features
from kraftlake.controller.cluster.producer_ids import allocate_producer_ids
from kraftlake.controller.configs.alter_configs import ConfigOperation, OpType, incremental_alter_configs
from kraftlake.controller.replication.alter_partition import IsrChange, alter_partition
from kraftlake.controller.replication.directories import assign_replicas_to_dirs
from kraftlake.controller.replication.elections import ElectionType, elect_leaders, maybe_balance_leaders
from kraftlake.controller.replication.elections import maybe_elect_unclean_leaders as elect_unclean
from kraftlake.controller.replication.reassignments import alter_partition_reassignments
from kraftlake.controller.replication.topics import NewPartitions, create_partitions, delete_topics
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.records.uuid import Uuid
from tests.controller.controlled_cluster import ControlledCluster, directory

BROKERS = (1, 2, 3, 4)
TOPICS = ("orders", "bills", "log.lines")
Draw = Callable[[st.SearchStrategy[Any]], Any]

brokers = st.sampled_from(BROKERS)
names = st.sampled_from(TOPICS)
replica_lists = st.lists(brokers, min_size=1, max_size=4, unique=True).map(tuple)


def register(draw: Draw, cluster: ControlledCluster) -> None:
    broker = draw(brokers)
    known = cluster.state.registration(broker)
    clean = known.epoch if known is not None and draw(st.booleans()) else -1
    cluster.register(broker, process=draw(st.integers(0, 1)), dirs=draw(st.integers(1, 2)), clean=clean)


def heartbeat(draw: Draw, cluster: ControlledCluster) -> None:
    broker = draw(brokers)
    end = cluster.state.next_offset
    wishes: dict[str, Any] = {
        "want_fence": draw(st.integers(0, 5)) == 0,
        "want_shut_down": draw(st.integers(0, 5)) == 0,
    }
    if draw(st.integers(0, 9)) == 0:
        wishes["offline_log_dirs"] = (directory(broker, 1),)
    if draw(st.integers(0, 9)) == 0:
        wishes["cordoned_log_dirs"] = draw(st.sampled_from(((), (directory(broker),))))
    cluster.heartbeat(broker, offset=end - draw(st.sampled_from((1, 1, 1, 4))), **wishes)


def pass_time(draw: Draw, cluster: ControlledCluster) -> None:
    cluster.clock.advance(draw(st.sampled_from((500, 4_000, 9_500))))
    while cluster.run(maybe_fence_stale_broker):
        pass


def create(draw: Draw, cluster: ControlledCluster) -> None:
    configs = draw(
        st.sampled_from(
            ({}, {"min.insync.replicas": "2"}, {"unclean.leader.election.enable": "true"}, {"nonsense": "1"})
        )
    )
    if draw(st.booleans()):
        cluster.create(draw(names), num_partitions=2, replication_factor=draw(st.integers(1, 3)), configs=configs)
    else:
        partitions = draw(st.lists(replica_lists, min_size=1, max_size=3))
        cluster.create(draw(names), assignments=list(enumerate(partitions)), configs=configs)


def delete(draw: Draw, cluster: ControlledCluster) -> None:
    topic = cluster.image.topics.get_topic(draw(names))
    ids = [Uuid(b"nobody-has-this!") if topic is None else topic.id]
    cluster.run(lambda state: delete_topics(state, ids))


def grow(draw: Draw, cluster: ControlledCluster) -> None:
    more = NewPartitions(name=draw(names), count=draw(st.integers(1, 4)))
    cluster.run(lambda state: create_partitions(state, [more]))


def change_isr(draw: Draw, cluster: ControlledCluster) -> None:
    topic = cluster.image.topics.get_topic(draw(names))
    if topic is None:
        return
    number, partition = sorted(topic.partitions.items())[0]
    isr = draw(st.lists(st.sampled_from(partition.replicas), unique=True))
    leader = partition.leader if partition.leader > 0 else partition.replicas[0]
    registration = cluster.state.registration(leader)
    if registration is None:
        return
    change = IsrChange(
        topic_id=topic.id,
        partition_id=number,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch - draw(st.sampled_from((0, 0, 0, 1))),
        new_isr=tuple((broker, -1) for broker in dict.fromkeys((leader, *isr))),
        leader_recovery_state=draw(st.sampled_from((0, 0, 1))),
    )
    cluster.run(lambda state: alter_partition(state, leader, registration.epoch, [change]))


def reassign(draw: Draw, cluster: ControlledCluster) -> None:
    targets = [((draw(names), draw(st.integers(0, 2))), draw(st.none() | replica_lists))]
    cluster.run(lambda state: alter_partition_reassignments(state, targets))


def elect(draw: Draw, cluster: ControlledCluster) -> None:
    kind = draw(st.sampled_from(ElectionType))
    cluster.run(lambda state: elect_leaders(state, kind, None))


def tend(draw: Draw, cluster: ControlledCluster) -> None:
    cluster.run(draw(st.sampled_from((maybe_balance_leaders, elect_unclean))))


def configure(draw: Draw, cluster: ControlledCluster) -> None:
    resource = draw(
        st.sampled_from(
            (ConfigResource(2, "orders"), ConfigResource(4, ""), ConfigResource(4, "1"), ConfigResource(2, "no"))
        )
    )
    name = draw(st.sampled_from(("min.insync.replicas", "unclean.leader.election.enable", "cleanup.policy")))
    value = {"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "cleanup.policy": "compact"}[name]
    kind = draw(st.sampled_from((OpType.SET, OpType.DELETE, OpType.APPEND, OpType.SUBTRACT)))
    operation = ConfigOperation(kind, None if kind is OpType.DELETE else value)
    cluster.run(lambda state: incremental_alter_configs(state, {resource: {name: operation}}))


def place(draw: Draw, cluster: ControlledCluster) -> None:
    broker, topic = draw(brokers), cluster.image.topics.get_topic(draw(names))
    registration = cluster.state.registration(broker)
    if topic is None or registration is None:
        return
    directories = {directory(broker, draw(st.integers(0, 1))): [(topic.id, draw(st.integers(0, 2)))]}
    cluster.run(lambda state: assign_replicas_to_dirs(state, broker, registration.epoch, directories))


def unregister(draw: Draw, cluster: ControlledCluster) -> None:
    broker = draw(brokers)
    cluster.run(lambda state: unregister_broker(state, broker))


def upgrade(draw: Draw, cluster: ControlledCluster) -> None:
    name = draw(st.sampled_from(("eligible.leader.replicas.version", "metadata.version", "share.version")))
    level = draw(st.sampled_from((0, 1, 23, 33)))
    kind = draw(st.sampled_from(UpgradeType))
    cluster.run(lambda state: update_features(state, {name: FeatureUpdate(level, kind)}))


def allocate(draw: Draw, cluster: ControlledCluster) -> None:
    registration = cluster.state.registration(draw(brokers))
    if registration is not None:
        cluster.run(lambda state: allocate_producer_ids(state, registration.id, registration.epoch))


COMMANDS = (
    *(heartbeat,) * 6, *(create,) * 3, *(change_isr,) * 3, *(pass_time,) * 2, *(reassign,) * 2, register, delete, grow,
    elect, tend, configure, place, unregister, upgrade, allocate,
)  # fmt: skip
