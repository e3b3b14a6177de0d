"""Which error code of the protocol stands for which of our errors; the only place that knows."""

from stratalog import errors
from stratalog.errors import StratalogError
from stratalog.protocol.error_codes import ErrorCode

# Of the characters of a message: what a person reads, and in no encoding more than a string of the
# protocol holds. Where a sentence has been cut, its end says what the rule is.
_MESSAGE_BEGINNING = 500
_MESSAGE_END = 250

_CODES: dict[type[StratalogError], ErrorCode] = {
    # Records
    errors.CorruptBatchError: ErrorCode.CORRUPT_MESSAGE,
    errors.UnsupportedCompressionError: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    errors.RecordTooLargeError: ErrorCode.MESSAGE_TOO_LARGE,
    errors.InvalidTimestampError: ErrorCode.INVALID_TIMESTAMP,
    errors.InvalidRecordError: ErrorCode.INVALID_RECORD,
    errors.UnsupportedForMessageFormatError: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    errors.RecordError: ErrorCode.CORRUPT_MESSAGE,
    # Storage
    errors.OffsetOutOfRangeError: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.CorruptSegmentError: ErrorCode.CORRUPT_MESSAGE,
    errors.RecordBatchTooLargeError: ErrorCode.RECORD_LIST_TOO_LARGE,
    errors.UnknownLogError: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errors.LogExistsError: ErrorCode.TOPIC_ALREADY_EXISTS,
    errors.TopicNameError: ErrorCode.INVALID_TOPIC_EXCEPTION,
    # What a disk cannot do now it may do later, and a client that tries again loses nothing.
    errors.StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
    # Producers
    errors.OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    errors.InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    errors.InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
    errors.TransactionCoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    # Metadata
    errors.ConfigError: ErrorCode.INVALID_CONFIG,
    errors.InvalidTopicError: ErrorCode.INVALID_TOPIC_EXCEPTION,
    errors.TopicExistsError: ErrorCode.TOPIC_ALREADY_EXISTS,
    errors.UnknownTopicError: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UnknownTopicIdError: ErrorCode.UNKNOWN_TOPIC_ID,
    errors.PolicyViolationError: ErrorCode.POLICY_VIOLATION,
    errors.InvalidPartitionsError: ErrorCode.INVALID_PARTITIONS,
    errors.InvalidReplicationFactorError: ErrorCode.INVALID_REPLICATION_FACTOR,
    errors.InvalidReplicaAssignmentError: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    errors.InvalidRequestError: ErrorCode.INVALID_REQUEST,
    errors.TooManyPartitionsError: ErrorCode.POLICY_VIOLATION,
    errors.InvalidUpdateVersionError: ErrorCode.INVALID_UPDATE_VERSION,
    # Replication
    errors.NotLeaderError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.FencedLeaderEpochError: ErrorCode.FENCED_LEADER_EPOCH,
    errors.UnknownLeaderEpochError: ErrorCode.UNKNOWN_LEADER_EPOCH,
    errors.NotEnoughReplicasError: ErrorCode.NOT_ENOUGH_REPLICAS,
    errors.NotEnoughReplicasAfterAppendError: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    errors.OffsetNotAvailableError: ErrorCode.OFFSET_NOT_AVAILABLE,
    errors.InvalidRequiredAcksError: ErrorCode.INVALID_REQUIRED_ACKS,
    errors.RequestTimedOutError: ErrorCode.REQUEST_TIMED_OUT,
}


def code_of(error: StratalogError) -> ErrorCode:
    """The code of the nearest kind of error that has one."""
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


def message_of(error: StratalogError) -> str:
    """What a client is told beside the code."""
    return short_message(str(error))


def short_message(text: str) -> str:
    """``text``, cut in its middle if it is long: it may repeat what a client has sent, for each
    partition of a request anew, and must not be more than an answer can hold."""
    if len(text) <= _MESSAGE_BEGINNING + _MESSAGE_END:
        return text
    return f"{text[:_MESSAGE_BEGINNING]}…{text[-_MESSAGE_END:]}"
