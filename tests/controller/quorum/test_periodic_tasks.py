"""When the tasks of an active controller run."""

from __future__ import annotations

import pytest

from kraftlake.controller.cluster.brokers import maybe_fence_stale_broker
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.periodic_tasks import periodic_tasks, write_no_op
from tests.controller.controlled_cluster import ControlledCluster


def until_fencing_ms(cluster: ControlledCluster) -> float:
    (task,) = [task for task in periodic_tasks(cluster.config) if task.command is maybe_fence_stale_broker]
    return task.pause_ms(cluster.state)


def test_a_broker_is_fenced_when_its_session_expires_and_nothing_is_done_before() -> None:
    cluster = ControlledCluster(broker_session_timeout_ms=3_000)
    cluster.start(1, 2)
    cluster.clock.advance(400)
    cluster.heartbeat(2)
    pause_ms = until_fencing_ms(cluster)
    assert pause_ms == 2_600 + 1e-6, "a heartbeat exactly at the timeout comes in time"
    cluster.clock.advance(2_600)
    assert cluster.run(maybe_fence_stale_broker) is False
    cluster.clock.advance(1e-6)
    assert cluster.run(maybe_fence_stale_broker) is True
    assert cluster.image.cluster.brokers[1].fenced
    assert cluster.run(maybe_fence_stale_broker) is False
    assert until_fencing_ms(cluster) == 400, "the other broker's session"


@pytest.mark.parametrize(
    ("idle_ms", "fetch_timeout_ms", "written_each_ms"),
    [(500, 2_000, 500), (1_000, 2_000, 1_000), (1_001, 2_000, 500), (None, 2_000, 500), (500, 500, 125)],
)
def test_no_ops_are_written_often_enough_that_no_standby_claims(
    idle_ms: int | None, fetch_timeout_ms: int, written_each_ms: float
) -> None:
    cluster = ControlledCluster()
    config = ControllerConfig(
        node_id=1, cluster_id="c", max_idle_interval_ms=idle_ms, quorum_fetch_timeout_ms=fetch_timeout_ms
    )
    (task,) = [task for task in periodic_tasks(config) if task.command is write_no_op]
    assert task.pause_ms(cluster.state) == written_each_ms


def test_without_sessions_the_first_that_can_expire_is_that_of_a_broker_heard_from_now() -> None:
    cluster = ControlledCluster(broker_session_timeout_ms=3_000)
    assert until_fencing_ms(cluster) == 3_000 + 1e-6
