"""Lines to records, by the rules of kafka-console-producer's line reader.

    [headers <headers.delimiter>] [key <key.separator>] value
    headers: name <headers.key.separator> value <headers.separator> name ...

Everything is bytes: what is not UTF-8 arrives as it was read. A line ends with a newline, and
a carriage return before it belongs to the line's end; the last line need not end.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stratalog.cli.failures import CommandError, UsageError

Headers = tuple[tuple[str, bytes | None], ...]

_OWN_NAMES = frozenset(
    (
        "topic",
        "parse.key",
        "key.separator",
        "parse.headers",
        "headers.delimiter",
        "headers.separator",
        "headers.key.separator",
        "ignore.error",
        "null.marker",
    )
)


class Line(NamedTuple):
    """What one line says; ``value`` is None for a tombstone."""

    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReader:
    """Reads records from lines. Made by ``from_properties``, by Kafka's names."""

    parses_key: bool = False
    key_separator: bytes = b"\t"
    parses_headers: bool = False
    headers_delimiter: bytes = b"\t"
    # A regular expression, as in Kafka.
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    ignores_errors: bool = False
    null_marker: bytes | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "LineReader":
        if unknown := sorted(set(properties) - _OWN_NAMES):
            raise UsageError(f"The reader of lines has no property {', '.join(unknown)}.")

        def text(name: str, default: str) -> bytes:
            return properties.get(name, default).encode("utf-8", "surrogateescape")

        marker = properties.get("null.marker")
        reader = cls(
            parses_key=is_true(properties.get("parse.key", "")),
            key_separator=text("key.separator", "\t"),
            parses_headers=is_true(properties.get("parse.headers", "")),
            headers_delimiter=text("headers.delimiter", "\t"),
            headers_separator=text("headers.separator", ","),
            headers_key_separator=text("headers.key.separator", ":"),
            ignores_errors=is_true(properties.get("ignore.error", "")),
            null_marker=None if marker is None else text("null.marker", ""),
        )
        reader._check()
        return reader

    def _check(self) -> None:
        headers = {
            "headers.delimiter": self.headers_delimiter,
            "headers.separator": self.headers_separator,
            "headers.key.separator": self.headers_key_separator,
        }
        names = list(headers)
        for place, name in enumerate(names):
            for other in names[place + 1 :]:
                if headers[name] == headers[other]:
                    raise UsageError(f"{name} and {other} must not be the same.")
        for name, value in {"key.separator": self.key_separator, **headers}.items():
            if not value:
                raise UsageError(f"{name} must not be empty.")
            if value == self.null_marker:
                raise UsageError(f"null.marker and {name} must not be the same.")
        try:
            re.compile(self.headers_separator)
        except re.error as error:
            raise UsageError(f"headers.separator is no regular expression: {error}.") from error

    def records(self, lines: Iterable[bytes]) -> Iterator[Line]:
        """Raises ``UsageError`` with the number of the first line that is not as it should be."""
        for number, line in enumerate(lines, start=1):
            yield self.record(_without_end(line), number)

    def record(self, line: bytes, number: int) -> Line:
        headers, rest = line, line
        raw_headers: bytes | None = None
        key: bytes | None = None
        if self.parses_headers:
            raw_headers, rest = self._cut(line, self.headers_delimiter, "headers delimiter", number)
            headers = raw_headers if raw_headers is not None else b""
        if self.parses_key:
            key, rest = self._cut(rest, self.key_separator, "key separator", number)
        found: Headers = ()
        if raw_headers is not None and headers != self.null_marker:
            found = tuple(self._header(pair, number) for pair in self._pairs(headers))
        return Line(self._or_null(key), self._or_null(rest), found)

    def _cut(
        self, text: bytes, separator: bytes, name: str, number: int
    ) -> tuple[bytes | None, bytes]:
        head, found, tail = text.partition(separator)
        if found:
            return head, tail
        if self.ignores_errors:
            return None, text
        raise CommandError(f"Line {number} has no {name}: {_shown(text)}.")

    def _pairs(self, headers: bytes) -> list[bytes]:
        pairs = re.split(self.headers_separator, headers)
        # Java's split leaves out empty strings at the end, unless there is nothing else.
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return pairs

    def _header(self, pair: bytes, number: int) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self.headers_key_separator)
        if not found and not self.ignores_errors:
            raise CommandError(f"Line {number} has a header without a separator: {_shown(pair)}.")
        if name == self.null_marker:
            raise CommandError(f"Line {number} has a header without a name: {_shown(pair)}.")
        return name.decode("utf-8", "replace"), self._or_null(value) if found else None

    def _or_null(self, value: bytes | None) -> bytes | None:
        return None if value is None or value == self.null_marker else value


def is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def _without_end(line: bytes) -> bytes:
    if not line.endswith(b"\n"):
        return line
    return line[:-2] if line.endswith(b"\r\n") else line[:-1]


def _shown(text: bytes) -> str:
    shown = text[:60].decode("utf-8", "replace")
    return f"'{shown}…'" if len(text) > 60 else f"'{shown}'"
