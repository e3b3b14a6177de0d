"""Reading batches out of a log: how far a reader may see, and the slice of a file it is given."""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from stratalog.errors import OffsetOutOfRangeError
from stratalog.records import BatchHeader, read_headers
from stratalog.storage.batch_file import FileSlice
from stratalog.storage.segment import Segment
from stratalog.storage.transactions import AbortedTransaction

if TYPE_CHECKING:
    from stratalog.storage.log import Log


class Isolation(Enum):
    """The upper bound of a read."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "high watermark"  # consumers, read_uncommitted
    TXN_COMMITTED = "last stable offset"  # consumers, read_committed


class FetchedData(NamedTuple):
    """What a read returns. ``records`` is None when there is nothing to see.

    The slice begins on a batch boundary, perhaps at offsets below the one asked for, and may end
    inside a batch (less often where batches are large): whoever reads it drops both. ``aborted`` is
    given to readers of committed data.
    """

    start_offset: int
    records: FileSlice | None
    segment_base_offset: int = -1
    is_first_batch_incomplete: bool = False
    aborted: tuple[AbortedTransaction, ...] | None = None

    @property
    def size_bytes(self) -> int:
        return 0 if self.records is None else self.records.size_bytes

    def whole_batches(self) -> "WholeBatches":
        """Read the slice and drop the batch that it ends in the middle of."""
        if self.records is None:
            return WholeBatches(b"", self.start_offset)
        content = self.records.read()
        headers = read_headers(content, self.records.position)
        if not headers:
            return WholeBatches(b"", self.start_offset)
        size_bytes = headers[-1].position + headers[-1].size_bytes - self.records.position
        return WholeBatches(content[:size_bytes], headers[-1].next_offset)


class WholeBatches(NamedTuple):
    """Bytes that end with a batch; reading goes on at ``next_offset``. Their CRCs are right."""

    content: bytes
    next_offset: int


def upper_bound(log: "Log", isolation: Isolation) -> int:
    if isolation is Isolation.LOG_END:
        return log.log_end_offset
    if isolation is Isolation.HIGH_WATERMARK:
        return log.high_watermark
    return log.last_stable_offset


def read_log(
    log: "Log", start_offset: int, *, max_bytes: int, isolation: Isolation, min_one_message: bool
) -> FetchedData:
    if not log.log_start_offset <= start_offset <= log.log_end_offset:
        raise OffsetOutOfRangeError(start_offset, log.log_start_offset, log.log_end_offset)
    bound = upper_bound(log, isolation)
    # Where there is no room for anything, no file is opened to find that out.
    has_room = max_bytes > 0 or min_one_message
    found = _first_batch(log, start_offset) if start_offset < bound and has_room else None
    if found is None:
        return _nothing(start_offset, isolation)
    segment, header = found
    end_position = _end_position(log, segment, bound)
    # Damage in the way ends the slice; the next read, from behind it, says that it is corrupt.
    end_position = segment.damage.next_start(header.position, end_position)
    size_bytes = min(
        end_position - header.position,
        max(max_bytes, header.size_bytes if min_one_message else 0),
    )
    if size_bytes <= 0:
        return _nothing(start_offset, isolation)
    if header.position + size_bytes < end_position:
        size_bytes = segment.whole_size(header, size_bytes)
    aborted = None
    if isolation is Isolation.TXN_COMMITTED:
        aborted = _aborted(log, segment, start_offset, header.position + size_bytes)
    return FetchedData(
        start_offset,
        segment.slice(header.position, size_bytes),
        segment.base_offset,
        size_bytes < header.size_bytes,
        aborted,
    )


def _nothing(start_offset: int, isolation: Isolation) -> FetchedData:
    is_told = isolation is Isolation.TXN_COMMITTED
    return FetchedData(start_offset, None, aborted=() if is_told else None)


def _first_batch(log: "Log", offset: int) -> tuple[Segment, BatchHeader] | None:
    """The first batch that ends at ``offset`` or later; compaction may have moved it on."""
    segment = log.segments.floor(offset)
    if segment is None:
        raise OffsetOutOfRangeError(offset, log.log_start_offset, log.log_end_offset)
    while segment is not None:
        header = segment.find(offset)
        if header is not None:
            return segment, header
        segment = log.segments.higher(segment)
    return None


def _end_position(log: "Log", segment: Segment, bound: int) -> int:
    """Where the readable bytes of ``segment`` end for a reader that stops at ``bound``."""
    if bound >= log.log_end_offset:
        return segment.size_bytes
    owner = log.segments.floor(bound)
    if owner is None or segment.base_offset > owner.base_offset:
        return 0
    if segment.base_offset < owner.base_offset:
        return segment.size_bytes
    return segment.position_of(bound)


def _aborted(
    log: "Log", segment: Segment, start_offset: int, end_position: int
) -> tuple[AbortedTransaction, ...]:
    """Transactions that a reader of this slice has to drop.

    The slice's end is turned into an offset by the index: a little too far is harmless, the
    reader is told of a transaction that does not concern it.
    """
    following = log.segments.higher(segment)
    end_offset = segment.offset_behind(end_position)
    if end_offset is None:
        end_offset = log.log_end_offset if following is None else following.base_offset
    return collect_aborted(log, segment, start_offset, end_offset)


def collect_aborted(
    log: "Log", first: Segment, start_offset: int, end_offset: int
) -> tuple[AbortedTransaction, ...]:
    """Aborted transactions that reach into a range of offsets, by the indexes from ``first`` on:
    a transaction is noted where its marker is, which may be segments later."""
    found: list[AbortedTransaction] = []
    current: Segment | None = first
    while current is not None:
        search = current.transaction_index.collect(start_offset, end_offset)
        found.extend(search.transactions)
        if search.is_complete:
            break
        current = log.segments.higher(current)
    return tuple(found)
