"""Many batches at once are kept just as they are one by one."""

from batch_strategies import BATCHES, RECORDS, changed, resealed
from hypothesis import example, given
from hypothesis import strategies as st

from stratalog.errors import RecordError
from stratalog.records import (
    BatchHeader,
    Codec,
    ProducedBatches,
    ProduceRules,
    Record,
    build_batch,
    keep_batches,
    read_header,
    validate_produced,
)

NOW_MS, EPOCH = 2**44, 7
# As staged batches are: whatever offset they have. Some are anything else.
PLAIN = st.builds(
    build_batch,
    st.lists(RECORDS, min_size=1, max_size=5),
    base_offset=st.sampled_from([0, 3, 2**40]),
    leader_epoch=st.integers(-1, 9),
)
SHUFFLED = st.permutations(range(3)).map(
    lambda deltas: build_batch(
        [Record(b"k", b"v", (), NOW_MS)] * 3, offset_deltas=tuple(deltas), last_offset_delta=2
    )
)
PLACES = st.integers(21, 67), st.just("B"), st.integers(0, 255)
DAMAGED = st.builds(changed, PLAIN, *PLACES)
LYING = st.builds(resealed, PLAIN, *PLACES)
RULES = st.builds(
    ProduceRules,
    compacted=st.booleans(),
    log_append_time=st.sampled_from([False, False, False, True]),
    before_max_ms=st.sampled_from([2**63 - 1, 2**43]),
    after_max_ms=st.sampled_from([2**62, 10]),
    max_message_bytes=st.sampled_from([1 << 20, 1 << 20, 200]),
    codec=st.sampled_from([None, None, Codec.NONE, Codec.LZ4]),
)


def one_by_one(batch: bytes, rules: ProduceRules, first_offset: int) -> ProducedBatches | None:
    """If it is stored as it came, and came uncompressed from nobody in particular."""
    sent = bytes(8) + batch[8:]
    try:
        header = read_header(batch)
        if header is None or header.attributes or header.producer_id >= 0:
            return None
        produced = validate_produced(
            sent, rules, first_offset=first_offset, leader_epoch=EPOCH, now_ms=NOW_MS
        )
    except RecordError:
        return None
    is_same = produced.header.crc == header.crc and not produced.rebuilt
    return produced if is_same and produced.offsets_count_from_zero else None


def told(header: BatchHeader, min_timestamp_ms: int) -> tuple[str, int, int]:
    return repr(header), header.crc, min_timestamp_ms


@given(
    st.lists(st.one_of(PLAIN, PLAIN, PLAIN, SHUFFLED, DAMAGED, LYING, BATCHES), max_size=6),
    RULES,
    st.sampled_from([0, 5, 2**63 - 8]),
    st.integers(0, 30),
)
@example([build_batch([Record(b"k", b"v", (), NOW_MS)])] * 3, ProduceRules(), 5, 0)
def test_so_many_are_kept_as_would_be_alone_and_they_are_the_same(
    batches: list[bytes], rules: ProduceRules, first_offset: int, cut: int
) -> None:
    whole = b"".join(batches)
    records = bytearray(whole[: max(len(whole) - cut, 0)])
    sizes, wanted, stored, offset = 0, [], b"", first_offset
    for batch in batches:
        sizes += len(batch)
        produced = one_by_one(batch, rules, offset) if sizes <= len(records) else None
        if produced is None:
            break
        wanted.append(told(produced.header, produced.min_timestamp_ms))
        stored += b"".join(produced.buffers)
        offset = produced.header.next_offset
    rest = bytes(records[len(stored) :])

    kept = keep_batches(records, rules, first_offset, EPOCH, NOW_MS, 1 << 20)

    assert [told(*each) for each in kept] == wanted
    assert records == stored + rest


def test_a_batch_larger_than_asked_for_is_not_kept() -> None:
    batch = build_batch([Record(b"k", bytes(300), (), NOW_MS)])
    for limit, count in ((len(batch), 1), (len(batch) - 1, 0)):
        kept = keep_batches(bytearray(batch), ProduceRules(), 0, EPOCH, NOW_MS, limit)
        assert len(kept) == count
