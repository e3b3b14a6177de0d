"""Markers, aborted data and the last batches of producers, as a filter over a log treats them."""

import random
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from batch_strategies import resealed
from hypothesis import given
from hypothesis import strategies as st
from plain_filter import FAR, NOW_MS, RETENTION_MS, make_filter, map_of, output_of, rebuilt

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.records._kernels import CleanedTransactions, MapBuilder, OffsetMap
from stratalog.records.columns import decode_records

CUTS = st.none() | st.lists(st.integers(1, 400), min_size=1, max_size=6)


Event = tuple[str, int]
KINDS = ("data", "plain", "empty", "commit", "abort", "other", "gone")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 3),
    ),
    max_size=25,
)


def event_batch(kind: str, producer_id: int, offset: int) -> bytes:
    producer = {"producer_id": producer_id, "producer_epoch": 2, "base_offset": offset}
    data = [Record(b"%d" % offset, b"v", (), 5)]
    if kind in ("commit", "abort"):
        return build_end_transaction_marker(
            commit=kind == "commit", coordinator_epoch=1, timestamp_ms=5, **producer
        )
    if kind in ("other", "gone"):
        key = struct.pack(">hh", 0, 5)
        rows = [Record(key, b"?", (), 5)] if kind == "other" else []
        return build_batch(rows, control=True, transactional=True, **producer)
    return build_batch(
        [] if kind == "empty" else data,
        base_sequence=offset,
        transactional=kind != "plain",
        **producer,
    )


@dataclass
class PlainTransactions:
    aborted: list[tuple[int, int, int, int]]
    committing: set[int] = field(default_factory=set)
    aborting: dict[int, list[object]] = field(default_factory=dict)
    kept: list[tuple[int, int, int, int]] = field(default_factory=list)

    def can_discard(self, kind: str, producer_id: int, offset: int) -> bool:
        while self.aborted and self.aborted[0][1] <= offset:
            entry = self.aborted.pop(0)
            self.aborting.setdefault(entry[0], [entry, False])
        if kind == "plain":
            return False
        if kind in ("data", "empty"):
            if producer_id in self.aborting:
                self.aborting[producer_id][1] = True
                return True
            self.committing.add(producer_id)
            return False
        return self._can_discard_marker(kind, producer_id)

    def _can_discard_marker(self, kind: str, producer_id: int) -> bool:
        if kind == "commit":
            had_data = producer_id in self.committing
            self.committing.discard(producer_id)
            return not had_data
        if kind == "abort":
            entry, had_data = self.aborting.pop(producer_id, (None, False))
            if had_data:
                self.kept.append(entry)  # type: ignore[arg-type]
            return not had_data
        return kind == "gone"


def plain_outputs(events: Sequence[Event], plain: PlainTransactions) -> list[bytes]:
    """What stays of each event's batch where no producer is active and all keys are unique."""
    kept = []
    for offset, (kind, producer_id) in enumerate(events):
        batch = event_batch(kind, producer_id, offset)
        can_discard = plain.can_discard(kind, producer_id, offset)
        if kind in ("empty", "gone") or (kind == "data" and can_discard):
            continue
        if kind in ("commit", "abort") and can_discard:
            [header] = read_headers(batch)
            batch = rebuilt(header, decode_records(batch), NOW_MS + RETENTION_MS)
        kept.append(batch)
    return kept


def check_history(
    events: Sequence[Event], aborted: Iterable[tuple[int, int]], cuts: Sequence[int] | None
) -> None:
    entries = [(each, first, first + 9, first) for each, first in aborted]
    entries.sort(key=lambda entry: entry[1])
    log = b"".join(event_batch(kind, each, offset) for offset, (kind, each) in enumerate(events))
    plain = PlainTransactions(list(entries))
    expected = b"".join(plain_outputs(events, plain))
    transactions = CleanedTransactions()
    transactions.add_aborted(entries)
    assert output_of(make_filter(map_of({}, FAR), transactions), log, cuts) == expected
    assert transactions.take_kept() == plain.kept
    assert transactions.take_kept() == []


@given(EVENTS, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 25)), max_size=8), CUTS)
def test_markers_and_aborted_data_go_as_the_rules_say(
    events: list[Event], aborted: list[tuple[int, int]], cuts: list[int] | None
) -> None:
    check_history(events, aborted, cuts)


def test_long_histories_of_two_producers_go_as_the_rules_say() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        events = [(rng.choice(KINDS), rng.randrange(2)) for _ in range(60)]
        aborted = [(rng.randrange(2), rng.randrange(60)) for _ in range(rng.randrange(20))]
        check_history(events, aborted, None)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 30)), max_size=40), st.data())
def test_aborted_transactions_may_be_told_in_any_pieces(
    aborted: list[tuple[int, int]], data: st.DataObject
) -> None:
    """All at once, or a few at a time before they begin: the same markers are kept."""
    entries = [(each, first, first + 1, first) for each, first in aborted]
    log = b"".join(
        event_batch(kind, each, 2 * at + (kind == "abort"))
        for at, each in enumerate(each % 4 for each in range(12))
        for kind in ("data", "abort")
    )
    whole, pieces = CleanedTransactions(), CleanedTransactions()
    entries.sort(key=lambda entry: entry[1])
    whole.add_aborted(entries)
    cut = data.draw(st.integers(0, len(entries)))
    pieces.add_aborted(entries[:cut])
    pieces.add_aborted([])
    pieces.add_aborted(entries[cut:])
    results = [
        (output_of(make_filter(map_of({}, FAR), each), log), each.take_kept())
        for each in (whole, pieces)
    ]
    assert results[0] == results[1]


def producers_batch(producer_id: int, offset: int) -> bytes:
    return build_batch(
        [Record(b"k", b"v", (), 5)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=3,
    )


def test_the_last_batch_of_each_active_producer_stays_whatever_their_number() -> None:
    producers = range(3000)
    log = b"".join(producers_batch(each, 3 * each + turn) for each in producers for turn in (0, 1))
    active = [(each, 0, 3 * each + 1) for each in producers if each % 2]
    records = make_filter(map_of({b"k": FAR}, FAR), CleanedTransactions(active))
    headers = read_headers(output_of(records, log))
    assert [(each.producer_id, each.last_offset) for each in headers] == [
        (each, offset) for each, _, offset in active
    ]
    assert {(each.record_count, each.size_bytes) for each in headers} == {(0, 61)}
    assert {(each.base_sequence, each.max_timestamp_ms) for each in headers} == {(3, 5)}


def test_a_producer_without_data_keeps_the_marker_of_its_epoch() -> None:
    log = b"".join(event_batch("commit", each, each) for each in range(3))
    horizon = [resealed(resealed(each, 27, ">q", 1), 21, ">h", 0x70) for each in split(log)]
    for producers, kept in (
        ([], []),
        ([(1, 2, -1)], [1]),
        ([(1, 1, -1)], []),
        ([(0, 2, -1), (2, 2, 2)], [0, 2]),
    ):
        records = make_filter(map_of({}, FAR), CleanedTransactions(producers))
        headers = read_headers(output_of(records, b"".join(horizon)))
        assert [(each.producer_id, each.record_count) for each in headers] == [
            (each, 0) for each in kept
        ]


def split(log: bytes) -> list[bytes]:
    return [log[each.position :][: each.size_bytes] for each in read_headers(log)]


@pytest.mark.parametrize(
    "producers", [[(1,)], [(1, 2**15, 0)], [(2**63, 0, 0)], [("a", 0, 0)], [None], 5]
)
def test_producers_that_are_none_are_refused(producers: object) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        CleanedTransactions(producers)  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", [(1, 2, 3), (2**63, 0, 0, 0), ("a", 0, 0, 0), 5])
def test_aborted_transactions_that_are_none_are_refused_and_forgotten(entry: object) -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([(0, 0, 1, 1)])
    with pytest.raises((TypeError, ValueError, OverflowError)):
        transactions.add_aborted([entry])  # type: ignore[list-item]
    log = event_batch("data", 0, 0) + event_batch("abort", 0, 1)
    assert len(read_headers(output_of(make_filter(map_of({}, FAR), transactions), log))) == 1
    assert transactions.take_kept() == [(0, 0, 1, 1)]


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_marker_whose_key_says_nothing_is_refused(key: bytes | None) -> None:
    batch = build_batch([Record(key, b"")], control=True, producer_id=1, producer_epoch=0)
    for walk in (
        make_filter(map_of({}, -1)),
        MapBuilder(OffsetMap(1 << 12), CleanedTransactions(), 0),
    ):
        with pytest.raises(CorruptBatchError, match="no valid key"):
            walk.feed(batch, 0)
