"""Where reading begins and ends: kcat's words, resolved inside of what a partition holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.consume_offsets import (
    Bounds,
    Range,
    Start,
    parse_offsets,
    resolve_end,
    resolve_start,
)
from stratalog.cli.failures import UsageError
from stratalog.cli.values import parse_moment

offsets = st.integers(0, 2**63 - 1)
bounds = st.tuples(offsets, offsets).map(lambda pair: Bounds(min(pair), max(pair)))


def parsed(*words: str) -> Range:
    return parse_offsets(words, from_beginning=False)


@pytest.mark.parametrize("word", ["beginning", "earliest", "smallest", "Earliest"])
def test_the_beginning_has_kcats_and_kafkas_names(word: str) -> None:
    assert parsed(word) == parse_offsets((), from_beginning=True) == Range(Start.BEGINNING)


@pytest.mark.parametrize("word", ["end", "latest", "largest"])
def test_the_end_has_kcats_and_kafkas_names_and_is_the_default(word: str) -> None:
    assert parsed(word) == parsed() == Range(Start.END)


@given(offsets)
def test_a_number_is_an_offset_and_a_negative_one_counts_from_the_end(number: int) -> None:
    assert parsed(str(number)) == Range(Start.OFFSET, number)
    assert parsed(f"-{number}") == Range(Start.LAST, number)


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_timestamps_say_where_to_begin_and_where_to_end(start: int, end: int) -> None:
    both = Range(Start.TIMESTAMP, start, end)

    assert parsed(f"s@{start}", f"e@{end}") == parsed(f"e@{end}", f"s@{start}") == both
    assert parsed(f"e@{end}") == Range(Start.BEGINNING, 0, end)


def test_a_moment_without_a_zone_is_in_utc() -> None:
    assert parse_moment("2023-11-14T22:13:20.5", "--offset") == 1_700_000_000_500
    assert parse_moment("2023-11-14T23:13:20+01:00", "--offset") == 1_700_000_000_000


@pytest.mark.parametrize(
    "words", [["soon"], ["s@soon"], ["5", "6"], ["e@1", "e@2"], ["1.5"], ["--1"], ["9" * 19]]
)
def test_other_words_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parsed(*words)


def test_a_beginning_is_said_once() -> None:
    with pytest.raises(UsageError, match="--from-beginning or --offset"):
        parse_offsets(["5"], from_beginning=True)


@given(bounds, offsets)
def test_the_last_n_are_never_more_than_there_are(held: Bounds, count: int) -> None:
    start = resolve_start(Range(Start.LAST, count), held)

    assert held.start <= start <= held.end
    assert held.end - start == min(count, held.end - held.start)


@given(bounds)
def test_a_moment_after_every_record_is_the_end(held: Bounds) -> None:
    assert resolve_start(Range(Start.TIMESTAMP, 5), held) == held.end
    assert resolve_end(Range(Start.BEGINNING, 0, 5), held, exits=False) == held.end


def test_reading_goes_on_unless_it_is_told_where_to_end() -> None:
    held = Bounds(3, 9, at_end_timestamp=5)

    assert resolve_end(Range(), held, exits=False) is None
    assert resolve_end(Range(), held, exits=True) == 9
    assert resolve_end(Range(Start.BEGINNING, 0, 1), held, exits=True) == 5
