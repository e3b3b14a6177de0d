"""Bytes that are not batches or records, and records or rows that nothing may be made of."""

from stratalog.errors.base import StratalogError


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
    """A batch, what it decompresses to, or a part of a record, larger than it may be."""

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
