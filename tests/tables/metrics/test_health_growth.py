"""The counts of a cluster's health by columns are those of its objects, in one process and by shards."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_version import LATEST
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.few_examples import few_examples
from tests.health_changes import CHANGES, HERE, change, config, fence, lose, made
from tests.replay.made_logs import metadata_version, partition, topic
from tests.tables.logs_for_writers import cut
from tests.tables.metrics.test_cluster_metrics import counted, written
from tests.tables.shards.one_process import by_shards, in_process

DELTAS = st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=12)


def log_of(deltas: Sequence[Sequence[Message]]) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    for messages in ([metadata_version(LATEST.level), *made()], *deltas):
        newest = [ApiMessageAndVersion(message, type(message).VERSIONS.high or 0) for message in messages]
        batches.append(RecordBatch.of(batches[-1].last_offset + 1 if batches else 0, 1, len(batches), newest))
    return batches


@few_examples
@given(deltas=DELTAS, cuts=st.lists(st.integers(0, 12), max_size=3))
def test_each_delta_has_the_counts_of_its_objects(deltas: list[list[Message]], cuts: list[int]) -> None:
    log = log_of(deltas)
    assert written(cut(log, cuts)) == counted(log)


@few_examples
@given(deltas=DELTAS, cuts=st.lists(st.integers(0, 12), max_size=3), shards=st.integers(2, 3))
def test_shards_add_up(deltas: list[list[Message]], cuts: list[int], shards: int) -> None:
    log = log_of(deltas)
    assert by_shards(cut(log, cuts), shards)["cluster_metrics"] == in_process(log)["cluster_metrics"]


def test_a_topic_that_comes_anew_under_its_name_counts_by_its_own_configs() -> None:
    again = r.TopicRecord(name="topic-0", topic_id=topic(7).topic_id)
    new = partition(7, replicas=(1, 2, 3), isr=(1,), directories=(HERE,) * 3)
    deltas = [
        [config(2, "topic-0", "2"), change(0, (1,))],
        [r.RemoveTopicRecord(topic_id=topic(0).topic_id), again, new],
        [config(4, "", "3")],
        [fence(1, 1), lose(2, (HERE,)), change(1, (1, 2))],
    ]
    log = log_of(deltas)
    rows = written([log])
    assert rows == counted(log) == written(cut(log, (1, 2, 3)))
    assert [row[10] for row in rows] == [0, 1, 0, 1, 2]
