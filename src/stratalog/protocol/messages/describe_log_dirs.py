"""DescribeLogDirs (key 35), versions 1 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    STRING_BYTES_MAX,
    UNPACK_INT32S,
    long_length,
    long_string_length,
    null_field,
    pack_int32s,
    skip_tags,
    string_too_long,
    too_long,
    too_many,
    varint,
)

new = tuple.__new__


class DescribableLogDirTopic(NamedTuple):
    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeLogDirsRequest(NamedTuple):
    topics: Sequence[DescribableLogDirTopic] | None = ()


class DescribeLogDirsPartition(NamedTuple):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(NamedTuple):
    error_code: int = 0
    log_dir: str = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: Sequence[DescribeLogDirsResult] = ()


_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_iqqt = Struct(">iqq?").pack
_pack_iqqtx = Struct(">iqq?x").pack
_pack_qqtx = Struct(">qq?x").pack
_pack_qqx = Struct(">qqx").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iqqt = Struct(">iqq?").unpack_from
_unpack_iqqtB = Struct(">iqq?B").unpack_from
_unpack_qqtB = Struct(">qq?B").unpack_from
_unpack_qqB = Struct(">qqB").unpack_from


def _decode_request_v1(buffer: bytes, position: int) -> DescribeLogDirsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    topics: tuple[DescribableLogDirTopic, ...] | None = None
    if count >= 0:
        if count * 6 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribableLogDirTopic] = []
        for _ in range(count):
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("topic")
            stop = position + size
            if stop > end:
                raise too_long("topic", stop - position, position, end)
            topic = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("partitions")
            if count * 4 > end - position:
                raise too_many("partitions", count, position, end)
            if count < len(UNPACK_INT32S):
                partitions = UNPACK_INT32S[count](buffer, position)
            else:
                partitions = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            topics_items.append(new(DescribableLogDirTopic, (topic, partitions)))
        topics = tuple(topics_items)
    return new(DescribeLogDirsRequest, (topics,))


def _decode_request_v2(buffer: bytes, position: int) -> DescribeLogDirsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topics: tuple[DescribableLogDirTopic, ...] | None = None
    if count >= 0:
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribableLogDirTopic] = []
        for _ in range(count):
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("topic")
            stop = position + size - 1
            if stop > end:
                raise too_long("topic", stop - position, position, end)
            topic = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("partitions")
            if count * 4 > end - position:
                raise too_many("partitions", count, position, end)
            if count < len(UNPACK_INT32S):
                partitions = UNPACK_INT32S[count](buffer, position)
            else:
                partitions = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(DescribableLogDirTopic, (topic, partitions)))
        topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeLogDirsRequest, (topics,))


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    (topics,) = value
    out += _pack_i(-1 if topics is None else len(topics))
    for topic, partitions in topics or ():
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        out += pack_int32s(partitions)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    (topics,) = value
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for topic, partitions in topics:
            raw = topic.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("topic", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(partitions)
            out.append(0)
    out.append(0)
    return out


def _decode_response_v1(buffer: bytes, position: int) -> DescribeLogDirsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("results")
    if count * 8 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeLogDirsResult] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("log_dir")
        stop = position + size
        if stop > end:
            raise too_long("log_dir", stop - position, position, end)
        log_dir = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("topics")
        if count * 6 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("name")
            stop = position + size
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("partitions")
            if count * 21 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[DescribeLogDirsPartition] = []
            for _ in range(count):
                partition_index, partition_size, offset_lag, is_future_key = _unpack_iqqt(
                    buffer, position
                )
                position += 21
                partitions_items.append(
                    new(
                        DescribeLogDirsPartition,
                        (partition_index, partition_size, offset_lag, is_future_key),
                    )
                )
            partitions = tuple(partitions_items)
            topics_items.append(new(DescribeLogDirsTopic, (name, partitions)))
        topics = tuple(topics_items)
        results_items.append(
            new(DescribeLogDirsResult, (error_code, log_dir, topics, -1, -1, False))
        )
    results = tuple(results_items)
    return new(DescribeLogDirsResponse, (throttle_time_ms, 0, results))


def _decode_response_v2(buffer: bytes, position: int) -> DescribeLogDirsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 5 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeLogDirsResult] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("log_dir")
        stop = position + size - 1
        if stop > end:
            raise too_long("log_dir", stop - position, position, end)
        log_dir = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topics")
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("name")
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("partitions")
            if count * 22 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[DescribeLogDirsPartition] = []
            for _ in range(count):
                partition_index, partition_size, offset_lag, is_future_key, tags = _unpack_iqqtB(
                    buffer, position
                )
                position += 22
                if tags:
                    position = skip_tags(buffer, position - 1)
                partitions_items.append(
                    new(
                        DescribeLogDirsPartition,
                        (partition_index, partition_size, offset_lag, is_future_key),
                    )
                )
            partitions = tuple(partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(DescribeLogDirsTopic, (name, partitions)))
        topics = tuple(topics_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(
            new(DescribeLogDirsResult, (error_code, log_dir, topics, -1, -1, False))
        )
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeLogDirsResponse, (throttle_time_ms, 0, results))


def _decode_response_v3(buffer: bytes, position: int) -> DescribeLogDirsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 5 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeLogDirsResult] = []
    for _ in range(count):
        error_code_2, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("log_dir")
        stop = position + size - 1
        if stop > end:
            raise too_long("log_dir", stop - position, position, end)
        log_dir = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topics")
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("name")
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("partitions")
            if count * 22 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[DescribeLogDirsPartition] = []
            for _ in range(count):
                partition_index, partition_size, offset_lag, is_future_key, tags = _unpack_iqqtB(
                    buffer, position
                )
                position += 22
                if tags:
                    position = skip_tags(buffer, position - 1)
                partitions_items.append(
                    new(
                        DescribeLogDirsPartition,
                        (partition_index, partition_size, offset_lag, is_future_key),
                    )
                )
            partitions = tuple(partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(DescribeLogDirsTopic, (name, partitions)))
        topics = tuple(topics_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(
            new(DescribeLogDirsResult, (error_code_2, log_dir, topics, -1, -1, False))
        )
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeLogDirsResponse, (throttle_time_ms, error_code, results))


def _decode_response_v4(buffer: bytes, position: int) -> DescribeLogDirsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 21 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeLogDirsResult] = []
    for _ in range(count):
        error_code_2, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("log_dir")
        stop = position + size - 1
        if stop > end:
            raise too_long("log_dir", stop - position, position, end)
        log_dir = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topics")
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("name")
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("partitions")
            if count * 22 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[DescribeLogDirsPartition] = []
            for _ in range(count):
                partition_index, partition_size, offset_lag, is_future_key, tags = _unpack_iqqtB(
                    buffer, position
                )
                position += 22
                if tags:
                    position = skip_tags(buffer, position - 1)
                partitions_items.append(
                    new(
                        DescribeLogDirsPartition,
                        (partition_index, partition_size, offset_lag, is_future_key),
                    )
                )
            partitions = tuple(partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(DescribeLogDirsTopic, (name, partitions)))
        topics = tuple(topics_items)
        total_bytes, usable_bytes, tags = _unpack_qqB(buffer, position)
        position += 17
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(
            new(
                DescribeLogDirsResult,
                (error_code_2, log_dir, topics, total_bytes, usable_bytes, False),
            )
        )
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeLogDirsResponse, (throttle_time_ms, error_code, results))


def _decode_response_v5(buffer: bytes, position: int) -> DescribeLogDirsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 22 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeLogDirsResult] = []
    for _ in range(count):
        error_code_2, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("log_dir")
        stop = position + size - 1
        if stop > end:
            raise too_long("log_dir", stop - position, position, end)
        log_dir = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topics")
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("name")
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("partitions")
            if count * 22 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[DescribeLogDirsPartition] = []
            for _ in range(count):
                partition_index, partition_size, offset_lag, is_future_key, tags = _unpack_iqqtB(
                    buffer, position
                )
                position += 22
                if tags:
                    position = skip_tags(buffer, position - 1)
                partitions_items.append(
                    new(
                        DescribeLogDirsPartition,
                        (partition_index, partition_size, offset_lag, is_future_key),
                    )
                )
            partitions = tuple(partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(DescribeLogDirsTopic, (name, partitions)))
        topics = tuple(topics_items)
        total_bytes, usable_bytes, is_cordoned, tags = _unpack_qqtB(buffer, position)
        position += 18
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(
            new(
                DescribeLogDirsResult,
                (error_code_2, log_dir, topics, total_bytes, usable_bytes, is_cordoned),
            )
        )
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeLogDirsResponse, (throttle_time_ms, error_code, results))


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, _, results = value
    out += _pack_ii(throttle_time_ms, len(results))
    for error_code, log_dir, topics, _, _, _ in results:
        raw = log_dir.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_i(len(topics))
        for name, partitions in topics:
            raw = name.encode()
            out += _pack_h(len(raw))
            out += raw
            out += _pack_i(len(partitions))
            for partition_index, partition_size, offset_lag, is_future_key in partitions:
                out += _pack_iqqt(partition_index, partition_size, offset_lag, is_future_key)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, _, results = value
    out += _pack_i(throttle_time_ms)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, log_dir, topics, _, _, _ in results:
        out += _pack_h(error_code)
        raw = log_dir.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("log_dir", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, partitions in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for partition_index, partition_size, offset_lag, is_future_key in partitions:
                out += _pack_iqqtx(partition_index, partition_size, offset_lag, is_future_key)
            out.append(0)
        out.append(0)
    out.append(0)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, results = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code_2, log_dir, topics, _, _, _ in results:
        out += _pack_h(error_code_2)
        raw = log_dir.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("log_dir", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, partitions in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for partition_index, partition_size, offset_lag, is_future_key in partitions:
                out += _pack_iqqtx(partition_index, partition_size, offset_lag, is_future_key)
            out.append(0)
        out.append(0)
    out.append(0)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, results = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code_2, log_dir, topics, total_bytes, usable_bytes, _ in results:
        out += _pack_h(error_code_2)
        raw = log_dir.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("log_dir", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, partitions in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for partition_index, partition_size, offset_lag, is_future_key in partitions:
                out += _pack_iqqtx(partition_index, partition_size, offset_lag, is_future_key)
            out.append(0)
        out += _pack_qqx(total_bytes, usable_bytes)
    out.append(0)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, results = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code_2, log_dir, topics, total_bytes, usable_bytes, is_cordoned in results:
        out += _pack_h(error_code_2)
        raw = log_dir.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("log_dir", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, partitions in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for partition_index, partition_size, offset_lag, is_future_key in partitions:
                out += _pack_iqqtx(partition_index, partition_size, offset_lag, is_future_key)
            out.append(0)
        out += _pack_qqtx(total_bytes, usable_bytes, is_cordoned)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DescribeLogDirsRequest]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[DescribeLogDirsRequest], bytearray]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DescribeLogDirsResponse]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v5,
}

ENCODE_RESPONSE: dict[int, Callable[[DescribeLogDirsResponse], bytearray]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v5,
}
