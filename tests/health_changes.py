"""Changes of what counts in a cluster's health: of partitions, brokers and configs."""

from __future__ import annotations

from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from tests.replay.made_logs import partition, topic

TOPICS = range(3)
HERE, THERE = (Uuid(number.to_bytes(16, "big")) for number in (1001, 1002))
_NUMBERS = st.sampled_from(TOPICS)


def change(number: int, isr: tuple[int, ...]) -> Message:
    return r.PartitionChangeRecord(partition_id=0, topic_id=topic(number).topic_id, isr=isr)


def config(type_: int, name: str, value: str | None) -> Message:
    return r.ConfigRecord(resource_type=type_, resource_name=name, name="min.insync.replicas", value=value)


def fence(broker: int, fenced: int) -> Message:
    return r.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=fenced)


def lose(broker: int, directories: tuple[Uuid, ...]) -> Message:
    return r.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, log_dirs=directories)


def reassign(number: int, adding: tuple[int, ...]) -> Message:
    return r.PartitionChangeRecord(
        partition_id=0, topic_id=topic(number).topic_id, replicas=(1, 2, 3, *adding), adding_replicas=adding,
        directories=(HERE,) * (3 + len(adding)),
    )  # fmt: skip


def recover(number: int, state: int) -> Message:
    return r.PartitionChangeRecord(partition_id=0, topic_id=topic(number).topic_id, leader_recovery_state=state)


_BROKERS = st.sampled_from([1, 2, 3])
_VALUES = st.sampled_from(["1", "2", "3", "many", None])
CHANGES = st.one_of(
    st.builds(change, _NUMBERS, st.sampled_from([(1,), (1, 2), (1, 2, 3)])),
    st.builds(config, st.just(2), _NUMBERS.map("topic-{}".format), _VALUES),
    st.builds(config, st.just(4), st.just(""), _VALUES),
    st.builds(config, st.just(4), st.just("1"), _VALUES),
    st.builds(fence, _BROKERS, st.sampled_from([1, -1])),
    st.builds(lose, _BROKERS, st.sampled_from([(HERE,), (THERE,), (HERE, THERE)])),
    st.builds(reassign, _NUMBERS, st.sampled_from([(), (4,), (4, 5)])),
    st.builds(recover, _NUMBERS, st.sampled_from([0, 1])),
)


def made() -> list[Message]:
    """Three brokers with two directories each, and three topics on them."""
    brokers = [
        r.RegisterBrokerRecord(broker_id=id_, broker_epoch=id_, fenced=False, log_dirs=(HERE, THERE))
        for id_ in (1, 2, 3)
    ]
    partitions = [partition(number, replicas=(1, 2, 3), directories=(HERE, HERE, THERE)) for number in TOPICS]
    return [*brokers, *map(topic, TOPICS), *partitions]
