"""Types of the compiled module (see _kernels.pyx and the .pxi files it includes)."""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Generic, Protocol, TypeVar, final

from typing_extensions import Buffer

Header = TypeVar("Header")

# --- headers (_header.pxi, _record.pxi) ---------------------------------------------------------

@final
class BatchHeader:
    """The header of one batch of any format, as a value. Cheap to make: no copy of the bytes.

    A message of magic 0 or 1 is a batch of its own: producer, epoch and sequences are -1, and so
    is ``max_timestamp_ms`` for magic 0. If it is compressed, ``base_offset`` and ``record_count``
    are -1: only decompressing it would tell.
    """

    @property
    def position(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def partition_leader_epoch(self) -> int: ...
    @property
    def magic(self) -> int: ...
    @property
    def crc(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def base_timestamp_ms(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, continuing at 0 after 2147483647; -1 for none."""
    @property
    def record_count(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def last_offset_delta(self) -> int: ...
    @property
    def codec_id(self) -> int: ...
    @property
    def is_log_append_time(self) -> bool: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def has_producer_id(self) -> bool: ...
    @property
    def delete_horizon_ms(self) -> int | None: ...

def read_header(buffer: Buffer, at: int = 0, position: int = 0) -> BatchHeader | None:
    """The header at byte ``at``, which is byte ``position`` of its file.

    Only the header has to be in the buffer: 61 bytes, or 26 of a message of magic 1, or 18 of
    magic 0; ``None`` if it is not. Raises ``CorruptBatchError`` for a size, magic, count or
    offset that no batch can have.
    """

def read_headers(buffer: Buffer, position: int = 0, check_crc: bool = True) -> list[BatchHeader]:
    """The headers of all whole batches in ``buffer``; a batch cut at its end is left out."""

def find_batch(buffer: Buffer, position: int, target_offset: int, limit: int) -> BatchHeader | int:
    """The header of the first batch whose last offset is at or after ``target_offset``.

    Byte 0 of ``buffer`` is byte ``position`` of the file, whose valid bytes end at ``limit``.
    When headers run out first, the position of the next one to look at.
    """

def check_crc(buffer: Buffer, at: int = 0, size: int = -1) -> bool:
    """Whether a whole batch (of ``size`` bytes, if given) is at ``at`` and carries its CRC."""

def crc32c(buffer: Buffer, crc: int = 0) -> int:
    """The CRC-32C of ``buffer``, continuing from ``crc``."""

def first_record(body: Buffer, record_count: int) -> tuple[bytes | None, bytes | None] | None:
    """Key and value of the first record of an uncompressed body; ``None`` if it has none."""

# --- scans (_scan.pxi, _resync.pxi) -------------------------------------------------------------

@final
class SegmentScan:
    """Checks the batches of one segment in order and rebuilds its indexes from them.

    Feed it the bytes of the file from ``position`` on, in pieces of any size, until the file
    ends or ``fault`` says why the batch at ``position`` is not valid. An index entry is due at a
    batch that begins more than ``index_interval_bytes`` after the last one that got an entry (or
    after the start of the file): what appending counts and what recovery computes is the same.
    Not for several threads at a time.

    A batch is checked for its header, its CRC, offsets that grow and fit the segment, and with
    ``check_records`` for contents that are exactly the records it declares. Contents that would
    decompress to more than ``decompressed_max_bytes`` are not opened, and counted. Without
    ``check_crc`` it is for batches that were just made or checked.
    """

    def __init__(
        self,
        base_offset: int,
        index_interval_bytes: int,
        check_records: bool = True,
        all_headers: bool = False,
        decompressed_max_bytes: int = 1 << 28,
        no_headers: bool = False,
        check_crc: bool = True,
    ) -> None: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def index_interval_bytes(self) -> int: ...
    @property
    def misnumbered_count(self) -> int:
        """Batches with records that say offsets which are not theirs."""

    @property
    def misnumbered_position(self) -> int:
        """Where the first of them begins; -1 if there is none."""

    @property
    def decompressed_max_bytes(self) -> int: ...
    @property
    def position(self) -> int:
        """Where the next batch begins: all before it is valid."""
    @property
    def wanted_bytes(self) -> int:
        """The size of the batch at ``position``, if the last piece ended inside it; else 0."""
    @property
    def fault(self) -> str | None:
        """Why the batch at ``position`` is not valid."""
    @property
    def overflow(self) -> bool:
        """Whether the fault is an offset too far from the segment's base."""
    @property
    def next_offset(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...
    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the batch that first had ``max_timestamp_ms``; -1 for none."""
    @property
    def first_timestamp_ms(self) -> int:
        """The maximum timestamp of the first batch; -1 for none."""
    @property
    def last_leader_epoch(self) -> int: ...
    @property
    def batch_count(self) -> int: ...
    @property
    def record_count(self) -> int:
        """Records that headers declare; a compressed message of magic 0 or 1 declares none."""
    @property
    def unopened_count(self) -> int:
        """Batches taken on their CRC alone because their contents are too large."""
    @property
    def codec_mask(self) -> int:
        """Bit n is set if a batch has codec n."""
    @property
    def magic_mask(self) -> int:
        """Bit n is set if a batch has magic n."""
    @property
    def offset_entries(self) -> bytearray:
        """The offset index: i32 relative offset, i32 position an entry."""
    @property
    def time_entries(self) -> bytearray:
        """The time index: i64 timestamp, i32 relative offset an entry."""
    def feed(self, buffer: Buffer) -> list[BatchHeader]:
        """Take the whole batches at the start of ``buffer``, which is byte ``position`` on.

        Returns the headers that change more than indexes: of batches with a producer id, of
        control batches, and of those whose leader epoch is not that of the batch before; or
        all, if so asked. After a fault nothing is taken any more.
        """
    def start(
        self,
        position: int,
        next_offset: int,
        indexed_position: int,
        max_timestamp_ms: int,
        offset_of_max_timestamp: int,
        indexed_timestamp_ms: int,
    ) -> None:
        """Before the first ``feed``: begin in the middle of a segment whose first ``position``
        bytes, and the indexes of them, are known to be good."""

    last_position: int
    offset_before_last: int
    @property
    def is_order_fault(self) -> bool:
        """Whether the faulty batch is sound but for offsets that go backwards. The batch before
        it began at ``last_position``, where ``offset_before_last`` was the next offset; -1 if
        none was counted since the scan began or resumed."""

    @property
    def is_contents_fault(self) -> bool:
        """Whether the faulty batch has a right CRC and offsets that follow: only its records are
        not what they should be."""

    def accept(self) -> None:
        """Count such a batch all the same, and go on behind it."""

    def resume(self, position: int, next_offset: int) -> None:
        """Go on behind damage: at ``position``, where offsets from ``next_offset`` on follow."""

    def finish(self) -> None:
        """Add the time entry that ends a segment's index, unless it is there."""

def find_valid_batch(
    buffer: Buffer, start: int, position: int, min_base_offset: int, max_base_offset: int
) -> int:
    """The index in ``buffer``, from ``start`` on, of the first whole batch with a right CRC and
    an offset in [``min_base_offset``, ``max_base_offset``]; -1 if there is none.

    Every byte is tried and none is given up on; the time is linear in the buffer whatever it
    holds. ``position`` is the file position of byte 0.
    """

# --- index search (_search.pxi) -----------------------------------------------------------------

def search_offset_index(buffer: Buffer, entries: int, relative_offset: int) -> int:
    """The slot of the entry with the largest offset at or below the target; -1 for none."""

def search_time_index(buffer: Buffer, entries: int, timestamp_ms: int) -> int:
    """The slot of the entry with the largest timestamp at or below the target; -1 for none."""

def search_time_index_by_offset(buffer: Buffer, entries: int, relative_offset: int) -> int:
    """The slot of the time entry with the largest offset at or below the target; -1 for none."""

def upper_bound_by_position(buffer: Buffer, entries: int, position: int) -> int:
    """The slot of the offset entry with the smallest position at or above the target, or -1.

    As in Kafka, a target equal to slot 0 yields the slot after it.
    """

def offset_entry(buffer: Buffer, slot: int) -> tuple[int, int]:
    """(relative offset, position)"""

def time_entry(buffer: Buffer, slot: int) -> tuple[int, int]:
    """(timestamp_ms, relative offset)"""

# --- writing (_encode.pxi) ----------------------------------------------------------------------

def stamp_header(buffer: Buffer, base_offset: int, partition_leader_epoch: int) -> bytearray:
    """The first 61 bytes with these two fields replaced; the CRC does not cover them."""

def stamp_log_append_time(
    buffer: Buffer, base_offset: int, partition_leader_epoch: int, timestamp_ms: int
) -> bytearray:
    """The 61-byte header of a whole batch that now has the leader's timestamp, with its CRC."""

def stamp_create_time(
    buffer: Buffer, base_offset: int, partition_leader_epoch: int, max_timestamp_ms: int
) -> bytearray:
    """The 61-byte header of a whole batch with its real maximum timestamp, with its CRC."""

def encode_records(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    headers: list[Iterable[tuple[str | bytes, bytes | None]] | None] | None,
    timestamps: list[int],
    base_timestamp: int,
    offset_deltas: list[int] | None = None,
) -> bytearray:
    """The uncompressed body of a v2 batch; offsets are consecutive unless given."""

def seal_batch(
    body: Buffer,
    *,
    base_offset: int,
    last_offset_delta: int,
    record_count: int,
    attributes: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    partition_leader_epoch: int,
) -> bytearray:
    """A whole v2 batch around ``body``, which is compressed already if it is to be."""

# --- codecs, produced batches (_codec.pxi, _validate.pxi) ----------------------------------------

class _Rules(Protocol):
    """What ``validate_produced`` reads of ``stratalog.records.validation.ProduceRules``."""

    @property
    def compacted(self) -> bool: ...
    @property
    def log_append_time(self) -> bool: ...
    @property
    def before_max_ms(self) -> int: ...
    @property
    def after_max_ms(self) -> int: ...
    @property
    def max_message_bytes(self) -> int: ...
    @property
    def codec(self) -> int | None: ...
    @property
    def level(self) -> int | None: ...
    @property
    def max_decompressed_bytes(self) -> int: ...

@final
class ProducedBatches:
    """What a leader writes for one produce request, and what it answers."""

    header: BatchHeader  # of the batch as it will be stored, at position 0
    buffers: list[Buffer]  # its bytes, to be written one after the other
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    log_append_time_ms: int  # -1 for CreateTime
    rebuilt: bool  # whether records were encoded anew, in another codec or format
    # Whether the records of a batch that was not rebuilt follow each other, as those of producers
    # do; an uncompressed one is stored also if they do not.
    offsets_count_from_zero: bool
    headers: tuple[BatchHeader, ...]  # that one
    @property
    def last_offset(self) -> int: ...
    def move(self, by: int, leader_epoch: int) -> None:
        """Give the batch other offsets and another leader epoch: both lie outside the CRC."""

def validate_produced(
    records: Buffer,
    rules: _Rules,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    is_client: bool = True,
) -> ProducedBatches:
    """Check ``records`` as a leader does, and give them offsets from ``first_offset`` on.

    ``records`` must not change until the buffers of the result are written: they refer to it. Who
    is no client is a coordinator, which may do more; a follower takes batches as they are.
    """

def keep_batches(
    records: bytearray | memoryview,
    rules: _Rules,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    batch_bytes_max: int,
) -> list[tuple[BatchHeader, int]]:
    """What ``validate_produced`` would say of the first batches of ``records``, for as many as are
    stored just as they came and not compressed: their headers and smallest timestamps. Those get
    their offsets and epoch where they lie, whatever offset they had.

    For much that is already there: the GIL is let go of once. What becomes of the batch behind
    them, or what is wrong with it, is for ``validate_produced`` to say.
    """

def lone_batch(records: Buffer | None) -> tuple[int, int]:
    """Size and codec of what a produce request holds for a partition: exactly one batch of magic 2,
    and perhaps bytes behind it that are too few for another. Raises what it is refused with if it
    is anything else; the rest of the batch is not looked at."""

def xxh32(buffer: Buffer) -> int:
    """xxHash-32 with seed 0, which LZ4 frames use."""

def uninitialized(size_bytes: int) -> bytearray:
    """A bytearray nobody has written to yet: its pages cost nothing before they are used."""

# --- columns (_columns.pxi, _legacy.pxi) ---------------------------------------------------------

COLUMN_NAMES: tuple[str, ...]  # what ColumnDecoder can decode; bit i of `wanted` is name i

@final
class ColumnDecoder:
    """Takes bytes of a log and gives the wanted columns of their records, some batches at a time.

    One decoder is for one thread. After an error it still holds the batches before the bad one.
    """

    rows: int
    full: bool  # whether the last add() stopped because of target_bytes or target_rows
    batches: int  # passed so far, whether they had rows or not
    next_offset: int  # what a batch has to begin with at least; -1 if any will do
    stopped_at: int  # what add() returned, or would have if it had not raised: a byte of its buffer
    is_undecided: bool  # whether add() stopped at a transactional batch: decide() is needed
    def __init__(
        self,
        wanted: int,
        *,
        start_offset: int,
        end_offset: int,
        check_crc: bool = True,
        include_control: bool = False,
        target_bytes: int = 2147483647,
        target_rows: int = 2147483647,
        aborted: Iterable[tuple[int, int, int]] | None = (),
        segment_base_offset: int = -1,
        in_microseconds: bool = False,
        gaps: bool = False,
        min_timestamp_ms: int | None = None,
        max_timestamp_ms: int | None = None,
        keys: Iterable[bytes] | None = None,
    ) -> None:
        """``aborted``: (producer id, first offset, last offset) of each transaction to leave out;
        ``None`` if that is to be asked for, with ``is_undecided``, when the first is met.

        ``segment_base_offset``: the batches are those of one segment, read to where the buffers
        end. They have to grow and to be within reach of its base offset; one whose offsets lie
        behind the range does not end the reading. ``gaps``: no rows, but what would be left out.
        Timestamps and keys are of the rows to keep, both ends included."""

    def add(
        self,
        buffer: Buffer,
        at: int = 0,
        position: int = 0,
        limit_bytes: int = 2147483647,
        expected_bytes: int = -1,
    ) -> int:
        """Add whole batches from byte ``at`` on and return where it stopped: at a batch that is
        cut, or beyond the range of offsets, or that would be one too many. ``position`` is the
        file position of byte 0. ``expected_bytes`` is how much will be added until ``take``."""

    def decide(self, aborted: Iterable[tuple[int, int, int]]) -> None:
        """Say which transactions were aborted; all others were committed."""

    def note_damage(self) -> None:
        """Bytes are passed over here: what is missing before the next batch was in them."""

    def skip_batch(self, base_offset: int, next_offset: int) -> None:
        """A batch cannot be read: its offsets are lost. ``base_offset`` is -1 if unknown."""

    def finish_gaps(self) -> None:
        """There are no more batches: what is left of the range is missing."""

    def take(self) -> tuple[int, dict[str, tuple[Any, ...]]]:
        """The rows so far and the memory of their columns; the decoder is empty afterwards."""

    def take_gaps(self) -> tuple[int, Buffer, Buffer, Buffer]:
        """The gaps so far, but for one that may still grow: how many, start offsets, end offsets
        and reasons, which are places in ``GAP_REASONS``."""

GAP_REASONS: tuple[str, ...]

# --- transactions (_fates.pxi) --------------------------------------------------------------------

@final
class FateWalk:
    """Follows batches in the order of the log, and tells which transactions were aborted."""

    aborted: list[tuple[int, int, int]]  # producer id, first offset seen, offset of the marker
    next_offset: int  # batches that begin before it were seen already, and are passed over
    is_ahead: bool
    @property
    def undecided(self) -> dict[int, int]:
        """The producers whose transaction has not ended, and the first offset seen of it."""
    @property
    def is_decided(self) -> bool: ...
    def look_ahead(self) -> None:
        """From here on only markers count: transactions that begin now are nobody's concern."""
    def take_aborted(self, aborted: Iterable[tuple[int, int, int]]) -> None:
        """What a transaction index says: producer id, first and last offset of each."""
    def feed(self, buffer: Buffer, position: int, end_position: int) -> int:
        """Walk what is in ``buffer``, whose byte 0 is byte ``position`` of a file, up to
        ``end_position``; returns where the next header begins, perhaps far behind the buffer. If
        it lies inside, more of it is needed than is there."""

# --- lookup (_lookup.pxi) -------------------------------------------------------------------------

def find_record_by_timestamp(
    batch: Buffer, timestamp_ms: int, min_offset: int, limit_bytes: int = ...
) -> tuple[int, int] | None:
    """Offset and timestamp of the first record of a whole batch that is not older than the target
    and not below ``min_offset``; what it decompresses to is bounded by ``limit_bytes``."""

# --- compaction (_clean.pxi, _hash.pxi, _offset_map.pxi, _transactions.pxi, _walk.pxi) ----------

def siphash128(key: bytes, data: Buffer) -> bytes:
    """SipHash-2-4 with 128 bits of output."""

def md5(data: Buffer) -> bytes: ...

@final
class OffsetMap:
    """The last offset of each key, by the key's hash, in memory that is bounded.

    ``hash_name`` is ``siphash`` (keyed; a random ``key`` if none is given) or ``md5``. As many as
    ``capacity`` keys fit, ``load_factor`` of the ``slots``; then nothing can be put any more.
    """

    def __init__(
        self,
        memory_bytes: int,
        *,
        load_factor: float = 0.9,
        hash_name: str = "siphash",
        key: bytes | None = None,
    ) -> None: ...
    @property
    def slots(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def latest_offset(self) -> int:
        """The last offset that the map speaks for; -1 when it is empty."""
    @property
    def hash_name(self) -> str: ...
    @property
    def key(self) -> bytes: ...
    @property
    def utilization(self) -> float: ...
    def __len__(self) -> int: ...
    def clear(self, keys_at_most: int = ...) -> None:
        """Forget all. If no more than ``keys_at_most`` keys can follow, less memory is used."""
    def release(self) -> None:
        """Forget all, and give the memory back until it is used again."""
    def track(self, first_offset: int, end_offset: int) -> None:
        """Of an empty map: remember which of these offsets are put and then superseded, so that a
        ``RecordFilter`` over the same batches need not look them up. Until ``clear``."""
    def restrict(self, first: int, last: int) -> None:
        """Builders put, and scans look up, only hashes whose upper 64 bits are in this range."""
    def mark_in(
        self, superseded: Buffer, special: Buffer, first_offset: int, end_offset: int
    ) -> None:
        """As ``track``, in the caller's memory: a bit for each offset, the lowest bit of a byte
        first. Both are held until ``clear``."""
    def decide(
        self, superseded: Buffer, special: Buffer, first_offset: int, end_offset: int
    ) -> None:
        """Let such bits, put together from all ranges, be all that a ``RecordFilter`` asks."""
    def entries(self) -> bytearray:
        """Hashes and offsets of all that was put, for ``put_entries`` of another map."""
    def put_entries(self, entries: Buffer) -> bool:
        """Put them as their builder did: of a key that is there, the earlier offset is marked as
        superseded. False if not all of them fit."""
    def put(self, key: bytes, offset: int) -> None: ...
    def get(self, key: bytes) -> int:
        """The offset, or -1."""
    def raise_latest_offset(self, offset: int) -> None: ...

@final
class CleanedTransactions:
    """Transactions and producers as a walk over a log's batches meets them, in offset order.

    ``producers``: id, epoch and last data offset (-1 for none) of those that are still active.
    """

    def __init__(self, producers: Iterable[tuple[int, int, int]] = ()) -> None: ...
    def add_aborted(self, transactions: Iterable[tuple[int, int, int, int]]) -> None:
        """Aborted transactions, as tuples in the order of the transaction index's fields."""
    def take_kept(self) -> list[tuple[int, int, int, int]]:
        """The aborted transactions whose markers were kept since this was last asked."""

class _BatchWalk:
    @property
    def wanted_bytes(self) -> int:
        """How much is needed of the batch that was not whole at the end of the last buffer: its
        size, or its header if that was not whole; 0 for none."""
    @property
    def position(self) -> int: ...
    def feed(self, buffer: Buffer, position: int) -> int:
        """Take all whole batches of ``buffer``, which lies at ``position`` of its file; returns
        how many bytes they are. Raises ``CorruptBatchError`` at one that is damaged, or, but for a
        survey, whose offsets do not follow those before. One thread at a time."""

@final
class MapBuilder(_BatchWalk):
    """Puts the keys of the dirty part of a log into an ``OffsetMap``, until that is full."""

    def __init__(
        self, offset_map: OffsetMap, transactions: CleanedTransactions, first_dirty_offset: int
    ) -> None: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def messages_read(self) -> int: ...
    @property
    def transactional_batches(self) -> int: ...

@final
class SupersededScan(_BatchWalk):
    """Marks the records that a map supersedes and that its builder was not told of: those below
    the dirty part, and those of transactions."""

    def __init__(self, offset_map: OffsetMap, first_dirty_offset: int) -> None: ...
    @property
    def transactional_batches(self) -> int: ...

@final
class KeyHashes(_BatchWalk):
    """The hashes and offsets of keyed records, as columns to be sorted by somebody else: the
    halves of the hash, and twice the offset, plus one where the map of a cleaning would be told of
    the record."""

    def __init__(
        self, offset_map: OffsetMap, transactions: CleanedTransactions, first_dirty_offset: int
    ) -> None: ...
    @property
    def transactional_batches(self) -> int: ...
    @property
    def rows(self) -> int: ...
    def take(self) -> tuple[bytes, bytes, bytes]:
        """The three columns since this was last asked, as 64-bit numbers."""

@final
class SupersededRuns:
    """The superseded ones of what ``KeyHashes`` gave, sorted by hash and then from the last place
    to the first."""

    def __init__(self) -> None: ...
    def feed(self, lows: Buffer, highs: Buffer, places: Buffer) -> bytes:
        """The offsets of those rows that are superseded, as 64-bit numbers."""

def mark_offsets(offsets: Buffer, bits: Buffer, first_offset: int, end_offset: int) -> None:
    """Set the bits of these 64-bit numbers, as ``OffsetMap.mark_in`` does; those that lie
    elsewhere are passed over."""

@final
class RecordFilter(_BatchWalk):
    """Keeps of each batch what compaction keeps, in the bytes that Kafka would write.

    What was kept of the batches last fed is ``memoryview(filter)``; let go of it before the next
    call, and leave the buffer that was fed as it is until then: if nothing was to be changed, it
    is the very same bytes.
    """

    retain_legacy_deletes: bool
    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        *,
        now_ms: int,
        delete_retention_ms: int,
        upper_bound_offset: int,
    ) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def messages_read(self) -> int: ...
    @property
    def messages_kept(self) -> int: ...
    @property
    def batches_read(self) -> int: ...
    @property
    def batches_kept(self) -> int: ...
    @property
    def superseded(self) -> int: ...
    @property
    def null_keys(self) -> int: ...
    @property
    def tombstones_expired(self) -> int: ...
    @property
    def tombstones_kept(self) -> int: ...
    @property
    def discarded_batches(self) -> int: ...
    @property
    def horizons_set(self) -> int: ...
    @property
    def largest_batch_bytes(self) -> int: ...

@final
class KeySurvey(_BatchWalk):
    """Counts what matters to compaction; keys from ``first_dirty_offset`` on."""

    def __init__(self, first_dirty_offset: int = 0) -> None: ...
    @property
    def batches(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def control_batches(self) -> int: ...
    @property
    def header_only_batches(self) -> int: ...
    @property
    def null_keys(self) -> int: ...
    @property
    def tombstones(self) -> int: ...
    @property
    def tombstones_with_horizon(self) -> int: ...
    @property
    def earliest_horizon_ms(self) -> int:
        """-1 where no tombstone has a horizon."""
    @property
    def latest_horizon_ms(self) -> int: ...
    @property
    def estimated_keys(self) -> int: ...

class TimeRangeGather:
    """The time ranges of batches that are being appended, one for about ``range_bytes``; whoever
    inherits writes them. The last batch added is known by position, offset and CRC."""

    range_bytes: int
    end: int
    last_position: int
    last_offset: int
    last_crc: int
    @property
    def waiting(self) -> int:
        """How many ranges wait to be written."""
    @property
    def gathered_end(self) -> int:
        """Where they end; behind it, up to ``end``, a range has begun."""
    def restart(self, position: int, range_bytes: int) -> None:
        """Forget all; what is added next begins at ``position``."""
    def add(self, end: int, batches: Sequence[BatchHeader], min_ms: int) -> bool:
        """``batches`` were appended up to byte ``end``, their smallest timestamp is ``min_ms``; if
        nobody knows it (-2**63), their headers are not believed about the largest either. Returns
        whether enough ranges wait to be written."""
    def end_range(self) -> None:
        """Let the range that was begun, if any, end here."""
    def columns(self) -> tuple[bytearray, bytearray, bytearray]:
        """Of the ranges that wait: positions, smallest and largest timestamps, as native signed
        64-bit numbers. One without records has a minimum above its maximum."""
    def forget(self) -> None:
        """They are written."""

@final
class TimeRangeScan(_BatchWalk):
    """The time ranges of a segment's batches, fed from its start: one for about
    ``range_bytes``."""

    def __init__(self, range_bytes: int, check_crc: bool = True) -> None: ...
    @property
    def range_bytes(self) -> int: ...
    @property
    def covered_bytes(self) -> int:
        """Where the last batch that was taken ends."""
    @property
    def last_position(self) -> int:
        """Where it begins; -1 if there was none."""
    @property
    def last_offset(self) -> int: ...
    @property
    def last_crc(self) -> int: ...
    def finish(self) -> tuple[bytearray, bytearray, bytearray]:
        """Positions, smallest and largest timestamps, as native signed 64-bit numbers."""

def min_timestamp(buffer: Buffer) -> int:
    """The smallest timestamp in whole batches; -2**63 where only decompressing one would tell,
    2**63 - 1 where they hold no record."""

def overlapping_ranges(
    positions: Buffer,
    minima: Buffer,
    maxima: Buffer,
    covered: int,
    min_ms: int,
    max_ms: int,
    start: int,
    end: int,
) -> list[tuple[int, int]]:
    """The bytes of [start, end) that may hold a timestamp of [min_ms, max_ms], as runs in order;
    from ``covered`` on there may be any. The columns are native signed 64-bit numbers, positions
    ascend from 0."""

# --- rows to batches (_produce.pxi, _produce_rows.pxi, _produce_partition.pxi) -------------------

@final
class RowColumn:
    """One Arrow array, read in place: its rows, Arrow's offset, the width in bytes of its offsets
    or else of its values, and its buffers. ValueError if they are too short for it."""

    def __init__(
        self,
        rows: int,
        first: int,
        width: int,
        valid: Buffer | None,
        offsets: Buffer | None,
        values: Buffer | None,
    ) -> None: ...
    @property
    def rows(self) -> int: ...

@final
class RowEncoder:
    """Takes rows of Arrow columns and gives whole batches, each of one partition."""

    def __init__(
        self,
        partitions: int,
        *,
        batch_bytes: int,
        memory_bytes: int,
        compressed: bool = False,
        needs_keys: bool = False,
    ) -> None: ...
    @property
    def open_bytes(self) -> int:
        """Of all batches that are not full yet."""
    @property
    def rows(self) -> int:
        """How many were taken."""
    def add(
        self,
        partitions: RowColumn,
        key: RowColumn | None,
        value: RowColumn,
        timestamp: RowColumn | None,
        headers: tuple[RowColumn, RowColumn, RowColumn, RowColumn] | None,
        *,
        now_ms: int,
        ticks_a_ms: int = 1,
        earliest_ms: int = 0,
        latest_ms: int = ...,
    ) -> list[tuple[int, Buffer, int, int, int, int]]:
        """Take all rows; returns what became full, as ``flush`` does. ``headers`` are the columns
        of lists, structs, keys and values; ``timestamp`` counts so many ticks in a millisecond, and
        where it is not null lies from ``earliest_ms`` to ``latest_ms``."""
    def flush(self) -> list[tuple[int, Buffer, int, int, int, int]]:
        """What is left: partition, bytes, record count, base and largest timestamp and first row
        of each batch. The bytes are a whole batch, or if it is to be compressed the room for a
        header and then the records."""

def murmur2(key: Buffer) -> int:
    """The hash that Kafka's clients partition by, as a signed number of 32 bits."""

@final
class RowPartitioner:
    """Partitions of rows; where rows without a key go follows from the seed and all rows before."""

    def __init__(self, partitions: int, *, seed: int, run_bytes: int) -> None: ...
    def assign(self, keys: RowColumn | None, values: RowColumn, given: RowColumn | None) -> Buffer:
        """A partition for each row, as memory of int32: the one that ``given`` names, or that of
        the key, or that of the run."""

# --- messages of the wire protocol (_wire.pxi) --------------------------------------------------

@final
class MessageCodec:
    """One message in one version, from bytes and to bytes; ``layout`` is described in _wire.pxi.

    What is refused, either way, raises ProtocolError with ``api`` and ``version``; so is a message
    to be read whose arrays have more than ``elements_max`` elements together.
    """

    @property
    def api(self) -> str: ...
    @property
    def version(self) -> int: ...
    def __init__(
        self,
        api: str,
        layout: tuple[Any, ...],
        version: int,
        *,
        is_flexible: bool = False,
        api_key: int = -1,
        is_header_flexible: bool = False,
        elements_max: int | None = None,
    ) -> None: ...
    def decode(self, frame: Buffer, position: int = 0) -> Any:
        """The message that starts at ``position``; bytes after it are passed over. Records are
        views of the frame."""
    def encode(self, value: Any) -> bytes:
        """A message without records, and without a header."""
    def encode_response(self, correlation_id: int, value: Any) -> list[Sized]:
        """A whole frame; records are elements of their own, as they were given."""
    def decode_response(self, frame: Buffer) -> tuple[int, Any]:
        """The correlation id and the message of a frame without its size."""
    def encode_request(
        self, correlation_id: int, client_id: str | None, value: Any
    ) -> list[Sized]: ...

@final
class MessageCodecs:
    """The codecs of all APIs and versions; ``load`` makes one when its first message is seen."""

    def __init__(self, load: Callable[[int, int], MessageCodec]) -> None: ...
    def decode(self, api_key: int, version: int, frame: Buffer, position: int = 0) -> Any: ...
    def encode(self, api_key: int, version: int, value: Any) -> bytes: ...
    def encode_response(
        self, api_key: int, version: int, correlation_id: int, value: Any
    ) -> list[Sized]: ...
    def decode_response(self, api_key: int, version: int, frame: Buffer) -> tuple[int, Any]: ...
    def encode_request(
        self, api_key: int, version: int, correlation_id: int, client_id: str | None, value: Any
    ) -> list[Sized]: ...

@final
class RequestHeaders(Generic[Header]):
    """Headers of requests: ``header`` is a NamedTuple of API key, version, correlation id and
    client id, ``flexible`` are the APIs and versions whose headers have tags."""

    def __init__(self, header: type[Header], flexible: Iterable[tuple[int, int]]) -> None: ...
    def decode(self, frame: Buffer) -> tuple[Header, int]:
        """The header, and where the body begins."""
