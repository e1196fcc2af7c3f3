"""The rules of eligible leader replicas (KIP-966); test_partition_change compares them with Kafka's own class."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.controller.replication.partition_change import (
    Election,
    PartitionContext,
    TargetState,
    build_partition_change,
)
from kraftlake.image.topics.partition_registration import NO_LEADER, LeaderRecoveryState, PartitionRegistration
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.uuid import Uuid

DIRECTORY = Uuid(b"directory-of-all")


def change(
    partition: dict[str, Any], target: TargetState, *, acceptable: tuple[int, ...] = (1, 2, 3), **context: Any
) -> Any:
    """The changed fields, of a partition on brokers 1, 2 and 3 whose min.insync.replicas are 2; None for no change."""
    fields = {
        "replicas": (1, 2, 3),
        "directories": (DIRECTORY,) * 3,
        "leader_epoch": 5,
        "partition_epoch": 7,
    } | partition
    record = build_partition_change(
        PartitionRegistration(**fields),
        PartitionContext(
            topic_id=Uuid(b"topic-topic-topi"),
            partition_id=0,
            is_acceptable_leader=acceptable.__contains__,
            metadata_version=from_feature_level(33),
            min_isr=2,
            elr_enabled=context.get("elr_enabled", True),
            default_dir=lambda broker: DIRECTORY,
        ),
        target,
    )
    if record is None:
        return None
    message = record.message
    assert isinstance(message, PartitionChangeRecord)
    found = (message.leader, message.isr, message.eligible_leader_replicas, message.last_known_elr)
    return dict(zip(("leader", "isr", "elr", "last_known_elr"), found, strict=True))


KEPT = -2  # a leader that a record leaves as it is


@pytest.mark.parametrize(
    ("rule", "partition", "target", "options", "expected"),
    [
        (
            "who leaves an ISR that falls below the minimum is eligible",
            {"leader": 1, "isr": (1, 2)}, TargetState(isr=(1,)), {},
            {"leader": KEPT, "isr": (1,), "elr": (2,), "last_known_elr": None},
        ),
        (
            "who leaves an ISR that keeps the minimum is not",
            {"leader": 1, "isr": (1, 2, 3)}, TargetState(isr=(1, 2)), {},
            {"leader": KEPT, "isr": (1, 2), "elr": None, "last_known_elr": None},
        ),
        (
            "nobody is eligible without the feature",
            {"leader": 1, "isr": (1, 2)}, TargetState(isr=(1,)), {"elr_enabled": False},
            {"leader": KEPT, "isr": (1,), "elr": None, "last_known_elr": None},
        ),
        (
            "a broker that shut down uncleanly loses its eligibility",
            {"leader": 1, "isr": (1,), "elr": (2, 3)}, TargetState(unclean_shutdown=2), {},
            {"leader": KEPT, "isr": None, "elr": (3,), "last_known_elr": None},
        ),
        (
            "nobody is eligible any more once the ISR has the minimum",
            {"leader": 1, "isr": (1,), "elr": (3,)}, TargetState(isr=(1, 2)), {},
            {"leader": KEPT, "isr": (1, 2), "elr": (), "last_known_elr": None},
        ),
        (
            "the last of the ISR that goes is eligible, and the last known leader",
            {"leader": 1, "isr": (1,), "elr": (2,)}, TargetState(isr=()), {"acceptable": ()},
            {"leader": NO_LEADER, "isr": (), "elr": (1, 2), "last_known_elr": (1,)},
        ),
        (
            "with an empty ISR an eligible replica is elected, and is the ISR then",
            {"leader": NO_LEADER, "isr": (), "elr": (1, 3), "last_known_elr": (2,)},
            TargetState(), {"acceptable": (2, 3)},
            {"leader": 3, "isr": (3,), "elr": (1,), "last_known_elr": ()},
        ),
        (
            "an eligible replica is not elected while the ISR has members",
            {"leader": NO_LEADER, "isr": (1,), "elr": (2,), "last_known_elr": (1,)},
            TargetState(), {"acceptable": (2,)},
            None,
        ),
        (
            "the last known leader is not elected while there are eligible replicas",
            {"leader": NO_LEADER, "isr": (), "elr": (1,), "last_known_elr": (2,)}, TargetState(), {"acceptable": (2,)},
            None,
        ),
        (
            "the last known leader is elected where nobody is left",
            {"leader": NO_LEADER, "isr": (), "elr": (), "last_known_elr": (2,)}, TargetState(), {"acceptable": (2, 3)},
            {"leader": 2, "isr": (2,), "elr": None, "last_known_elr": ()},
        ),
        (
            "another replica than the last known leader is elected uncleanly only where that is allowed",
            {"leader": NO_LEADER, "isr": (), "elr": (), "last_known_elr": (2,)}, TargetState(), {"acceptable": (3,)},
            None,
        ),
        (
            "an unclean election leaves nobody eligible",
            {"leader": NO_LEADER, "isr": (), "elr": (1,), "last_known_elr": (1,)},
            TargetState(election=Election.UNCLEAN),
            {"acceptable": (3,)}, {"leader": 3, "isr": (3,), "elr": (), "last_known_elr": ()},
        ),
    ],
    ids=lambda it: it.replace(" ", "-") if isinstance(it, str) else "",
)  # fmt: skip
def test_eligible_leader_replicas(
    rule: str, partition: dict[str, Any], target: TargetState, options: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    assert change(partition, target, **options) == expected, rule


def test_the_last_known_leader_recovers_since_it_may_lack_committed_records() -> None:
    lost = PartitionRegistration(
        replicas=(1, 2), directories=(DIRECTORY,) * 2, isr=(), last_known_elr=(2,), leader=NO_LEADER, leader_epoch=5,
        partition_epoch=7,
    )  # fmt: skip
    context = PartitionContext(
        topic_id=Uuid(b"topic-topic-topi"), partition_id=0, is_acceptable_leader=(2,).__contains__,
        metadata_version=from_feature_level(33), min_isr=2, elr_enabled=True, default_dir=lambda broker: DIRECTORY,
    )  # fmt: skip
    record = build_partition_change(lost, context, TargetState())
    assert record is not None
    assert isinstance(record.message, PartitionChangeRecord)
    assert record.message.leader_recovery_state == int(LeaderRecoveryState.RECOVERING)
