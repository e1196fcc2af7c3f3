"""Configs of brokers that change while one runs: what is wrong among them leaves the others alone."""

from __future__ import annotations

import pytest

from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.log import without_logs
from kraftlake.server.broker.broker_config import FOLLOWER_RATE, LEADER_RATE, BrokerConfig
from kraftlake.server.broker.broker_config_handler import (
    BrokerConfigHandler,
    reconfigure_listener,
    reconfigure_logs,
    reconfigure_quotas,
)
from kraftlake.server.node_config import ListenerAddress
from kraftlake.server.requests.listener import RequestListener
from kraftlake.settings.dynamic_settings import problem_of_setting
from tests.replica_manager.brokers import D1

LISTENER = ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0)


class Handled:
    """The handler of broker 1, whose properties file has a retention and, in vain, a rate."""

    def __init__(self) -> None:
        settings = {"log.retention.ms": "7000", LEADER_RATE: "5"}
        config = BrokerConfig(broker_id=1, lake="x", log_dirs=("d",), listener=LISTENER, settings=settings)
        self.logs = MemoryLogManager({"d": D1}, LogConfig())
        self.leader, self.follower = ReplicationQuota(ManualClock()), ReplicationQuota(ManualClock())
        quotas = reconfigure_quotas({LEADER_RATE: self.leader, FOLLOWER_RATE: self.follower})
        self.listener = RequestListener("PLAINTEXT", "127.0.0.1", 0, lambda *_: None)
        listening = reconfigure_listener(self.listener)
        self.handler = BrokerConfigHandler(config.static_settings, listening, reconfigure_logs(self.logs), quotas)

    def set(self, name: str, **configs: str) -> None:
        self.handler.process_config_changes(name, {key.replace("_", "."): value for key, value in configs.items()})

    @property
    def applied(self) -> tuple[float | None, float | None, int]:
        return self.leader.bytes_per_second, self.follower.bytes_per_second, self.logs.config_of("t").retention_ms


def test_a_brokers_own_configs_count_before_those_of_all_and_those_before_its_file() -> None:
    made = Handled()
    made.set("", leader_replication_throttled_rate="10", log_retention_ms="8000")
    assert made.applied == (10, None, 8000)
    made.set("1", leader_replication_throttled_rate=" 20 ", follower_replication_throttled_rate="0")
    assert made.applied == (20, 0, 8000)
    made.set("1")
    made.set("")
    assert made.applied == (None, None, 7000)


def test_a_config_that_is_wrong_is_none_and_the_others_count() -> None:
    made = Handled()
    with without_logs():
        made.set("", leader_replication_throttled_rate="10", log_retention_ms="8000")
        made.set("1", leader_replication_throttled_rate="10MB", log_retention_ms="9000")
        assert made.applied == (10, None, 9000)
        made.set("1", follower_replication_throttled_rate="-1", log_retention_ms="x", log_roll_ms="5000")
        assert made.applied == (10, None, 8000)
        assert made.logs.config_of("t").segment_ms == 5000
        made.set("", log_retention_ms="1e3")
        assert made.applied == (None, None, 7000)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max.connections", "0"), ("max.connections.per.ip.overrides", "h"), ("log.roll.ms", "0")],
)
def test_configs_that_are_wrong_together_leave_those_of_before(name: str, value: str) -> None:
    made = Handled()
    made.set("", log_retention_ms="8000", max_connections="3")
    with without_logs():
        made.handler.process_config_changes("1", {name: value, "log.retention.ms": "9000"})
    assert (made.logs.config_of("t").retention_ms, made.listener.limits.max_connections) == (8000, 3)
    made.set("1", log_retention_ms="9000")
    assert made.logs.config_of("t").retention_ms == 9000


def test_only_numbers_of_connections_are_of_one_listener() -> None:
    made = Handled()
    made.set(
        "1", **{"listener.name.plaintext.queued.max.requests": "x", "listener.name.plaintext.max.connections": "4"}
    )
    made.set("", max_connections="6")
    assert made.listener.limits.max_connections == 4
    assert made.listener.limits.queued_max_requests == 500


@pytest.mark.parametrize("name", [LEADER_RATE, FOLLOWER_RATE])
@pytest.mark.parametrize("value", ["10MB", "-1", "1.5", "1e3", "inf", "nan", "", str(2**63)])
def test_a_rate_is_a_long_that_is_not_negative(name: str, value: str) -> None:
    assert name in (problem_of_setting(name, value, of_all=False) or "")
    assert problem_of_setting(name, str(2**63 - 1), of_all=False) is None
