"""When the tasks of an active controller run."""

from __future__ import annotations

from kraftlake.controller.cluster.brokers import maybe_fence_stale_broker
from kraftlake.controller.quorum.periodic_tasks import periodic_tasks
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


def test_without_sessions_the_first_that_can_expire_is_that_of_a_broker_heard_from_now() -> None:
    cluster = ControlledCluster(broker_session_timeout_ms=3_000)
    assert until_fencing_ms(cluster) == 3_000 + 1e-6
