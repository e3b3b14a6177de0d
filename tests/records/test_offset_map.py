"""The offset map is a dictionary with a bound, and its builder fills it as if one record came at
a time, wherever the map becomes full and however the bytes are cut."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from batch_strategies import legacy_message
from cleaning_strategies import LOGS, TINY_KEYS, feed_in_pieces, feed_whole
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Codec,
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.records._kernels import CleanedTransactions, MapBuilder, OffsetMap, md5
from stratalog.records.columns import decode_records

SLOT_BYTES = 24
HASH_NAMES = ("siphash", "md5")


# --- a dictionary --------------------------------------------------------------------------------


class OffsetMapMachine(RuleBasedStateMachine):
    """The map and a dictionary are told the same."""

    def __init__(self) -> None:
        super().__init__()
        self.map = OffsetMap(40 * SLOT_BYTES, load_factor=0.9)
        self.model: dict[bytes, int] = {}
        self.latest = -1
        self.limit = 36

    @rule(key=TINY_KEYS, offset=st.integers(0, 2**63 - 2))
    def put(self, key: bytes, offset: int) -> None:
        if len(self.model) >= self.limit:
            with pytest.raises(ValueError, match="entries are taken"):
                self.map.put(key, offset)
            return
        self.map.put(key, offset)
        self.model[key] = self.latest = offset

    @rule(keys_at_most=st.integers(-2, 60) | st.just(2**63 - 1))
    def clear(self, keys_at_most: int) -> None:
        self.map.clear(keys_at_most)
        self._forget()

    @rule()
    def release(self) -> None:
        self.map.release()
        self._forget()

    @precondition(lambda self: len(self.model) < self.limit)
    @rule(offset=st.integers(0, 2**62))
    def fill(self, offset: int) -> None:
        for number in range(self.limit - len(self.model)):
            self.put(b"filler %d %d" % (offset, number), offset)

    @rule(offset=st.integers(-1, 2**62))
    def raise_latest_offset(self, offset: int) -> None:
        self.map.raise_latest_offset(offset)
        self.latest = max(self.latest, offset)

    @rule(key=TINY_KEYS)
    def get(self, key: bytes) -> None:
        assert self.map.get(key) == self.model.get(key, -1)

    @invariant()
    def the_map_is_the_dictionary(self) -> None:
        assert len(self.map) == self.map.size == len(self.model)
        assert self.map.latest_offset == self.latest
        assert self.map.utilization == len(self.model) / 40
        assert all(self.map.get(key) == offset for key, offset in self.model.items())

    def _forget(self) -> None:
        self.model.clear()
        self.latest = -1


class Md5OffsetMapMachine(OffsetMapMachine):
    def __init__(self) -> None:
        super().__init__()
        self.map = OffsetMap(40 * SLOT_BYTES, hash_name="md5")


OffsetMapMachine.TestCase.settings = settings(stateful_step_count=30)
TestOffsetMap = OffsetMapMachine.TestCase
TestMd5OffsetMap = Md5OffsetMapMachine.TestCase


@pytest.mark.parametrize("hash_name", HASH_NAMES)
def test_a_map_whose_last_free_slot_is_one_finds_what_it_has_and_misses_the_rest(
    hash_name: str,
) -> None:
    keys = [b"key %d" % number for number in range(100)]
    full = OffsetMap(100 * SLOT_BYTES, load_factor=1.0, hash_name=hash_name)
    for number, key in enumerate(keys[: full.capacity]):
        full.put(key, number)
    assert full.capacity == 99
    assert [full.get(key) for key in keys] == [*range(99), -1]
    assert all(full.get(b"absent %d" % number) == -1 for number in range(2000))


@pytest.mark.parametrize("announced", [0, 1, 10, 1000])
def test_more_keys_than_were_announced_fill_a_map_and_never_hang_it(announced: int) -> None:
    offsets = OffsetMap(10_000 * SLOT_BYTES)
    offsets.clear(announced)
    stored = 0
    with suppress(ValueError):
        while stored < 10_000:
            offsets.put(b"%d" % stored, stored)
            stored += 1
    assert announced <= stored == offsets.size <= offsets.capacity
    assert [offsets.get(b"%d" % each) for each in range(stored)] == list(range(stored))
    assert offsets.get(b"absent") == -1
    offsets.clear()
    assert len(offsets) == 0
    assert all(offsets.get(b"%d" % each) == -1 for each in range(stored))


@given(st.integers(2, 400), st.floats(0, 4, exclude_min=True))
def test_a_map_holds_as_many_keys_as_it_says(slots: int, load_factor: float) -> None:
    capacity = min(int(slots * load_factor), slots - 1)
    memory_bytes = slots * SLOT_BYTES + 23
    if capacity < 1:
        with pytest.raises(ValueError, match="hold no key"):
            OffsetMap(memory_bytes, load_factor=load_factor)
        return
    offsets = OffsetMap(memory_bytes, load_factor=load_factor)
    assert (offsets.slots, offsets.capacity) == (slots, capacity)
    for number in range(capacity):
        offsets.put(b"%d" % number, number)
    with pytest.raises(ValueError, match="entries are taken"):
        offsets.put(b"0", 5)
    assert offsets.get(b"0") == 0


@pytest.mark.parametrize("load_factor", [float("nan"), float("-inf"), -1.0, 0.0])
def test_a_load_factor_that_is_no_share_is_refused(load_factor: float) -> None:
    with pytest.raises(ValueError, match="hold no key"):
        OffsetMap(1 << 16, load_factor=load_factor)


@pytest.mark.parametrize("memory_bytes", [0, 1, 47, -1, -(2**63)])
def test_memory_for_no_key_is_refused(memory_bytes: int) -> None:
    with pytest.raises(ValueError, match="hold no key"):
        OffsetMap(memory_bytes)


def test_memory_that_there_is_not_is_told() -> None:
    with pytest.raises(MemoryError):
        OffsetMap(2**63 - 1)


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_offsets_that_no_record_has_are_refused(offset: int) -> None:
    offsets = OffsetMap(1 << 12)
    with pytest.raises(ValueError, match="offset"):
        offsets.put(b"key", offset)
    assert offsets.get(b"key") == -1
    assert len(offsets) == 0


def test_a_map_has_a_secret_key_unless_it_is_given_one() -> None:
    assert OffsetMap(1 << 12).key != OffsetMap(1 << 12).key
    assert OffsetMap(1 << 12, key=bytes(16)).key == bytes(16)
    for key in (b"", bytes(17)):
        with pytest.raises(ValueError, match="it has 16"):
            OffsetMap(1 << 12, key=key)
    with pytest.raises(ValueError, match="there are"):
        OffsetMap(1 << 12, hash_name="sha256")


def test_two_keys_with_one_md5_are_one_key_unless_the_hash_is_keyed() -> None:
    """A published pair of blocks: the default hash does not let a writer erase others' keys."""
    first = bytes.fromhex(
        "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89"
        "55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b"
        "d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0"
        "e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70"
    )
    changed = {19: 0x80, 45: 0x80, 59: 0x80, 83: 0x80, 109: 0x80, 123: 0x80}
    second = bytes(byte ^ changed.get(at, 0) for at, byte in enumerate(first))
    assert first != second
    assert md5(first) == md5(second)
    for hash_name, found in (("md5", 2), ("siphash", 1)):
        offsets = OffsetMap(1 << 12, hash_name=hash_name)
        offsets.put(first, 1)
        offsets.put(second, 2)
        assert offsets.get(first) == found


def test_kernels_cannot_be_made_without_what_they_need() -> None:
    for each in (OffsetMap, MapBuilder):
        with pytest.raises(TypeError):
            each.__new__(each)
    for offsets, transactions in ((None, CleanedTransactions()), (OffsetMap(1 << 12), None)):
        with pytest.raises(TypeError):
            MapBuilder(offsets, transactions, 0)  # type: ignore[arg-type]


# --- building ------------------------------------------------------------------------------------


@dataclass
class PlainBuilder:
    """One record at a time, as the reference tells it."""

    capacity: int
    first_dirty_offset: int
    keys: dict[bytes, int] = field(default_factory=dict)
    latest_offset: int = -1
    messages_read: int = 0
    is_full: bool = False

    def feed(self, log: bytes) -> None:
        for header in read_headers(log):
            batch = log[header.position : header.position + header.size_bytes]
            if header.is_control:
                self.messages_read += 1
            elif header.last_offset >= self.first_dirty_offset and not self._take(batch):
                return
            if header.last_offset >= self.first_dirty_offset:
                self.latest_offset = header.last_offset

    def _take(self, batch: bytes) -> bool:
        for row in decode_records(batch):
            if row.key is not None and row.offset >= self.first_dirty_offset:
                if len(self.keys) >= self.capacity:
                    self.is_full = True
                    return False
                self.keys[row.key] = self.latest_offset = row.offset
            self.messages_read += 1
        return True


def built(
    log: bytes, capacity: int, first_dirty_offset: int, cuts: Sequence[int] | None = None
) -> tuple[OffsetMap, MapBuilder]:
    offsets = OffsetMap((capacity + 1) * SLOT_BYTES, load_factor=1.0)
    assert offsets.capacity == capacity
    builder = MapBuilder(offsets, CleanedTransactions(), first_dirty_offset)
    if cuts is None:
        feed_whole(builder, log)
    else:
        feed_in_pieces(builder, log, cuts)
    return offsets, builder


def check(log: bytes, offsets: OffsetMap, builder: MapBuilder, plain: PlainBuilder) -> None:
    assert builder.is_full == plain.is_full
    assert offsets.latest_offset == plain.latest_offset
    assert builder.messages_read == plain.messages_read
    assert len(offsets) == len(plain.keys)
    assert all(offsets.get(key) == offset for key, offset in plain.keys.items())


@given(
    LOGS,
    st.integers(1, 40),
    st.integers(0, 30),
    st.none() | st.lists(st.integers(1, 300), min_size=1, max_size=8),
)
def test_a_map_is_built_as_if_one_record_came_at_a_time(
    log: bytes, capacity: int, first_dirty_offset: int, cuts: list[int] | None
) -> None:
    plain = PlainBuilder(capacity, first_dirty_offset)
    plain.feed(log)
    check(log, *built(log, capacity, first_dirty_offset, cuts), plain)


def test_a_map_may_become_full_at_any_record() -> None:
    """More records than are looked ahead at, in batches of many sizes, some compressed, some
    that end behind their last record or with records that have no key."""
    batches = []
    offset = 0
    for number, size in enumerate((1, 3, 64, 2, 70, 1, 0, 1, 130, 5, 0, 63, 65)):
        records = [
            Record(None if each % 11 == 7 else b"%d" % (offset + each), b"v")
            for each in range(size)
        ]
        codec = Codec.ZSTD if number % 4 == 3 else Codec.NONE
        last = max(size - 1, 0) + number % 3
        batches.append(
            build_batch(records, base_offset=offset, codec=codec, last_offset_delta=last)
        )
        offset += last + 1 + number % 2
    log = b"".join(batches)
    cuts = [len(batches[0]) + len(batches[1]) + 10, 200, 9000]
    for capacity in range(1, 380):
        plain = PlainBuilder(capacity, 2)
        plain.feed(log)
        check(log, *built(log, capacity, 2, cuts if capacity % 2 else None), plain)


def test_what_is_wanted_is_what_is_missing_of_the_first_batch() -> None:
    v2 = build_batch([Record(b"k", bytes(40))])
    for log, header_bytes in ((v2, 61), (legacy_message(1, 0), 26), (legacy_message(0, 0), 18)):
        builder = MapBuilder(OffsetMap(1 << 12), CleanedTransactions(), 0)
        for size in range(len(log)):
            assert builder.feed(log[:size], 0) == 0
            wanted = 18 if size < 18 else header_bytes if size < header_bytes else len(log)
            assert builder.wanted_bytes == (wanted if size else 0)
        assert builder.feed(log + log[:0], 0) == len(log)
        assert builder.wanted_bytes == 0


def test_a_full_builder_takes_nothing_more() -> None:
    log = build_batch([Record(b"%d" % each, b"v") for each in range(9)])
    offsets, builder = built(log, 4, 0)
    before = (offsets.latest_offset, builder.messages_read)
    later = build_batch([Record(b"later", b"v")], base_offset=20)
    assert builder.is_full
    assert builder.feed(later, len(log)) == 0
    assert (offsets.latest_offset, builder.messages_read) == before
    assert offsets.get(b"later") == -1


def test_batches_of_aborted_transactions_and_markers_leave_no_key_but_count_as_seen() -> None:
    producer = {"producer_id": 7, "producer_epoch": 0}
    aborted = build_batch([Record(b"a", b"1")], base_sequence=0, transactional=True, **producer)
    marker = build_end_transaction_marker(
        commit=False, coordinator_epoch=0, timestamp_ms=1, base_offset=1, **producer
    )
    committed = build_batch(
        [Record(b"c", b"1")], base_offset=2, base_sequence=1, transactional=True, **producer
    )
    transactions = CleanedTransactions()
    transactions.add_aborted([(7, 0, 1, 2)])
    offsets = OffsetMap(1 << 12)
    builder = MapBuilder(offsets, transactions, 0)
    builder.feed(aborted, 0)
    assert (offsets.latest_offset, len(offsets)) == (0, 0)
    builder.feed(marker + committed, len(aborted))
    assert (offsets.get(b"a"), offsets.get(b"c")) == (-1, 2)
    assert (offsets.latest_offset, builder.messages_read) == (2, 3)


# --- hostile bytes -------------------------------------------------------------------------------


def refused(log: bytes, reason: str) -> None:
    """By whole buffer and by pieces, with the keys before the fault at most."""
    for cuts in (None, [1, 50]):
        with pytest.raises(CorruptBatchError) as caught:
            built(log, 50, 0, cuts)
        assert reason in caught.value.reason


def test_records_that_share_an_offset_are_refused_and_never_hang_the_map() -> None:
    records = [Record(b"%d" % each, b"v") for each in range(500)]
    batch = build_batch(records, offset_deltas=[0] * 500, last_offset_delta=0)
    refused(batch, "do not grow")


def test_no_record_is_taken_to_be_outside_of_its_batch() -> None:
    for deltas in ([0, 5], [-1, 0], [0, 2**31 - 1]):
        batch = build_batch([Record(b"k", b"v")] * 2, offset_deltas=deltas, last_offset_delta=4)
        offsets, _ = built(batch, 50, 0)
        assert (offsets.get(b"k"), offsets.latest_offset) == (1, 4)


def test_batches_whose_offsets_go_back_are_refused() -> None:
    """The base offset is not covered by the CRC: one high bit would outdate all other records."""
    batches = [build_batch([Record(b"k", b"v")], base_offset=each) for each in range(3)]
    flipped = bytearray(batches[1])
    flipped[2] ^= 1
    refused(batches[0] + bytes(flipped) + batches[2], "do not follow")
    refused(batches[0] + batches[0], "do not follow")
    refused(legacy_message(1, 5) + legacy_message(0, 5), "do not follow")
    refused(legacy_message(1, -1), "do not follow")


def test_a_fault_does_not_lose_the_keys_before_it() -> None:
    good = build_batch([Record(b"%d" % each, b"v") for each in range(70)])
    offsets = OffsetMap(1 << 12)
    builder = MapBuilder(offsets, CleanedTransactions(), 0)
    with pytest.raises(CorruptBatchError) as caught:
        builder.feed(good + good[:-1] + b"x", 1000)
    assert caught.value.position == 1000 + len(good)
    builder.feed(b"", 0)
    assert len(offsets) == 70
