"""The bound on open descriptors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.storage.handles import DESCRIPTORS_EACH, HandleCache, capacity_within


class Door:
    """Opens when it is used and says so, like a segment."""

    def __init__(self, cache: HandleCache) -> None:
        self.cache = cache
        self.recently_used = False
        self.is_open = False

    def use(self) -> None:
        self.recently_used = True
        if not self.is_open:
            self.is_open = True
            self.cache.opened(self)

    def close(self) -> None:
        self.is_open = False
        self.cache.closed(self)

    def release(self) -> None:
        self.is_open = False


USES = st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=60)


@given(st.integers(1, 5), USES)
def test_never_more_holders_are_open_than_the_capacity(
    capacity: int, uses: list[tuple[int, bool]]
) -> None:
    cache = HandleCache(capacity)
    doors = [Door(cache) for _ in range(8)]
    for number, closing in uses:
        doors[number].close() if closing else doors[number].use()
        still_open = [door for door in doors if door.is_open]
        assert len(still_open) <= capacity
        assert len(cache) == len(still_open)


@given(st.integers(1, 5), st.lists(st.integers(0, 7), max_size=40))
def test_a_holder_that_has_just_been_opened_is_never_the_one_to_let_go(
    capacity: int, uses: list[int]
) -> None:
    cache = HandleCache(capacity)
    doors = [Door(cache) for _ in range(8)]
    for number in uses:
        doors[number].use()
        assert doors[number].is_open


def test_a_holder_used_since_it_was_last_looked_at_outlives_one_that_was_not() -> None:
    cache = HandleCache(2)
    used, idle, new = Door(cache), Door(cache), Door(cache)
    used.use()
    idle.use()
    idle.recently_used = False
    new.use()
    assert (used.is_open, idle.is_open, new.is_open) == (True, False, True)


def test_closing_what_was_never_opened_is_no_mistake() -> None:
    cache = HandleCache(2)
    Door(cache).close()
    assert len(cache) == 0


@pytest.mark.parametrize("open_files_max", [64, 100, 256, 300, 1_024, 20_000, 1 << 20])
def test_what_is_kept_open_leaves_half_of_the_files_to_others(open_files_max: int) -> None:
    kept = capacity_within(open_files_max)
    assert 2 <= kept <= 4_096
    assert kept * DESCRIPTORS_EACH <= open_files_max // 2
