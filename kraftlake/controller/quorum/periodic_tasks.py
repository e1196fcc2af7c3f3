"""What an active controller does unasked. Source: org.apache.kafka.controller.PeriodicTaskControlManager."""

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
    """A command that runs each `period_ms`, or after 10 ms again where its answer is True: there is more to do."""

    name: str
    period_ms: float
    command: Command[Any]


def write_no_op(_: ControllerState) -> ControllerResult[bool]:
    """A record that says nothing, so that everybody sees that the controller lives."""
    return ControllerResult((ApiMessageAndVersion(NoOpRecord(), 0),), False)


def periodic_tasks(config: ControllerConfig) -> Sequence[PeriodicTask]:
    """The tasks that a configuration asks for."""
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
