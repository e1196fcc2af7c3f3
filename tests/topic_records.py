"""Random records of topics that hardly fit together: wide lists, sparse partitions, ELR, contradictions."""

from __future__ import annotations

from hypothesis import strategies as st

from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.histories import uuid_of

FEW = st.lists(st.integers(0, 9), max_size=5, unique=True).map(tuple)
SOME = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(tuple)
DIRECTORY = st.sampled_from([uuid_of(0), uuid_of(1), uuid_of(300)])
TOPIC_ID = st.integers(1, 4).map(lambda number: uuid_of(1000 + number))


@st.composite
def partition_records(draw):
    replicas = draw(SOME)
    count = draw(st.sampled_from([len(replicas)] * 9 + [1]))
    return PartitionRecord(
        topic_id=draw(TOPIC_ID), partition_id=draw(st.integers(0, 3)), replicas=replicas, isr=draw(FEW),
        adding_replicas=draw(st.one_of(st.just(()), FEW)), removing_replicas=draw(st.one_of(st.just(()), FEW)),
        leader=draw(st.integers(-1, 9)), leader_epoch=draw(st.integers(0, 2)), partition_epoch=draw(st.integers(0, 2)),
        leader_recovery_state=draw(st.sampled_from([0] * 20 + [1, 2])),
        directories=draw(st.one_of(st.just(()), st.tuples(*[DIRECTORY] * count))),
        eligible_leader_replicas=draw(st.one_of(st.none(), FEW)), last_known_elr=draw(st.one_of(st.none(), FEW)),
    )  # fmt: skip


@st.composite
def changes(draw):
    count = draw(st.integers(1, 5))
    return PartitionChangeRecord(
        topic_id=draw(TOPIC_ID), partition_id=draw(st.integers(0, 3)), isr=draw(st.one_of(st.none(), FEW)),
        leader=draw(st.sampled_from([-2, -2, -1, 0, 5])), replicas=draw(st.one_of(st.none(), SOME)),
        adding_replicas=draw(st.one_of(st.none(), FEW)), removing_replicas=draw(st.one_of(st.none(), FEW)),
        leader_recovery_state=draw(st.sampled_from([-1] * 10 + [0, 1, 3])),
        directories=draw(st.one_of(st.none(), st.just(()), st.tuples(*[DIRECTORY] * count))),
        eligible_leader_replicas=draw(st.one_of(st.none(), FEW)), last_known_elr=draw(st.one_of(st.none(), FEW)),
    )  # fmt: skip


TOPICS = st.builds(TopicRecord, name=st.sampled_from(["a", "b", "c", "ü"]), topic_id=TOPIC_ID)
