"""Random messages as kio's entities, and the same in our terms and in bytes.

kio is the oracle: its schema classes say what a message of a version looks like, and its writer,
which nobody here wrote, encodes it. :func:`plainly_encoded` is a second writer, interpreting the
schema field by field, that can also put tagged fields nobody knows into every struct.
"""

import dataclasses
import datetime as dt
import io
import struct
import uuid
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import strategies as st

pytest.importorskip("kio")

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.serial._introspect import classify_field, is_optional

from stratalog.protocol.messages.index import CODECS

EVERY_MESSAGE = [
    (side, key, version)
    for key, codecs in CODECS.items()
    for version in range(codecs.lowest_version, codecs.highest_version + 1)
    for side in ("request", "response")
]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FIXED = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d"}
NAMED_OTHERWISE = ("timedelta_i32", "timedelta_i64", "datetime_i64")


def schema(side: str, api_key: int, version: int) -> Any:
    load = load_request_schema if side == "request" else load_response_schema
    return load(api_key, version)


def module_of(api_key: int) -> Any:
    return import_module(f"stratalog.protocol.messages.{CODECS[api_key].module}")


def _layout(side: str, api_key: int, version: int) -> Any:
    """What a message looks like in one version, to be compared with other versions."""
    is_flexible = schema(side, api_key, version).__flexible__
    return is_flexible, _fields(getattr(module_of(api_key), side.upper()), version)


def _fields(layout: Any, version: int) -> Any:
    return layout[0], tuple(
        (kind, 0 <= nullable_from <= version, tag, *(_fields(one, version) for one in inner))
        if first <= version <= last
        else None
        for kind, first, last, nullable_from, tag, *inner in layout[1:]
    )


# The newest of all versions that look the same stands for them.
EVERY_LAYOUT = list({_layout(*message): message for message in EVERY_MESSAGE}.values())
FLEXIBLE_LAYOUTS = [message for message in EVERY_LAYOUT if schema(*message).__flexible__]


# --- random entities -------------------------------------------------------------------------


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _milliseconds(low: int, high: int) -> st.SearchStrategy[dt.timedelta]:
    return st.integers(low, high).map(lambda ms: dt.timedelta(milliseconds=ms))


TEXT = st.one_of(st.text(max_size=6), st.integers(120, 140).map(lambda size: "é" * size))
BYTES = st.one_of(st.binary(max_size=6), st.integers(126, 129).map(bytes))
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "int8": _integers(8),
    "int16": _integers(16),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": _integers(32),
    "int64": _integers(64),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": BYTES,
    "records": BYTES,
    "uuid": st.none() | st.uuids(),
    "error_code": st.sampled_from(list(ErrorCode)),
    "timedelta_i32": _milliseconds(-(2**31), 2**31 - 1),
    "timedelta_i64": _milliseconds(-(2**55), 2**55),
    "datetime_i64": st.none() | _milliseconds(0, 2**42).map(lambda ago: EPOCH + ago),
}

_strategies: dict[type, st.SearchStrategy[Any]] = {}


def entities(entity_type: Any) -> st.SearchStrategy[Any]:
    """Messages or structs of one of kio's types; a tagged field is often left at its default."""
    if entity_type not in _strategies:
        given = {field.name: _values(field) for field in dataclasses.fields(entity_type)}
        _strategies[entity_type] = st.fixed_dictionaries(given).map(lambda f: entity_type(**f))
    return _strategies[entity_type]


def _values(field: Any) -> st.SearchStrategy[Any]:
    classified = classify_field(field)
    if dataclasses.is_dataclass(classified.type_):
        values = entities(classified.type_)
    else:
        values = SCALARS[field.metadata["kafka_type"]]
    if classified.is_array:
        values = st.lists(values, max_size=3).map(tuple)
    is_tagged = "tag" in field.metadata
    if is_optional(field) and (not is_tagged or field.default is None):
        values = st.none() | values
    if is_tagged and field.default is not dataclasses.MISSING:
        values = st.just(field.default) | values
    return values


def full_entity(entity_type: Any) -> Any:
    """A message that has everything: nothing null, no array empty, every tag given."""
    return entity_type(**{f.name: _full_value(f) for f in dataclasses.fields(entity_type)})


def _full_value(field: Any) -> Any:
    classified = classify_field(field)
    if dataclasses.is_dataclass(classified.type_):
        value = full_entity(classified.type_)
    else:
        value = FULL[field.metadata["kafka_type"]]
    return (value,) if classified.is_array else value


FULL: dict[str, Any] = {
    "int8": 3,
    "int16": 3,
    "uint16": 3,
    "int32": 3,
    "int64": 3,
    "float64": 3.0,
    "bool": True,
    "string": "name",
    "bytes": b"bytes",
    "records": b"records",
    "uuid": uuid.UUID(int=3),
    "error_code": ErrorCode.unknown_topic_or_partition,
    "timedelta_i32": dt.timedelta(milliseconds=3),
    "timedelta_i64": dt.timedelta(milliseconds=3),
    "datetime_i64": EPOCH + dt.timedelta(milliseconds=3),
}


# --- the same, in our terms ------------------------------------------------------------------


def ours(entity: Any, module: Any) -> Any:
    """The value that our codecs give and take for one of kio's entities."""
    fields = {}
    for field in dataclasses.fields(entity):
        kind = field.metadata.get("kafka_type")
        name = f"{field.name}_ms" if kind in NAMED_OTHERWISE else field.name
        fields[name] = _our_value(getattr(entity, field.name), kind, module)
    kind_of_message = type(entity).__module__.rpartition(".")[2].title()
    # Where request and response have a struct of one name, each of ours says whose it is.
    ours_is_named = (type(entity).__name__, f"{kind_of_message}{type(entity).__name__}")
    made = next(getattr(module, name) for name in ours_is_named if hasattr(module, name))
    return made(**fields)


def _our_value(value: Any, kind: str | None, module: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_our_value(element, kind, module) for element in value)
    if dataclasses.is_dataclass(value):
        return ours(value, module)
    return wire_value(value, kind)


def wire_value(value: Any, kind: str | None) -> Any:
    if kind == "uuid":
        return bytes(16) if value is None else value.bytes
    if kind == "datetime_i64":
        return -1 if value is None else (value - EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    if kind == "error_code":
        return int(value)
    return value


def settled(value: Any) -> Any:
    """A decoded value with its views of records turned to bytes, to be compared."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, tuple):
        elements = [settled(element) for element in value]
        return type(value)(*elements) if hasattr(value, "_fields") else tuple(elements)
    return value


# --- the same, in bytes ----------------------------------------------------------------------


def kio_encoded(entity: Any) -> bytes:
    with io.BytesIO() as buffer:
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def plainly_encoded(entity: Any, unknown: list[tuple[int, bytes]]) -> bytes:
    """``entity`` with tagged fields left out, and ``unknown`` ones in every struct instead."""
    is_flexible = type(entity).__flexible__
    out = b""
    for field in dataclasses.fields(entity):
        if "tag" not in field.metadata:
            out += _plain_field(getattr(entity, field.name), field, is_flexible, unknown)
    if is_flexible:
        out += varint(len(unknown))
        out += b"".join(varint(tag) + varint(len(body)) + body for tag, body in unknown)
    return out


def _plain_field(value: Any, field: Any, is_flexible: bool, unknown: Any) -> bytes:
    classified = classify_field(field)
    if dataclasses.is_dataclass(classified.type_):

        def encode(element: Any) -> bytes:
            return plainly_encoded(element, unknown)
    else:
        encode = _plain_encoder(field.metadata["kafka_type"], is_flexible)
    if classified.is_array:
        return _counted(value, "i", is_flexible, lambda all_: b"".join(map(encode, all_)))
    if dataclasses.is_dataclass(classified.type_) and is_optional(field):
        return b"\xff" if value is None else b"\x01" + encode(value)
    return encode(value)


def _plain_encoder(kind: str, is_flexible: bool) -> Callable[[Any], bytes]:
    if kind == "string":
        return lambda text: _counted(
            None if text is None else text.encode(), "h", is_flexible, lambda raw: raw
        )
    if kind in ("bytes", "records"):
        return lambda raw: _counted(raw, "i", is_flexible, lambda same: same)
    if kind == "uuid":
        return lambda value: (value or uuid.UUID(int=0)).bytes
    if kind == "bool":
        return lambda value: bytes([value])
    same_as = {
        "error_code": "int16",
        "timedelta_i32": "int32",
        "timedelta_i64": "int64",
        "datetime_i64": "int64",
    }
    letter = FIXED[same_as.get(kind, kind)]
    return lambda value: struct.pack(f">{letter}", wire_value(value, kind))


def _counted(value: Any, letter: str, is_flexible: bool, body: Callable[[Any], bytes]) -> bytes:
    if value is None:
        return b"\0" if is_flexible else struct.pack(f">{letter}", -1)
    length = varint(len(value) + 1) if is_flexible else struct.pack(f">{letter}", len(value))
    return length + body(value)


def varint(value: int) -> bytes:
    low = value & 0x7F
    return bytes([low]) if value < 128 else bytes([low | 0x80]) + varint(value >> 7)
