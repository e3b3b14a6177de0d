"""What the dispatcher refuses before a handler sees it, and the pause that a quota asks for."""

import asyncio
from typing import Any

import pytest

from stratalog.broker.dispatcher import (
    REQUEST_WITHOUT_RECORDS_MAX_BYTES,
    SYNC_GROUP_MAX_BYTES,
    Dispatcher,
)
from stratalog.broker.metrics import Metrics
from stratalog.broker.requests import Request
from stratalog.errors import ProtocolError, UnsupportedVersionError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import ELEMENTS_MAX, decode_response, encode_request
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

MAX_FRAME_BYTES = 50 << 20


class Endless:
    """A connection that only remembers."""

    def __init__(self) -> None:
        self.session = None
        self.is_closed = False
        self.peer = ("127.0.0.1", 1)
        self.expected: list[Any] = []
        self.answers: list[Any] = []
        self.muted_ms: list[int] = []

    def mute(self, for_ms: int) -> None:
        self.muted_ms.append(for_ms)

    def expect(self, ticket: Any) -> None:
        self.expected.append(ticket)

    def answer(self, ticket: Any, parts: Any) -> None:
        self.answers.append(parts)

    def close(self) -> None:
        self.is_closed = True


def dispatcher(*handled: Request) -> Dispatcher:
    seen = list(handled)
    return Dispatcher(
        asyncio.new_event_loop(),
        {ApiKey.DESCRIBE_GROUPS: seen.append, ApiKey.LIST_OFFSETS: seen.append},
        Metrics(),
        max_frame_bytes=MAX_FRAME_BYTES,
        report=lambda _client, _error: None,
    )


@pytest.fixture
def refusing() -> Any:
    made = dispatcher()
    yield made
    made._loop.close()


@pytest.mark.parametrize(
    ("api_key", "most_bytes"),
    [
        (ApiKey.PRODUCE, MAX_FRAME_BYTES),
        (-1, MAX_FRAME_BYTES),
        (ApiKey.FETCH, REQUEST_WITHOUT_RECORDS_MAX_BYTES),
        (ApiKey.METADATA, REQUEST_WITHOUT_RECORDS_MAX_BYTES),
        (ApiKey.JOIN_GROUP, REQUEST_WITHOUT_RECORDS_MAX_BYTES),
        (ApiKey.SYNC_GROUP, SYNC_GROUP_MAX_BYTES),
        (999, REQUEST_WITHOUT_RECORDS_MAX_BYTES),
    ],
)
def test_each_api_has_a_largest_request(refusing: Any, api_key: int, most_bytes: int) -> None:
    refusing.check(api_key, 0)
    refusing.check(api_key, most_bytes)
    for size_bytes in (most_bytes + 1, -1, -(2**31), 2**31 - 1):
        with pytest.raises(ProtocolError):
            refusing.check(api_key, size_bytes)


def test_a_request_with_too_many_elements_is_refused_by_name(refusing: Any) -> None:
    body = DescribeGroupsRequest([f"{number:06d}" for number in range(ELEMENTS_MAX + 1)])
    frame = b"".join(encode_request(ApiKey.DESCRIBE_GROUPS, 5, 1, None, body))[4:]  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match=r"describe_groups request.*50001 things"):
        refusing.handle(Endless(), memoryview(frame))


def test_what_is_not_served_is_refused_and_api_versions_of_any_version_is_answered(
    refusing: Any,
) -> None:
    connection = Endless()
    for key, version in ((ApiKey.METADATA, 9), (71, 0), (-5, 0), (ApiKey.LIST_OFFSETS, 99)):
        head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes(7)
        with pytest.raises(UnsupportedVersionError):
            refusing.handle(connection, memoryview(head))
    refusing.handle(connection, memoryview(b"\x00\x12\x7f\xff" + bytes(4) + b"\xff\xff"))
    assert len(connection.answers) == 1


class EveryThird:
    """A quota that only every third request exceeds."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def throttle_ms(self, request: Request, size_bytes: int) -> int:
        self.requests.append(request)
        return 0 if len(self.requests) % 3 else 250


def test_who_exceeds_a_quota_is_told_for_how_long_and_is_not_read_from_meanwhile() -> None:
    loop, quotas = asyncio.new_event_loop(), EveryThird()
    throttling = Dispatcher(
        loop,
        {ApiKey.HEARTBEAT: lambda _request: HeartbeatResponse()},
        Metrics(),
        max_frame_bytes=MAX_FRAME_BYTES,
        report=lambda _client, _error: None,
        quotas=quotas,
    )
    connection: Any = Endless()
    throttling.opened(connection)
    frame = b"".join(encode_request(ApiKey.HEARTBEAT, 4, 7, "me", HeartbeatRequest("g")))[4:]  # type: ignore[arg-type]
    for _ in range(4):
        throttling.handle(connection, memoryview(frame))
    loop.close()

    told = [
        decode_response(ApiKey.HEARTBEAT, 4, b"".join(parts)[4:])[1].throttle_time_ms
        for parts in connection.answers
    ]
    assert told == [0, 0, 250, 0]
    assert connection.muted_ms == [250]
    assert [request.client_id for request in quotas.requests] == ["me"] * 4


def test_each_request_is_counted_when_it_is_answered_and_whether_it_failed() -> None:
    loop, metrics = asyncio.new_event_loop(), Metrics()
    codes = iter([0, ErrorCode.UNKNOWN_MEMBER_ID, 0])
    later: list[Request] = []

    def beat(request: Request) -> HeartbeatResponse | None:
        code = next(codes, None)
        if code is None:
            later.append(request)
            return None
        return HeartbeatResponse(error_code=code)

    counting = Dispatcher(
        loop,
        {ApiKey.HEARTBEAT: beat},
        metrics,
        max_frame_bytes=MAX_FRAME_BYTES,
        report=lambda _client, _error: None,
    )
    connection: Any = Endless()
    counting.opened(connection)
    frame = b"".join(encode_request(ApiKey.HEARTBEAT, 4, 7, "me", HeartbeatRequest("g")))[4:]  # type: ignore[arg-type]
    for _ in range(5):
        counting.handle(connection, memoryview(frame))
    loop.close()

    counts = metrics.apis[ApiKey.HEARTBEAT]
    assert (counts.latency.count, counts.failures) == (3, 1)
    later[0].respond_nothing()
    later[1].respond(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert (counts.latency.count, counts.failures) == (5, 2)
    assert len(connection.answers) == 5
