"""Records whose offset deltas do not grow within their batch: produce gives them offsets that do,
and what reads logs of Apache Kafka counts them in their order, each tool as the others."""

from batch_strategies import ANY_DELTAS, misnumbered
from hypothesis import example, given

from stratalog.records import (
    ProduceRules,
    Record,
    SegmentScan,
    build_batch,
    check_crc,
    find_record_by_timestamp,
    validate_produced,
)
from stratalog.records._kernels import CleanedTransactions, MapBuilder, OffsetMap, RecordFilter
from stratalog.records.columns import decode_records

KNOWN = ([-1, 1], [0, 0], [1, 0], [2**31 - 1, 1], [0, 2**31 - 1, 2])


def is_sound(deltas: list[int]) -> bool:
    return deltas == list(range(len(deltas)))


def cleaned(log: bytes) -> bytes:
    offsets, transactions = OffsetMap(1 << 12), CleanedTransactions()
    MapBuilder(offsets, transactions, 0).feed(log, 0)
    records = RecordFilter(
        offsets,
        CleanedTransactions(),
        now_ms=9,
        delete_retention_ms=9,
        upper_bound_offset=2**40,
    )
    records.feed(log, 0)
    return bytes(memoryview(records))


@given(ANY_DELTAS)
@example([-1, 1])
@example([0, 0])
@example([2**31 - 1, 1])
def test_produce_gives_each_record_an_offset_that_every_consumer_reads(deltas: list[int]) -> None:
    sent = misnumbered(deltas)
    produced = validate_produced(
        sent, ProduceRules(), first_offset=70, leader_epoch=3, now_ms=9, is_client=True
    )
    stored = b"".join(map(bytes, produced.buffers))
    assert check_crc(stored)
    assert [(row.offset, row.key, row.value) for row in decode_records(stored)] == [
        (70 + number, row.key, row.value) for number, row in enumerate(decode_records(sent))
    ]
    assert produced.last_offset == 70 + len(deltas) - 1
    assert stored[21:] == sent[21:] if is_sound(deltas) else produced.rebuilt
    assert misnumbered_batches(stored) == 0


@given(ANY_DELTAS)
def test_who_reads_them_counts_them_in_their_order(deltas: list[int]) -> None:
    batch = misnumbered(deltas, base_offset=40)
    assert [row.offset for row in decode_records(batch)] == [40 + n for n in range(len(deltas))]
    found = find_record_by_timestamp(batch, 9, 40 + len(deltas) - 1)
    assert found == (40 + len(deltas) - 1, 9)


@given(ANY_DELTAS)
def test_cleaning_keeps_the_last_of_each_key(deltas: list[int]) -> None:
    later = misnumbered([0, 0], "bb", base_offset=10)
    kept = decode_records(cleaned(misnumbered(deltas) + later))
    rows = decode_records(misnumbered(deltas))
    newest = {row.key: (row.offset, row.value) for row in rows} | {b"b": (11, b"1")}
    assert {row.key: (row.offset, row.value) for row in kept} == newest
    assert len(kept) == len(newest)


@given(ANY_DELTAS)
def test_what_was_cleaned_is_cleaned_again_to_the_same(deltas: list[int]) -> None:
    once = cleaned(misnumbered(deltas, "abcd") + misnumbered([0], "b", base_offset=10))
    assert cleaned(once) == once


def misnumbered_batches(log: bytes) -> int:
    scan = SegmentScan(0, 4096)
    scan.feed(log)
    assert scan.fault is None
    return scan.misnumbered_count


@given(ANY_DELTAS)
def test_a_scan_tells_which_batches_they_are(deltas: list[int]) -> None:
    sound = misnumbered([0, 1, 2])
    odd = misnumbered(deltas, base_offset=3)
    assert misnumbered_batches(sound + odd) == (not is_sound(deltas))


def test_a_scan_tells_where_the_first_of_them_is() -> None:
    sound = misnumbered([0, 1, 2])
    scan = SegmentScan(0, 4096)
    odd = [misnumbered(each, base_offset=9 + 9 * number) for number, each in enumerate(KNOWN)]
    scan.feed(sound + b"".join(odd))
    assert (scan.misnumbered_count, scan.misnumbered_position) == (len(KNOWN), len(sound))


def test_offsets_that_compaction_left_out_are_nothing_odd() -> None:
    records = [Record(b"k", b"v"), Record(b"l", b"v")]
    batch = build_batch(records, offset_deltas=[1, 4], last_offset_delta=9)
    assert misnumbered_batches(batch) == 0
    assert [row.offset for row in decode_records(batch)] == [1, 4]
