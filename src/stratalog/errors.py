"""Every exception that stratalog raises on purpose, grouped by the layer that raises it.

Each carries its values as arguments, so that it survives pickling between processes, and builds
its own sentence from them. No wire error code appears here: the broker maps types to codes.
"""


class StratalogError(Exception):
    """Anything stratalog reports to a person or a client."""


# --- configuration ---------------------------------------------------------------------------


class ConfigError(StratalogError):
    """A setting that does not exist, or a value outside what it allows."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(name, value, rule)
        self.name = name
        self.value = value
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.rule}"


# --- records ---------------------------------------------------------------------------------


class RecordError(StratalogError):
    """Bytes that are not the batches or records they should be."""


class CorruptBatchError(RecordError):
    """A batch whose size, CRC or contents contradict themselves."""

    def __init__(self, reason: str, *, position: int = -1, base_offset: int = -1) -> None:
        super().__init__(reason, position, base_offset)
        self.reason = reason
        self.position = position
        self.base_offset = base_offset

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_corrupt_batch, (self.reason, self.position, self.base_offset)

    def __str__(self) -> str:
        where = f" at position {self.position}" if self.position >= 0 else ""
        which = f" (base offset {self.base_offset})" if self.base_offset >= 0 else ""
        return f"corrupt batch{where}{which}: {self.reason}"


def _rebuild_corrupt_batch(reason: str, position: int, base_offset: int) -> CorruptBatchError:
    return CorruptBatchError(reason, position=position, base_offset=base_offset)


class UnsupportedCompressionError(RecordError):
    """A codec id that Kafka does not define, or that this message format may not use."""

    def __init__(self, codec_id: int, rule: str) -> None:
        super().__init__(codec_id, rule)
        self.codec_id = codec_id
        self.rule = rule

    def __str__(self) -> str:
        return f"compression codec {self.codec_id}: {self.rule}"


class RecordTooLargeError(RecordError):
    """A batch, or what it decompresses to, larger than the topic allows."""

    def __init__(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(what, size_bytes, limit_bytes)
        self.what = what
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return f"{self.what} is {self.size_bytes} bytes, over the limit of {self.limit_bytes}"


class RejectedRecord:
    """Why one record of a produced batch was refused: its index in the batch, and a sentence."""

    __slots__ = ("index", "reason")

    def __init__(self, index: int, reason: str) -> None:
        self.index = index
        self.reason = reason

    def __repr__(self) -> str:
        return f"RejectedRecord({self.index}, {self.reason!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RejectedRecord) and (self.index, self.reason) == (
            other.index,
            other.reason,
        )

    def __hash__(self) -> int:
        return hash((self.index, self.reason))


class InvalidRecordError(RecordError):
    """A produced batch that breaks a rule of the topic; nothing of it was appended."""

    def __init__(self, reason: str, rejected: tuple[RejectedRecord, ...] = ()) -> None:
        super().__init__(reason, rejected)
        self.reason = reason
        self.rejected = rejected

    def __str__(self) -> str:
        if not self.rejected:
            return self.reason
        first = self.rejected[0]
        return f"{self.reason}: record {first.index}: {first.reason}"


class InvalidTimestampError(InvalidRecordError):
    """At least one record of a produced batch has a timestamp outside the allowed range."""


class InvalidRowError(RecordError):
    """A row that cannot become a record. Rows are counted from 0 by whoever hands them over."""

    def __init__(self, row: int, field: str, reason: str) -> None:
        super().__init__(row, field, reason)
        self.row = row
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field} of row {self.row}: {self.reason}"


class InvalidColumnError(RecordError):
    """A column of rows whose type cannot become what a record has there."""

    def __init__(self, field: str, given: str, wanted: str) -> None:
        super().__init__(field, given, wanted)
        self.field = field
        self.given = given
        self.wanted = wanted

    def __str__(self) -> str:
        return f"column {self.field!r} is {self.given}, which cannot become {self.wanted}"


class UnsupportedForMessageFormatError(RecordError):
    """A feature (transactions, idempotence) that the batch's message format cannot carry."""


# --- storage ---------------------------------------------------------------------------------


class StorageError(StratalogError):
    """A log, segment or directory that cannot do what was asked."""


class OffsetOutOfRangeError(StorageError):
    """A reader asked for an offset the log no longer has, or does not have yet."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(offset, log_start_offset, log_end_offset)
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset

    def __str__(self) -> str:
        held = f"[{self.log_start_offset}, {self.log_end_offset})"
        return f"offset {self.offset} is outside the log, which holds {held}"


class CorruptSegmentError(StorageError):
    """Damage inside a segment: where it is, and what is wrong there."""

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(path, position, offset, reason)
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged at position {self.position} (offset {self.offset}): "
            f"{self.reason}"
        )


class CorruptFileError(StorageError):
    """A checkpoint, snapshot or metadata file that does not follow its format."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class CorruptIndexError(StorageError):
    """An index that contradicts itself or the log beside it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"index {self.path}: {self.reason}"


class IndexFullError(StorageError):
    """An index has no room for another entry; the log rolls before this can happen."""

    def __init__(self, path: str, entries_max: int) -> None:
        super().__init__(path, entries_max)
        self.path = path
        self.entries_max = entries_max

    def __str__(self) -> str:
        return f"index {self.path} is full with {self.entries_max} entries"


class SegmentOffsetOverflowError(StorageError):
    """An offset too far from its segment's base to fit the four bytes an index has for it."""

    def __init__(self, path: str, base_offset: int, offset: int) -> None:
        super().__init__(path, base_offset, offset)
        self.path = path
        self.base_offset = base_offset
        self.offset = offset

    def __str__(self) -> str:
        return (
            f"{self.path}: offset {self.offset} is outside "
            f"[{self.base_offset}, {self.base_offset + 2**31 - 1}], all a segment can index"
        )


class OffsetsOutOfOrderError(StorageError):
    """Batches to be appended whose offsets do not grow."""

    def __init__(self, offset: int, expected_at_least: int) -> None:
        super().__init__(offset, expected_at_least)
        self.offset = offset
        self.expected_at_least = expected_at_least

    def __str__(self) -> str:
        return f"offset {self.offset} where at least {self.expected_at_least} is expected"


class UnexpectedAppendOffsetError(OffsetsOutOfOrderError):
    """A follower was handed a batch that begins below its log end."""


class RecordBatchTooLargeError(StorageError):
    """An append that would not fit an empty segment."""

    def __init__(self, size_bytes: int, segment_bytes: int) -> None:
        super().__init__(size_bytes, segment_bytes)
        self.size_bytes = size_bytes
        self.segment_bytes = segment_bytes

    def __str__(self) -> str:
        return f"an append of {self.size_bytes} bytes exceeds segment.bytes={self.segment_bytes}"


class LogClosedError(StorageError):
    """The log was closed, deleted, or its directory went offline."""


class LogDamagedError(StorageError):
    """Appends are refused while a person has to decide about damage that recovery found."""


class CleaningAbortedError(StorageError):
    """A cleaning was stopped, by truncation, deletion or shutdown; nothing was lost."""


class DiskError(StorageError):
    """The operating system refused a file operation; the directory cannot be trusted."""

    def __init__(self, operation: str, path: str, errno: int, reason: str) -> None:
        super().__init__(operation, path, errno, reason)
        self.operation = operation
        self.path = path
        self.errno = errno
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.operation} {self.path}: {self.reason}"


class OutOfResourcesError(DiskError):
    """The system has run out of something that comes back; the disk itself is sound."""


class DiskFullError(OutOfResourcesError):
    """No space or quota is left; reads go on, and appends resume when there is room."""


class TooManyOpenFilesError(OutOfResourcesError):
    """The limit on open files is reached; raise it (ulimit -n), or close some."""


class LogDirectoryError(StorageError):
    """A log directory that cannot be used: not there, locked by another owner, or offline."""


class DirectoryLockedError(LogDirectoryError):
    """A log directory that another owner has now; it may let go of it."""


class LeaseError(StorageError):
    """A lease that cannot be granted, or a file that says it is one and is not."""


class TopicNameError(StorageError):
    """A topic or directory name that Kafka does not allow."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(name, rule)
        self.name = name
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.name!r}: {self.rule}"


class UnknownLogError(StorageError):
    """No log of that topic and partition is held here."""


class LogExistsError(StorageError):
    """A log of that topic and partition is already held here."""


# --- producers -------------------------------------------------------------------------------


class ProducerError(StorageError):
    """A batch that does not continue its producer's sequence, epoch or transaction."""


class OutOfOrderSequenceError(ProducerError):
    """Sequence numbers of a producer with a gap."""


class InvalidProducerEpochError(ProducerError):
    """A producer with an epoch older than the one known."""


class InvalidTransactionStateError(ProducerError):
    """A batch outside the transaction that its producer has open, or has not."""


class TransactionCoordinatorFencedError(ProducerError):
    """A marker from a transaction coordinator that has been replaced."""


# --- metadata --------------------------------------------------------------------------------


class MetadataError(StratalogError):
    """A change of topics, partitions or configs that cannot be made; nothing was changed."""


class InvalidTopicError(MetadataError):
    """A topic name that Kafka does not allow, or that another topic's metrics would share."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(name, rule)
        self.name = name
        self.rule = rule

    def __str__(self) -> str:
        return f"topic name {self.name!r}: {self.rule}"


class TopicExistsError(MetadataError):
    """A topic of that name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"topic {self.name!r} exists already"


class UnknownTopicError(MetadataError):
    """There is no topic of that name, or no such partition of it."""

    def __init__(self, name: str, partition: int = -1) -> None:
        super().__init__(name, partition)
        self.name = name
        self.partition = partition

    def __str__(self) -> str:
        if self.partition >= 0:
            return f"topic {self.name!r} has no partition {self.partition}"
        return f"there is no topic {self.name!r}"


class UnknownTopicIdError(MetadataError):
    """There is no topic with that id."""

    def __init__(self, topic_id: str) -> None:
        super().__init__(topic_id)
        self.topic_id = topic_id

    def __str__(self) -> str:
        return f"there is no topic with the id {self.topic_id}"


class PolicyViolationError(MetadataError):
    """The topic's settings do not allow it."""


class InvalidPartitionsError(MetadataError):
    """A number of partitions that a topic cannot have, or cannot be given any more."""


class InvalidReplicationFactorError(MetadataError):
    """A number of replicas that is none, or more than there are nodes."""


class InvalidReplicaAssignmentError(MetadataError):
    """Replicas chosen by hand that are nobody, somebody twice, or not one per partition."""


class InvalidRequestError(MetadataError):
    """A request that contradicts itself, or that asks for what is never granted."""


class TooManyPartitionsError(MetadataError):
    """More partitions in one request than anybody may ask for at once."""


class InvalidUpdateVersionError(MetadataError):
    """A change of a partition that was decided on an older state of it."""

    def __init__(self, name: str, partition: int, given_epoch: int, partition_epoch: int) -> None:
        super().__init__(name, partition, given_epoch, partition_epoch)
        self.name = name
        self.partition = partition
        self.given_epoch = given_epoch
        self.partition_epoch = partition_epoch

    def __str__(self) -> str:
        return (
            f"{self.name}-{self.partition} is at partition epoch {self.partition_epoch}, "
            f"the change was made for {self.given_epoch}"
        )


class ProducerIdsExhaustedError(MetadataError):
    """Every producer id that 63 bits can hold has been given away."""


class AdoptionError(MetadataError):
    """A directory whose topics cannot be told from what it holds without guessing."""


class MetadataStoreError(MetadataError):
    """The store is closed, was never initialized, or can no longer be trusted."""


# --- replication -------------------------------------------------------------------------------


class ReplicationError(StratalogError):
    """This replica cannot do now what was asked of it."""


class NotLeaderError(ReplicationError):
    """Another node leads the partition, or nobody does."""


class FencedLeaderEpochError(ReplicationError):
    """Whoever asks knows an older leader epoch than this replica."""


class UnknownLeaderEpochError(ReplicationError):
    """Whoever asks knows a newer leader epoch than this replica."""


class NotEnoughReplicasError(ReplicationError):
    """Fewer replicas are in sync than ``min.insync.replicas`` asks for; nothing was appended."""


class NotEnoughReplicasAfterAppendError(ReplicationError):
    """It was appended, but fewer replicas are in sync than were asked for."""


class OffsetNotAvailableError(ReplicationError):
    """A new leader does not know yet how far the old one's records are stable."""


class InvalidRequiredAcksError(ReplicationError):
    """``acks`` is 0, 1 or -1."""


class RequestTimedOutError(ReplicationError):
    """It did not happen in the time that was given."""


# --- protocol --------------------------------------------------------------------------------


class ProtocolError(StratalogError):
    """Bytes that are not the message they should be, or a value that no message can carry."""

    def __init__(self, api: str, version: int, position: int, reason: str) -> None:
        super().__init__(api, version, position, reason)
        self.api = api
        self.version = version
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        where = f" at position {self.position}" if self.position >= 0 else ""
        return f"{self.api} version {self.version}{where}: {self.reason}"


class UnsupportedVersionError(ProtocolError):
    """A message of an API or version that is not spoken here."""

    def __init__(self, api: str, version: int) -> None:
        super().__init__(api, version, -1, "is not supported")
        self.args = (api, version)
