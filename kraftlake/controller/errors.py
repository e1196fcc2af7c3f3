"""Kafka's error codes, and the refusal of a command with its reason."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import attrs

from kraftlake.runtime.errors import KraftlakeError


class Errors(IntEnum):
    """The errors of a controller, with Kafka's codes. Source: org.apache.kafka.common.protocol.Errors."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    FENCED_LEADER_EPOCH = 74
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INVALID_UPDATE_VERSION = 95
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_CLUSTER_ID = 104
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    INVALID_REGISTRATION = 119
    CONTROLLER_ID_NOT_REGISTERED = 136


@attrs.frozen
class ApiError:
    """The outcome of one part of a command: an error (or none) and its reason."""

    NONE: ClassVar[ApiError]

    error: Errors
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether there is an error."""
        return self.error is not Errors.NONE


ApiError.NONE = ApiError(Errors.NONE)


class ControllerApiError(KraftlakeError):
    """A command, or a part of it, is refused: none of its records are in the log (Kafka's ApiException)."""

    def __init__(self, error: Errors, message: str | None = None) -> None:
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
        Errors.NOT_CONTROLLER, "This node is not the active controller; there is no active controller."
    )
