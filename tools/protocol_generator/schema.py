"""Kafka's messages as kio describes them, in the terms that code is generated from.

kio has one frozen dataclass per struct, message and version, whose fields carry ``kafka_type``,
``tag`` and a default. Here a struct is one :class:`Struct` per version, made of :class:`Field`
with the types of the wire: kio's durations, dates and error codes are the plain integers that
they travel as, under the names that Kafka's own schema gives them (``throttle_time_ms``).

:func:`merge` lays the versions of one struct over each other: the value that a handler sees has
all fields of all versions, in Kafka's order, so that handlers need not know versions.
"""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial._introspect import classify_field, is_optional

WIRE_KINDS = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}

# The kinds that have a fixed size.
FIXED = ("int8", "int16", "uint16", "int32", "int64", "float64", "bool", "uuid")

IMPLICIT_DEFAULTS = {
    "bool": "False",
    "float64": "0.0",
    "uuid": "NO_UUID",
    "string": '""',
    "bytes": 'b""',
    "records": "None",
}


@dataclasses.dataclass(frozen=True)
class Field:
    name: str
    kind: str  # int8 … bool, uuid, string, bytes, records, or struct
    is_array: bool
    is_nullable: bool
    tag: int | None
    default: str  # as source
    struct: Struct | None

    @property
    def has_records(self) -> bool:
        return self.kind == "records" or (self.struct is not None and self.struct.has_records)


@dataclasses.dataclass(frozen=True)
class Struct:
    name: str
    is_flexible: bool
    fields: tuple[Field, ...]

    @property
    def untagged(self) -> list[Field]:
        return [field for field in self.fields if field.tag is None]

    @property
    def has_records(self) -> bool:
        return any(field.has_records for field in self.fields)


def api_name(api_key: int) -> str:
    return str(api_key_map[api_key])


def load(api_key: int, side: str, version: int) -> Struct:
    """The message of one API and version; ``side`` is request or response."""
    loader = load_request_schema if side == "request" else load_response_schema
    return _struct(loader(api_key, version))


def load_data(name: str, version: int) -> Struct:
    """What clients put into the bytes of other messages, and brokers may want to read."""
    module = import_module(f"kio.schema.{name}.v{version}")
    return _struct(getattr(module, module.__all__[0]))


def _struct(entity: Any) -> Struct:
    fields = tuple(_field(field) for field in dataclasses.fields(entity))
    return Struct(entity.__name__, bool(entity.__flexible__), fields)


def _field(field: Any) -> Field:
    kio_kind = field.metadata.get("kafka_type")
    classified = classify_field(field)
    struct = _struct(classified.type_) if dataclasses.is_dataclass(classified.type_) else None
    kind = "struct" if struct is not None else WIRE_KINDS.get(kio_kind, kio_kind)
    # kio writes "no id" and "no time" as None; on the wire both are ordinary values.
    is_nullable = is_optional(field) and kio_kind not in ("uuid", "datetime_i64")
    name = field.name
    if kio_kind in ("timedelta_i32", "timedelta_i64", "datetime_i64"):
        name += "_ms"
    default = _default(field, kind, kio_kind, classified.is_array, is_nullable, struct)
    tag = field.metadata.get("tag")
    return Field(name, kind, classified.is_array, is_nullable, tag, default, struct)


def _default(
    field: Any, kind: str, kio_kind: str, is_array: bool, is_nullable: bool, struct: Struct | None
) -> str:
    value = field.default
    if value is None and kio_kind == "datetime_i64":
        return "-1"
    if value is None and kind == "uuid":
        return "NO_UUID"
    if value is None:
        return "None"
    if is_array:
        return "()"
    if struct is not None:
        return "None" if is_nullable else f"{struct.name}()"
    if value is dataclasses.MISSING:
        return IMPLICIT_DEFAULTS.get(kind, "0")
    if kio_kind in ("timedelta_i32", "timedelta_i64"):
        return str(round(value.total_seconds() * 1000))
    if kind in ("bool", "float64", "string", "bytes"):
        return repr(value).replace("'", '"')
    return str(int(value))


def merge(versions: list[Struct]) -> Struct:
    """One struct with the fields of all versions, oldest first, in Kafka's order."""
    fields: list[Field] = []
    for version in reversed(versions):
        previous = -1
        for field in version.fields:
            names = [known.name for known in fields]
            if field.name in names:
                previous = names.index(field.name)
                known = fields[previous]
                fields[previous] = _widen(known, field)
            else:
                previous += 1
                fields.insert(previous, field)
    return Struct(versions[-1].name, False, tuple(fields))


def _widen(newer: Field, older: Field) -> Field:
    assert (newer.kind, newer.is_array) == (older.kind, older.is_array), newer.name
    return dataclasses.replace(newer, is_nullable=newer.is_nullable or older.is_nullable)


def structs_of(message: Struct) -> list[Struct]:
    """A message and all structs inside it, the innermost first."""
    found: list[Struct] = []
    for field in message.fields:
        if field.struct is not None:
            found += [s for s in structs_of(field.struct) if s not in found]
    return [*found, message]
