"""Plans of ``group reset-offsets``: clamping, durations and moments as Java reads them, CSV."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.group_reset import (
    clamp,
    from_csv,
    parse_datetime,
    parse_duration,
    parse_scope,
    shift,
    to_csv,
)

offsets = st.integers(0, 2**63 - 1)
topics = st.text("abc.-_", min_size=1, max_size=6)
places = st.tuples(topics, st.integers(0, 9999))
plans = st.dictionaries(places, offsets, min_size=1, max_size=5)
P = ("orders", 0)


@given(st.integers(-(2**63), 2**63 - 1), offsets, offsets)
def test_an_offset_is_moved_inside_of_the_log_and_only_then_warned_of(
    wanted: int, one: int, other: int
) -> None:
    start, end = sorted((one, other))

    clamped = clamp({P: wanted}, {P: start}, {P: end})

    assert start <= clamped.plan[P] <= end
    assert bool(clamped.warnings) == (not start <= wanted <= end)
    assert clamped.plan[P] == wanted or clamped.plan[P] in (start, end)


def test_what_was_never_committed_cannot_be_shifted() -> None:
    assert shift([P], {P: 7}, -3) == {P: 4}
    with pytest.raises(CommandError, match="orders-1: none has been committed"):
        shift([P, ("orders", 1)], {P: 7}, -3)


@given(st.dictionaries(st.text("gh", min_size=1, max_size=4), plans, min_size=1, max_size=3))
def test_a_plan_of_several_groups_survives_csv(
    groups: dict[str, dict[tuple[str, int], int]],
) -> None:
    assert from_csv(to_csv(groups, has_group=True), ["g", "h"]) == groups


@given(plans)
def test_a_plan_of_one_group_survives_csv_without_its_name(
    plan: dict[tuple[str, int], int],
) -> None:
    text = to_csv({"readers": plan}, has_group=False)

    assert from_csv(text, ["readers"]) == {"readers": plan}
    assert text.splitlines()[0].count(",") == 2


@pytest.mark.parametrize(
    "line", ["orders", "orders,0", "orders,zero,1", "g,orders,0,-1", "a,b,c,d,e"]
)
def test_a_line_that_is_no_plan_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(CommandError, match="Line 2 of the file"):
        from_csv(f"orders,0,1\n{line}\n", ["readers"])


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P2DT3H4M5.006S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_006),
        ("pt15m", 900_000),
        ("-PT10S", -10_000),
        ("PT-6H+3M", -6 * 3_600_000 + 180_000),
        ("PT-0.5S", -500),
    ],
)
def test_durations_are_read_as_java_reads_them(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "1H", "P1DT", "P1M", "P1Y", "PT1H1D", "five minutes"]
)
def test_what_java_does_not_take_for_a_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:20.000",
        "2023-11-14T22:13:20Z",
        "2023-11-14T23:13:20.000+01:00",
        "2023-11-14T16:13:20.000-0600",
    ],
)
def test_a_datetime_is_in_utc_unless_it_names_a_zone(text: str) -> None:
    assert parse_datetime(text) == 1_700_000_000_000


@pytest.mark.parametrize("text", ["2023-11-14", "14.11.2023 22:13", "2023-13-14T22:13:20.000", ""])
def test_other_moments_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a datetime"):
        parse_datetime(text)


def test_a_scope_is_topics_and_partitions() -> None:
    assert parse_scope(["a", "b:0,2", "c"]) == (["a", "c"], [("b", 0), ("b", 2)])


@pytest.mark.parametrize("text", ["b:", "b:x", "b:0,", ":0", "b:-1"])
def test_a_scope_that_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="neither TOPIC nor TOPIC:0,1,2"):
        parse_scope([text])
