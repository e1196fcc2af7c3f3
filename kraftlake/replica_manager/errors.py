"""The exceptions of a replica, each with Kafka's error code."""

from __future__ import annotations

from typing import NamedTuple

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


class ReplicationError(KraftlakeError):
    """A failed request to a partition; `code` is its error code in Kafka's protocol."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str, code: ErrorCode | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class KafkaStorageError(ReplicationError):
    """The log directory has failed."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFoundError(ReplicationError):
    """The broker has no log directory with this path."""

    code = ErrorCode.LOG_DIR_NOT_FOUND


class InvalidTopicError(ReplicationError):
    """The topic's name does not allow the request."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class NotLeaderOrFollowerError(ReplicationError):
    """The broker does not lead the partition, or has no replica of it."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class UnknownTopicOrPartitionError(ReplicationError):
    """The partition does not exist."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class FencedLeaderEpochError(ReplicationError):
    """The request has an older leader epoch than this broker."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpochError(ReplicationError):
    """The request has a newer leader epoch than this broker, or comes from a replica that is unknown here."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class OffsetOutOfRangeError(ReplicationError):
    """The offset is not in the log."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OffsetNotAvailableError(ReplicationError):
    """The new leader's high watermark has not reached the start of its epoch."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class NotEnoughReplicasError(ReplicationError):
    """The ISR is smaller than min.insync.replicas."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class PolicyViolationError(ReplicationError):
    """The topic's configuration forbids the request."""

    code = ErrorCode.POLICY_VIOLATION


class CorruptRecordError(ReplicationError):
    """The bytes are not a record batch, or the batch has a wrong checksum."""

    code = ErrorCode.CORRUPT_MESSAGE


class UnsupportedForMessageFormatError(ReplicationError):
    """The records have format 0 or 1, which Kafka wrote before 0.11; they are not damaged."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class RecordTooLargeError(ReplicationError):
    """A record batch is larger than the topic allows."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordBatchTooLargeError(ReplicationError):
    """A record batch is larger than a segment of the topic's logs."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE


class RecordError(NamedTuple):
    """An invalid record of a batch: its position, the error, and whether the error is about the timestamp."""

    place: int
    message: str
    is_of_time: bool


class InvalidBatchError(ReplicationError):
    """The client's batch can't be appended; `records` are the invalid records, if single ones are invalid."""

    def __init__(self, message: str, records: tuple[RecordError, ...] = ()) -> None:
        super().__init__(message)
        self.records = records


class InvalidRecordError(InvalidBatchError):
    """The client's batch violates a rule of its topic."""

    code = ErrorCode.INVALID_RECORD


class InvalidTimestampError(InvalidBatchError):
    """The client's batch has a timestamp that its topic does not allow."""

    code = ErrorCode.INVALID_TIMESTAMP


class UnexpectedAppendOffsetError(ReplicationError):
    """A fetched batch does not continue the follower's log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class InconsistentTopicIdError(ReplicationError):
    """The partition is hosted with another topic id."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class UnknownTopicIdError(ReplicationError):
    """The partition is hosted with another topic id than the producer's (KIP-516)."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class OutOfOrderSequenceError(ReplicationError):
    """A producer's batch does not continue the sequence: batches are missing."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(ReplicationError):
    """A batch with a later producer epoch was appended before."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(ReplicationError):
    """A producer with an open transaction sends a batch without it."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFencedError(ReplicationError):
    """A marker of a later transaction coordinator was appended before."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


def error_of(error: Exception) -> ErrorCode:
    """The error code of an exception; an unexpected exception is logged."""
    if isinstance(error, ReplicationError):
        return error.code
    _log.error("request_failed", error=f"{type(error).__name__}: {error}")
    return ErrorCode.UNKNOWN_SERVER_ERROR


def describe_error(error: Exception) -> str:
    """The message of an error; of an unexpected error with its type."""
    return str(error) if isinstance(error, ReplicationError) else f"{type(error).__name__}: {error}"
