"""Random histories: few keys and few producers, so that everything meets everything."""

from cleaning_steps import (
    Append,
    Clean,
    DropFirst,
    End,
    Expire,
    RaiseStart,
    Reopen,
    Roll,
    RowSpec,
    Step,
)
from cleaning_world import HOUR_MS
from hypothesis import strategies as st

from stratalog.records import Codec

PRODUCERS = (7, 8, 9)

rows = st.builds(
    RowSpec,
    key=st.one_of(st.integers(0, 5), st.integers(0, 2), st.none()),
    is_tombstone=st.integers(0, 3).map(lambda n: n == 3),
    age_ms=st.one_of(st.just(0), st.integers(-50, 1000)),
    gap=st.one_of(st.just(0), st.integers(0, 3)),
    value_bytes=st.one_of(st.just(4), st.integers(0, 200)),
    has_headers=st.booleans(),
)
row_lists = st.lists(rows, min_size=1, max_size=5).map(tuple)
codecs = st.one_of(st.just(Codec.NONE), st.sampled_from(Codec))

plain = st.builds(
    Append,
    rows=row_lists,
    codec=codecs,
    log_append_time=st.integers(0, 4).map(lambda n: n == 4),
    gap=st.one_of(st.just(0), st.integers(0, 3)),
)
produced = st.builds(
    Append,
    rows=row_lists,
    codec=codecs,
    producer=st.sampled_from(PRODUCERS),
    transactional=st.booleans(),
)
legacy = st.builds(
    Append,
    rows=row_lists,
    codec=codecs,
    magic=st.integers(0, 1),
    log_append_time=st.booleans(),
)
ends = st.builds(
    End,
    producer=st.sampled_from(PRODUCERS),
    commit=st.booleans(),
    raises_epoch=st.integers(0, 4).map(lambda n: n == 4),
)
cleans = st.builds(
    Clean,
    after_ms=st.sampled_from((0, 1, HOUR_MS - 1, HOUR_MS, 3 * HOUR_MS)),
    slots=st.sampled_from((1000, 1000, 3, 5, 8)),
)
others: st.SearchStrategy[Step] = st.one_of(
    st.just(Expire()),
    st.builds(Reopen, is_clean=st.booleans()),
    st.builds(RaiseStart, part=st.integers(0, 100)),
    st.just(DropFirst()),
)
writes = st.one_of(plain, produced, produced, ends)
steps = st.one_of(writes, writes, writes, st.just(Roll()), cleans, others)
old_steps = st.one_of(writes, legacy, legacy, st.just(Roll()), cleans, others)


@st.composite
def histories(draw: st.DrawFn, *, with_legacy: bool = False) -> list[Step]:
    """Some work, then a roll and rounds until nothing changes any more but time."""
    chosen: list[Step] = []
    for _ in range(draw(st.integers(1, 3))):
        chosen += draw(st.lists(old_steps if with_legacy else steps, min_size=4, max_size=16))
        chosen += [Roll(), draw(cleans)]
    return chosen
