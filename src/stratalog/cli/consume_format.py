"""How a consumed record looks: bytes as they are by kafka-console-consumer's rules, or JSON.

Nothing is decoded on the way to a text line: a value that is no UTF-8 arrives as it was written.
JSON cannot hold bytes, so there such a field is named ``value_base64`` (``key_base64``).
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.produce_lines import is_true

_TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}
_SIGNED = {"Short": 2, "Integer": 4, "Long": 8}
_PLAIN = ("String", "ByteArray", "Bytes", "ByteBuffer")
_NAMES = frozenset(
    (
        "print.timestamp",
        "print.key",
        "print.offset",
        "print.epoch",
        "print.partition",
        "print.headers",
        "print.value",
        "key.separator",
        "line.separator",
        "headers.separator",
        "null.literal",
        "key.deserializer",
        "value.deserializer",
        "headers.deserializer",
    )
)

Render = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """Which parts of a record are printed, in Kafka's order."""

    prints_timestamp: bool = False
    prints_partition: bool = False
    prints_offset: bool = False
    prints_epoch: bool = False
    prints_headers: bool = False
    prints_key: bool = False
    prints_value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"
    render_key: Render = bytes
    render_value: Render = bytes
    render_headers: Render = bytes

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "LineFormat":
        if unknown := sorted(set(properties) - _NAMES):
            raise UsageError(f"The format of lines has no property {', '.join(unknown)}.")

        def text(name: str, default: str) -> bytes:
            return properties.get(name, default).encode("utf-8", "surrogateescape")

        def is_on(name: str, default: str = "false") -> bool:
            return is_true(properties.get(name, default))

        return cls(
            prints_timestamp=is_on("print.timestamp"),
            prints_partition=is_on("print.partition"),
            prints_offset=is_on("print.offset"),
            prints_epoch=is_on("print.epoch"),
            prints_headers=is_on("print.headers"),
            prints_key=is_on("print.key"),
            prints_value=is_on("print.value", "true"),
            key_separator=text("key.separator", "\t"),
            line_separator=text("line.separator", "\n"),
            headers_separator=text("headers.separator", ","),
            null_literal=text("null.literal", "null"),
            render_key=_renderer(properties.get("key.deserializer")),
            render_value=_renderer(properties.get("value.deserializer")),
            render_headers=_renderer(properties.get("headers.deserializer")),
        )

    def line(self, message: Any) -> bytes:
        """A ``confluent_kafka.Message`` as one line, its end included."""
        parts = []
        if self.prints_timestamp:
            kind, timestamp_ms = message.timestamp()
            name = _TIMESTAMP_TYPES.get(kind)
            parts.append(b"NO_TIMESTAMP" if name is None else f"{name}:{timestamp_ms}".encode())
        if self.prints_partition:
            parts.append(b"Partition:%d" % message.partition())
        if self.prints_offset:
            parts.append(b"Offset:%d" % message.offset())
        if self.prints_epoch:
            epoch = message.leader_epoch()
            parts.append(b"Epoch:NOT_PRESENT" if epoch is None else b"Epoch:%d" % epoch)
        if self.prints_headers:
            parts.append(self._headers(message.headers()))
        if self.prints_key:
            parts.append(self._field(message.key(), self.render_key))
        if self.prints_value:
            parts.append(self._field(message.value(), self.render_value))
        # As in Kafka: who prints nothing prints no empty lines either.
        return self.key_separator.join(parts) + self.line_separator if parts else b""

    def _headers(self, headers: list[tuple[str, bytes | None]] | None) -> bytes:
        if not headers:
            return b"NO_HEADERS"
        return self.headers_separator.join(
            name.encode() + b":" + self._field(value, self.render_headers)
            for name, value in headers
        )

    def _field(self, value: bytes | None, render: Render) -> bytes:
        return self.null_literal if value is None else render(value)


def json_line(message: Any) -> bytes:
    """The record as one JSON object on one line."""
    kind, timestamp_ms = message.timestamp()
    row: dict[str, Any] = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp_ms if kind in _TIMESTAMP_TYPES else None,
        "timestamp_type": _TIMESTAMP_TYPES.get(kind),
        "leader_epoch": message.leader_epoch(),
        "headers": [
            {"name": name, **_json_field("value", value)} for name, value in message.headers() or ()
        ],
        **_json_field("key", message.key()),
        **_json_field("value", message.value()),
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _json_field(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _renderer(deserializer: str | None) -> Render:
    """By the simple name of one of Kafka's deserializers: bytes as they are, or a number."""
    if not deserializer:
        return bytes
    simple = deserializer.rpartition(".")[2].removesuffix("Deserializer")
    if simple in _PLAIN:
        return bytes
    if simple not in _SIGNED:
        raise UsageError(f"There is no deserializer {deserializer} without a JVM.")
    size_bytes = _SIGNED[simple]

    def number(value: bytes) -> bytes:
        if len(value) != size_bytes:
            raise CommandError(
                f"Size of data received by {simple}Deserializer is not {size_bytes} bytes."
            )
        return b"%d" % int.from_bytes(value, signed=True)

    return number
