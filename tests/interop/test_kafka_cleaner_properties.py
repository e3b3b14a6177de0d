"""Random histories, cleaned again and again by Apache Kafka and by us: never a difference."""

from collections.abc import Callable

import pytest
from histories import (
    DAY_MS,
    START_MS,
    Age,
    Bump,
    End,
    Gap,
    History,
    OldPut,
    Put,
    Roll,
    Round,
    Step,
    Stored,
)
from hypothesis import given
from hypothesis import strategies as st
from log_oracle import KafkaLogs
from sides import Sides, UncleanableError, scratch_directory

from stratalog.records import Codec, Record

pytestmark = pytest.mark.interop

# What opening a log does to these, not cleaning. Messages of magic 0 and 1 have no epoch, and Kafka
# forgets those of before when it loads a log that has them. And where a log starts at its end, an
# empty snapshot goes with one start and comes with the next.
UNLIKE = ("leader-epoch-checkpoint", ".snapshot")
FOREVER = str(2**63 - 1)
# Those that write in transactions, and those that only number their batches.
TRANSACTIONAL, IDEMPOTENT = (11, 12, 13), (21, 22, 23)

keys = st.one_of(st.none(), *[st.integers(0, 5).map(lambda key: b"k%d" % key)] * 6)
values = st.one_of(st.none(), st.binary(max_size=3), st.integers(1, 80).map(lambda n: b"v" * n))
moments = st.one_of(
    st.integers(-3, 3).map(lambda step: START_MS + step * 500),
    st.sampled_from([-1, 1, START_MS + 10**12]),
)
headers = st.lists(
    st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2
)
records = st.lists(
    st.builds(Record, keys, values, timestamp_ms=moments, headers=st.one_of(st.just(()), headers)),
    min_size=1,
    max_size=4,
)
codecs = st.sampled_from([Codec.NONE] * 4 + list(Codec))
old_codecs = st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
messages = st.lists(st.tuples(keys, values, moments), min_size=1, max_size=4)
offset_deltas = st.lists(st.integers(0, 9), min_size=4, max_size=4, unique=True).map(sorted)


@st.composite
def stored(draw: Callable[..., object]) -> Stored:
    made = draw(st.one_of(st.just([]), records))
    return Stored(
        made,
        offset_deltas=draw(offset_deltas)[: len(made)],
        last_offset_delta=draw(st.integers(9, 12)),
        delete_horizon_ms=draw(st.one_of(st.none(), moments.filter(lambda at_ms: at_ms >= 0)))
        if made
        else None,
        codec=draw(codecs),
    )


steps = st.one_of(
    *[st.builds(Put, records, codecs)] * 4,
    st.builds(Put, records, codecs, producer=st.sampled_from(IDEMPOTENT)),
    *[
        st.builds(
            Put,
            records,
            codecs,
            producer=st.sampled_from(TRANSACTIONAL),
            transactional=st.just(True),
        )
    ]
    * 2,
    *[st.builds(End, st.sampled_from(TRANSACTIONAL), st.booleans(), moments)] * 2,
    st.builds(Bump, st.sampled_from(IDEMPOTENT)),
    st.builds(OldPut, messages, st.just(0), old_codecs),
    st.builds(OldPut, messages, st.just(1), old_codecs, st.one_of(st.none(), st.just(START_MS))),
    stored(),
    st.builds(Gap, st.integers(1, 9)),
    *[st.just(Roll())] * 3,
    st.builds(Age, moments.filter(lambda at_ms: at_ms >= 0)),
)
some_steps = st.lists(steps, max_size=25)


@st.composite
def histories(draw: Callable[..., object]) -> History:
    now_ms, cleanings = START_MS, []
    for _ in range(draw(st.integers(1, 5))):
        cleanings.append(
            Round(
                now_ms=now_ms,
                map_bytes=24 * draw(st.sampled_from([3, 5, 9, 1_000])),
                high_watermark=draw(st.one_of(*[st.none()] * 3, st.integers(0, 80))),
                log_start_offset=draw(st.one_of(*[st.just(0)] * 3, st.integers(0, 60))),
                steps=draw(st.one_of(st.just([]), some_steps)),
                forgets=draw(st.sampled_from([True, True, False])),
            )
        )
        now_ms += draw(st.sampled_from([0, 1, 499, 500, 1_000, 3_000, DAY_MS, 2 * DAY_MS]))
    segment_bytes = st.sampled_from(["400", "1000", "100000"])
    written = {
        "internal.segment.bytes": draw(segment_bytes),
        "index.interval.bytes": draw(st.sampled_from(["1", "200", "4096"])),
        "message.timestamp.type": draw(st.sampled_from(["CreateTime"] * 3 + ["LogAppendTime"])),
    }
    cleaned = {
        "internal.segment.bytes": draw(segment_bytes),
        "delete.retention.ms": draw(st.sampled_from(["0", "500", "1000", FOREVER])),
        "min.compaction.lag.ms": draw(st.sampled_from(["0", "0", "500"])),
        "max.compaction.lag.ms": draw(st.sampled_from([FOREVER, "1000"])),
    }
    made: list[Step] = draw(st.lists(steps, min_size=3, max_size=40))
    return History([*made, Roll()], cleanings, written, cleaned)


@given(histories())
def test_any_cleaning_leaves_what_kafkas_leaves(kafka_logs: KafkaLogs, history: History) -> None:
    with scratch_directory() as root:
        sides = Sides.of(history, root)
        for number, cleaning in enumerate(history.rounds):
            try:
                sides.clean(kafka_logs, cleaning)
            except UncleanableError:
                return
            assert sides.differences(ignoring=UNLIKE) == []
            sides.level(number)
