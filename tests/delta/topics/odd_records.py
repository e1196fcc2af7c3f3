"""Random records of topics: common ones, odd ones that Kafka takes, and ones that contradict what is there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid
from tests.histories import uuid_of

TIME = 1_700_000_000_000
IDS = st.integers(1001, 1004).map(uuid_of)
NAMES = ("a", "b", "föö", "new\nline", "n" * 260, "")
PARTITIONS = st.sampled_from([0, 1, 2, 0, 1, 2, -1, 7, 2**31 - 1, -(2**31)])
WIDE = tuple(range(1, 1100))
BROKERS = st.sampled_from([(1, 2, 3), (1, 2, 3), (1,), (), (1, 2, 3, 4, 5), WIDE])
LISTS = st.one_of(st.none(), BROKERS)
DIRECTORIES = st.sampled_from([Uuid.ZERO, uuid_of(1), uuid_of(77)])


@st.composite
def _partition(draw: Any) -> r.PartitionRecord:
    replicas = draw(BROKERS)
    return r.PartitionRecord(
        partition_id=draw(PARTITIONS), topic_id=draw(IDS), replicas=replicas, isr=draw(BROKERS), leader=1,
        leader_epoch=draw(st.sampled_from([0, 2**31 - 1])), partition_epoch=0,
        leader_recovery_state=draw(st.sampled_from([0, 0, 0, 1, 2])),
        directories=draw(st.sampled_from([(), (uuid_of(77),) * len(replicas), (Uuid.ZERO,)])),
        adding_replicas=draw(st.sampled_from([(), (4,)])),
        eligible_leader_replicas=draw(LISTS), last_known_elr=draw(LISTS),
    )  # fmt: skip


@st.composite
def _change(draw: Any) -> r.PartitionChangeRecord:
    fields: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "isr": BROKERS,
                "leader": st.integers(-1, 4),
                "replicas": BROKERS,
                "leader_recovery_state": st.sampled_from([0, 1, 2]),
                "directories": st.lists(DIRECTORIES, max_size=4).map(tuple),
                "removing_replicas": BROKERS,
                "eligible_leader_replicas": BROKERS,
                "last_known_elr": BROKERS,
            },
        )
    )
    return r.PartitionChangeRecord(partition_id=draw(PARTITIONS), topic_id=draw(IDS), **fields)


_TOPICS = st.one_of(
    st.integers(0, 3).map(lambda n: r.TopicRecord(name=NAMES[n], topic_id=uuid_of(1001 + n))),
    st.builds(r.TopicRecord, name=st.sampled_from(NAMES), topic_id=IDS),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    _TOPICS,
    _partition(),
    _partition(),
    _change(),
    _change(),
    st.builds(r.RemoveTopicRecord, topic_id=IDS),
    st.builds(r.ClearElrRecord, topic_name=st.sampled_from(["", "", "a", "föö", "b"])),
    st.just(r.NoOpRecord()),
)


@st.composite
def values(draw: Any) -> bytes:
    """A record's value, perhaps written in an odd way, or damaged."""
    message: Message = draw(MESSAGES)
    value = encode_value(message, type(message).VERSIONS.high)
    match draw(st.sampled_from(["plain"] * 8 + ["long frame", "unknown tag", "cut"])):
        case "long frame":
            return bytes((0x81, 0x00)) + value[1:]
        case "unknown tag" if value[-1] == 0:
            return value[:-1] + bytes((1, 99, 2, 5, 6))
        case "cut":
            return value[:-1]
    return value


@st.composite
def odd_logs(draw: Any) -> list[RecordBatch]:
    """The batches of a log that begins with some partitions, of up to 9 records each."""
    first = [r.TopicRecord(name="a", topic_id=uuid_of(1001))]
    begin = [encode_value(message, 0) for message in first]
    found, batches = [*begin, *draw(st.lists(values(), min_size=1, max_size=40))], []
    while found:
        size = draw(st.integers(1, 9))
        offset = batches[-1].last_offset + 1 if batches else 0
        some, time = tuple(found[:size]), TIME + offset
        batches.append(
            RecordBatch(base_offset=offset, epoch=1, timestamp=time, values=some, timestamps=(time,) * len(some))
        )
        del found[:size]
    return batches
