"""What one command may write."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.controller.errors import ControllerApiError, Errors


def check_records(records: Sequence[object], limit: int) -> None:
    """Refuse a command that would write more than `limit` records."""
    if len(records) > limit:
        raise ControllerApiError(
            Errors.POLICY_VIOLATION,
            f"The request would write {len(records)} records; {limit} are the most that one may.",
        )
