"""The filter keeps of each batch what the rules keep, in the same bytes however it is fed."""

import pytest
from batch_strategies import resealed
from cleaning_strategies import LOGS, feed_in_pieces, feed_whole, logs, message, wrapper
from hypothesis import given
from hypothesis import strategies as st
from plain_filter import FAR, NOW_MS, PlainFilter, make_filter, map_of, output_of

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Codec,
    Record,
    build_batch,
    read_headers,
)
from stratalog.records._kernels import CleanedTransactions, MapBuilder, OffsetMap, RecordFilter
from stratalog.records.columns import decode_records

CUTS = st.none() | st.lists(st.integers(1, 400), min_size=1, max_size=6)


@given(
    LOGS,
    st.dictionaries(st.sampled_from((b"", b"a", b"b", b"c", b"1", b"2", b"3")), st.integers(0, 90)),
    st.integers(90, 120) | st.just(-1),
    st.sampled_from((0, 2**40, 2**41)),
    st.booleans(),
    CUTS,
)
def test_what_is_kept_is_what_the_rules_keep_in_the_same_bytes(
    log: bytes,
    keys: dict[bytes, int],
    latest: int,
    now_ms: int,
    retain_legacy_deletes: bool,
    cuts: list[int] | None,
) -> None:
    offsets = map_of(keys, latest)
    plain = PlainFilter(keys, offsets.latest_offset, now_ms)
    plain.retain_legacy_deletes = retain_legacy_deletes
    plain.feed(log)
    records = make_filter(offsets, now_ms=now_ms)
    records.retain_legacy_deletes = retain_legacy_deletes
    assert output_of(records, log, cuts) == plain.output
    assert {name: getattr(records, name) for name in plain.counts} == plain.counts


@given(logs(with_legacy=False), st.integers(0, 9))
def test_the_last_batch_of_a_round_stays_if_only_as_a_header(log: bytes, latest_more: int) -> None:
    headers = read_headers(log)
    if not headers:
        return
    upper = headers[-1].next_offset
    keys = {row.key: FAR // 2 for row in decode_records(log) if row.key is not None}
    offsets = map_of(keys, FAR // 2 + latest_more)
    plain = PlainFilter(keys, offsets.latest_offset, upper_bound_offset=upper)
    plain.feed(log)
    kept = output_of(make_filter(offsets, upper_bound_offset=upper), log)
    assert kept == plain.output
    assert read_headers(kept)[-1].next_offset == upper


# --- the map's builder and the filter together ---------------------------------------------------


@given(LOGS, st.integers(0, 12), st.integers(1, 60), st.integers(0, 40), CUTS)
def test_what_the_builder_remembers_of_offsets_changes_nothing(
    log: bytes, first_dirty_offset: int, capacity: int, tracked: int, cuts: list[int] | None
) -> None:
    """Bits for some of the offsets, or for all, or none: the same records are superseded."""
    outputs = []
    for end_offset in (first_dirty_offset, first_dirty_offset + tracked, FAR):
        offsets = OffsetMap((capacity + 1) * 24, load_factor=1.0)
        offsets.track(first_dirty_offset, end_offset)
        builder = MapBuilder(offsets, CleanedTransactions(), first_dirty_offset)
        if cuts:
            feed_in_pieces(builder, log, cuts)
        else:
            feed_whole(builder, log)
        records = make_filter(offsets)
        names = ("messages_read", "messages_kept", "superseded", "null_keys", "batches_kept")
        outputs.append((output_of(records, log, cuts), [getattr(records, name) for name in names]))
    assert outputs[0] == outputs[1] == outputs[2]


@given(LOGS)
def test_a_second_round_changes_nothing(log: bytes) -> None:
    once, twice = cleaned(log), cleaned(cleaned(log))
    assert once == twice


def cleaned(log: bytes) -> bytes:
    offsets = OffsetMap(1 << 14)
    offsets.track(0, 10**6)
    feed_whole(MapBuilder(offsets, CleanedTransactions(), 0), log)
    return output_of(make_filter(offsets), log)


@given(LOGS)
def test_of_each_key_the_last_record_stays_and_nothing_changes_but_its_batch(log: bytes) -> None:
    newest = {row.key: row for row in decode_records(log) if row.key is not None}
    kept = decode_records(cleaned(log))
    assert [row.offset for row in kept] == sorted(row.offset for row in kept)
    strangers = [row for row in kept if row.key is None or row.offset != newest[row.key].offset]
    assert strangers == []
    lost = {key for key, row in newest.items() if row.value is not None} - {r.key for r in kept}
    assert lost == set()
    for row in kept:
        before = newest[row.key or b""]
        assert (row.timestamp_ms, row.value, row.headers) == (
            before.timestamp_ms,
            before.value,
            before.headers,
        )


def test_many_records_in_flight_are_decided_as_few_are() -> None:
    """More than wait before batches are written, in batches of every codec."""
    rows = 5000
    batches = []
    keys = {b"%d" % (each % 700): each for each in range(rows)}
    for number, start in enumerate(range(0, rows, 250)):
        records = [Record(b"%d" % (each % 700), b"v" * 9) for each in range(start, start + 250)]
        codec = list(Codec)[number % 5]
        batches.append(build_batch(records, base_offset=start, codec=codec))
    log = b"".join(batches)
    plain = PlainFilter(keys, rows - 1)
    plain.feed(log)
    offsets = OffsetMap(1 << 16)
    for key, offset in keys.items():
        offsets.put(key, offset)
    offsets.raise_latest_offset(rows - 1)
    for cuts in (None, [100], [4000], [70_000]):
        assert output_of(make_filter(offsets), log, cuts) == plain.output


def test_a_map_that_was_full_inside_of_a_long_batch_says_nothing_of_its_rest() -> None:
    """Tombstones that the builder did not come to get their horizon all the same."""
    rows = [Record(b"%d" % (each % 170), None if each % 100 == 99 else b"v") for each in range(300)]
    log = build_batch(rows[:200]) + build_batch(rows[200:], base_offset=200)
    for capacity in range(1, 180, 7):
        offsets = OffsetMap((capacity + 1) * 24, load_factor=1.0)
        offsets.track(0, 10**6)
        feed_whole(MapBuilder(offsets, CleanedTransactions(), 0), log)
        keys = {row.key or b"": offset for offset, row in enumerate(rows)
                if offset <= offsets.latest_offset}  # fmt: skip
        plain = PlainFilter(keys, offsets.latest_offset)
        plain.feed(log)
        assert output_of(make_filter(offsets), log) == plain.output


# --- horizons ------------------------------------------------------------------------------------


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**63 - NOW_MS])
def test_a_horizon_beyond_all_time_is_none(retention_ms: int) -> None:
    batch = build_batch([Record(b"k", None, (), 7)], codec=Codec.GZIP)
    records = make_filter(map_of({}, -1), delete_retention_ms=retention_ms)
    assert output_of(records, batch) == batch
    assert records.horizons_set == 0


def test_the_last_horizon_there_is_can_be_set() -> None:
    batch = build_batch([Record(b"k", None, (), 7)])
    records = make_filter(map_of({}, -1), delete_retention_ms=2**63 - 1 - NOW_MS)
    [header] = read_headers(output_of(records, batch))
    assert header.delete_horizon_ms == 2**63 - 1
    assert decode_records(output_of(records, b"") or bytes(memoryview(records))) == []


@pytest.mark.parametrize("base_ms", [-1, -(2**63)])
def test_a_horizon_before_all_time_expires_and_is_not_written_again(base_ms: int) -> None:
    batch = build_batch([Record(b"k", None, (), 5), Record(b"l", b"v", (), 6)], delete_horizon_ms=9)
    deltas = resealed(batch, 27, ">q", base_ms)
    rows = [row for row in decode_records(deltas) if row.value is not None]
    records = make_filter(map_of({}, 10))
    if rows[0].timestamp_ms < -1:
        with pytest.raises(CorruptBatchError, match="timestamp is negative"):
            output_of(records, deltas)
        return
    [header] = read_headers(output_of(records, deltas))
    assert header.delete_horizon_ms is None
    assert records.tombstones_expired == 1


# --- magic 0 and 1 -------------------------------------------------------------------------------


def test_what_is_kept_of_a_wrapper_is_one_batch_of_the_new_format() -> None:
    rows = [Record(b"%d" % each, b"v", (), 50 + each) for each in range(5)]
    for magic in (0, 1):
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            log = wrapper(magic, codec, [10, 11, 13, 14, 15], rows)
            records = make_filter(map_of({b"0": 10**6, b"4": 10**6}, 10**6))
            [header] = read_headers(output_of(records, log))
            assert (header.magic, header.base_offset, header.last_offset) == (2, 11, 14)
            assert (header.codec_id, header.record_count) == (codec, 3)
            assert (header.producer_id, header.partition_leader_epoch) == (-1, -1)
            assert header.max_timestamp_ms == (-1, 53)[magic]


def test_a_message_of_magic_0_has_no_timestamp_type_whatever_its_bits_say() -> None:
    records = make_filter(map_of({}, -1))
    for attributes in (0x08, 0xF8):
        log = message(0, records.batches_read, b"k", b"v", attributes=attributes)
        [header] = read_headers(output_of(records, log))
        assert (header.attributes, header.max_timestamp_ms) == (0, -1)


def test_a_message_that_would_have_to_stay_without_records_is_refused() -> None:
    records = make_filter(map_of({b"k": 9}, 9), upper_bound_offset=4)
    with pytest.raises(CorruptBatchError, match="kept without its records"):
        records.feed(message(1, 3, b"k", b"v"), 0)


def test_of_a_transaction_that_the_builder_did_not_read_the_keys_are_looked_up() -> None:
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log = build_batch([Record(b"a", b"1")], transactional=True, **producer)
    log += build_batch([Record(b"a", b"2"), Record(b"b", b"3")], base_offset=1)
    aborted = CleanedTransactions()
    aborted.add_aborted([(7, 0, 9, 9)])
    offsets = OffsetMap(1 << 12)
    offsets.track(0, 100)
    feed_whole(MapBuilder(offsets, aborted, 0), log)
    assert [row.offset for row in decode_records(output_of(make_filter(offsets), log))] == [1, 2]


def test_where_nothing_changes_the_kept_bytes_are_those_that_were_fed() -> None:
    batches = b"".join(
        bytes(build_batch([Record(b"k%d" % key, b"v", timestamp_ms=1)], base_offset=key))
        for key in range(20)
    )
    offsets = OffsetMap(1 << 16)
    offsets.track(0, 20)
    MapBuilder(offsets, CleanedTransactions(), 0).feed(batches, 0)
    records = RecordFilter(
        offsets,
        CleanedTransactions(),
        now_ms=0,
        delete_retention_ms=0,
        upper_bound_offset=100,
    )
    fed = bytearray(batches + batches[:30])
    assert records.feed(fed, 0) == len(batches)
    with memoryview(records) as kept:
        assert kept == batches
        fed[0] = 0xFF
        assert kept[0] == 0xFF, "not a copy"
        with pytest.raises(BufferError):
            records.feed(fed, 0)
    assert (records.batches_kept, records.messages_kept) == (20, 20)
    with pytest.raises(BufferError):  # held until the next call
        fed.clear()
    records.feed(b"", 0)
    fed.clear()
