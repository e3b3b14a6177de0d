"""Lines to records: the rules of the console producer's line reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.produce_lines import Line, LineReader

# What a field may hold when no separator, marker or line's end is in it.
fields = st.binary(max_size=20).filter(
    lambda value: not set(value) & set(b"\t,:\n\r") and value != b"NULL"
)
names = st.text("abcxyz-é", min_size=1, max_size=8)
headers = st.lists(st.tuples(names, st.none() | fields), min_size=1, max_size=4).map(tuple)

KEYED = LineReader.from_properties({"parse.key": "true"})
FULL = LineReader.from_properties(
    {"parse.key": "true", "parse.headers": "true", "null.marker": "NULL"}
)


def marked(value: bytes | None) -> bytes:
    return b"NULL" if value is None else value


@given(
    st.lists(
        st.binary(max_size=20).filter(lambda line: b"\n" not in line and not line.endswith(b"\r"))
    )
)
def test_without_properties_every_line_is_a_value(lines: list[bytes]) -> None:
    read = list(LineReader().records(line + b"\n" for line in lines))

    assert read == [Line(None, line, ()) for line in lines]


@given(headers, st.none() | fields, st.none() | fields)
def test_what_is_written_with_separators_and_markers_is_read_back(
    headers: tuple[tuple[str, bytes | None], ...], key: bytes | None, value: bytes | None
) -> None:
    told = b",".join(name.encode() + b":" + marked(content) for name, content in headers)
    line = b"\t".join((told, marked(key), marked(value))) + b"\n"

    assert list(FULL.records([line])) == [Line(key, value, headers)]


def test_only_the_first_separator_ends_the_key() -> None:
    assert KEYED.record(b"k\tv\tw", 1) == Line(b"k", b"v\tw", ())


def test_a_line_without_its_separator_is_refused_by_its_number() -> None:
    with pytest.raises(CommandError, match=r"^Line 2 has no key separator: 'no key here'\.$"):
        list(KEYED.records([b"k\tv\n", b"no key here\n"]))


def test_a_line_without_its_separator_is_a_value_if_errors_are_ignored() -> None:
    reader = LineReader.from_properties({"parse.key": "true", "ignore.error": "true"})

    assert reader.record(b"no key here", 1) == Line(None, b"no key here", ())


def test_the_end_of_a_line_is_a_newline_with_or_without_a_return() -> None:
    read = [line.value for line in LineReader().records([b"a\n", b"b\r\n", b"c\r", b"d"])]

    assert read == [b"a", b"b", b"c\r", b"d"]


def test_empty_headers_at_the_end_are_left_out_as_in_java() -> None:
    reader = LineReader.from_properties({"parse.headers": "true"})

    assert reader.record(b"a:1,,\tv", 1).headers == (("a", b"1"),)


def test_a_header_without_a_separator_is_refused() -> None:
    with pytest.raises(CommandError, match="Line 7 has a header without a separator: 'alone'"):
        FULL.record(b"alone\tk\tv", 7)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator"),
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator"),
        ({"null.marker": "\t"}, "null.marker and key.separator"),
        ({"key.separator": ""}, "key.separator must not be empty"),
        ({"headers.separator": "("}, "no regular expression"),
        ({"parse.keys": "true"}, "no property parse.keys"),
    ],
)
def test_properties_that_cannot_be_meant_are_refused(
    properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        LineReader.from_properties(properties)
