"""The requests that can have made records and events."""

from __future__ import annotations

import pytest

from kraftlake.diagnosis.attribution.causes import REQUESTS, cause_of, cause_of_event
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import Message
from kraftlake.tables.events.events_table import KINDS
from tests.replay import made_logs as log

NAMES = {log.uuid_of(1): "x"}
ID, NONE = log.uuid_of(1), log.uuid_of(9)


def config(type_: int, name: str) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=type_, resource_name=name, name="c", value="1")


def change(**fields: object) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=ID, partition_id=0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "requests", "name", "by_nodes"),
    [
        (r.TopicRecord(name="x", topic_id=ID), ["CreateTopics"], "x", False),
        (r.RemoveTopicRecord(topic_id=ID), ["DeleteTopics"], "x", False),
        (log.partition(1), ["CreatePartitions", "CreateTopics"], "x", False),
        (config(2, "x"), ["IncrementalAlterConfigs", "AlterConfigs", "CreateTopics"], "x", False),
        (config(4, "1"), ["IncrementalAlterConfigs", "AlterConfigs"], None, False),
        (config(32, "g"), ["IncrementalAlterConfigs", "AlterConfigs"], "g", False),
        (change(adding_replicas=(3,)), ["AlterPartitionReassignments"], None, False),
        (change(replicas=(1, 2), adding_replicas=()), ["AlterPartitionReassignments"], None, True),
        (change(leader=2), ["ElectLeaders", "UnregisterBroker"], None, True),
        (change(isr=(1,)), [], None, True),
        (r.NoOpRecord(), [], None, True),
    ],
)
def test_the_requests_of_a_record(message: Message, requests: list[str], name: str | None, by_nodes: bool) -> None:
    cause = cause_of(message, NAMES)
    assert (list(cause.requests), cause.name, bool(cause.nodes)) == (requests, name, by_nodes)


def test_every_record_and_every_kind_of_event_has_a_cause() -> None:
    causes = [cause_of(record(), {}) for record in METADATA_RECORDS.values()]
    causes += [cause_of_event(kind, "topic x", "x" if kind in TOPICS else None) for kind in KINDS]
    assert len(causes) == len(METADATA_RECORDS) + len(KINDS)
    for cause in causes:
        assert cause.ways or cause.nodes
        assert {*cause.requests} <= {*REQUESTS}


TOPICS = ("topic_created", "topic_deleted", "partitions_added", "config_changed")


def test_the_events_of_topics_are_of_the_requests_of_their_records() -> None:
    assert [cause_of_event(kind, "topic x", "x").requests[0] for kind in TOPICS] == [
        "CreateTopics", "DeleteTopics", "CreatePartitions", "IncrementalAlterConfigs",
    ]  # fmt: skip
    assert cause_of_event("config_changed", "group g", None).name == "g"
    assert {way.resource_type for way in cause_of_event("config_changed", "broker 1", None).ways} == {"CLUSTER"}
