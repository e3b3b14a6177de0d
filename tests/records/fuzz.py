"""Feeds damaged and hostile bytes to every kernel: ``python -m tests.records.fuzz --seconds 60``.

A case is a valid log, mutated: bits, extreme numbers, cuts, splices. In most cases the CRCs are
then made right again, so that the code behind them is reached. The input has exactly its own size
in memory, so that AddressSanitizer (tools/fuzz-asan) sees a read of one byte too many. A kernel
may refuse a case with an error of this project; anything else is a failure, and its seed is
printed: ``--seed N`` repeats it.
"""

import argparse
import contextlib
import os
import random
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from stratalog.errors import StratalogError
from stratalog.records import (
    CleanedTransactions,
    Codec,
    KeyHashes,
    KeySurvey,
    MapBuilder,
    OffsetMap,
    Record,
    RecordFilter,
    SegmentScan,
    SupersededRuns,
    SupersededScan,
    TimeRangeScan,
    TimestampType,
    build_batch,
    build_end_transaction_marker,
    check_crc,
    compress,
    decompress,
    find_batch,
    find_valid_batch,
    mark_offsets,
    read_control_batch,
    read_header,
    read_headers,
)
from stratalog.records import _kernels as kernels
from stratalog.records.validation import ProduceRules, keep_batches, validate_produced

LIMIT_BYTES = 1 << 20
EXTREMES = (0, 1, -1, 2, 13, 14, 48, 49, 127, 128, 2**15 - 1, 2**31 - 1, -(2**31), 2**31 - 12)
EXTREMES_LONG = (*EXTREMES, 2**63 - 1, -(2**63), 2**63 - 2, 2**32)

# What a kernel may answer to bytes that are not what they should be.
REFUSALS = (StratalogError, ValueError, IndexError)


# --- valid logs to begin with ------------------------------------------------------------------


def _message(magic: int, offset: int, attributes: int, value: bytes) -> bytes:
    content = struct.pack(">bb", magic, attributes) + (bytes(8) if magic == 1 else b"")
    content += struct.pack(">i", 1) + b"k" + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def _legacy_log(magic: int, codec: Codec) -> bytes:
    inner = b"".join(_message(magic, offset, 0, b"v" * offset) for offset in range(3))
    if codec is Codec.NONE:
        return inner
    packed = bytes(compress(codec, inner, magic=magic))
    return _message(magic, 2, codec, packed) + _message(magic, 5, codec | 8, packed)


def _records(count: int) -> list[Record]:
    headers = (("header", b"x"), ("", None))
    return [
        Record(
            None if i % 3 == 0 else b"key%d" % i,
            None if i % 5 == 4 else b"value" * (i % 9),
            headers if i % 2 else (),
            1000 + 7 * i,
        )
        for i in range(count)
    ]


def valid_logs() -> list[bytes]:
    """Short logs of every format, codec and kind of batch."""
    logs = [
        build_batch(_records(count), codec=codec, producer_id=3, producer_epoch=0, base_sequence=0)
        for codec in Codec
        for count in (1, 4, 30)
    ]
    logs += [_legacy_log(magic, codec) for magic in (0, 1) for codec in list(Codec)[:4]]
    producer = {"producer_id": 3, "producer_epoch": 0, "base_sequence": 0}
    append_time = TimestampType.LOG_APPEND_TIME
    marker = build_end_transaction_marker(
        commit=True, producer_id=3, producer_epoch=0, coordinator_epoch=1, timestamp_ms=5
    )
    logs += [
        marker,
        build_batch(_records(3), timestamp_type=append_time, log_append_time_ms=9),
        build_batch(_records(3), delete_horizon_ms=77, offset_deltas=[1, 2, 9]),
        build_batch([], last_offset_delta=4),
        build_batch([Record(None, bytes(3000))]),
        build_batch(_records(200), codec=Codec.LZ4),
        build_batch(_records(3), transactional=True, **producer),
    ]
    joined = b"".join(
        bytes(kernels.stamp_header(batch, 100 * i, i)) + batch[61:]
        for i, batch in enumerate(logs[:6])
    )
    transaction = b"".join(
        bytes(kernels.stamp_header(batch, 10 * i, i)) + batch[61:]
        for i, batch in enumerate((logs[-1], marker, logs[1], logs[-1], marker))
    )
    return [*logs, joined, transaction]


# --- damage ------------------------------------------------------------------------------------


def mutate(rng: random.Random, log: bytes) -> bytearray:
    """A few changes of a log, at any place but more often where headers are."""
    data = bytearray(log)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8))):
        if not data:
            break
        end = rng.choice((len(data), min(len(data), 90)))
        at = rng.randrange(end)
        match rng.randrange(8):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
            case 2 if at + 4 <= len(data):
                struct.pack_into(">i", data, at, rng.choice(EXTREMES))
            case 3 if at + 8 <= len(data):
                struct.pack_into(">q", data, at, rng.choice(EXTREMES_LONG))
            case 4:
                del data[at:]
            case 5:
                del data[at : at + rng.randrange(1, 9)]
            case 6:
                data[at:at] = data[at : at + rng.randrange(1, 70)]
            case _:
                data[at : at + 3] = rng.randbytes(rng.randrange(6))
    return data


def repair(rng: random.Random, data: bytearray) -> None:
    """Make sizes fit now and then, and the CRCs right, so that what lies behind is reached."""
    at = 0
    while len(data) - at >= 26:
        size = struct.unpack_from(">i", data, at + 8)[0]
        if not 14 <= size <= len(data) - at - 12:
            if rng.random() < 0.5:
                return
            size = len(data) - at - 12
            struct.pack_into(">i", data, at + 8, size)
        end = at + 12 + size
        if data[at + 16] == 2 and size >= 49:
            struct.pack_into(">I", data, at + 17, kernels.crc32c(bytes(data[at + 21 : end])))
        elif data[at + 16] < 2:
            struct.pack_into(">I", data, at + 12, zlib.crc32(data[at + 16 : end]))
        at = end


# --- what is fed -------------------------------------------------------------------------------

Target = Callable[[array, random.Random], None]


def _headers(data: array, rng: random.Random) -> None:
    read_headers(data, check_crc=rng.random() < 0.5)


def _header(data: array, rng: random.Random) -> None:
    read_header(data, rng.randrange(len(data) + 1))


def _find_batch(data: array, rng: random.Random) -> None:
    find_batch(data, rng.choice(EXTREMES[:6]), rng.choice(EXTREMES_LONG), rng.choice(EXTREMES_LONG))


def _check_crc(data: array, rng: random.Random) -> None:
    check_crc(data, rng.randrange(len(data) + 1), rng.choice((-1, 61, len(data))))


def _scan(data: array, rng: random.Random) -> None:
    scan = SegmentScan(0, rng.choice((0, 100)), decompressed_max_bytes=LIMIT_BYTES)
    headers = scan.feed(data)
    scan.finish()
    assert scan.position <= len(data)
    assert scan.fault is not None or scan.position + max(scan.wanted_bytes, 61) >= len(data)
    assert all(header.position < scan.position for header in headers)


def _scan_in_pieces(data: array, rng: random.Random) -> None:
    whole = SegmentScan(0, 50, rng.random() < 0.5, True, LIMIT_BYTES)
    positions = [header.position for header in whole.feed(data)]
    pieces = SegmentScan(0, 50, True, True, LIMIT_BYTES)
    found = []
    size = 0
    while pieces.fault is None and pieces.position + size < len(data):
        size = max(size + rng.randrange(1, 200), pieces.wanted_bytes)
        before = pieces.position
        found += pieces.feed(data[before : before + size])
        size = 0 if pieces.position > before else size
    assert positions[: len(found)] == [header.position for header in found]


def _resync(data: array, rng: random.Random) -> None:
    found = find_valid_batch(data, rng.randrange(len(data) + 1), 0, 0, 2**62)
    assert found == -1 or check_crc(data, found)


def _search(data: array, rng: random.Random) -> None:
    target = rng.choice(EXTREMES_LONG)
    entries = rng.choice((len(data) // 8, len(data) // 12, 1, len(data)))
    kernels.search_time_index(data, len(data) // 12, target)
    kernels.search_time_index_by_offset(data, len(data) // 12, target)
    kernels.time_entry(data, rng.randrange(len(data) // 12 + 2))
    kernels.offset_entry(data, rng.randrange(len(data) // 8 + 2))
    kernels.search_offset_index(data, entries, target)
    kernels.upper_bound_by_position(data, entries, target)


def _stamp(data: array, rng: random.Random) -> None:
    kernels.stamp_header(data, rng.choice(EXTREMES_LONG), 1)
    stamp = rng.choice((kernels.stamp_create_time, kernels.stamp_log_append_time))
    header = stamp(data, rng.randrange(1000), 1, rng.choice(EXTREMES_LONG))
    whole = bytes(header) + bytes(data[61:])
    stamped = read_header(whole)
    assert stamped is not None
    assert check_crc(whole[: stamped.size_bytes])


def _control(data: array, rng: random.Random) -> None:
    read_control_batch(data)


def _first_record(data: array, rng: random.Random) -> None:
    kernels.first_record(data[rng.choice((61, 61, 0)) :], 1)


def _decompress(data: array, rng: random.Random) -> None:
    at = rng.choice((61, 30, 0))
    codec = rng.choice(list(Codec))
    if len(data) > at + 22 and data[16] < 3:
        codec = Codec(min(data[22 if data[16] == 2 else 17] & 7, 4))
    decompress(codec, data[at:], limit_bytes=LIMIT_BYTES, magic=rng.choice((0, 1, 2)))


def _validate(data: array, rng: random.Random) -> None:
    rules = ProduceRules(
        compacted=rng.random() < 0.2,
        log_append_time=rng.random() < 0.3,
        codec=rng.choice((None, None, *Codec)),
        max_decompressed_bytes=LIMIT_BYTES,
    )
    kept_in = bytearray(data)
    kept = keep_batches(kept_in, rules, 7, 1, 2000, LIMIT_BYTES)
    scan = SegmentScan(7, 100)
    scan.feed(kept_in[: sum(header.size_bytes for header, _ in kept)])
    assert scan.batch_count == len(kept)
    produced = validate_produced(data, rules, first_offset=7, leader_epoch=1, now_ms=2000)
    stored = b"".join(bytes(buffer) for buffer in produced.buffers)
    assert len(stored) == produced.size_bytes
    assert SegmentScan(7, 100).feed(stored)
    assert read_headers(stored)


def _columns(data: array, rng: random.Random) -> None:
    decoder = kernels.ColumnDecoder(
        rng.choice((-1 & ((1 << len(kernels.COLUMN_NAMES)) - 1), 1, 0b111)),
        start_offset=rng.choice((0, 1, -(2**63))),
        end_offset=2**63 - 1,
        check_crc=rng.random() < 0.5,
        include_control=rng.random() < 0.5,
        target_bytes=rng.choice((100, LIMIT_BYTES)),
    )
    at = 0
    for _ in range(100):
        at = decoder.add(data, at, 0, LIMIT_BYTES)
        decoder.take()
        if not decoder.full:
            return


def _scanned_columns(data: array, rng: random.Random) -> None:
    """As a scan asks: one segment, with filters, and fates that are asked for."""
    decoder = kernels.ColumnDecoder(
        rng.getrandbits(len(kernels.COLUMN_NAMES)),
        start_offset=rng.choice((0, 1, 8)),
        end_offset=rng.choice((2, 9, 2**63 - 1)),
        target_bytes=rng.choice((100, LIMIT_BYTES)),
        target_rows=rng.choice((1, 1000)),
        check_crc=rng.random() < 0.5,
        aborted=None if rng.random() < 0.5 else (),
        segment_base_offset=rng.choice((-1, 0, 7, 2**63 - 1)),
        in_microseconds=True,
        gaps=rng.random() < 0.3,
        min_timestamp_ms=rng.choice((None, 0, *EXTREMES_LONG)),
        max_timestamp_ms=rng.choice((None, 0, *EXTREMES_LONG)),
        keys=rng.choice((None, (), (b"", b"k", b"key", bytes(data[:9])))),
    )
    at = 0
    try:
        for _ in range(100):
            at = decoder.add(data, at, 0, LIMIT_BYTES, rng.choice((-1, 0, 10**6)))
            if decoder.is_undecided:
                decoder.decide([(3, 0, 2**63 - 1), (rng.choice(EXTREMES_LONG), 0, 5)])
            elif not decoder.full:
                break
            decoder.take()
            decoder.take_gaps()
    except REFUSALS:
        assert at <= decoder.stopped_at <= len(data)
        decoder.skip_batch(rng.choice((-1, 3)), rng.choice((4, 2**63 - 1)))
        decoder.note_damage()
    rows, _ = decoder.take()
    assert rows >= 0
    decoder.finish_gaps()
    count, starts, ends, reasons = decoder.take_gaps()
    runs = list(zip(memoryview(starts).cast("q"), memoryview(ends).cast("q"), strict=True))
    assert len(runs) == count == len(memoryview(reasons))
    assert all(start < end for start, end in runs)
    assert all(end <= start for (_, end), (start, _) in pairwise(runs))


def _fates(data: array, rng: random.Random) -> None:
    walk = kernels.FateWalk()
    position = 0
    for _ in range(100):
        size = rng.choice((40, 200, len(data)))
        following = walk.feed(data[position : position + size], position, len(data))
        assert following >= position
        if following == position and size == len(data):
            break
        position = following
        if rng.random() < 0.1:
            walk.look_ahead()
    walk.take_aborted([(3, 0, 2**63 - 1), (-1, -1, -1)])
    assert walk.is_decided == (not walk.undecided)


def _find_by_timestamp(data: array, rng: random.Random) -> None:
    kernels.find_record_by_timestamp(data, rng.choice(EXTREMES_LONG), 0, LIMIT_BYTES)


# --- compaction ----------------------------------------------------------------------------------


def _transactions(rng: random.Random) -> CleanedTransactions:
    ids = (3, 3, 0, -1, *EXTREMES_LONG)
    transactions = CleanedTransactions(
        (rng.choice(ids), rng.choice((0, 1, -1)), rng.choice(EXTREMES_LONG))
        for _ in range(rng.choice((0, 1, 3, 100)))
    )
    for _ in range(rng.choice((0, 1, 2))):
        first = rng.choice(EXTREMES_LONG)
        transactions.add_aborted([(rng.choice(ids), first, first, 0), (3, 0, 5, 5)])
    return transactions


def _offset_map(rng: random.Random) -> OffsetMap:
    offsets = OffsetMap(24 * rng.choice((3, 10, 1000)), hash_name=rng.choice(("siphash", "md5")))
    offsets.clear(rng.choice((0, 1, 5, 2**63 - 1)))
    offsets.track(rng.choice((0, 1, 100)), rng.choice((0, 7, 300, 5000)))
    return offsets


Walk = MapBuilder | RecordFilter | KeySurvey | SupersededScan | KeyHashes


def _feed(walk: Walk, data: array, rng: random.Random) -> bytes:
    """Whole or in pieces that die at once; after an error once more. Gives what was kept."""
    pieces = rng.random() < 0.5
    kept = b""
    position = size = 0
    while position + size < len(data):
        size = max(size + rng.randrange(1, 200), walk.wanted_bytes) if pieces else len(data)
        try:
            read = walk.feed(data[position : position + size], position)
        except StratalogError:
            if not pieces:
                walk.feed(data[:0], 0)
            raise
        if isinstance(walk, RecordFilter):
            kept += bytes(walk)
        position += read
        size = 0 if read else size
        if not pieces or (isinstance(walk, MapBuilder) and walk.is_full):
            break
    assert position <= len(data)
    return kept


def _build_map(data: array, rng: random.Random) -> None:
    offsets = _offset_map(rng)
    builder = MapBuilder(offsets, _transactions(rng), rng.choice((0, 1, 2, 2**63 - 1, -1)))
    _feed(builder, data, rng)
    assert len(offsets) <= offsets.capacity
    assert builder.is_full or len(offsets) <= builder.messages_read


def _clean(data: array, rng: random.Random) -> None:
    """The keys of a log, then what they leave of it: batches that are whole and in order."""
    offsets = _offset_map(rng)
    builder = MapBuilder(offsets, CleanedTransactions(), 0)
    try:
        builder.feed(data, 0)
    except StratalogError:
        offsets.clear()  # what was not read to its end is not known
    if not builder.is_full and rng.random() < 0.3:
        offsets.raise_latest_offset(rng.choice((5, 2**62)))
    records = RecordFilter(
        offsets,
        _transactions(rng),
        now_ms=rng.choice((0, 78, 2**63 - 1)),
        delete_retention_ms=rng.choice((0, 1000, 2**63 - 1)),
        upper_bound_offset=rng.choice((0, 1, 5, 30, 2**63 - 1)),
    )
    records.retain_legacy_deletes = rng.random() < 0.5
    kept = _feed(records, data, rng)
    scan = SegmentScan(0, 100, all_headers=True, decompressed_max_bytes=LIMIT_BYTES)
    headers = scan.feed(kept)
    assert scan.overflow or (scan.fault, scan.position) == (None, len(kept)), scan.fault
    assert scan.overflow or len(headers) == records.batches_kept
    assert records.messages_kept <= records.messages_read


def _clean_by_marks(data: array, rng: random.Random) -> None:
    """Marks made in two ways, perhaps for too few offsets, and a filter that knows nothing else."""
    end = rng.choice((1, 8, 300, 5000))
    bits = [bytearray((end + 7) // 8) for _ in range(2)]
    first_dirty = rng.choice((0, 2, 40))
    offsets = OffsetMap(24 * rng.choice((3, 1000)))
    offsets.restrict(*rng.choice(((0, 2**64 - 1), (0, 2**63), (2**62, 2**63))))
    offsets.mark_in(*bits, 0, end)
    with contextlib.suppress(StratalogError):
        _feed(MapBuilder(offsets, _transactions(rng), first_dirty), data, rng)
    with contextlib.suppress(StratalogError):
        _feed(SupersededScan(offsets, first_dirty), data, rng)
    hashes = KeyHashes(offsets, _transactions(rng), first_dirty)
    with contextlib.suppress(StratalogError):
        _feed(hashes, data, rng)
    superseded = SupersededRuns().feed(*hashes.take())
    mark_offsets(superseded, bits[0], rng.randrange(end), end)
    other = OffsetMap(24 * 1000)
    other.put_entries(offsets.entries())
    decided = OffsetMap(24 * 3)
    decided.decide(*bits, 0, end)
    decided.raise_latest_offset(rng.choice((5, end - 1, 2**62)))
    records = RecordFilter(
        decided, _transactions(rng), now_ms=78, delete_retention_ms=1000, upper_bound_offset=30
    )
    _feed(records, data, rng)


def _survey(data: array, rng: random.Random) -> None:
    survey = KeySurvey(rng.choice((0, 2, 2**63 - 1)))
    _feed(survey, data, rng)
    assert survey.estimated_keys <= 1.1 * survey.records + 1


def _time_ranges(data: array, rng: random.Random) -> None:
    """What is known of the part that could be read bounds what a reader finds there."""
    scan = TimeRangeScan(rng.choice((1, 100, 10**6)), check_crc=rng.random() < 0.5)
    kernels.min_timestamp(data)
    size = 0
    try:
        while scan.covered_bytes + size < len(data):
            at = scan.covered_bytes
            size = max(size + rng.randrange(1, 300), scan.wanted_bytes)
            if scan.feed(data[at : at + size], at):
                size = 0
    finally:
        columns = scan.finish()
        positions = memoryview(columns[0]).cast("q").tolist()
        assert positions == sorted(set(positions))
        assert not positions or positions[0] == 0
        assert scan.covered_bytes <= len(data)
        start, end = rng.randrange(-9, 999), rng.randrange(-9, 999)
        span = rng.choice(((0, 0), (-(2**63), 2**63 - 1), (2**63 - 1, -(2**63))))
        found = kernels.overlapping_ranges(*columns, scan.covered_bytes, *span, start, end)
        assert all(start <= low < high <= end for low, high in found)


# --- rows to batches -----------------------------------------------------------------------------


def _exact(values: list[int], width: int) -> array:
    return array("i" if width == 4 else "q", values)


def _bits(rng: random.Random, end: int) -> array | None:
    size = (end + 7) // 8
    return rng.choice((None, array("B", rng.randbytes(size)), array("B", b"\xff" * size)))


def _offsets(rng: random.Random, count: int, most: int) -> list[int]:
    """Mostly in order and inside; sometimes anything that four bytes hold."""
    offsets = sorted(rng.randrange(most + 1) for _ in range(count))
    if rng.random() < 0.2:
        offsets[rng.randrange(count)] = rng.choice((*EXTREMES, most + 1))
    return offsets


def _bytes_column(data: array, rng: random.Random, rows: int) -> kernels.RowColumn:
    first, width = rng.choice((0, 0, 1, 9)), rng.choice((4, 8))
    offsets = _offsets(rng, first + rows + 1, len(data))
    return kernels.RowColumn(
        rows, first, width, _bits(rng, first + rows), _exact(offsets, width), data
    )


def _number_column(rng: random.Random, rows: int, usual: int) -> kernels.RowColumn:
    first, width = rng.choice((0, 0, 1, 9)), rng.choice((4, 8))
    values = [rng.randrange(usual) for _ in range(first + rows)]
    if rng.random() < 0.1:
        values[rng.randrange(len(values))] = rng.choice(EXTREMES if width == 4 else EXTREMES_LONG)
    return kernels.RowColumn(
        rows, first, width, _bits(rng, first + rows), None, _exact(values, width)
    )


def _header_columns(data: array, rng: random.Random, rows: int) -> tuple[kernels.RowColumn, ...]:
    count, width = rng.choice((1, 5, 40)), rng.choice((4, 8))
    offsets = _exact(_offsets(rng, rows + 1, count), width)
    return (
        kernels.RowColumn(rows, 0, width, _bits(rng, rows), offsets, None),
        kernels.RowColumn(count, 0, 4, _bits(rng, count), None, None),
        _bytes_column(data, rng, count),
        _bytes_column(data, rng, count),
    )


def _encode(data: array, rng: random.Random) -> None:
    """Whatever an array says of itself: rows are refused, or are in batches that can be read."""
    partitions, rows = rng.choice((1, 3, 100)), rng.choice((1, 8, 30))
    encoder = kernels.RowEncoder(
        partitions,
        batch_bytes=rng.choice((1, 100, 5000)),
        memory_bytes=rng.choice((1, 2000, 10**6)),
        needs_keys=rng.random() < 0.1,
    )
    full = []
    for _ in range(rng.choice((1, 3))):
        keys = rng.choice((None, _bytes_column(data, rng, rows)))
        values = _bytes_column(data, rng, rows)
        partitioner = kernels.RowPartitioner(partitions, seed=rng.getrandbits(64), run_bytes=500)
        given = rng.choice((None, _number_column(rng, rows, partitions)))
        found = partitioner.assign(keys, values, given)
        full += encoder.add(
            kernels.RowColumn(rows, 0, 4, None, None, found),
            keys,
            values,
            rng.choice((None, _number_column(rng, rows, 10**6))),
            rng.choice((None, _header_columns(data, rng, rows))),
            now_ms=rng.choice((-1, 0, 2**63 - 1)),
            ticks_a_ms=rng.choice((1, 1000)),
        )
    full += encoder.flush()
    assert sum(batch[2] for batch in full) == encoder.rows
    for _, batch, count, *_ in full:
        decoder = kernels.ColumnDecoder(0b111111, start_offset=0, end_offset=2**63 - 1)
        decoder.add(batch)
        assert decoder.rows == count


# --- messages of the wire protocol ---------------------------------------------------------------


class _Inner(NamedTuple):
    text: Any = ""
    numbers: Any = ()
    number: Any = 0


class _Message(NamedTuple):
    number: Any = 0
    text: Any = None
    raw: Any = b""
    topic_id: Any = bytes(16)
    inner: Any = ()
    batches: Any = None
    one: Any = None
    texts: Any = ()
    tagged: Any = 0
    tagged_inner: Any = ()


_INNER_LAYOUT = (
    _Inner,
    ("string", 0, 1, -1, -1),
    ("[]int32", 0, 1, 0, -1),
    ("float64", 1, 1, -1, -1),
)
_MESSAGE_LAYOUT = (
    _Message,
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("bytes", 0, 1, 0, -1),
    ("uuid", 0, 1, -1, -1),
    ("[]struct", 0, 1, 0, -1, _INNER_LAYOUT),
    ("records", 0, 1, 0, -1),
    ("struct", 0, 1, 0, -1, _INNER_LAYOUT),
    ("[]string", 0, 1, -1, -1),
    ("int64", 1, 1, -1, 0),
    ("[]struct", 1, 1, -1, 3, _INNER_LAYOUT),
)
_MESSAGES = [
    kernels.MessageCodec(
        "fuzzed", _MESSAGE_LAYOUT, version, is_flexible=version > 0, is_header_flexible=version > 0
    )
    for version in (0, 1)
]


def _messages(data: array, rng: random.Random) -> None:
    """A message, mutated; what is read of it is written and read again as the same."""
    codec = rng.choice(_MESSAGES)
    inner = _Inner("text" * rng.choice((0, 1, 40)), range(rng.choice((0, 1, 2000))), 1.5)
    message = _Message(
        *(7, rng.choice((None, "é")), rng.choice((None, bytes(rng.choice((0, 9, 200)))))),
        *(b"u" * 16, (inner,) * rng.randrange(4), data, rng.choice((None, inner)), ("a", "")),
        *(rng.choice((0, -1)), (inner,) * rng.randrange(2)),
    )
    frame = b"".join(map(bytes, codec.encode_response(5, message)))[4:]
    hostile = array("B", bytes(mutate(rng, frame)))
    read = codec.decode_response(hostile)
    written = b"".join(map(bytes, codec.encode_response(*read)))[4:]
    again = codec.decode_response(written)
    assert repr(_plain(again)) == repr(_plain(read))  # as text, where NaN is NaN


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return bytes(value) if isinstance(value, memoryview) else value


TARGETS: tuple[Target, ...] = (
    _messages,
    _encode,
    _time_ranges,
    _build_map,
    _clean,
    _clean_by_marks,
    _survey,
    _header,
    _headers,
    _find_batch,
    _check_crc,
    _scan,
    _scan_in_pieces,
    _resync,
    _search,
    _stamp,
    _control,
    _first_record,
    _decompress,
    _validate,
    _columns,
    _scanned_columns,
    _fates,
    _find_by_timestamp,
)


def run_case(seed: int, logs: list[bytes]) -> None:
    """One mutated log through every target."""
    rng = random.Random(seed)
    mutated = mutate(rng, b"".join(rng.choices(logs, k=rng.choice((1, 1, 1, 2)))))
    if rng.random() < 0.8:
        repair(rng, mutated)
    data = array("B", bytes(mutated))
    for target in TARGETS:
        try:
            target(data, rng)
        except REFUSALS:
            pass
        except BaseException:
            sys.stderr.write(f"fuzz: {target.__name__} failed with --seed {seed}\n")
            raise


def run(seconds: float, seed: int, note_seed: Callable[[int], object] = lambda seed: None) -> int:
    """Run cases from ``seed`` on for so long, and return how many there were."""
    logs = valid_logs()
    started = time.monotonic()
    cases = 0
    while time.monotonic() - started < seconds:
        note_seed(seed + cases)
        run_case(seed + cases, logs)
        cases += 1
    return cases


def _seed_writer(path: Path | None) -> Callable[[int], object]:
    if path is None:
        return lambda seed: None
    file = path.open("wb", buffering=0)
    return lambda seed: os.pwrite(file.fileno(), b"%20d\n" % seed, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, help="run this one case alone")
    parser.add_argument("--from-seed", type=int, default=0, help="the first of many cases")
    parser.add_argument("--seed-file", type=Path, help="holds the seed if the process dies")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        run_case(arguments.seed, valid_logs())
        return
    cases = run(arguments.seconds, arguments.from_seed, _seed_writer(arguments.seed_file))
    print(f"{cases} cases in {arguments.seconds:.0f} s, none failed")


if __name__ == "__main__":
    main()
