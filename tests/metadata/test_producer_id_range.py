"""Producer ids are of a range of their own, and begin where no other store has been."""

from hypothesis import example, given
from hypothesis import strategies as st

from stratalog.metadata.producer_ids import (
    PRODUCER_ID_BLOCK_SIZE,
    PRODUCER_ID_MAX,
    PRODUCER_ID_MIN,
    first_producer_id,
    next_producer_id,
)

OURS = st.integers(PRODUCER_ID_MIN, PRODUCER_ID_MAX)
IDS = st.integers(-1, 2**63 - 1) | OURS
DRAWN = st.integers(0, 2**32 - 1)
# Of the range, the ids above which a store can begin: all but the last thousandth.
HIGHEST_CONTINUED = PRODUCER_ID_MAX - 2**42 - 2**31


@given(known=st.lists(IDS, max_size=4), drawn=DRAWN)
@example(known=[PRODUCER_ID_MAX], drawn=2**32 - 1)
@example(known=[HIGHEST_CONTINUED], drawn=2**32 - 1)
def test_a_store_begins_in_its_range_above_every_id_of_it_that_is_known(
    known: list[int], drawn: int
) -> None:
    first = first_producer_id(*known, draw=lambda _below: drawn)
    assert PRODUCER_ID_MIN <= first <= PRODUCER_ID_MAX - PRODUCER_ID_BLOCK_SIZE
    assert first > max((each for each in known if each <= HIGHEST_CONTINUED), default=-1)


@given(first=DRAWN, second=DRAWN, known=st.lists(OURS, max_size=2))
def test_two_stores_that_know_the_same_ids_begin_where_chance_has_it(
    first: int, second: int, known: list[int]
) -> None:
    begun = [first_producer_id(*known, draw=lambda _below, it=each: it) for each in (first, second)]
    assert begun[1] - begun[0] == (second - first) * PRODUCER_ID_BLOCK_SIZE


@given(stored=IDS, seen=IDS, drawn=DRAWN)
def test_a_store_goes_on_unless_its_next_id_may_be_anothers(
    stored: int, seen: int, drawn: int
) -> None:
    going_on = next_producer_id(stored, seen, draw=lambda _below: drawn)
    is_sound = stored >= PRODUCER_ID_MIN and not stored <= seen <= PRODUCER_ID_MAX
    assert (going_on == stored) == is_sound
    assert going_on >= PRODUCER_ID_MIN
