"""Requests of every API and version, first as a client might send them, then changed at random:
bits, lengths, tags, counts, versions, ends. A seed makes the same ones again."""

import random
import struct
import types
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from stratalog.errors import ProtocolError
from stratalog.protocol.api import SUPPORTED
from stratalog.protocol.codec import encode_request
from stratalog.protocol.messages.index import CODECS
from stratalog.protocol.wire import Records
from stratalog.records import Codec, Record, build_batch

EVERY_REQUEST = [
    (int(key), version)
    for key, versions in SUPPORTED.items()
    for version in range(versions.lowest, versions.highest + 1)
]

# Names that lead into handlers rather than past them, and some that nobody should ever use.
NAMES = (
    "orders", "payments", "group", "readers", "member", "range", "consumer", "", "a" * 249,
    "b" * 300, "__consumer_offsets", "../../etc", "x/y", "\0", "é" * 20, "cleanup.policy",
    "retention.ms", "compact", "0", "1", "-1", "999999999999",
)  # fmt: skip
# Many partitions of a topic are a real order that takes real time: see the tests of bombs.
SMALL = (0, 1, 2, 3, -1, -2, 5, 7)
LARGE = (100, 127, -128, 32_767, -32_768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 1_000_000)
CAUTIOUS = frozenset(("num_partitions", "count"))
TOPIC_ID_BYTES = 16


class Generator:
    """Random bodies and frames; confined to one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.topic_ids = [bytes(TOPIC_ID_BYTES), b"\1" * TOPIC_ID_BYTES]
        records = [Record(b"key%d" % number, b"value" * 5, timestamp_ms=0) for number in range(5)]
        self._batches: list[bytes | None] = [
            build_batch(records, codec=codec) for codec in (Codec.NONE, Codec.GZIP, Codec.ZSTD)
        ]
        self._batches += [b"", None, bytes(61)]

    # --- good ones ----------------------------------------------------------------------------

    def frame(self, api_key: int, version: int) -> bytes:
        """A request as a frame, its size included, that can be decoded."""
        body_type = _request_type(api_key)
        for is_small in (False, True, True):
            body = self._value(body_type, "", is_small=is_small)
            try:
                parts = encode_request(api_key, version, self.random.getrandbits(31), "c", body)
            except (ProtocolError, AttributeError, TypeError):
                continue  # this version has smaller fields, or does not know null there
            return b"".join(parts)  # type: ignore[arg-type]
        return b"".join(encode_request(api_key, version, 1, None, body_type()))  # type: ignore[arg-type]

    def _value(self, kind: Any, name: str, *, is_small: bool) -> Any:
        choose = self.random.choice
        if isinstance(kind, types.UnionType):
            kinds = [each for each in typing.get_args(kind) if each is not types.NoneType]
            if not is_small and self.random.random() < 0.1:
                return None
            return self._value(kinds[0], name, is_small=is_small)
        if typing.get_origin(kind) is not None:
            (element,) = typing.get_args(kind)
            count = choose((0, 1, 1, 1, 2, 3))
            return [self._value(element, name, is_small=is_small) for _ in range(count)]
        if hasattr(kind, "_fields"):
            hints = typing.get_type_hints(kind)
            return kind(
                **{
                    field: self._value(hints[field], field, is_small=is_small)
                    for field in kind._fields
                }
            )
        if kind is Records:
            return choose(self._batches)
        if kind is str:
            return choose(NAMES)
        if kind is bytes:
            return choose(self.topic_ids) if "id" in name else choose((b"", b"bytes", bytes(500)))
        if kind is bool:
            return choose((True, False))
        if kind is float:
            return 1.5
        is_large = not is_small and name not in CAUTIOUS and self.random.random() < 0.2
        return choose(LARGE if is_large else SMALL)

    # --- bad ones -----------------------------------------------------------------------------

    def mutated(self, frame: bytes) -> bytes:
        body = bytearray(frame)
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            change = self.random.choice(_CHANGES)
            change(self.random, body)
        if self.random.random() < 0.8:
            # Its size is right again, so that what is wrong inside is looked at.
            body[:4] = struct.pack(">i", max(len(body) - 4, 0))
        return bytes(body)

    def stream(self) -> Iterator[bytes]:
        """For ever: each API and version in turn, one good frame for several bad ones."""
        while True:
            for api_key, version in self.random.sample(EVERY_REQUEST, len(EVERY_REQUEST)):
                frame = self.frame(api_key, version)
                yield frame if self.random.random() < 0.2 else self.mutated(frame)


def _request_type(api_key: int) -> Any:
    module = import_module(f"stratalog.protocol.messages.{CODECS[api_key].module}")
    name = "".join(part.capitalize() for part in CODECS[api_key].module.split("_"))
    return getattr(module, f"{name}Request")


# --- changes ----------------------------------------------------------------------------------

Change = Callable[[random.Random, bytearray], None]


def _flip_bits(chance: random.Random, body: bytearray) -> None:
    for _ in range(chance.choice((1, 2, 8))):
        if body:
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)


def _cut(chance: random.Random, body: bytearray) -> None:
    del body[chance.randrange(len(body) + 1) :]


def _take_out(chance: random.Random, body: bytearray) -> None:
    start = chance.randrange(len(body) + 1)
    del body[start : start + chance.randrange(9)]


def _put_in(chance: random.Random, body: bytearray) -> None:
    start = chance.randrange(len(body) + 1)
    body[start:start] = chance.randbytes(chance.choice((1, 2, 4, 100)))


def _write_length(chance: random.Random, body: bytearray) -> None:
    """Where a length or a count may stand, in any of the forms that they have."""
    value = chance.choice(
        (
            struct.pack(">i", chance.choice((-1, 0, 2**31 - 1, 1_000_000, -(2**31)))),
            struct.pack(">h", chance.choice((-1, 0, 32_767, -32_768))),
            b"\xff\xff\xff\xff\x0f",
            b"\xff\xff\xff\xff\xff\xff",
            b"\x80\x80\x80\x80\x00",
            b"\xfe\xff\x03",
            b"\x00",
        )
    )
    start = chance.randrange(len(body) + 1)
    body[start : start + len(value)] = value


def _add_tags(chance: random.Random, body: bytearray) -> None:
    """At the end, where most messages have their tags, or anywhere."""
    tags = chance.choice((b"\x01\x63\x02ab", b"\x02\x00\x00\x00\x00", b"\x01\x00\xff\xff\x03a"))
    if chance.random() < 0.5 and body:
        del body[-1:]
        body += tags
    else:
        start = chance.randrange(len(body) + 1)
        body[start:start] = tags


def _other_version(chance: random.Random, body: bytearray) -> None:
    body[6:8] = struct.pack(">h", chance.choice((-1, 0, 1, 2, 5, 9, 13, 18, 99, 32_767)))


def _other_api(chance: random.Random, body: bytearray) -> None:
    body[4:6] = struct.pack(">h", chance.choice((-1, 4, 5, 24, 58, 71, 93, 999, 32_767, -32_768)))


def _other_size(chance: random.Random, body: bytearray) -> None:
    size = chance.choice((0, -1, -(2**31), 2**31 - 1, 100 << 20, (100 << 20) + 1, len(body)))
    body[:4] = struct.pack(">i", size)


def _garbage(chance: random.Random, body: bytearray) -> None:
    body[:] = chance.randbytes(chance.choice((1, 4, 14, 100, 5_000)))


_CHANGES: tuple[Change, ...] = (
    _flip_bits, _flip_bits, _cut, _take_out, _put_in, _write_length, _write_length, _add_tags,
    _other_version, _other_api, _other_size, _garbage,
)  # fmt: skip
