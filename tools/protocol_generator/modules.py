"""Puts one API's module together: its values, its codecs, and the tables of them by version."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

from protocol_generator.decoding import Decoder, annotation, constant, default_name
from protocol_generator.encoding import Encoder
from protocol_generator.schema import Field, Struct, api_name, load, load_data, merge, structs_of
from protocol_generator.source import Layouts

SIDES = ("request", "response")

_WIRE = Path(__file__).parents[2] / "src/stratalog/protocol/wire.py"


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
    layouts = Layouts()
    functions: list[str] = []
    tables: list[str] = []
    for side in api.messages:
        for direction in ("decode", "encode"):
            made, table = _functions(api, side, direction, layouts)
            functions += made
            tables += table
    values = [line for struct in _in_order(api) for line in _value_class(api, struct)]
    body = [*values, "", *layouts.lines(), "", "", *functions, *tables]
    return "\n".join([*_head(api, "\n".join(body)), *body]) + "\n"


def _functions(
    api: Api, side: str, direction: str, layouts: Layouts
) -> tuple[list[str], list[str]]:
    """The functions of one side and direction; versions of one layout share one function."""
    by_body: dict[str, str] = {}
    lines: list[str] = []
    table: list[str] = []
    class_name = next(iter(api.messages[side].values())).name
    has_records = any(m.has_records for m in api.messages[side].values())
    returned = "list[Sized]" if has_records else "bytearray"
    for version, message in api.messages[side].items():
        if direction == "decode":
            decoder = Decoder(layouts, has_records, api.merged)
            body = decoder.message(message, class_name)
        else:
            body = Encoder(layouts, api.merged).message(message)
        text = "\n".join(body)
        name = by_body.get(text)
        if name is None:
            name = by_body[text] = f"_{direction}_{side}_v{version}"
            buffer = "memoryview" if has_records else "bytes"
            signature = (
                f"(buffer: {buffer}, position: int) -> {class_name}:"
                if direction == "decode"
                else f"(value: Any) -> {returned}:"
            )
            lines += [f"def {name}{signature}", *body, "", ""]
        table.append(f"    {version}: {name},")
    kind = (
        f"Callable[[{'memoryview' if has_records else 'bytes'}, int], {class_name}]"
        if direction == "decode"
        else f"Callable[[{class_name}], {returned}]"
    )
    head = f"{direction.upper()}_{side.upper()}: dict[int, {kind}] = {{"
    return lines, [head, *table, "}", ""]


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


def _value_class(api: Api, struct: Struct) -> list[str]:
    lines = [f"class {struct.name}(NamedTuple):"]
    for field in struct.fields:
        # These two hide methods of tuple, which nobody calls on a message.
        hides = "  # type: ignore[assignment]" if field.name in ("index", "count") else ""
        lines.append(
            f"    {field.name}: {annotation(field, is_decoded=False)} = {field.default}{hides}"
        )
    lines += ["", ""]
    if any(_is_default_of(field, struct) for s in api.merged.values() for field in s.fields):
        lines += [f"{default_name(struct)} = {struct.name}()", "", ""]
    return lines


def _is_default_of(field: Field, struct: Struct) -> bool:
    return field.struct is not None and constant(field) == default_name(struct)


_WORD = re.compile(r"\w+")


def _wire_names() -> set[str]:
    """What wire.py defines at its top level, read without importing it."""
    names: set[str] = set()
    for node in ast.parse(_WIRE.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def _head(api: Api, body: str) -> list[str]:
    words = set(_WORD.findall(body))
    used = sorted(words & _wire_names())
    abstract = [name for name in ("Callable", "Sequence", "Sized") if name in words]
    structs = [name for name in ("Struct", "unpack_from") if f"{name}(" in body]
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
        f"from collections.abc import {', '.join(abstract)}",
        *([f"from struct import {', '.join(structs)}"] if structs else []),
        "from typing import Any, NamedTuple",
        "",
        f"from stratalog.protocol.wire import {', '.join(used)}",
        "",
        "new = tuple.__new__",
        "",
        "",
    ]
