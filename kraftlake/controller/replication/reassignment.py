"""The arithmetic of a partition reassignment: its start, its completion, its cancellation.

Source: org.apache.kafka.controller.PartitionReassignmentReplicas and PartitionReassignmentRevert.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.protocol.error_code import ErrorCode

Replicas: TypeAlias = tuple[int, ...]


@attrs.frozen(kw_only=True)
class Reassignment:
    """The start of a reassignment: `replicas` are the target replicas in order, followed by the `removing` ones."""

    replicas: Replicas
    removing: Replicas
    adding: Replicas

    @classmethod
    def of(cls, current: Sequence[int], target: Sequence[int]) -> Reassignment:
        """Return the reassignment from one list of replicas to another."""
        removing = tuple(sorted(set(current) - set(target)))
        adding = tuple(sorted(set(target) - set(current)))
        return cls(replicas=(*target, *removing), removing=removing, adding=adding)


def is_reassigning(partition: PartitionRegistration) -> bool:
    """Whether a reassignment is in progress."""
    return bool(partition.removing_replicas or partition.adding_replicas)


def complete_reassignment(
    removing: Replicas, adding: Replicas, replicas: Replicas, isr: Replicas
) -> tuple[Replicas, Replicas] | None:
    """Return the replicas and ISR after a complete reassignment; None without a reassignment, or before its completion.

    It is complete when all new replicas are in the ISR, a member of the ISR remains and, if more replicas are removed
    than added, all remaining replicas are in the ISR.
    """
    if not removing and not adding:
        return None
    new_isr = tuple(replica for replica in isr if replica not in removing)
    new_replicas = tuple(replica for replica in replicas if replica not in removing)
    if removing and not (new_isr and new_replicas):
        return None
    if not set(new_isr) >= set(adding):
        return None
    if len(adding) < len(removing) and not set(new_isr) >= set(new_replicas):
        return None
    return new_replicas, new_isr


@attrs.frozen(kw_only=True)
class Revert:
    """The state after a cancelled reassignment; `unclean` if no in-sync replica is left."""

    replicas: Replicas
    isr: Replicas
    unclean: bool

    @classmethod
    def of(cls, partition: PartitionRegistration) -> Revert:
        """Return the state with the replicas from before the reassignment.

        Raises ControllerApiError if there were none.
        """
        adding = partition.adding_replicas
        replicas = tuple(replica for replica in partition.replicas if replica not in adding)
        isr = tuple(replica for replica in partition.isr if replica not in adding)
        if isr:
            return cls(replicas=replicas, isr=isr, unclean=False)
        if not replicas:
            raise ControllerApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The reassignment adds all of the replicas: there is no way back."
            )
        return cls(replicas=replicas, isr=replicas[:1], unclean=True)
