"""What goes wrong with logs, their files and directories, and with the producers of a log."""

from stratalog.errors.base import StratalogError


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

    @property
    def is_passing(self) -> bool:
        """Whether the same operation can be tried again, and nothing is in doubt meanwhile."""
        return False


# Calls whose failure may have dropped bytes: neither trying again nor reading back proves anything.
SYNC_OPERATIONS = ("fsync", "syncfs")


class OutOfResourcesError(DiskError):
    """The system has run out of something that comes back; the disk itself is sound."""

    @property
    def is_passing(self) -> bool:
        return self.operation not in SYNC_OPERATIONS


class DiskFullError(OutOfResourcesError):
    """No space or quota is left; reads go on, and appends resume when there is room."""


class TooManyOpenFilesError(OutOfResourcesError):
    """The limit on open files is reached; raise it (ulimit -n), or close some."""


class OutOfMemoryError(OutOfResourcesError):
    """No memory or no room for another map is left; free some, or raise vm.max_map_count."""


class NotARegularFileError(DiskError):
    """Something else than a file has the file's name; that says nothing of the disk."""


class LogDirectoryError(StorageError):
    """A log directory that cannot be used: not there, locked by another owner, or offline."""


class UnfinishedRestoreError(LogDirectoryError):
    """A log directory of which a part is missing: a backup is being restored into it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path}: a backup is being restored into it, or was and did not come to its end. "
            "Wait for it, or run 'stratalog log restore' again, which begins anew"
        )


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


# --- producers -----------------------------------------------------------------------------------


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
