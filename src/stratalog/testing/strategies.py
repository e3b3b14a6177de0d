"""Random records and batches for hypothesis: small by default, odd on purpose.

Keys repeat, values are sometimes missing, timestamps go back and forth, and all codecs occur, so
that properties meet what a careless producer sends.
"""

from collections.abc import Sequence

from hypothesis import strategies as st

from stratalog.records.builder import Record, build_batch
from stratalog.records.compression import Codec

START_MS = 1_700_000_000_000

codecs = st.sampled_from(Codec)
keys = st.one_of(st.none(), st.sampled_from((b"", b"a", b"b", b"key")), st.binary(max_size=12))
values = st.one_of(st.none(), st.binary(max_size=60), st.integers(0, 300).map(bytes))
headers = st.lists(
    st.tuples(st.text(max_size=6), st.one_of(st.none(), st.binary(max_size=8))), max_size=3
)
timestamps = st.one_of(st.integers(START_MS - 50, START_MS + 50), st.integers(0, 2 * START_MS))
"""Mostly close together, so that searches by time meet equal ones; never negative."""


def records(*, with_keys: bool = False) -> st.SearchStrategy[Record]:
    """One record; ``with_keys`` for compacted topics, where every record has one."""
    key = st.sampled_from((b"a", b"b", b"c", b"d")) if with_keys else keys
    return st.builds(
        Record, key=key, value=values, headers=headers.map(tuple), timestamp_ms=timestamps
    )


def record_lists(*, max_size: int = 8, with_keys: bool = False) -> st.SearchStrategy[list[Record]]:
    return st.lists(records(with_keys=with_keys), min_size=1, max_size=max_size)


@st.composite
def batches(draw: st.DrawFn, *, base_offset: int = 0, max_size: int = 8) -> bytes:
    """A batch as a producer sends it."""
    return build_batch(
        draw(record_lists(max_size=max_size)), base_offset=base_offset, codec=draw(codecs)
    )


@st.composite
def batch_runs(
    draw: st.DrawFn, *, base_offset: int = 0, max_batches: int = 6, gaps: bool = False
) -> list[bytes]:
    """Batches as they lie in a log, one after the other; with ``gaps`` as compaction leaves."""
    run = []
    for _ in range(draw(st.integers(1, max_batches))):
        if gaps:
            base_offset += draw(st.integers(0, 5))
        rows: Sequence[Record] = draw(record_lists())
        run.append(build_batch(rows, base_offset=base_offset, codec=draw(codecs), leader_epoch=0))
        base_offset += len(rows)
    return run
