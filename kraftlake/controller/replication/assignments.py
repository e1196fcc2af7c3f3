"""New partitions: manual assignments, automatic placement, and the first state."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.placement import UsableBroker, place_replicas
from kraftlake.controller.state import ControllerState
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.protocol.error_code import ErrorCode


def check_manual_assignment(state: ControllerState, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Refuse an assignment that is empty, repeats a broker, has an unknown broker, or has another length."""
    problem = None
    if not replicas:
        problem = "it has no replicas"
    for before, broker_id in zip([None, *sorted(replicas)], sorted(replicas), strict=False):
        registration = state.registration(broker_id)
        if registration is None:
            problem = f"broker {broker_id} is not registered"
        elif not registration.has_uncordoned_dirs:
            problem = f"all log directories of broker {broker_id} are cordoned"
        elif broker_id == before:
            problem = f"it names broker {broker_id} twice"
        if problem:
            break
    if problem is None and replication_factor not in (None, len(replicas)):
        problem = f"it has {len(replicas)} replicas, and the partitions before it have {replication_factor}"
    if problem is not None:
        raise ControllerApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The assignment {list(replicas)} can't be made: {problem}."
        )


def place(state: ControllerState, *, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
    """Place the replicas of new partitions; raises ControllerApiError(INVALID_REPLICATION_FACTOR)."""
    usable = []
    for broker_id, heartbeat in state.heartbeats.items():
        registration = state.registration(broker_id)
        if registration is not None and not heartbeat.shutting_down and registration.has_uncordoned_dirs:
            usable.append(UsableBroker(broker_id, registration.rack, heartbeat.fenced))
    return place_replicas(
        usable,
        partitions=partitions,
        replication_factor=replication_factor,
        next_int=state.random.randrange,
    )


def new_partition(
    state: ControllerState, replicas: Sequence[int], *, error: ErrorCode, refusal: str
) -> PartitionRegistration:
    """Return the initial state of a partition: the active replicas are in sync, the first of them is the leader.

    Raises ControllerApiError(`error`) with a message that begins with `refusal` if no replica is active.
    """
    isr = tuple(broker_id for broker_id in replicas if state.is_active(broker_id))
    if not isr:
        raise ControllerApiError(error, f"{refusal}: all of its brokers are fenced or shutting down.")
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=tuple(state.default_dir(broker_id) for broker_id in replicas),
        isr=isr,
        leader=isr[0],
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
    )
