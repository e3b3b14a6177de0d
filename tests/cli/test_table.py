"""Tables fit the terminal: texts fold, columns go by rank, and nothing is lost in a pipe."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.table import (
    Cells,
    Column,
    Mood,
    Screen,
    Told,
    bytes_text,
    screen_of,
    table_lines,
    width_of,
)

COLUMNS = [
    Column("base"),
    Column("bytes", Cells.BYTES),
    Column("codec", rank=2),
    Column("newest", rank=1),
    Column("why", Cells.TEXT),
]
WHY = "the oldest record that it holds is younger than retention.ms allows"
ROWS = [(0, 123_456_789, "zstd", "2026-01-31", WHY), (1042, 17, "none", "2026-02-01", "active")]


def lines(width: int | None, *, is_wide: bool = False) -> list[str]:
    return list(table_lines(COLUMNS, ROWS, Screen(width), is_wide=is_wide))


def test_without_a_terminal_every_column_is_there_and_no_line_ends_in_spaces() -> None:
    assert lines(None) == [
        "base   bytes  codec  newest      why",
        f"   0  123 MB  zstd   2026-01-31  {WHY}",
        "1042    17 B  none   2026-02-01  active",
    ]


def test_a_narrow_terminal_folds_texts_before_it_loses_columns() -> None:
    assert lines(70) == [
        "base   bytes  codec  newest      why",
        "   0  123 MB  zstd   2026-01-31  the oldest record that it holds is",
        "                                 younger than retention.ms allows",
        "1042    17 B  none   2026-02-01  active",
    ]


def test_columns_go_by_rank_and_a_line_says_which() -> None:
    found = lines(40)

    assert found[0] == "base   bytes  why"
    assert found[-1] == "not shown, for want of width: codec, newest (--wide)"
    assert "newest" in lines(52)[0]
    assert "codec" not in lines(52)[0]


def test_wide_has_every_column_and_every_digit_on_any_terminal() -> None:
    assert lines(40, is_wide=True)[1] == f"   0  123456789  zstd   2026-01-31  {WHY}"


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=("C", "Z")), max_size=12),
            st.integers(-(2**63), 2**63),
            st.text(max_size=90).map(lambda text: " ".join(text.split())),
        ),
        max_size=5,
    ),
    st.integers(45, 200),
)
def test_no_line_is_wider_than_the_terminal_if_what_must_stay_fits(
    rows: list[tuple[str, int, str]], width: int
) -> None:
    columns = [Column("name", rank=1), Column("bytes", Cells.BYTES), Column("why", Cells.TEXT)]

    for line in table_lines(columns, rows, Screen(width)):
        assert width_of(line) <= width


def test_colour_marks_moods_and_takes_no_width() -> None:
    rows = [(Told("ok", Mood.GOOD), 1), (Told("lost", Mood.BAD), 22)]
    columns = [Column("state"), Column("logs")]

    coloured = list(table_lines(columns, rows, Screen(80, has_colour=True)))

    assert coloured[1:] == ["\x1b[32mok\x1b[0m        1", "\x1b[31mlost\x1b[0m     22"]
    assert list(table_lines(columns, rows, Screen(80)))[1:] == ["ok        1", "lost     22"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "has_colour"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_only_a_terminal_has_colour_and_a_width_and_no_color_is_honoured(
    stream: io.StringIO, environment: dict[str, str], has_colour: bool
) -> None:
    found = screen_of(stream, environment)

    assert found.has_colour is has_colour
    assert (found.width is None) is not stream.isatty()


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (12_345_678_901, "12 GB"),
        (-1_500, "-1.5 kB"),
    ],
)
def test_sizes_have_units_that_people_read(size_bytes: int, text: str) -> None:
    assert bytes_text(size_bytes) == text
