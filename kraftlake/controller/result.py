"""The result of a command: records for the log, and the response, which is sent once the records are durable."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import attrs

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.serde import ApiMessageAndVersion

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MAX_RECORDS_PER_BATCH = 10_000
"""The largest number of records in one batch (QuorumController.MAX_RECORDS_PER_USER_OP)."""


@attrs.frozen
class ControllerResult(Generic[T]):
    """`records` are appended, all in one batch if they are `atomic`; then `response` is sent.

    Source: org.apache.kafka.controller.ControllerResult.
    """

    records: Sequence[ApiMessageAndVersion]
    response: T
    atomic: bool = False


def answer_each(
    changes: Iterable[tuple[K, T]], records_of: Callable[[K, T], Iterable[ApiMessageAndVersion]]
) -> tuple[list[ApiMessageAndVersion], dict[K, ApiError]]:
    """Return the records of all changes, and an answer by key: none, or the refusal raised by `records_of`."""
    records: list[ApiMessageAndVersion] = []
    answers: dict[K, ApiError] = {}
    for key, change in changes:
        try:
            records += records_of(key, change)
            answers[key] = ApiError.NONE
        except ControllerApiError as refusal:
            answers[key] = refusal.api_error
    return records, answers


def check_limit(count: int, what: str) -> None:
    """Refuse a command with more records, or partitions, than one batch holds; `what` is the predicate of the error."""
    if count > MAX_RECORDS_PER_BATCH:
        raise ControllerApiError(
            ErrorCode.POLICY_VIOLATION, f"The request {what}; {MAX_RECORDS_PER_BATCH} are the most that one may."
        )
