"""Hostile bytes are refused by the filter, and its memory is nobody else's."""

import gc
import threading
from collections.abc import Iterable
from contextlib import suppress

import pytest
from batch_strategies import resealed, resealed_message
from cleaning_strategies import message, wrapper
from plain_filter import (
    make_filter,
    map_of,
    output_of,
)

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Codec,
    Record,
    build_batch,
    compress,
    read_headers,
)
from stratalog.records._kernels import CleanedTransactions, MapBuilder, OffsetMap, RecordFilter
from stratalog.records.columns import decode_records


def hostile_wrappers() -> Iterable[tuple[bytes, str]]:
    rows = [Record(b"a", b"1"), Record(b"b", b"2")]
    for magic, offset, reason in (
        (0, 2**63 - 1, "pass the largest offset"),
        (0, 10, "outside the batch"),
        (1, 0, "outside the batch"),
    ):
        good = wrapper(magic, Codec.GZIP, [19, 20], rows)
        yield resealed_message(good, 0, ">q", offset), reason
    for offsets in ([-(2**63), 20], [2**63 - 1, 20], [-1, 20], [21, 20]):
        yield wrapper(0, Codec.GZIP, offsets, rows), "outside the batch"
    yield wrapper(0, Codec.GZIP, [20, 20], rows), "do not grow"
    yield wrapper(1, Codec.GZIP, [20, 19], rows), "outside the batch"
    nested = bytes(compress(Codec.GZIP, wrapper(1, Codec.GZIP, [1, 2], rows), magic=1))
    yield message(1, 2, None, nested, attributes=Codec.GZIP), "holds another"


def test_a_wrapper_whose_offsets_cannot_be_is_refused() -> None:
    for log, reason in hostile_wrappers():
        with pytest.raises(CorruptBatchError, match=reason):
            make_filter(map_of({}, 100)).feed(log, 0)
        with pytest.raises(CorruptBatchError, match=reason):
            MapBuilder(OffsetMap(1 << 12), CleanedTransactions(), 0).feed(log, 0)


def test_a_wrapper_reaches_not_below_the_batch_before_it() -> None:
    """Its first offset is known only when it is opened."""
    rows = [Record(b"a", b"1"), Record(b"b", b"2")]
    before = build_batch([Record(b"k", b"v")], base_offset=7)
    good = before + wrapper(0, Codec.GZIP, [8, 20], rows)
    assert len(read_headers(output_of(make_filter(map_of({}, -1)), good))) == 2
    for offset in (7, 0):
        bad = before + wrapper(0, Codec.GZIP, [offset, 20], rows)
        with pytest.raises(CorruptBatchError, match="do not grow"):
            make_filter(map_of({}, -1)).feed(bad, 0)


# --- hostile bytes, and who owns which memory ----------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_after_a_fault_nothing_of_the_buffer_that_is_gone_is_written(codec: Codec) -> None:
    records = make_filter(map_of({}, -1))
    good = build_batch([Record(b"%d" % each, b"v" * 500) for each in range(30)], codec=codec)
    bad = bytearray(build_batch([Record(b"k", b"v")], base_offset=100))
    bad[-1] ^= 1
    later = build_batch([Record(b"later", b"v")], base_offset=200)
    with pytest.raises(CorruptBatchError):
        records.feed(bytearray(good + bytes(bad)), 0)
    gc.collect()
    records.feed(later, 0)
    assert bytes(memoryview(records)) == later


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [-1, 2, 4, 2**31 - 1])
def test_a_record_count_that_is_wrong_is_refused(codec: Codec, count: int) -> None:
    batch = build_batch([Record(b"k", b"v")] * 3, codec=codec)
    with pytest.raises(CorruptBatchError):
        make_filter(map_of({b"k": 2}, 5)).feed(resealed(batch, 57, ">i", count), 0)


@pytest.mark.parametrize("attributes", range(8))
def test_a_batch_without_records_is_not_looked_into_whatever_its_codec(attributes: int) -> None:
    empty = resealed(build_batch([], last_offset_delta=3), 21, ">h", attributes)
    assert output_of(make_filter(map_of({}, -1)), empty) == b""
    kept = output_of(make_filter(map_of({}, -1), upper_bound_offset=4), empty)
    assert kept == build_batch([], last_offset_delta=3)


@pytest.mark.parametrize("attributes", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(attributes: int) -> None:
    batch = resealed(build_batch([Record(b"k", b"v")]), 21, ">h", attributes)
    for walk in (
        make_filter(map_of({}, -1)),
        MapBuilder(OffsetMap(1 << 12), CleanedTransactions(), 0),
    ):
        with pytest.raises(CorruptBatchError) as caught:
            walk.feed(batch, 70)
        assert caught.value.position == 70


def test_attribute_bits_nobody_knows_stay_in_a_copy_and_go_in_a_rewrite() -> None:
    batch = resealed(build_batch([Record(b"k", b"v"), Record(b"l", b"w")]), 21, ">h", -128)
    assert output_of(make_filter(map_of({}, 9)), batch) == batch
    [header] = read_headers(output_of(make_filter(map_of({b"k": 9}, 9)), batch))
    assert (header.attributes, header.record_count) == (0, 1)


def test_longer_numbers_than_needed_are_written_in_their_shortest_form() -> None:
    """A header's lengths in five bytes each; the batch is rewritten because of another record."""
    plain = build_batch([Record(b"k", b"v", (("h", b"x"),)), Record(b"l", b"w")])
    first = bytes.fromhex("00 00 00 02 6b 02 76 02") + bytes.fromhex("8280808000 68 8280808000 78")
    body = bytes([2 * len(first)]) + first + plain[61 + 1 + plain[61] // 2 :]
    long = resealed(plain[:61] + body, 8, ">i", 49 + len(body))
    assert decode_records(long) == decode_records(plain)
    offsets = map_of({b"l": 9}, 9)
    assert output_of(make_filter(offsets), long) == output_of(make_filter(offsets), plain)


def test_what_was_kept_cannot_change_while_somebody_looks_at_it() -> None:
    records = make_filter(map_of({}, -1))
    batch = build_batch([Record(b"k", b"v")])
    assert bytes(memoryview(records)) == b""
    records.feed(batch, 0)
    with memoryview(records) as first, memoryview(records) as second:
        assert first.readonly
        with pytest.raises(BufferError):
            records.feed(batch, 0)
        with pytest.raises(BufferError):
            records.feed(first, 0)
        assert bytes(first) == bytes(second) == batch
    with pytest.raises(TypeError):
        records.feed(None, 0)  # type: ignore[arg-type]
    assert records.feed(records, 0) == 0


def test_what_was_kept_outlives_the_filter() -> None:
    records = make_filter(map_of({}, -1))
    batch = build_batch([Record(b"k", b"v" * 5000)])
    records.feed(batch, 0)
    kept = memoryview(records)
    del records
    gc.collect()
    assert bytes(kept) == batch


def test_one_filter_is_fed_by_one_thread_at_a_time() -> None:
    """Others are told so; which of them comes first is not for this test."""
    rows = [Record(b"%d" % each, b"v" * 20) for each in range(20_000)]
    batch = build_batch(rows, codec=Codec.GZIP)
    records = make_filter(map_of({}, -1))
    told: list[BaseException] = []

    def look() -> None:
        for _ in range(2000):
            try:
                with memoryview(records):
                    pass
            except BufferError as error:
                told.append(error)

    looker = threading.Thread(target=look)
    looker.start()
    fed = 0
    while looker.is_alive() and fed < 50:
        with suppress(BufferError, CorruptBatchError):
            records.feed(batch, 0)
        fed += 1
    looker.join()
    assert all("feeding" in str(error) for error in told)


def test_a_filter_cannot_be_made_without_what_it_needs() -> None:
    with pytest.raises(TypeError):
        RecordFilter.__new__(RecordFilter)
    for offsets, transactions in ((None, CleanedTransactions()), (OffsetMap(1 << 12), None)):
        with pytest.raises(TypeError):
            RecordFilter(
                offsets,  # type: ignore[arg-type]
                transactions,  # type: ignore[arg-type]
                now_ms=0,
                delete_retention_ms=0,
                upper_bound_offset=0,
            )
