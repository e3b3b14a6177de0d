"""Puts one API's module together: its values, and the layouts of its messages."""

from __future__ import annotations

import dataclasses
import re

from protocol_generator.layouts import layout_name, struct_layout, versions_of
from protocol_generator.schema import Field, Struct, api_name, load, load_data, merge, structs_of

SIDES = ("request", "response")


@dataclasses.dataclass
class Api:
    """One API: its messages by side and version, and each struct with all versions' fields.

    What is no API but data inside others has one side, data.
    """

    name: str
    api_key: int | None
    messages: dict[str, dict[int, Struct]]
    merged: dict[str, Struct]

    @property
    def first_flexible(self) -> int | None:
        flexible = [v for v, message in self.messages["request"].items() if message.is_flexible]
        return min(flexible, default=None)


def read_api(api_key: int, lowest: int, highest: int) -> Api:
    versions = range(lowest, highest + 1)
    messages = {side: {v: load(api_key, side, v) for v in versions} for side in SIDES}
    clashing = _clashes(messages)
    for side in SIDES:
        prefix = side.capitalize()
        messages[side] = {v: _rename(m, clashing, prefix) for v, m in messages[side].items()}
    merged: dict[str, Struct] = {}
    for side in SIDES:
        merged |= _merge_all(list(messages[side].values()))
    return Api(api_name(api_key), api_key, messages, merged)


def read_data(name: str, lowest: int, highest: int) -> Api:
    versions = {version: load_data(name, version) for version in range(lowest, highest + 1)}
    return Api(name, None, {"data": versions}, _merge_all(list(versions.values())))


def _merge_all(messages: list[Struct]) -> dict[str, Struct]:
    by_name: dict[str, list[Struct]] = {}
    for message in messages:
        for struct in structs_of(message):
            by_name.setdefault(struct.name, []).append(struct)
    return {name: merge(versions) for name, versions in by_name.items()}


def _clashes(messages: dict[str, dict[int, Struct]]) -> set[str]:
    """Names that request and response both use, for structs that differ."""
    request, response = (_merge_all(list(messages[side].values())) for side in SIDES)
    return {name for name in request.keys() & response.keys() if request[name] != response[name]}


def _rename(struct: Struct, names: set[str], prefix: str) -> Struct:
    fields = []
    for field in struct.fields:
        if field.struct is not None:
            inner = _rename(field.struct, names, prefix)
            default = field.default.replace(field.struct.name, inner.name)
            field = dataclasses.replace(field, struct=inner, default=default)
        fields.append(field)
    name = prefix + struct.name if struct.name in names else struct.name
    return Struct(name, struct.is_flexible, tuple(fields))


def module_source(api: Api) -> str:
    body = [line for struct in _in_order(api) for line in _value_class(struct)]
    body += [line for struct in _in_order(api) for line in _layout(api, struct)]
    return "\n".join([*_head(api, "\n".join(body)), *body]) + "\n"


def _layout(api: Api, struct: Struct) -> list[str]:
    """A struct's layout, which is the same on all sides that have it."""
    name = layout_name(struct)
    layouts: list[list[str]] = []
    for side, messages in api.messages.items():
        if versions := versions_of(messages, struct.name):
            layouts.append(struct_layout(struct, versions))
        if struct.name == next(iter(messages.values())).name:
            name = side.upper()
    assert all(layout == layouts[0] for layout in layouts), f"{struct.name} differs by side"
    return [f"{name}: Layout = ({', '.join(layouts[0])},)", ""]


def _in_order(api: Api) -> list[Struct]:
    """All structs, each after those that it holds."""
    ordered: list[str] = []

    def visit(name: str) -> None:
        for field in api.merged[name].fields:
            if field.struct is not None:
                visit(field.struct.name)
        if name not in ordered:
            ordered.append(name)

    for name in api.merged:
        visit(name)
    return [api.merged[name] for name in ordered]


def _value_class(struct: Struct) -> list[str]:
    lines = [f"class {struct.name}(NamedTuple):"]
    for field in struct.fields:
        # These two hide methods of tuple, which nobody calls on a message.
        hides = "  # type: ignore[assignment]" if field.name in ("index", "count") else ""
        lines.append(f"    {field.name}: {annotation(field)} = {field.default}{hides}")
    return [*lines, "", ""]


def annotation(field: Field) -> str:
    """The Python type of a field: records, which are views when decoded, are anything that has a
    length when they are to be sent."""
    kinds = {
        "string": "str",
        "bytes": "bytes",
        "uuid": "bytes",
        "records": "Records",
        "bool": "bool",
        "float64": "float",
    }
    inner = kinds.get(field.kind, "int") if field.struct is None else field.struct.name
    if field.is_array:
        inner = f"Sequence[{inner}]"
    return f"{inner} | None" if field.is_nullable else inner


def _head(api: Api, body: str) -> list[str]:
    words = set(re.findall(r"\w+", body))
    used = [name for name in ("NO_UUID", "Layout", "Records") if name in words]
    versions = next(iter(api.messages.values()))
    title = "".join(part.capitalize() for part in api.name.split("_"))
    if api.api_key is not None:
        title += f" (key {api.api_key})"
    return [
        f'"""{title}, versions {min(versions)} to {max(versions)}.',
        "",
        "Made by tools/protocol_generator from Kafka's message schemas: do not edit, run",
        "`make protocol`.",
        '"""',
        "",
        *(["from collections.abc import Sequence"] if "Sequence" in words else []),
        "from typing import NamedTuple",
        "",
        f"from stratalog.protocol.wire import {', '.join(used)}",
        "",
        "",
    ]
