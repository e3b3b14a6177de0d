"""Every message of every version, both ways, against an encoder that nobody here wrote."""

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kio_messages import (
    EVERY_MESSAGE,
    FLEXIBLE_LAYOUTS,
    entities,
    full_entity,
    kio_encoded,
    module_of,
    ours,
    plainly_encoded,
    schema,
    settled,
)

from stratalog.protocol.codec import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)

# Hundreds of messages, so a few examples of each; a deep run has ten times as many.
EXAMPLES = 40 if settings.get_current_profile_name() == "deep" else 4
every_message = pytest.mark.parametrize(("side", "api_key", "version"), EVERY_MESSAGE)


def body_of(side: str, api_key: int, version: int, value: Any) -> bytes:
    """What our encoder writes after the header, which is empty but for what is fixed."""
    if side == "request":
        frame = b"".join(encode_request(api_key, version, 7, None, value))
        _, position = decode_request_header(frame[4:])
        return frame[4 + position :]
    frame = b"".join(encode_response(api_key, version, 7, value))
    is_plain = api_key == 18 or not schema(side, api_key, version).__flexible__
    return frame[8:] if is_plain else frame[9:]


def decoded(side: str, api_key: int, version: int, body: bytes) -> Any:
    if side == "request":
        return settled(decode_request(api_key, version, body))
    is_plain = api_key == 18 or not schema(side, api_key, version).__flexible__
    head = b"\0\0\0\7" if is_plain else b"\0\0\0\7\0"
    correlation_id, response = decode_response(api_key, version, head + body)
    assert correlation_id == 7
    return settled(response)


@every_message
def test_what_kio_writes_is_read_and_what_is_written_is_kios(
    side: str, api_key: int, version: int
) -> None:
    entity_type = schema(side, api_key, version)

    @settings(max_examples=EXAMPLES)
    @given(entities(entity_type))
    @example(full_entity(entity_type))
    def check(entity: Any) -> None:
        value, body = ours(entity, module_of(api_key)), kio_encoded(entity)
        if api_key == 18 and side == "response" and value.error_code == 35:
            return  # such a body is version 0, whatever was asked; it has a test of its own
        assert decoded(side, api_key, version, body) == value
        assert body_of(side, api_key, version, value) == body

    check()


UNKNOWN = st.lists(
    st.tuples(st.integers(100, 2**31), st.binary(max_size=140)),
    min_size=1,
    max_size=2,
    unique_by=lambda tag: tag[0],
)


@pytest.mark.parametrize(("side", "api_key", "version"), FLEXIBLE_LAYOUTS)
def test_tagged_fields_that_nobody_knows_are_skipped_in_every_struct(
    side: str, api_key: int, version: int
) -> None:
    @settings(max_examples=EXAMPLES)
    @given(entities(schema(side, api_key, version)), UNKNOWN)
    def check(entity: Any, unknown: list[tuple[int, bytes]]) -> None:
        if api_key == 18 and side == "response" and entity.error_code == 35:
            return
        value = decoded(side, api_key, version, plainly_encoded(entity, unknown))
        assert value == decoded(side, api_key, version, plainly_encoded(entity, []))
        assert value == without_tags(ours(entity, module_of(api_key)), entity)

    check()


def without_tags(value: Any, entity: Any) -> Any:
    """``value`` with all tagged fields at their defaults, which is how ``entity`` tells them."""
    replaced = {}
    for field in dataclasses.fields(entity):
        name = field.name if hasattr(value, field.name) else f"{field.name}_ms"
        inner = getattr(entity, field.name)
        if "tag" in field.metadata:
            replaced[name] = type(value)._field_defaults[name]
        elif dataclasses.is_dataclass(inner):
            replaced[name] = without_tags(getattr(value, name), inner)
        elif isinstance(inner, tuple) and inner and dataclasses.is_dataclass(inner[0]):
            pairs = zip(getattr(value, name), inner, strict=True)
            replaced[name] = tuple(without_tags(one, other) for one, other in pairs)
    return value._replace(**replaced)
