"""Java's .properties format, against what java.util.Properties itself reads and writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.config.properties import format_properties, parse_properties
from stratalog.errors import ConfigError

# Every character that means something to the format, some that must be escaped, some that not.
CHARACTERS = st.sampled_from("ab=:#! \t\f\r\n\\u0\x00\x7f\xe9€\U0001f600\ud800")
TEXTS = st.text(CHARACTERS, max_size=12) | st.text(max_size=12)


@given(st.dictionaries(TEXTS, TEXTS, max_size=6))
def test_what_is_written_reads_back_the_same_in_the_same_order(given: dict[str, str]) -> None:
    expected = {_utf16(name): _utf16(value) for name, value in given.items()}

    assert list(parse_properties(format_properties(given)).items()) == list(expected.items())


@given(st.dictionaries(TEXTS, TEXTS, max_size=4), st.sampled_from(["\n", "\r", "\r\n"]))
def test_line_ends_comments_and_blank_lines_change_nothing(
    given: dict[str, str], line_end: str
) -> None:
    lines = format_properties(given).decode().split("\n")
    noisy = line_end.join(
        f"# c=d\\{line_end} \t! c{line_end}\f{line_end}\t{line}" for line in lines
    )

    assert parse_properties(noisy.encode()) == parse_properties(format_properties(given))


@given(st.binary(max_size=40).filter(lambda data: b"\\u" not in data))
def test_any_bytes_without_unicode_escapes_parse(data: bytes) -> None:
    parsed = parse_properties(data)

    assert parse_properties(format_properties(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a : = b", {"a": "= b"}),
        ("a\tb=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# no comment", {"a": "b# no comment"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("\\\n#c", {}),
        ('a=\\t\\n\\r\\f\\q\\"', {"a": '\t\n\r\fq"'}),
        ("a=\\u20AC\\ud83d\\uDE00", {"a": "€\U0001f600"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=#b!", {"a": "#b!"}),
    ],
)
def test_lines_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_bytes_are_latin_1_and_not_utf_8() -> None:
    assert parse_properties(b"a=\xc3\xa9") == {"a": "\xc3\xa9"}


def test_lines_are_written_as_java_writes_them() -> None:
    written = format_properties({"a b": "  c d ", "#k:": "=\\€\t\xe9\x7f"}, comments=("10€",))

    assert written == b"#10\\u20AC\na\\ b=\\  c d \n\\#k\\:=\\=\\\\\\u20AC\\t\\u00E9\\u007F\n"


@pytest.mark.parametrize("text", ["a=\\u12", "a=1\nb=\\u12G4", "a\\u=1"])
def test_a_broken_unicode_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match="four hex digits") as refused:
        parse_properties(text)

    assert refused.value.name == f"line {text.count(chr(10)) + 1}"


def _utf16(text: str) -> str:
    """``text`` as Java holds it: two halves of a pair next to each other are one character."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
