"""Kafka's error codes, and the exceptions by which a partition answers with one."""

from __future__ import annotations

from enum import IntEnum

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


class ErrorCode(IntEnum):
    """The codes that replication answers with. Source: org.apache.kafka.common.protocol.Errors."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    NETWORK_EXCEPTION = 13
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    TRANSACTION_COORDINATOR_FENCED = 52
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    STALE_BROKER_EPOCH = 77
    INVALID_UPDATE_VERSION = 95
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108


class ReplicationError(KraftlakeError):
    """A partition that can't do what was asked; `code` is what Kafka's protocol calls it."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class KafkaStorageError(ReplicationError):
    """The log lies in a directory that has failed."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFoundError(ReplicationError):
    """No log directory of that path is configured."""

    code = ErrorCode.LOG_DIR_NOT_FOUND


class InvalidTopicError(ReplicationError):
    """The topic's name does not allow what was asked."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class NotLeaderOrFollowerError(ReplicationError):
    """This broker does not lead the partition, or has no replica of it."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class UnknownTopicOrPartitionError(ReplicationError):
    """There is no such partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class FencedLeaderEpochError(ReplicationError):
    """Who asks has an older leader epoch than this broker."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpochError(ReplicationError):
    """Who asks has a newer leader epoch than this broker, or is a replica that it does not know yet."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class OffsetOutOfRangeError(ReplicationError):
    """The offset is not in the log."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OffsetNotAvailableError(ReplicationError):
    """A new leader's high watermark has not reached the start of its epoch yet."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class NotEnoughReplicasError(ReplicationError):
    """Fewer replicas are in sync than min.insync.replicas asks for."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class PolicyViolationError(ReplicationError):
    """The topic's configuration forbids it."""

    code = ErrorCode.POLICY_VIOLATION


class CorruptRecordError(ReplicationError):
    """A record batch that fails its checksum, or is none."""

    code = ErrorCode.CORRUPT_MESSAGE


class RecordTooLargeError(ReplicationError):
    """A record batch larger than the topic allows."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class UnexpectedAppendOffsetError(ReplicationError):
    """A follower is given a batch that does not continue its log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class InconsistentTopicIdError(ReplicationError):
    """The partition is hosted for another topic of the same name."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class UnknownTopicIdError(ReplicationError):
    """The partition is hosted for another topic of the same name, as a producer sees it (KIP-516)."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class OutOfOrderSequenceError(ReplicationError):
    """A producer's batch does not continue the one before it: batches between them are missing."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(ReplicationError):
    """A later incarnation of the producer has written already."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(ReplicationError):
    """A producer writes outside of the transaction that it has open."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFencedError(ReplicationError):
    """A later transaction coordinator has written already."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


def error_of(error: Exception) -> ErrorCode:
    """What an exception is called in an answer; what nobody expected is logged."""
    if isinstance(error, ReplicationError):
        return error.code
    _log.error("request_failed", error=f"{type(error).__name__}: {error}")
    return ErrorCode.UNKNOWN_SERVER_ERROR


def describe_error(error: Exception) -> str:
    """An error in words: a sentence of ours as it is, anything else with its kind."""
    return str(error) if isinstance(error, ReplicationError) else f"{type(error).__name__}: {error}"
