"""Messages inside records: how Kafka lays out what it tells itself in its internal topics.

A message is a struct of fields in a fixed order. A *flexible* version has compact lengths
(unsigned varint of length + 1) and ends every struct with tagged fields: a count, then tag, size
and bytes of each; a tagged field at its default is neither written nor returned. A struct that may
be null says so first: in a byte, or in an unsigned varint where it is tagged.

Which messages there are is data: field lists, which are facts of the release named in the interop
pom, stand where they are used. Ids become base64url text and bytes base64, as in Kafka's JSON.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

from stratalog.errors import CorruptBatchError

TOO_SHORT = "the bytes end inside a number"
ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"

_EVERY_VERSION = 1 << 15
_STRING_BYTES_MAX = 0x7FFF
_SHORT_MAX = 0x7FFF
_FRAME_VERSION = 1
_NUMBERS = {
    "bool": Struct(">?"),
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
    "float64": Struct(">d"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """``default`` matters to tagged fields only; each of them has one."""

    name: str
    kind: "str | Array | Message"
    since: int = 0
    until: int = _EVERY_VERSION
    nullable: bool = False
    tag: int | None = None
    default: Any = None


@dataclass(frozen=True, slots=True)
class Array:
    item: "str | Message"


@dataclass(frozen=True, slots=True)
class Message:
    """``flexible_since`` counts for a whole message; structs inside one follow it."""

    fields: tuple[Field, ...]
    last_version: int = 0
    flexible_since: int = _EVERY_VERSION


def flexible(*fields: Field, last_version: int = 0) -> Message:
    """A message of which every version is flexible."""
    return Message(fields, last_version, flexible_since=0)


def decode_message(message: Message, data: bytes, at: int, version: int) -> dict[str, Any]:
    """The fields by name, as Kafka's JSON has them; ``CorruptBatchError`` if they do not fit."""
    return _Reader(data, at).message(message, version)


def decode_framed(
    types: Mapping[int, tuple[str, Message]], data: bytes | None
) -> tuple[int, int, dict[str, Any]]:
    """Type, version and fields of a record that names its own type: the frame's version (1), the
    type and the version, each an unsigned varint, then the message, and nothing after it."""
    reader = _Reader(data or b"", 0)
    frame_version = _short(reader, "frame version")
    if frame_version == 0:
        raise CorruptBatchError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != _FRAME_VERSION:
        raise CorruptBatchError(
            "Could not deserialize metadata record due to unknown frame version "
            f"{frame_version}(only frame version {_FRAME_VERSION} is supported)"
        )
    kind, version = _short(reader, "type"), _short(reader, "version")
    if kind not in types:
        raise CorruptBatchError(
            "org.apache.kafka.common.errors.UnsupportedVersionException: "
            f"Unknown metadata id {kind}"
        )
    try:
        fields = reader.message(types[kind][1], version)
    except CorruptBatchError as error:
        raise CorruptBatchError(f"Failed to deserialize record with type {kind}") from error
    if reader.left_bytes:
        raise CorruptBatchError(f"Found {reader.left_bytes} byte(s) of garbage after {kind}")
    return kind, version, fields


def _short(reader: "_Reader", name: str) -> int:
    try:
        value = reader.unsigned()
    except CorruptBatchError as error:
        raise CorruptBatchError(f"Error while reading {name}") from error
    if value > _SHORT_MAX:
        raise CorruptBatchError(f"Value for {name} was too large.")
    return _signed(value, 16)


def _signed(value: int, bits: int) -> int:
    """The low bits as Java's cast would read them."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class _Reader:
    """Reads on from a position; what it raises says what Kafka's own reader says."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._version = self._last_version = 0
        self._is_flexible = False

    @property
    def left_bytes(self) -> int:
        return len(self._data) - self._at

    def message(self, message: Message, version: int) -> dict[str, Any]:
        # A field that was always there is read in every version, be it one that cannot be.
        self._version = max(version, 0)
        self._last_version = message.last_version
        self._is_flexible = self._version >= message.flexible_since
        return self._struct(message)

    def unsigned(self) -> int:
        """An unsigned varint, in the signed 32 bits into which Kafka reads it."""
        value = 0
        for shift in range(0, 35, 7):
            byte: int = self._number(_NUMBERS["int8"])
            value |= (byte & 0x7F) << shift
            if byte >= 0:
                return _signed(value, 32)
        raise CorruptBatchError(
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {value & 0xFFFFFFFF:x}"
        )

    def _struct(self, message: Message) -> dict[str, Any]:
        present = [f for f in message.fields if f.since <= self._version <= f.until]
        values = {f.name: self._field(f) for f in present if f.tag is None}
        if self._is_flexible:
            values |= self._tagged({f.tag: f for f in message.fields if f.tag is not None})
        return {f.name: values[f.name] for f in present if f.name in values}

    def _tagged(self, known: dict[int, Field]) -> dict[str, Any]:
        values = {}
        for _ in range(self.unsigned()):
            tag, size = self.unsigned(), self.unsigned()
            field = known.get(tag)
            if field is None:
                self._take(size)
            elif not field.since <= self._version <= field.until:
                raise CorruptBatchError(f"Tag {tag} is not valid for version {self._version}")
            else:
                values[tag] = self._field(field)
        return {known[tag].name: v for tag, v in values.items() if v != known[tag].default}

    def _field(self, field: Field) -> Any:
        if field.nullable and isinstance(field.kind, Message):
            if field.tag is None:
                is_null = self._number(_NUMBERS["int8"]) < 0
            else:
                is_null = self.unsigned() <= 0
            return None if is_null else self._value(field.kind, field.name)
        value = self._value(field.kind, field.name)
        if value is None and not field.nullable:
            raise CorruptBatchError(f"non-nullable field {field.name} was serialized as null")
        return value

    def _value(self, kind: "str | Array | Message", name: str) -> Any:
        if isinstance(kind, Message):
            if self._version > self._last_version:
                raise CorruptBatchError(f"Can't read version {self._version} of {name}")
            return self._struct(kind)
        if isinstance(kind, Array):
            return self._array(kind, name)
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == "uuid":
            if self.left_bytes < 16:
                raise CorruptBatchError(TOO_SHORT)
            return base64.urlsafe_b64encode(self._take(16)).rstrip(b"=").decode()
        return self._string(name) if kind == "string" else self._bytes()

    def _array(self, kind: Array, name: str) -> list[Any] | None:
        count = self._length("int32")
        if count < 0:
            return None
        if count > self.left_bytes:  # no item has fewer bytes than one
            raise CorruptBatchError(
                f"Tried to allocate a collection of size {count}, "
                f"but there are only {self.left_bytes} bytes remaining."
            )
        item = Field(f"{name} element", kind.item)
        return [self._field(item) for _ in range(count)]

    def _string(self, name: str) -> str | None:
        size = self._length("int16")
        if size > _STRING_BYTES_MAX:
            raise CorruptBatchError(f"string field {name} had invalid length {size}")
        return None if size < 0 else self._take(size).decode(errors="replace")

    def _bytes(self) -> str | None:
        size = self._length("int32")
        return None if size < 0 else base64.b64encode(self._take(size)).decode()

    def _length(self, plain: str) -> int:
        return self.unsigned() - 1 if self._is_flexible else self._number(_NUMBERS[plain])

    def _number(self, layout: Struct) -> Any:
        if self.left_bytes < layout.size:
            raise CorruptBatchError(TOO_SHORT)
        (value,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return value

    def _take(self, size: int) -> bytes:
        if size < 0:
            raise CorruptBatchError(str(size))
        if size > self.left_bytes:
            raise CorruptBatchError(
                f"Error reading byte array of {size} byte(s): "
                f"only {self.left_bytes} byte(s) available"
            )
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]
