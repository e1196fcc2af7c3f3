"""The periodic tasks of an active controller. Source: org.apache.kafka.controller.PeriodicTaskControlManager."""

from __future__ import annotations

from collections.abc import Sequence
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
    """A command that runs every `period_ms`, or again after 10 ms if its response is True: more is left to do."""

    name: str
    period_ms: float
    command: Command[Any]


def write_no_op(_: ControllerState) -> ControllerResult[bool]:
    """Write a no-op record, which shows other controllers that this one is alive."""
    return ControllerResult((ApiMessageAndVersion(NoOpRecord(), 0),), False)


def periodic_tasks(config: ControllerConfig) -> Sequence[PeriodicTask]:
    """The tasks of a configuration."""
    tasks = [
        PeriodicTask(
            name="maybeFenceStaleBroker", period_ms=config.fence_interval_ms, command=maybe_fence_stale_broker
        ),
        PeriodicTask(
            name="electUnclean",
            period_ms=config.unclean_leader_election_interval_ms,
            command=maybe_elect_unclean_leaders,
        ),
        PeriodicTask(
            name="expireDelegationTokens",
            period_ms=config.delegation_token_expiry_check_interval_ms,
            command=sweep_expired_delegation_tokens,
        ),
    ]
    if config.max_idle_interval_ms is not None:
        tasks.append(PeriodicTask(name="writeNoOpRecord", period_ms=config.max_idle_interval_ms, command=write_no_op))
    if config.leader_imbalance_check_interval_seconds is not None:
        period = config.leader_imbalance_check_interval_seconds * 1_000
        tasks.append(PeriodicTask(name="electPreferred", period_ms=period, command=maybe_balance_leaders))
    return tasks
