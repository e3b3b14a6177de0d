"""Java's .properties format: server.properties is read with it, meta.properties is written too.

    file      natural lines end with \\n, \\r or \\r\\n; blank ones and those whose first
              non-blank is # or ! say nothing
    logical   a line that ends with an odd number of backslashes goes on in the next, whose
    line      leading blanks do not count
    key       up to the first unescaped =, : or blank; blanks around one = or : are skipped
    value     the rest, trailing blanks included
    escapes   \\t \\n \\r \\f, \\uXXXX (a UTF-16 unit), and any other character for itself

Bytes are ISO-8859-1, so whatever lies outside ASCII is written as \\uXXXX. Of a repeated key the
last value stands. Blanks are space, tab and form feed. One oddity of Java's is not followed: a
file whose last line is a lone backslash has an empty key there, and says nothing here.
"""

import re
from collections.abc import Iterator, Mapping

from stratalog.errors import ConfigError

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*)?")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NOT_PLAIN = re.compile(r"[\\=:#!]|[^\x20-\x7e]")
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LETTERS = {character: letter for letter, character in _ESCAPED.items()}


def parse_properties(data: bytes | str) -> dict[str, str]:
    """The keys and values of a .properties file, in its order. Bytes are read as Java would."""
    text = data if isinstance(data, str) else data.decode("iso-8859-1")
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None, "the pattern matches an empty key"
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None, "the pattern matches an empty separator"
        name = _unescape(key[0], number)
        found[name] = _unescape(line[separator.end() :], number)
    return found


def format_properties(properties: Mapping[str, str], *, comments: tuple[str, ...] = ()) -> bytes:
    """A .properties file that Java and ``parse_properties`` read back as ``properties``."""
    lines = [f"#{_NOT_ASCII.sub(_escape, comment)}" for comment in comments]
    for name, value in properties.items():
        key = _NOT_PLAIN.sub(_escape, name).replace(" ", "\\ ")
        text = _NOT_PLAIN.sub(_escape, value)
        # An escaped first blank is the value's; without it the separator would swallow them all.
        lines.append(f"{key}=\\{text}" if text.startswith(" ") else f"{key}={text}")
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line that says something, continuations joined, with the number it starts at."""
    joined, started = "", 0
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            started = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        yield started, joined + line
        joined = ""
    if joined:
        yield started, joined


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        escaped = found[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise ConfigError(f"line {line}", text, "\\u must be followed by four hex digits")
        return _ESCAPED.get(escaped, escaped)

    units = _ESCAPE.sub(character, text)
    # Java's characters are UTF-16 units: two of them may make one of ours.
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _LETTERS:
        return f"\\{_LETTERS[character]}"
    if " " <= character <= "~":
        return f"\\{character}"
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
