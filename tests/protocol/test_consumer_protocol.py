"""Subscriptions and assignments of consumers, against kio, and from clients newer than this."""

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from kio_messages import entities, full_entity, kio_encoded, ours

from stratalog.errors import ProtocolError
from stratalog.protocol import consumer_protocol
from stratalog.protocol.messages import consumer_protocol_assignment as assignment
from stratalog.protocol.messages import consumer_protocol_subscription as subscription

KINDS = {
    "subscription": (
        subscription,
        consumer_protocol.decode_subscription,
        consumer_protocol.encode_subscription,
    ),
    "assignment": (
        assignment,
        consumer_protocol.decode_assignment,
        consumer_protocol.encode_assignment,
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_version = pytest.mark.parametrize("version", range(4))


def schema(kind: str, version: int) -> Any:
    module = import_module(f"kio.schema.consumer_protocol_{kind}.v{version}")
    return getattr(module, module.__all__[0])


def full_bytes(kind: str, version: int) -> bytes:
    return version.to_bytes(2) + kio_encoded(full_entity(schema(kind, version)))


@every_kind
@every_version
def test_what_kio_writes_is_read_and_what_is_written_is_kios(kind: str, version: int) -> None:
    module, decode, encode = KINDS[kind]

    @settings(max_examples=20)
    @given(entities(schema(kind, version)))
    def check(entity: Any) -> None:
        value, raw = ours(entity, module), version.to_bytes(2) + kio_encoded(entity)
        assert decode(raw) == value
        assert encode(version, value) == raw

    check()


@every_kind
def test_a_newer_version_is_read_as_the_newest_known_and_what_it_adds_is_passed_over(
    kind: str,
) -> None:
    _, decode, _ = KINDS[kind]
    known = full_bytes(kind, 3)

    assert decode(b"\0\x09" + known[2:] + b"more") == decode(known)


@every_kind
@every_version
def test_what_is_cut_anywhere_is_refused(kind: str, version: int) -> None:
    _, decode, _ = KINDS[kind]
    raw = full_bytes(kind, version)

    for size in range(len(raw)):
        with pytest.raises(ProtocolError):
            decode(raw[:size])


@every_kind
def test_a_negative_version_is_refused(kind: str) -> None:
    _, decode, _ = KINDS[kind]

    with pytest.raises(ProtocolError):
        decode(b"\xff\xff" + full_bytes(kind, 0))
