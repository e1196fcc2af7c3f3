"""The arithmetic of a partition reassignment: what is added and removed, when it is complete, how it is taken back.

Source: org.apache.kafka.controller.PartitionReassignmentReplicas and PartitionReassignmentRevert.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from kraftlake.controller.errors import ControllerApiError, Errors
from kraftlake.image import PartitionRegistration

Replicas: TypeAlias = tuple[int, ...]


@attrs.frozen(kw_only=True)
class Reassignment:
    """A move that has begun: `replicas` are the target, in its order, and behind it those that will be `removing`."""

    replicas: Replicas
    removing: Replicas
    adding: Replicas

    @classmethod
    def of(cls, current: Sequence[int], target: Sequence[int]) -> Reassignment:
        """From one list of replicas to another."""
        removing = tuple(sorted(set(current) - set(target)))
        adding = tuple(sorted(set(target) - set(current)))
        return cls(replicas=(*target, *removing), removing=removing, adding=adding)


def is_reassigning(partition: PartitionRegistration) -> bool:
    """Whether a reassignment is in progress."""
    return bool(partition.removing_replicas or partition.adding_replicas)


def complete_reassignment(
    removing: Replicas, adding: Replicas, replicas: Replicas, isr: Replicas
) -> tuple[Replicas, Replicas] | None:
    """Replicas and ISR once the reassignment is complete; None while it isn't, or where there is none.

    It is complete when all new replicas are in the ISR, something of the ISR stays, and, where more replicas go than
    come, all that stay are in sync.
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
    """The state after a cancelled reassignment; `unclean` where no replica in sync is left and any may lead."""

    replicas: Replicas
    isr: Replicas
    unclean: bool

    @classmethod
    def of(cls, partition: PartitionRegistration) -> Revert:
        """Back to the replicas before it began."""
        adding = partition.adding_replicas
        replicas = tuple(replica for replica in partition.replicas if replica not in adding)
        isr = tuple(replica for replica in partition.isr if replica not in adding)
        if isr:
            return cls(replicas=replicas, isr=isr, unclean=False)
        if not replicas:
            raise ControllerApiError(
                Errors.INVALID_REPLICA_ASSIGNMENT, "The reassignment adds all of the replicas: there is no way back."
            )
        return cls(replicas=replicas, isr=replicas[:1], unclean=True)
