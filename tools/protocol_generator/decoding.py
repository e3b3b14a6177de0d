"""Writes decoders: one function of straight-line Python per message layout.

Neighbouring fields of fixed size are read by one ``unpack_from``, together with the length of
what follows them: of a compact length that is its first byte, which is the whole of it below
128. Reads past the end raise ``struct.error`` or ``IndexError``, which the caller turns into a
ProtocolError, so only what decides about memory or slices is compared with the end explicitly.
Bytes that follow a message are passed over, as in Kafka: librdkafka sends some.
"""

from __future__ import annotations

import re

from protocol_generator.schema import FIXED, Field, Struct, smallest_bytes
from protocol_generator.source import Layouts, Source

# Kinds whose arrays are read and written at once; no message spoken has arrays of others.
INT_ARRAYS = {"int32": "INT32S"}


class Decoder:
    def __init__(self, layouts: Layouts, is_view: bool, merged: dict[str, Struct]) -> None:
        self._layouts = layouts
        self._is_view = is_view
        self._merged = merged
        self._source = Source()
        self._run: list[tuple[str, int, str]] = []

    def message(self, message: Struct, class_name: str) -> list[str]:
        values = self._struct(message)
        self._source.add(f"return new({class_name}, {_tuple(values)})")
        uses_end = any(re.search(r"\bend\b", line) for line in self._source.lines)
        return ["    end = len(buffer)"] * uses_end + self._source.lines

    def _struct(self, struct: Struct) -> list[str]:
        """Emit the reading of ``struct``; the expressions of all its fields, in order."""
        locals_: dict[str, str] = {}
        for field in struct.untagged:
            locals_[field.name] = self._field(field, struct.is_flexible)
        if struct.is_flexible:
            self._tags(struct, locals_)
        self._flush()
        every = self._merged[struct.name].fields
        return [locals_.get(field.name) or constant(field) for field in every]

    def _field(self, field: Field, is_flexible: bool) -> str:
        local = self._source.fresh(field.name)
        if field.is_fixed:
            letters, size = FIXED[field.kind]
            self._run.append((letters, size, local))
        elif field.is_array:
            self._array(field, local, is_flexible)
        elif field.kind == "struct":
            self._inner_struct(field, local)
        else:
            self._sized(field, local, is_flexible)
        return local

    def _flush(self) -> None:
        """Read the run of fixed-size fields that has gathered."""
        if not self._run:
            return
        letters = "".join(letter for letter, _, _ in self._run)
        if letters == "B":
            self._source.add(f"{self._run[0][2]} = buffer[position]")
        else:
            names = ", ".join(name for _, _, name in self._run)
            if len(self._run) == 1:
                names = f"({names},)"
            unpack = self._layouts.use("unpack", letters)
            self._source.add(f"{names} = {unpack}(buffer, position)")
        self._source.add(f"position += {sum(size for _, size, _ in self._run)}")
        self._run.clear()

    def _length(self, name: str, letters: str, size: int, is_flexible: bool, reader: str) -> None:
        """Read a length into ``name``: compact (one more, 0 = null) or of a fixed size."""
        if not is_flexible:
            self._run.append((letters, size, name))
            self._flush()
            return
        self._run.append(("B", 1, name))
        self._flush()
        with self._source.block(f"if {name} > 127:"):
            self._source.add(f"{name}, position = {reader}(buffer, position - 1)")

    def _sized(self, field: Field, local: str, is_flexible: bool) -> None:
        if field.kind == "string":
            self._length("size", "h", 2, is_flexible, "long_string_length")
        else:
            self._length("size", "i", 4, is_flexible, "long_length")
        kind = {"string": "str", "bytes": "bytes", "records": "memoryview"}[field.kind]
        is_there = "size" if is_flexible else "size >= 0"
        if field.is_nullable:
            self._source.add(f"{local}: {kind} | None = None")
            with self._source.block(f"if {is_there}:"):
                self._slice(field, local, is_flexible)
        else:
            is_null = "not size" if is_flexible else "size < 0"
            with self._source.block(f"if {is_null}:"):
                self._source.add(f'raise null_field("{field.name}")')
            self._slice(field, local, is_flexible)

    def _slice(self, field: Field, local: str, is_flexible: bool) -> None:
        self._source.add("stop = position + size - 1" if is_flexible else "stop = position + size")
        with self._source.block("if stop > end:"):
            self._source.add(f'raise too_long("{field.name}", stop - position, position, end)')
        piece = "buffer[position:stop]"
        if field.kind == "string":
            piece = f'str({piece}, "utf-8", "replace")'
        elif field.kind == "bytes":
            piece = f"bytes({piece})" if self._is_view else piece
        self._source.add(f"{local} = {piece}")
        self._source.add("position = stop")

    def _inner_struct(self, field: Field, local: str) -> None:
        assert field.struct is not None
        name = field.struct.name
        if not field.is_nullable:
            values = self._struct(field.struct)
            self._source.add(f"{local} = new({name}, {_tuple(values)})")
            return
        marker = self._source.fresh("marker")
        self._run.append(("b", 1, marker))
        self._flush()
        self._source.add(f"{local}: {name} | None = None")
        with self._source.block(f"if {marker} >= 0:"):
            values = self._struct(field.struct)
            self._source.add(f"{local} = new({name}, {_tuple(values)})")

    def _array(self, field: Field, local: str, is_flexible: bool) -> None:
        self._length("count", "i", 4, is_flexible, "long_length")
        if is_flexible:
            self._source.add("count -= 1")
        if field.is_nullable:
            self._source.add(f"{local}: tuple[{element_type(field)}, ...] | None = None")
            with self._source.block("if count >= 0:"):
                self._elements(field, local, is_flexible)
        else:
            with self._source.block("if count < 0:"):
                self._source.add(f'raise null_field("{field.name}")')
            self._elements(field, local, is_flexible)

    def _elements(self, field: Field, local: str, is_flexible: bool) -> None:
        each = _element_bytes(field, is_flexible)
        needed = "count" if each == 1 else f"count * {each}"
        with self._source.block(f"if {needed} > end - position:"):
            self._source.add(f'raise too_many("{field.name}", count, position, end)')
        if field.kind in INT_ARRAYS:
            letter = FIXED[field.kind][0]
            table = f"UNPACK_{INT_ARRAYS[field.kind]}"
            with self._source.block(f"if count < len({table}):"):
                self._source.add(f"{local} = {table}[count](buffer, position)")
            with self._source.block("else:"):
                self._source.add(f'{local} = unpack_from(f">{{count}}{letter}", buffer, position)')
            self._source.add(f"position += {needed}")
            return
        items = self._source.fresh(f"{local}_items")
        self._source.add(f"{items}: list[{element_type(field)}] = []")
        with self._source.block("for _ in range(count):"):
            self._source.add(f"{items}.append({self._element(field, is_flexible)})")
        self._source.add(f"{local} = tuple({items})")

    def _element(self, field: Field, is_flexible: bool) -> str:
        if field.struct is not None:
            values = self._struct(field.struct)
            return f"new({field.struct.name}, {_tuple(values)})"
        single = Field("item", field.kind, False, False, None, "", None)
        local = self._field(single, is_flexible)
        self._flush()
        return local

    def _tags(self, struct: Struct, locals_: dict[str, str]) -> None:
        self._run.append(("B", 1, "tags"))
        self._flush()
        if not struct.tagged:
            with self._source.block("if tags:"):
                self._source.add("position = skip_tags(buffer, position - 1)")
            return
        for field in struct.tagged:
            local = self._source.fresh(field.name)
            locals_[field.name] = local
            self._source.add(f"{local}: {annotation(field)} = {constant(field)}")
        with self._source.block("if tags:"):
            self._source.add("tags, position = tag_count(buffer, position - 1)")
            with self._source.block("for _ in range(tags):"):
                self._tag_cases(struct, locals_)

    def _tag_cases(self, struct: Struct, locals_: dict[str, str]) -> None:
        tag = self._source.fresh("tag_number")
        tag_end = self._source.fresh("tag_end")
        self._source.add(f"{tag}, position, {tag_end} = tag_head(buffer, position)")
        word = "if"
        for field in struct.tagged:
            with self._source.block(f"{word} {tag} == {field.tag}:"):
                local = self._field(field, is_flexible=True)
                self._flush()
                self._source.add(f"{locals_[field.name]} = {local}")
            word = "elif"
        with self._source.block("else:"):
            self._source.add(f"position = {tag_end}")
        with self._source.block(f"if position != {tag_end}:"):
            self._source.add(f"raise tag_of_another_size({tag}, position, {tag_end})")


def _element_bytes(field: Field, is_flexible: bool) -> int:
    if field.struct is not None:
        size = field.struct.smallest_bytes
    else:
        size = smallest_bytes(Field("", field.kind, False, False, None, "", None), is_flexible)
    assert size > 0, "an element without bytes would let a count of any size through"
    return size


def _tuple(values: list[str]) -> str:
    inner = ", ".join(values)
    return f"({inner},)" if len(values) == 1 else f"({inner})"


def constant(field: Field) -> str:
    """A field's default as an expression that builds nothing."""
    if field.struct is not None and field.default == f"{field.struct.name}()":
        return default_name(field.struct)
    return field.default


def default_name(struct: Struct) -> str:
    return f"_DEFAULT_{struct.name}"


def element_type(field: Field, *, is_decoded: bool = True) -> str:
    """The Python type of a field, or of its elements.

    Records are views when decoded, and anything that has a length when they are to be sent.
    """
    if field.struct is not None:
        return field.struct.name
    kinds = {
        "string": "str",
        "bytes": "bytes",
        "uuid": "bytes",
        "records": "memoryview" if is_decoded else "Records",
        "bool": "bool",
        "float64": "float",
    }
    return kinds.get(field.kind, "int")


def annotation(field: Field, *, is_decoded: bool = True) -> str:
    inner = element_type(field, is_decoded=is_decoded)
    if field.is_array:
        inner = f"tuple[{inner}, ...]" if is_decoded else f"Sequence[{inner}]"
    return f"{inner} | None" if field.is_nullable else inner
