"""What began a stretch of trouble, and how long it was: by logs of a few records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kraftlake.api import Source
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.replay import made_logs as log

T = log.TIME
FENCE, SHUT_DOWN, UNFENCE = {"fenced": 1}, {"in_controlled_shutdown": 1}, {"fenced": -1}
VERSIONS = {r.RegisterBrokerRecord: 3, r.BrokerRegistrationChangeRecord: 2, r.PartitionChangeRecord: 2}
DIRECTORIES = (log.uuid_of(70), log.uuid_of(71))


def broker(id_: int, *, incarnation: int = 1, fenced: bool = False) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(
        broker_id=id_, broker_epoch=id_, incarnation_id=log.uuid_of(incarnation), fenced=fenced, log_dirs=DIRECTORIES
    )


def registration(id_: int, **fields: Any) -> r.BrokerRegistrationChangeRecord:
    return r.BrokerRegistrationChangeRecord(broker_id=id_, broker_epoch=id_, **fields)


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, **fields)


def config(value: str | None, topic: str = "topic-1") -> r.ConfigRecord:
    kind = 2 if topic else 4
    return r.ConfigRecord(resource_type=kind, resource_name=topic, name="min.insync.replicas", value=value)


BEGIN = (log.metadata_version(25), broker(1), broker(2), broker(3), log.topic(1))
THREE = log.partition(1, replicas=(1, 2, 3))


def source_of(*timed: tuple[int, Sequence[Message]]) -> Source:
    """A log of batches, each at a second."""
    batches: list[RecordBatch] = []
    offset = 0
    for second, messages in timed:
        records = [ApiMessageAndVersion(message, VERSIONS.get(type(message), 0)) for message in messages]
        batches.append(RecordBatch.of(offset, 1, T + 1000 * second, records))
        offset += len(messages)
    return Source(log.MadeLog(records=tuple(batches)), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]


def only_row(source: Source, **window: Any) -> dict[str, Any]:
    (row,) = source.availability(by="partition", **window).rows.to_pylist()
    return row


def cause(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["longest_trouble"], row["longest_seconds"], row["cause"], row["cause_broker"], row["cause_offset"]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([registration(1, **FENCE)], ("fenced", 1, 7)),
        ([registration(1, **SHUT_DOWN)], ("shut_down", 1, 7)),
        ([broker(1, incarnation=2, fenced=True)], ("started_anew", 1, 7)),
        ([r.UnregisterBrokerRecord(broker_id=1, broker_epoch=1)], ("unregistered", 1, 7)),
        ([registration(1, log_dirs=DIRECTORIES[:1])], ("directory_failed", 1, 7)),
        ([], ("changed", 1, 6)),
    ],
)
def test_a_partition_is_offline_since_the_loss_of_its_leader(
    messages: list[Message], expected: tuple[Any, ...]
) -> None:
    source = source_of(
        (0, [*BEGIN, log.partition(1, replicas=(1, 2))]), (10, [change(leader=-1), *messages]),
        (15, [change(leader=2)]), (20, [r.NoOpRecord()]),
    )  # fmt: skip
    row = only_row(source)
    assert cause(row) == ("offline", 5.0, *expected)
    assert (row["seconds"], row["offline_seconds"], row["available_percent"]) == (20.0, 5.0, 75.0)
    assert (row["longest_begin_timestamp"], row["longest_end_timestamp"]) == (T + 10_000, T + 15_000)


def test_a_loss_that_came_before_its_effect_is_the_cause() -> None:
    source = source_of(
        (0, [*BEGIN, log.partition(1, replicas=(1, 2))]), (5, [registration(1, **SHUT_DOWN)]),
        (9, [registration(1, **FENCE), change(leader=-1)]), (12, [r.NoOpRecord()]),
    )  # fmt: skip
    row = only_row(source)
    assert cause(row) == ("offline", 3.0, "shut_down", 1, 6)
    assert row["longest_end_timestamp"] is None
    assert row["led_by_fenced_seconds"] == 0.0


def test_a_fenced_leader_that_stays() -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (4, [registration(1, **FENCE)]), (6, [registration(1, **UNFENCE)]), (8, [r.NoOpRecord()])
    )
    row = only_row(source)
    assert cause(row) == ("led_by_fenced", 2.0, "fenced", 1, 6)
    assert row["available_percent"] == 100.0


def test_the_broker_that_took_the_isr_under_the_minimum_is_the_cause() -> None:
    source = source_of(
        (0, [*BEGIN, THREE, config("2")]), (2, [change(isr=(1, 2)), registration(3, **FENCE)]),
        (5, [change(isr=(1,)), registration(2, **FENCE)]), (9, [r.NoOpRecord()]),
    )  # fmt: skip
    row = only_row(source)
    assert cause(row) == ("under_min_isr", 4.0, "fenced", 2, 10)
    assert row["one_in_sync_seconds"] == 4.0


def test_of_several_that_leave_the_isr_the_lost_one_is_the_cause() -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (1, [change(isr=(1,)), registration(3, **FENCE)]), (2, [change(isr=(1, 2))]),
        (3, [change(isr=(1,))]), (4, [change(isr=(1, 2))]), (5, [r.NoOpRecord()]),
    )  # fmt: skip
    found = source.availability(by="broker").rows.to_pylist()
    assert {row["broker"]: (row["one_in_sync_seconds"], row["cause"], row["losses"]) for row in found} == {
        1: (0.0, None, 0),
        2: (1.0, "out_of_sync", 0),
        3: (1.0, "fenced", 1),
    }
    fenced = {row["broker"]: row["fenced_seconds"] for row in found}
    assert fenced == {1: 0.0, 2: 0.0, 3: 4.0}


@pytest.mark.parametrize(("topic", "offset"), [("topic-1", 7), ("", 7)])
def test_the_minimum_is_that_of_the_moment(topic: str, offset: int) -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (1, [change(isr=(1, 2))]), (3, [config("3", topic)]), (8, [config(None, topic)]),
        (9, [r.NoOpRecord()]),
    )  # fmt: skip
    assert cause(only_row(source)) == ("under_min_isr", 5.0, "configured", None, offset)


def test_a_topic_counts_from_its_creation_to_its_deletion() -> None:
    source = source_of(
        (0, BEGIN[:4]), (3, [log.topic(1), log.partition(1, replicas=(1, 2), leader=-1)]),
        (8, [r.RemoveTopicRecord(topic_id=log.uuid_of(1))]), (9, [log.topic(2, "topic-1"), log.partition(2)]),
        (20, [r.NoOpRecord()]),
    )  # fmt: skip
    found = source.availability()
    seconds = [
        (row["topic"], row["topic_id"], row["seconds"], row["available_percent"]) for row in found.rows.to_pylist()
    ]
    ids = [str(log.uuid_of(number)) for number in (1, 2)]
    assert seconds == [("topic-1", ids[0], 5.0, 0.0), ("topic-1", ids[1], 11.0, 100.0)]
    assert (found.total["cause"], found.total["cause_broker"]) == ("created", None)
    assert found.total["longest_end_timestamp"] == T + 8000


def test_records_of_a_transaction_count_from_its_end_on() -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (2, [log.begin(), change(leader=-1)]), (5, [registration(1, **FENCE), log.end()]),
        (7, [r.NoOpRecord()]),
    )  # fmt: skip
    assert cause(only_row(source)) == ("offline", 2.0, "fenced", 1, 9)


def test_eligible_leaders_leave_a_partition_offline() -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (2, [change(leader=-1, isr=(), eligible_leader_replicas=(1,)), registration(1, **FENCE)]),
        (6, [registration(1, **UNFENCE), change(leader=1, isr=(1,), eligible_leader_replicas=())]),
        (7, [r.NoOpRecord()]),
    )  # fmt: skip
    row = only_row(source)
    assert cause(row) == ("offline", 4.0, "fenced", 1, 7)
    assert (row["under_min_isr_seconds"], row["one_in_sync_seconds"]) == (4.0, 1.0)


def test_a_clock_that_goes_back_stands_still() -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (10, [change(leader=-1)]), (4, [change(leader=2)]), (8, [change(leader=-1)]),
        (12, [change(leader=2)]), (11, [r.NoOpRecord()]),
    )  # fmt: skip
    found = source.availability(by="partition")
    assert found.total["offline_seconds"] == 2.0
    assert (found.begin, found.end, found.clock_back_ms) == (T, T + 12_000, 6000)


def test_what_began_before_the_window_has_its_cause() -> None:
    source = source_of(
        (0, [*BEGIN, THREE]), (10, [change(leader=-1), registration(1, **FENCE)]), (20, [r.NoOpRecord()]),
        (30, [change(leader=2)]), (40, [r.NoOpRecord()]),
    )  # fmt: skip
    row = only_row(source, from_offset=8)
    assert cause(row) == ("offline", 10.0, "fenced", 1, 7)
    assert row["seconds"] == 20.0
