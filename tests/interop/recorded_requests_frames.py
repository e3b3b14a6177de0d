"""Scenarios of the protocol itself: which versions there are, and frames that are not as agreed."""

import struct

from recorded_requests import Talk, every
from recorded_requests_data import PLAIN, to

from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import encode_request
from stratalog.protocol.messages.api_versions import ApiVersionsRequest
from stratalog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from stratalog.protocol.messages.sasl_handshake import SaslHandshakeRequest

FLEXIBLE_API_VERSIONS = 3


def api_versions(talk: Talk) -> None:
    talk.ask_every("of a client", ApiVersionsRequest("client", "1.0"))
    for name, version in (
        ("", ""),
        ("a name", "1.0"),
        ("-client", "1.0"),
        ("client-", "1.0"),
        ("client", "1 0"),
        ("client.x-1", "v1.0-b"),
    ):
        asked = ApiVersionsRequest(name, version)
        talk.ask_every(f"of {name!r} {version!r}", asked, since=FLEXIBLE_API_VERSIONS)
    for version in (5, 99, 32767):
        frame = framed(head(ApiKey.API_VERSIONS, version) + b"\0" + b"\x02x\x02y\0")
        talk.ask_raw(f"version {version}", frame, ApiKey.API_VERSIONS, 0)
    bare = framed(head(ApiKey.API_VERSIONS, 99))
    talk.ask_raw("version 99 without tags", bare, ApiKey.API_VERSIONS, 0)
    talk.ask_raw("version -1", framed(head(ApiKey.API_VERSIONS, -1)), ApiKey.API_VERSIONS, 0)


def head(api_key: int, version: int, client_id: str | None = "recorder") -> bytes:
    raw = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(raw)
    return struct.pack(">hhih", api_key, version, 9, size) + raw


def framed(request: bytes) -> bytes:
    return struct.pack(">i", len(request)) + request


def _frame(api_key: ApiKey, version: int, request: object, client_id: str | None = "recorder"):
    parts = encode_request(api_key, version, 9, client_id, request)
    return b"".join(bytes(memoryview(part)) for part in parts)


def frames(talk: Talk) -> None:
    """Frames that are too short, too long, of no API, or not what their API says."""
    talk.have_coordinator("frames")
    ask = talk.ask_raw
    ask("nothing", b"")
    ask("half a size", b"\0\0")
    ask("a size of zero", struct.pack(">i", 0))
    ask("a negative size", struct.pack(">i", -1))
    ask("a size above the limit", struct.pack(">i", 104_857_601))
    ask("the largest size", struct.pack(">i", 2**31 - 1))
    ask("half a frame", framed(head(ApiKey.METADATA, 0))[:-2])
    ask("a header cut short", framed(struct.pack(">hh", 3, 0)))
    ask("a client id beyond the end", framed(struct.pack(">hhih", 3, 0, 9, 100)))
    ask("letters", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for api_key in (-1, 4, 5, 6, 7, 999, 32767):
        ask(f"api {api_key}", framed(head(api_key, 0)))
    ask("versions that are not: produce v2", framed(head(ApiKey.PRODUCE, 2) + _old_produce()))
    ask("versions that are not: produce v0", framed(head(ApiKey.PRODUCE, 0) + _old_produce()))
    for api_key, version in (
        (ApiKey.PRODUCE, 14),
        (ApiKey.FETCH, 3),
        (ApiKey.FETCH, 19),
        (ApiKey.LIST_OFFSETS, 0),
        (ApiKey.METADATA, 14),
        (ApiKey.METADATA, -1),
        (ApiKey.CREATE_TOPICS, 1),
        (ApiKey.HEARTBEAT, 5),
    ):
        name = f"versions that are not: {api_key.name.lower()} v{version}"
        ask(name, framed(head(api_key, version) + bytes(40)))
    _bodies(talk)


def _old_produce() -> bytes:
    topic = struct.pack(">h", 1) + b"t"
    return struct.pack(">hii", -1, 1000, 1) + topic + struct.pack(">iii", 1, 0, 0)


def _bodies(talk: Talk) -> None:
    def ask(step: str, api_key: ApiKey, version: int, body: bytes) -> None:
        talk.ask_raw(step, framed(head(api_key, version) + body), api_key, version)

    metadata = ApiKey.METADATA
    ask("an array of a negative length", metadata, 0, struct.pack(">i", -2))
    ask("a null array that may not be", ApiKey.DESCRIBE_GROUPS, 0, struct.pack(">i", -1))
    ask("an array longer than the frame", metadata, 0, struct.pack(">i", 2**31 - 1))
    ask("an array a little too long", metadata, 1, struct.pack(">ih", 2, 1) + b"x")
    ask("a string longer than the frame", metadata, 0, struct.pack(">ih", 1, 500) + b"x")
    ask("a negative string", metadata, 0, struct.pack(">ih", 1, -2))
    ask("a null string that may not be", ApiKey.HEARTBEAT, 0, struct.pack(">hih", -1, 1, 0))
    ask("bytes that are no text", metadata, 4, struct.pack(">ih", 1, 2) + b"\xff\xfe" + b"\0")
    ask("no body", metadata, 1, b"")
    ask("bytes after the body", metadata, 4, struct.pack(">i", 0) + b"\0" + b"more")
    heartbeat = ApiKey.HEARTBEAT
    good = b"\x02g" + struct.pack(">i", 1) + b"\x02m" + b"\0"
    ask("unknown tags", heartbeat, 4, b"\0" + good + b"\x01\x63\x02hi")
    ask("unknown tags of the header", heartbeat, 4, b"\x01\x63\x02hi" + good + b"\0")
    ask("tags cut short", heartbeat, 4, b"\0" + good + b"\x01\x63\x09hi")
    ask("tags without end", heartbeat, 4, b"\0" + good + b"\xff\xff\xff\xff\x0f")
    ask("tags out of order", heartbeat, 4, b"\0" + good + b"\x02\x64\x00\x63\x00")
    ask("a tag twice", heartbeat, 4, b"\0" + good + b"\x02\x63\x00\x63\x00")
    ask("a varint too long", heartbeat, 4, b"\0\xff\xff\xff\xff\xff\xff\xff" + good)
    ask(
        "a compact null that may not be",
        heartbeat,
        4,
        b"\0\0" + struct.pack(">i", 1) + b"\x02m\0\0",
    )
    null_client = _frame(metadata, 4, MetadataRequest([], False), None)
    talk.ask_raw("no client id", null_client, metadata, 4)
    empty_client = _frame(metadata, 4, MetadataRequest([], False), "")
    talk.ask_raw("an empty client id", empty_client, metadata, 4)
    bad_client = struct.pack(">hhih", 3, 4, 9, 2) + b"\xff\xfe" + struct.pack(">i", 0) + b"\0"
    talk.ask_raw("a client id that is no text", framed(bad_client), metadata, 4)
    ask("nothing wrong", heartbeat, 4, b"\0" + good + b"\0")


def pipelining(talk: Talk) -> None:
    """Requests sent without waiting are answered in their order, whatever each waits for."""
    talk.have_coordinator("pipelining")
    topic_id = talk.have_topic("pipelining")
    connection = talk.connect()
    pending = [
        connection.send(13, MetadataRequest([MetadataRequestTopic(name="pipelining")], False)),
        connection.send(12, to("pipelining", PLAIN, topic_id=topic_id)),
        connection.send(4, HeartbeatRequest("pipelining", 1, "nobody")),
        connection.send(12, to("pipelining", PLAIN, topic_id=topic_id)),
        connection.send(3, ApiVersionsRequest("bad name", "1")),
    ]
    for index, each in enumerate(pending):
        talk.answer(f"number {index}", each)
    for version in every(ApiKey.METADATA, 12):
        asked = MetadataRequest([MetadataRequestTopic(name="pipelining")], False)
        talk.ask("after that", version, asked, on=connection)


def refused(talk: Talk) -> None:
    """What a plain listener refuses whatever is asked, and a consumer of the newer protocol."""
    talk.ask_every("on a plain listener", SaslHandshakeRequest("PLAIN"))
    talk.ask_every("on a plain listener", SaslAuthenticateRequest(b"\0a\0b"))
    talk.ask_every("without a group", ConsumerGroupHeartbeatRequest(""))


SCENARIOS = {
    "api-versions": api_versions,
    "frames": frames,
    "pipelining": pipelining,
    "refused-outright": refused,
}
