"""The refusal of a command, or of a part of it, with its reason."""

from __future__ import annotations

from typing import ClassVar

import attrs

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.errors import KraftlakeError


@attrs.frozen
class ApiError:
    """The outcome of one part of a command: an error (or none) and its reason."""

    NONE: ClassVar[ApiError]

    error: ErrorCode
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether the part has failed."""
        return self.error is not ErrorCode.NONE


ApiError.NONE = ApiError(ErrorCode.NONE)


class ControllerApiError(KraftlakeError):
    """Reports a refused command, or part of one: none of its records are in the log (Kafka's ApiException)."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{error.name}: {message}" if message else error.name)
        self.error = error
        self.message = message

    @property
    def api_error(self) -> ApiError:
        """The refusal as a value."""
        return ApiError(self.error, self.message)


def not_controller() -> ControllerApiError:
    """The refusal of every command by a controller that is not active."""
    return ControllerApiError(
        ErrorCode.NOT_CONTROLLER, "This node is not the active controller; there is no active controller."
    )
