"""Walking batches in pieces of any size, as files are read."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stratalog.records import Record, build_batch
from stratalog.storage.backup.copying import BatchWalk

Sizes = st.lists(st.integers(0, 300), min_size=1, max_size=8)


def log_of(sizes: list[int]) -> bytes:
    return b"".join(
        build_batch([Record(None, bytes(size), (), 10 * number)], base_offset=number)
        for number, size in enumerate(sizes)
    )


@given(sizes=Sizes, cuts=st.lists(st.integers(0, 3000)))
def test_pieces_of_any_size_tell_the_same_as_the_whole(sizes: list[int], cuts: list[int]) -> None:
    log = log_of(sizes)
    walk = BatchWalk(0, all_headers=True)
    places = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})

    found = [header for start, end in pairwise(places) for header in walk.feed(log[start:end])]

    assert [header.base_offset for header in found] == list(range(len(sizes)))
    assert found[0].position == 0
    assert (walk.fault, walk.scan.next_offset) == ("", len(sizes))


@given(sizes=Sizes, cut=st.integers(1, 60), flipped=st.booleans())
def test_what_is_cut_or_flipped_is_told_where_it_is(
    sizes: list[int], cut: int, flipped: bool
) -> None:
    log = bytearray(log_of(sizes))
    last = len(log_of(sizes[:-1]))
    if flipped:
        log[-1] ^= 1
    walk = BatchWalk(0)
    for start in range(0, len(log), 50):
        walk.feed(log[start : min(start + 50, len(log) - (0 if flipped else cut))])

    assert walk.fault
    assert walk.scan.position == last
