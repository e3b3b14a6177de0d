"""Frames: headers, what is special about ApiVersions, records that are not copied, refusals."""

import pickle
import subprocess
import sys

import pytest

from stratalog.errors import ProtocolError, UnsupportedVersionError
from stratalog.protocol.api import ADVERTISED, SUPPORTED, ApiKey
from stratalog.protocol.api_versions import advertised, encode_too_new
from stratalog.protocol.codec import (
    ELEMENTS_MAX,
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from stratalog.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from stratalog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from stratalog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

# --- bytes written down by hand --------------------------------------------------------------


def test_a_flexible_request_has_a_plain_client_id_then_tags_then_compact_fields() -> None:
    request = ApiVersionsRequest("librdkafka", "2.16.1")

    frame = b"".join(encode_request(ApiKey.API_VERSIONS, 3, 1, "rdkafka", request))

    assert frame == (
        b"\x00\x00\x00\x25\x00\x12\x00\x03\x00\x00\x00\x01\x00\x07rdkafka\x00"
        b"\x0blibrdkafka\x072.16.1\x00"
    )


def test_a_plain_request_has_two_byte_lengths_and_no_tags() -> None:
    request = HeartbeatRequest(group_id="group", generation_id=9, member_id="me")

    frame = b"".join(encode_request(ApiKey.HEARTBEAT, 0, 2, None, request))

    assert frame == (
        b"\x00\x00\x00\x19\x00\x0c\x00\x00\x00\x00\x00\x02\xff\xff"
        b"\x00\x05group\x00\x00\x00\x09\x00\x02me"
    )


def test_a_flexible_response_has_tags_in_its_header() -> None:
    response = HeartbeatResponse(throttle_time_ms=1, error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    frame = b"".join(encode_response(ApiKey.HEARTBEAT, 4, 5, response))

    assert frame == b"\x00\x00\x00\x0c\x00\x00\x00\x05\x00\x00\x00\x00\x01\x00\x1b\x00"


def test_a_request_for_all_topics_from_librdkafka_is_read_as_kafka_reads_it() -> None:
    # Its null array takes four bytes instead of one, so that three follow what is read.
    request = decode_request(ApiKey.METADATA, 13, b"\0\0\0\0\1\0\0")

    assert request == MetadataRequest(topics=None, allow_auto_topic_creation=False)


# --- headers ---------------------------------------------------------------------------------


def test_a_request_header_comes_back_with_the_place_of_the_body() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    frame = b"".join(encode_request(ApiKey.METADATA, 12, 77, "é", request))[4:]

    header, position = decode_request_header(memoryview(bytearray(frame)))

    assert header == RequestHeader(ApiKey.METADATA, 12, 77, "é")
    assert decode_request(ApiKey.METADATA, 12, memoryview(frame), position).topics[0].name == "a"


def test_unknown_tags_of_headers_are_skipped() -> None:
    tags = b"\x01\x63\x02zz"
    head = b"\x00\x0c\x00\x04\x00\x00\x00\x01\xff\xff"

    assert decode_request_header(head + tags + b"body")[1] == len(head + tags)
    answer = decode_response(ApiKey.HEARTBEAT, 4, b"\0\0\0\1" + tags + bytes(7))
    assert answer == (1, HeartbeatResponse())


@pytest.mark.parametrize("version", [-1, 5, 99, 32767])
def test_the_header_of_an_api_versions_request_of_any_version_is_read(version: int) -> None:
    frame = b"\x00\x12" + version.to_bytes(2, signed=True) + b"\x00\x00\x00\x09\x00\x01x\xff\xff"

    header, _ = decode_request_header(frame)

    assert header == RequestHeader(ApiKey.API_VERSIONS, version, 9, "x")
    with pytest.raises(UnsupportedVersionError):
        decode_request(header.api_key, header.api_version, frame, 11)


def test_a_client_id_that_is_not_utf_8_does_not_matter() -> None:
    header, _ = decode_request_header(b"\x00\x0c\x00\x00\x00\x00\x00\x01\x00\x02a\xff")

    assert header.client_id == "a\ufffd"


def test_a_client_id_that_no_answer_could_hold_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"client_id has 20000 bytes .* 60000 as text"):
        decode_request_header(b"\0\x0c\0\0\0\0\0\1" + b"\x4e\x20" + b"\xff" * 20_000)


# --- ApiVersions -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_an_api_versions_response_never_has_tags_in_its_header(version: int) -> None:
    response = ApiVersionsResponse(api_keys=advertised([ApiKey.FETCH]))

    frame = b"".join(encode_response(ApiKey.API_VERSIONS, version, 6, response))

    assert frame[4:10] == b"\0\0\0\6\0\0"
    assert decode_response(ApiKey.API_VERSIONS, version, frame[4:]) == (6, response)


def test_too_new_an_api_versions_request_is_answered_in_version_0() -> None:
    frame = b"".join(encode_too_new(8))

    assert frame == b"\0\0\0\x10\0\0\0\x08\0\x23\0\0\0\x01\0\x12\0\0\0\x04"
    correlation_id, response = decode_response(ApiKey.API_VERSIONS, 4, frame[4:])
    assert correlation_id == 8
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.api_keys[0].max_version == 4


def test_produce_is_advertised_from_0_though_3_is_the_first_that_is_spoken() -> None:
    assert ADVERTISED[ApiKey.PRODUCE] == (0, SUPPORTED[ApiKey.PRODUCE].highest)
    assert {key for key in SUPPORTED if SUPPORTED[key] != ADVERTISED[key]} == {ApiKey.PRODUCE}
    for version in range(3):
        with pytest.raises(UnsupportedVersionError):
            decode_request(ApiKey.PRODUCE, version, bytes(40))


# --- records ---------------------------------------------------------------------------------


class FileSlice:
    """Bytes that are somewhere else; only how many there are is known."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes

    def __len__(self) -> int:
        return self._size_bytes


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
def test_records_to_send_are_handed_on_untouched(version: int) -> None:
    first, second = FileSlice(1_000_000), memoryview(b"batch")
    partitions = [PartitionData(records=first), PartitionData(), PartitionData(records=second)]
    response = FetchResponse(responses=[FetchableTopicResponse("t", bytes(16), partitions)])

    buffers = encode_response(ApiKey.FETCH, version, 1, response)

    assert buffers[1] is first
    assert buffers[3] is second
    assert int.from_bytes(bytes(buffers[0])[:4]) == sum(map(len, buffers)) - 4


def test_received_records_are_views_of_the_frame() -> None:
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[partition])])
    frame = bytearray(b"".join(encode_request(ApiKey.PRODUCE, 9, 1, "c", request))[4:])
    _, position = decode_request_header(frame)

    decoded = decode_request(ApiKey.PRODUCE, 9, frame, position)
    frame[frame.index(b"batch")] = ord("B")

    assert bytes(decoded.topic_data[0].partition_data[0].records) == b"Batch"


def test_a_refused_frame_is_let_go_though_its_error_is_kept() -> None:
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[partition])])
    frame = bytearray(b"".join(encode_request(ApiKey.PRODUCE, 9, 1, "c", request))[4:-5])
    _, position = decode_request_header(frame)

    with pytest.raises(ProtocolError) as raised:
        decode_request(ApiKey.PRODUCE, 9, frame, position)
    frame.clear()  # which a view of it, kept anywhere, would forbid

    assert raised.value.api == "produce request"


# --- refusals --------------------------------------------------------------------------------


def test_a_field_that_a_version_does_not_have_is_left_out() -> None:
    topic = MetadataResponseTopic(name="t", topic_id=b"i" * 16)
    body = encode_response(ApiKey.METADATA, 9, 1, MetadataResponse(topics=[topic]))

    _, response = decode_response(ApiKey.METADATA, 9, b"".join(body)[4:])

    assert response.topics[0] == topic._replace(topic_id=bytes(16))


@pytest.mark.parametrize("version", [0, 4])
@pytest.mark.parametrize("request_", [HeartbeatRequest("g" * 40_000), HeartbeatRequest("", 2**31)])
def test_a_value_that_does_not_fit_its_field_is_refused(
    request_: HeartbeatRequest, version: int
) -> None:
    with pytest.raises(ProtocolError):
        encode_request(ApiKey.HEARTBEAT, version, 1, None, request_)
    with pytest.raises(ProtocolError):
        encode_response(ApiKey.HEARTBEAT, version, 1, HeartbeatResponse(error_code=2**15))


def test_a_string_over_kafkas_limit_is_refused_however_many_bytes_follow() -> None:
    body = b"\x81\x80\x02" + bytes(32_768) + bytes(8)  # a compact length of 32 769: one too many

    with pytest.raises(ProtocolError, match="over the limit"):
        decode_request(ApiKey.HEARTBEAT, 4, body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff\xff", "group_id is null"),
        (b"\x00\x09g", "claims 9 bytes where 1 are left"),
        (b"\x00\x01g\x00", "ends in the middle"),
    ],
)
def test_a_refusal_names_its_reason(body: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_request(ApiKey.HEARTBEAT, 0, body)


def test_more_elements_than_bytes_are_refused_before_any_is_read() -> None:
    with pytest.raises(ProtocolError, match="topics claims 2147483647 elements where 1 bytes"):
        decode_request(ApiKey.METADATA, 0, b"\x7f\xff\xff\xff!")


@pytest.mark.parametrize("version", [1, 9])
def test_requests_are_counted_and_answers_are_not(version: int) -> None:
    names = [MetadataResponseTopic(name="t")] * (ELEMENTS_MAX + 1)
    wanted = MetadataRequest([MetadataRequestTopic(name="t")] * (ELEMENTS_MAX + 1))
    request = b"".join(encode_request(ApiKey.METADATA, version, 1, None, wanted))[4:]
    answer = b"".join(encode_response(ApiKey.METADATA, version, 1, MetadataResponse(topics=names)))

    with pytest.raises(ProtocolError, match=r"metadata request .* names 50001 things; at most"):
        decode_request(ApiKey.METADATA, version, request, decode_request_header(request)[1])
    assert len(decode_response(ApiKey.METADATA, version, answer[4:])[1].topics) == ELEMENTS_MAX + 1


@pytest.mark.parametrize("size", [2, 4])
def test_a_tagged_field_that_is_not_as_long_as_it_says_is_refused(size: int) -> None:
    request = FetchRequest(replica_id=5, cluster_id="ab")
    body = encode_request(ApiKey.FETCH, 12, 1, None, request)
    frame = b"".join(body)[4:]
    tags = b"\x01\x00\x03\x03ab"
    assert frame.endswith(tags)
    _, position = decode_request_header(frame)

    with pytest.raises(ProtocolError, match="from where it says"):
        decode_request(
            ApiKey.FETCH, 12, frame.removesuffix(tags) + bytes([1, 0, size]) + b"\x03ab!", position
        )


@pytest.mark.parametrize(
    "error", [ProtocolError("fetch request", 4, 17, "why"), UnsupportedVersionError("fetch", 99)]
)
def test_errors_survive_pickling(error: ProtocolError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is type(error)
    assert str(again) == str(error)


def test_an_api_is_imported_only_when_it_is_spoken() -> None:
    script = (
        "import sys, stratalog.protocol.codec as codec\n"
        "codec.decode_request(12, 0, bytes(8))\n"
        "prefix = 'stratalog.protocol.messages.'\n"
        "print(*sorted(m.removeprefix(prefix) for m in sys.modules if m.startswith(prefix)))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["heartbeat", "index"]
