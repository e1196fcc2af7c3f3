"""What a whole cluster may lack when no fault is left: what Kafka 4.4 lacks then, too."""

from __future__ import annotations

import pytest

from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.records.uuid import Uuid
from simulator.peace import waits_for_removed


@pytest.mark.parametrize(
    ("leader", "isr", "elr", "waits"),
    [
        (NO_LEADER, (), (3,), True),
        (NO_LEADER, (), (3, 4), False),
        (NO_LEADER, (), (), False),
        (4, (4,), (3,), False),
    ],
)
def test_a_partition_waits_for_ever_for_removed_replicas_alone(
    leader: int, isr: tuple[int, ...], elr: tuple[int, ...], waits: bool
) -> None:
    state = PartitionRegistration(
        replicas=(2, 4, 1), directories=(Uuid.random(),) * 3, isr=isr, elr=elr, leader=leader, leader_epoch=8,
        partition_epoch=18,
    )  # fmt: skip
    assert waits_for_removed(state) == waits
