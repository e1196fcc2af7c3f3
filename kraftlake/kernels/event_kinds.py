"""What can happen to a partition between two of its states, as numbers."""

from __future__ import annotations

(
    LEADER_MOVED,
    LEADER_LOST,
    LEADER_ELECTED,
    RECOVERY_BEGUN,
    RECOVERY_DONE,
    ISR_SHRANK,
    ISR_EXPANDED,
    ISR_CHANGED,
    ELR_CHANGED,
    REASSIGNMENT_STARTED,
    REASSIGNMENT_CHANGED,
    REASSIGNMENT_FINISHED,
    REASSIGNMENT_CANCELLED,
    REPLICAS_CHANGED,
) = range(14)

MOST = 5
"""How many of them can be at once."""
