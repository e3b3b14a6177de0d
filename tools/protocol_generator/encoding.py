"""Writes encoders: one function of straight-line Python per message layout.

An encoder takes a value apart by unpacking the tuple that it is, and appends to a bytearray.
Neighbouring fields of fixed size are packed at once, with the zero of an empty tag section as a
pad byte. A message with a ``records`` field comes back as a list of buffers instead, in which
each records value is itself, untouched: it may be a slice of a file, of which only ``len`` is
asked.
"""

from __future__ import annotations

from protocol_generator.decoding import INT_ARRAYS, constant
from protocol_generator.schema import FIXED, Field, Struct
from protocol_generator.source import Layouts, Source


class Encoder:
    def __init__(self, layouts: Layouts, merged: dict[str, Struct]) -> None:
        self._layouts = layouts
        self._merged = merged
        self._source = Source()
        self._run: list[tuple[str, str]] = []
        self._out = "out"

    def message(self, message: Struct) -> list[str]:
        self._source.add("out = bytearray()")
        if message.has_records:
            self._source.add("parts: list[Sized] = [out]")
        names = self._names(message)
        self._source.add(f"{self._pattern(message, names)} = value")
        self._fields(message, names)
        self._flush()
        self._source.add("return parts" if message.has_records else "return out")
        return self._source.lines

    def _names(self, struct: Struct) -> dict[str, str]:
        return {field.name: self._source.fresh(field.name) for field in struct.fields}

    def _pattern(self, struct: Struct, names: dict[str, str]) -> str:
        every = self._merged[struct.name].fields
        targets = [names.get(field.name, "_") for field in every]
        return f"({', '.join(targets)},)" if len(targets) == 1 else ", ".join(targets)

    def _fields(self, struct: Struct, names: dict[str, str]) -> None:
        for field in struct.untagged:
            self._field(field, names[field.name], struct.is_flexible)
        if struct.tagged:
            self._tags(struct, names)
        elif struct.is_flexible:
            self._run.append(("x", ""))

    def _field(self, field: Field, name: str, is_flexible: bool) -> None:
        if field.is_fixed:
            self._run.append((FIXED[field.kind][0], name))
        elif field.is_array:
            self._array(field, name, is_flexible)
        elif field.kind == "struct":
            self._inner_struct(field, name)
        elif is_flexible:
            self._compact(field, name)
        else:
            self._legacy(field, name)

    def _flush(self) -> None:
        """Write the run of fixed-size fields that has gathered."""
        if not self._run:
            return
        letters = "".join(letter for letter, _ in self._run)
        values = ", ".join(value for _, value in self._run if value)
        if letters == "x":
            self._source.add(f"{self._out}.append(0)")
        else:
            self._source.add(f"{self._out} += {self._layouts.use('pack', letters)}({values})")
        self._run.clear()

    def _compact_length(self, length: str) -> None:
        self._source.add(f"size = {length} + 1")
        with self._source.block("if size < 128:"):
            self._source.add(f"{self._out}.append(size)")
        with self._source.block("else:"):
            self._source.add(f"{self._out} += varint(size)")

    def _compact(self, field: Field, name: str) -> None:
        self._flush()
        if not field.is_nullable:
            self._compact_body(field, name)
            return
        with self._source.block(f"if {name} is None:"):
            self._source.add(f"{self._out}.append(0)")
        with self._source.block("else:"):
            self._compact_body(field, name)

    def _compact_body(self, field: Field, name: str) -> None:
        if field.kind == "string":
            self._source.add(f"raw = {name}.encode()")
            with self._source.block("if len(raw) > STRING_BYTES_MAX:"):
                self._source.add(f'raise string_too_long("{field.name}", len(raw))')
            self._compact_length("len(raw)")
            self._source.add(f"{self._out} += raw")
        else:
            self._compact_length(f"len({name})")
            if field.kind == "bytes":
                self._source.add(f"{self._out} += {name}")
            else:
                self._split(name)

    def _split(self, name: str) -> None:
        """The buffer so far ends before the records; what follows starts a new one."""
        assert self._out == "out", "records inside a tagged field"
        self._source.add("out = bytearray()")
        self._source.add(f"parts += ({name}, out)")

    def _legacy(self, field: Field, name: str) -> None:
        letter = "h" if field.kind == "string" else "i"
        length, body = f"len({name})", name
        if field.kind == "string":
            encoded = f"{name}.encode()"
            if field.is_nullable:
                encoded = f'b"" if {name} is None else {encoded}'
            self._source.add(f"raw = {encoded}")
            length, body = "len(raw)", "raw"
        if field.is_nullable:
            length = f"-1 if {name} is None else {length}"
        self._run.append((letter, length))
        self._flush()
        if field.kind == "records" and field.is_nullable:
            with self._source.block(f"if {name} is not None:"):
                self._split(name)
        elif field.kind == "records":
            self._split(name)
        elif field.kind == "bytes" and field.is_nullable:
            self._source.add(f'{self._out} += {name} or b""')
        else:
            self._source.add(f"{self._out} += {body}")

    def _inner_struct(self, field: Field, name: str) -> None:
        assert field.struct is not None
        names = self._names(field.struct)
        if not field.is_nullable:
            self._source.add(f"{self._pattern(field.struct, names)} = {name}")
            self._fields(field.struct, names)
            return
        self._flush()
        with self._source.block(f"if {name} is None:"):
            self._source.add(f"{self._out}.append(255)")
        with self._source.block("else:"):
            self._source.add(f"{self._out}.append(1)")
            self._source.add(f"{self._pattern(field.struct, names)} = {name}")
            self._fields(field.struct, names)
            self._flush()

    def _array(self, field: Field, name: str, is_flexible: bool) -> None:
        if is_flexible:
            self._flush()
            if not field.is_nullable:
                self._compact_length(f"len({name})")
                self._elements(field, name, is_flexible)
                return
            with self._source.block(f"if {name} is None:"):
                self._source.add(f"{self._out}.append(0)")
            with self._source.block("else:"):
                self._compact_length(f"len({name})")
                self._elements(field, name, is_flexible)
            return
        length = f"len({name})"
        if field.is_nullable:
            length = f"-1 if {name} is None else {length}"
        self._run.append(("i", length))
        self._flush()
        self._elements(field, f"{name} or ()" if field.is_nullable else name, is_flexible)

    def _elements(self, field: Field, name: str, is_flexible: bool) -> None:
        if field.kind in INT_ARRAYS:
            self._source.add(f"{self._out} += pack_{INT_ARRAYS[field.kind].lower()}({name})")
            return
        if field.struct is not None:
            names = self._names(field.struct)
            with self._source.block(f"for {self._pattern(field.struct, names)} in {name}:"):
                self._fields(field.struct, names)
                self._flush()
            return
        item = self._source.fresh("item")
        with self._source.block(f"for {item} in {name}:"):
            single = Field(field.name, field.kind, False, False, None, "", None)
            self._field(single, item, is_flexible)
            self._flush()

    def _tags(self, struct: Struct, names: dict[str, str]) -> None:
        self._flush()
        given = {field.name: _is_given(field, names[field.name]) for field in struct.tagged}
        with self._source.block(f"if {' or '.join(given.values())}:"):
            total = " + ".join(f"({test})" for test in given.values())
            self._source.add(f"{self._out}.append({total if len(given) > 1 else 1})")
            for field in struct.tagged:
                self._tag(field, names[field.name], given[field.name])
        with self._source.block("else:"):
            self._source.add(f"{self._out}.append(0)")

    def _tag(self, field: Field, name: str, test: str) -> None:
        outer = self._out
        with self._source.block(f"if {test}:"):
            self._out = self._source.fresh("tagged")
            self._source.add(f"{self._out} = bytearray()")
            self._field(field, name, is_flexible=True)
            self._flush()
            inner, self._out = self._out, outer
            self._source.add(f"{outer} += varint({field.tag})")
            self._source.add(f"{outer} += varint(len({inner}))")
            self._source.add(f"{outer} += {inner}")


def _is_given(field: Field, name: str) -> str:
    default = constant(field)
    if default == "None":
        return f"{name} is not None"
    if field.is_array:
        return f"({name} is None or len({name}) > 0)" if field.is_nullable else f"len({name}) > 0"
    if default in ("True", "False"):
        return f"{name} is not {default}"
    if field.struct is not None:
        # Left out, it is the very default; comparing the fields is for the rest.
        return f"({name} is not {default} and {name} != {default})"
    return f"{name} != {default}"
