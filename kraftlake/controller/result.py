"""What a command comes to: records for the log, and an answer that is given once they are in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import attrs

from kraftlake.records.serde import ApiMessageAndVersion

T = TypeVar("T")
MAX_RECORDS_PER_BATCH = 10_000
"""How many records one batch holds at most (Kafka's MAX_RECORDS_PER_USER_OP and its batches)."""


@attrs.frozen
class ControllerResult(Generic[T]):
    """`records` are appended, all in one batch where they are `atomic`; then `response` is the answer.

    Source: org.apache.kafka.controller.ControllerResult.
    """

    records: Sequence[ApiMessageAndVersion]
    response: T
    atomic: bool = False
