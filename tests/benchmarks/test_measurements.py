"""What a row says of itself: its ratio, whether its bar is met, and whether a rival is better."""

import pytest
from benchmarks.measurement import Bar, Better, Figure, quantile, short
from made_results import YARDSTICK, cost, rate


def test_a_figure_is_the_median_with_the_least_and_the_most() -> None:
    assert Figure.of([3, 1, 2, 10]) == Figure(2.5, 1, 10, 4)


def test_a_ratio_is_ours_by_theirs_in_the_unit_of_the_row() -> None:
    assert cost("a", 50, 100).ratio == 0.5
    assert rate("a", 300, 100).ratio == 3
    assert rate("a", 300).ratio is None


@pytest.mark.parametrize(
    ("row", "is_slower"),
    [
        (cost("a", 101, 100), True),
        (cost("a", 99, 100), False),
        (rate("a", 99, 100), True),
        (rate("a", 101, 100), False),
        (rate("a", 1, 100, peer=YARDSTICK), False),
        (rate("a", 1), False),
        (cost("a", 0, 100), False),
        (rate("a", 0, 100), True),
        (cost("a", 1, 0), True),
        (cost("a", 0, 0), False),
    ],
)
def test_we_are_slower_only_than_a_rival_that_does_better(row, is_slower: bool) -> None:
    assert row.is_slower is is_slower


@pytest.mark.parametrize(
    ("bar", "better", "value", "ratio", "is_met"),
    [
        (Bar(), Better.LOWER, 1, 1, None),
        (Bar(value=10), Better.LOWER, 10, None, True),
        (Bar(value=10), Better.LOWER, 11, None, False),
        (Bar(value=10), Better.HIGHER, 9, None, False),
        (Bar(ratio=3), Better.HIGHER, 1, 3, True),
        (Bar(ratio=3), Better.HIGHER, 1, 2.9, False),
        (Bar(ratio=3), Better.HIGHER, 1, None, None),
        (Bar(value=0.5, ratio=0.2), Better.LOWER, 0.4, 0.3, False),
        (Bar(value=0.5, ratio=0.2), Better.LOWER, 0.6, 0.1, False),
        (Bar(value=5, ratio=3, either=True), Better.LOWER, 4, 9, True),
        (Bar(value=5, ratio=3, either=True), Better.LOWER, 9, 2, True),
        (Bar(value=5, ratio=3, either=True), Better.LOWER, 9, 9, False),
    ],
)
def test_a_bar_is_met_by_all_it_names_or_by_either(bar, better, value, ratio, is_met) -> None:
    assert bar.is_met(better, value, ratio) is is_met


def test_a_quantile_is_one_of_the_samples() -> None:
    samples = [float(number) for number in range(100)]
    assert (quantile(samples, 0.5), quantile(samples, 0.99), quantile(samples, 1)) == (50, 99, 99)


def test_figures_are_told_with_three_digits() -> None:
    assert [short(value) for value in (0.12345, 12.345, 1234.5)] == ["0.123", "12.3", "1,234"]
