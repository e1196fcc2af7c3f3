"""The bugs of Kafka that a violation may come from."""

from __future__ import annotations

from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class KnownBug:
    """A bug of Kafka: its `ticket`, the `change` that mended it, and its effect in `words`."""

    ticket: str
    change: str
    words: str

    def __str__(self) -> str:
        """`KAFKA-19522: the last known leader was elected although it was fenced`."""
        return f"{self.ticket}: {self.words}"


LAST_KNOWN_LEADER_FENCED: Final = KnownBug(
    ticket="KAFKA-19522",
    change="apache/kafka#20200",
    words="the last known leader was elected although it was fenced",
)
ELR_KEPT_AT_OTHER_MIN_ISR: Final = KnownBug(
    ticket="KAFKA-16540",
    change="apache/kafka#17952",
    words="a change of min.insync.replicas left the ELRs as they were, and brokers could have values of their own",
)
REASSIGNMENT_ENDS_EARLY: Final = KnownBug(
    ticket="KAFKA-15665",
    change="apache/kafka#15359",
    words="a reassignment ended before all of its target replicas were in the ISR",
)

BUGS_OF_PROPERTIES: Final = {
    "elr_only_below_min_isr": ELR_KEPT_AT_OTHER_MIN_ISR,
    "elr_needs_min_isr": ELR_KEPT_AT_OTHER_MIN_ISR,
    "reassignment_ends_in_sync": REASSIGNMENT_ENDS_EARLY,
}
"""The bugs that explain any violation of a property; KAFKA-19522 shows in the leader itself."""
