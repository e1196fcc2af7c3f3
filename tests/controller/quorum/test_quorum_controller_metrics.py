"""The metrics of a controller process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kraftlake.controller.quorum.quorum_controller_metrics import KEPT, QuorumControllerMetrics, RecentValues
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.clock import ManualClock, SystemClock
from kraftlake.runtime.metrics import MetricsRegistry
from tests.controller.quorum.test_quorum_controller import controller, create, eventually, start_broker
from tests.waiting import PATIENCE, wait_for

CONTROLLER = "kafka.controller:type=KafkaController,name="
QUEUE = "kafka.controller:type=ControllerEventManager,name="


def test_an_active_controller_updates_its_metrics(lake: Path) -> None:
    registry = MetricsRegistry()
    with controller(lake, quorum_fetch_timeout_ms=600_000, max_idle_interval_ms=None) as made:
        made.metrics.register(registry, SystemClock(), session_timeout_ms=9_000)
        eventually(lambda: made.read(lambda _: None).result(PATIENCE))
        start_broker(made, 1)
        create(made, "orders")
        end = MetadataLog.open(lake).end_offset
        assert registry.value(CONTROLLER + "ActiveControllerCount") == 1
        assert registry.value(CONTROLLER + "NewActiveControllersCount") == 1
        assert registry.value(CONTROLLER + "LastAppliedRecordOffset") == end - 1
        assert registry.value(CONTROLLER + "LastCommittedRecordOffset") == end - 1
        assert registry.value(CONTROLLER + "LastAppliedRecordTimestamp") > 0
        assert registry.value(CONTROLLER + "EventQueueOperationsStartedCount") == 3
        assert registry.value(QUEUE + "EventQueueTimeMsCount") == 3
        assert registry.value(QUEUE + "EventQueueProcessingTimeMsCount") == 3
        assert registry.value(QUEUE + "EventQueueProcessingTimeMs,quantile=0.5") > 0
        assert 0 <= registry.value(CONTROLLER + "TimeSinceLastHeartbeatReceivedMs,broker=1") <= 9_000
        assert 0 < registry.value(QUEUE + "AvgIdleRatio") <= 1
        made.resign().result(PATIENCE)
        assert registry.value(CONTROLLER + "ActiveControllerCount") == 0
        assert not [s for s in registry.samples() if "TimeSinceLastHeartbeat" in s.name.name]


def test_a_standby_updates_its_metrics(lake: Path) -> None:
    with controller(lake, quorum_fetch_timeout_ms=600_000, max_idle_interval_ms=None) as leader:
        eventually(lambda: leader.read(lambda _: None).result(PATIENCE))
        with controller(lake, 2, at_once=False, quorum_fetch_timeout_ms=600_000) as standby:
            start_broker(leader, 1)
            end = MetadataLog.open(lake).end_offset
            eventually_equal(lambda: standby.metrics.last_applied_offset, end - 1)
            eventually_equal(lambda: standby.metrics.last_committed_offset, end - 1)
            assert not standby.metrics.active
            assert standby.metrics.operations_started == 0


def eventually_equal(question: Callable[[], int], expected: int) -> None:
    wait_for(lambda: question() == expected, expected)


def test_ages_are_measured_by_the_clock() -> None:
    clock, metrics, registry = ManualClock(1_000), QuorumControllerMetrics(), MetricsRegistry()
    metrics.register(registry, clock, session_timeout_ms=900)
    assert registry.value(CONTROLLER + "LastAppliedRecordLagMs") == 0, "nothing yet"
    metrics.applied(7, 400)
    assert registry.value(CONTROLLER + "LastAppliedRecordLagMs") == 600
    started = clock.nanoseconds()
    metrics.last_contacts = lambda: {1: started, 2: started}
    clock.advance(500)
    assert registry.value(CONTROLLER + "TimeSinceLastHeartbeatReceivedMs,broker=2") == 500
    clock.advance(5_000)
    assert registry.value(CONTROLLER + "TimeSinceLastHeartbeatReceivedMs,broker=2") == 900


def test_quantiles_are_those_of_the_newest_values_and_the_count_is_that_of_all() -> None:
    values = RecentValues()
    assert set(values.quantiles().values()) == {0.0}
    for value in [1_000_000.0] * 50 + [float(n) for n in range(KEPT)]:
        values.add(value)
    shown = {tags[0][1]: value for tags, value in values.quantiles().items()}
    assert shown == {"0.5": 514.0, "0.95": 976.0, "0.99": 1017.0, "0.999": 1026.0}
    assert values.count == 50 + KEPT
