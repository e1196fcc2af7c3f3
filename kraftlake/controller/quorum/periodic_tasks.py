"""The periodic tasks of an active controller. Source: org.apache.kafka.controller.PeriodicTaskControlManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kraftlake.controller.access.delegation_tokens import sweep_expired_delegation_tokens
from kraftlake.controller.cluster.brokers import maybe_fence_stale_broker
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.replication.elections import maybe_balance_leaders, maybe_elect_unclean_leaders
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import Command, ControllerState
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion

AGAIN_AFTER_MS = 10


@attrs.frozen(kw_only=True)
class PeriodicTask:
    """A command that runs again after `pause_ms`, or after 10 ms if its response is True, which means more work.

    `pause_ms` may depend on the state after the last command.
    """

    name: str
    pause_ms: Callable[[ControllerState], float]
    command: Command[Any]


def write_no_op(_: ControllerState) -> ControllerResult[bool]:
    """Write a no-op record, which shows other controllers that this controller is alive."""
    return ControllerResult((ApiMessageAndVersion(NoOpRecord(), 0),), False)


def no_op_interval_ms(config: ControllerConfig) -> float:
    """The interval of no-op records: `max_idle_interval_ms`, or less so that standbys see a live controller."""
    interval_ms, timeout_ms = config.max_idle_interval_ms, config.quorum_fetch_timeout_ms
    if not interval_ms or interval_ms > timeout_ms / 2:
        return timeout_ms / 4
    return interval_ms


def until_next_expiry_ms(state: ControllerState) -> float:
    """The time until the session of a broker may expire."""
    return (state.heartbeats.next_expiry_ns(state.now_ns) - state.now_ns) / 1e6


def periodic_tasks(config: ControllerConfig) -> Sequence[PeriodicTask]:
    """The periodic tasks of a configuration."""
    tasks = [
        PeriodicTask(name="maybeFenceStaleBroker", pause_ms=until_next_expiry_ms, command=maybe_fence_stale_broker),
        _every(config.unclean_leader_election_interval_ms, "electUnclean", maybe_elect_unclean_leaders),
        _every(
            config.delegation_token_expiry_check_interval_ms, "expireDelegationTokens", sweep_expired_delegation_tokens
        ),
        _every(no_op_interval_ms(config), "writeNoOpRecord", write_no_op),
    ]
    if config.leader_imbalance_check_interval_seconds is not None:
        period_ms = config.leader_imbalance_check_interval_seconds * 1_000
        tasks.append(_every(period_ms, "electPreferred", maybe_balance_leaders))
    return tasks


def _every(period_ms: float, name: str, command: Command[Any]) -> PeriodicTask:
    return PeriodicTask(name=name, pause_ms=lambda _: period_ms, command=command)
