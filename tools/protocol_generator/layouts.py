"""Writes layouts: which fields a struct has on the wire, in which versions.

    (class, field, field, ...)
    field = (kind, first version, last version, first nullable version, tag[, layout])

One layout stands for all versions of a struct, because of what holds for Kafka's schemas and is
checked here: a field is there, and can be null, from one version to the last that has it; it keeps
its kind, tag and default; and the fields of a version are in the order of all fields. The compiled
module follows the layout of a message for one version (``records/_wire.pxi``).
"""

from __future__ import annotations

from protocol_generator.schema import FIXED, Field, Struct, structs_of

NEVER = -1


def layout_name(struct: Struct) -> str:
    return f"_LAYOUT_{struct.name}"


def struct_layout(merged: Struct, versions: dict[int, Struct]) -> list[str]:
    """The elements of the layout of a struct, of which these are the versions, as source."""
    places = {field.name: place for place, field in enumerate(merged.fields)}
    for version, struct in versions.items():
        order = [places[field.name] for field in struct.untagged]
        assert order == sorted(order), f"{struct.name} has another order in version {version}"
    return [merged.name, *(_field_layout(field, versions) for field in merged.fields)]


def _field_layout(merged: Field, versions: dict[int, Struct]) -> str:
    found = {
        version: field
        for version, struct in versions.items()
        for field in struct.fields
        if field.name == merged.name
    }
    first, last = min(found), max(found)
    nullable = [version for version, field in found.items() if field.is_nullable]
    assert list(found) == list(range(first, last + 1)), f"{merged.name} comes and goes"
    assert nullable == list(range(min(nullable, default=last + 1), last + 1)), merged.name
    for field in found.values():
        assert (field.tag, field.default) == (merged.tag, merged.default), merged.name
    assert merged.tag is None or not merged.has_records, f"{merged.name} has records in a tag"
    assert merged.kind in (*FIXED, "string", "bytes", "records", "struct"), merged.kind
    kind = f"[]{merged.kind}" if merged.is_array else merged.kind
    tag = NEVER if merged.tag is None else merged.tag
    about = [f'"{kind}"', str(first), str(last), str(min(nullable, default=NEVER)), str(tag)]
    if merged.struct is not None:
        about.append(layout_name(merged.struct))
    return f"({', '.join(about)})"


def versions_of(messages: dict[int, Struct], name: str) -> dict[int, Struct]:
    """A struct in those versions of a message that have it."""
    found: dict[int, Struct] = {}
    for version, message in messages.items():
        for struct in structs_of(message):
            assert struct.is_flexible == message.is_flexible, struct.name
            if struct.name == name:
                assert found.setdefault(version, struct) == struct, f"there are two {name}"
    return found
