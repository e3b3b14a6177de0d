"""CreateTopics (key 19), versions 2 to 7.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    NO_UUID,
    STRING_BYTES_MAX,
    UNPACK_INT32S,
    long_length,
    long_string_length,
    null_field,
    pack_int32s,
    skip_tags,
    string_too_long,
    tag_count,
    tag_head,
    tag_of_another_size,
    too_long,
    too_many,
    varint,
)

new = tuple.__new__


class CreatableReplicaAssignment(NamedTuple):
    partition_index: int = 0
    broker_ids: Sequence[int] = ()


class CreatableTopicConfig(NamedTuple):
    name: str = ""
    value: str | None = ""


class CreatableTopic(NamedTuple):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


class CreateTopicsRequest(NamedTuple):
    topics: Sequence[CreatableTopic] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


class CreatableTopicConfigs(NamedTuple):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[CreatableTopicConfigs] | None = ()


class CreateTopicsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[CreatableTopicResult] = ()


_pack_uh = Struct(">16sh").pack
_pack_tbtx = Struct(">?b?x").pack
_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_it = Struct(">i?").pack
_pack_itx = Struct(">i?x").pack
_pack_ih = Struct(">ih").pack
_pack_ihi = Struct(">ihi").pack
_pack_ii = Struct(">ii").pack
_unpack_uhB = Struct(">16shB").unpack_from
_unpack_tbtB = Struct(">?b?B").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_it = Struct(">i?").unpack_from
_unpack_itB = Struct(">i?B").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ihi = Struct(">ihi").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v2(buffer: bytes, position: int) -> CreateTopicsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 16 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatableTopic] = []
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
        num_partitions, replication_factor, count = _unpack_ihi(buffer, position)
        position += 10
        if count < 0:
            raise null_field("assignments")
        if count * 8 > end - position:
            raise too_many("assignments", count, position, end)
        assignments_items: list[CreatableReplicaAssignment] = []
        for _ in range(count):
            partition_index, count = _unpack_ii(buffer, position)
            position += 8
            if count < 0:
                raise null_field("broker_ids")
            if count * 4 > end - position:
                raise too_many("broker_ids", count, position, end)
            if count < len(UNPACK_INT32S):
                broker_ids = UNPACK_INT32S[count](buffer, position)
            else:
                broker_ids = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            assignments_items.append(new(CreatableReplicaAssignment, (partition_index, broker_ids)))
        assignments = tuple(assignments_items)
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("configs")
        if count * 4 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[CreatableTopicConfig] = []
        for _ in range(count):
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("name")
            stop = position + size
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name_2 = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_h(buffer, position)
            position += 2
            value_2: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("value", stop - position, position, end)
                value_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            configs_items.append(new(CreatableTopicConfig, (name_2, value_2)))
        configs = tuple(configs_items)
        topics_items.append(
            new(CreatableTopic, (name, num_partitions, replication_factor, assignments, configs))
        )
    topics = tuple(topics_items)
    timeout_ms, validate_only = _unpack_it(buffer, position)
    position += 5
    return new(CreateTopicsRequest, (topics, timeout_ms, validate_only))


def _decode_request_v5(buffer: bytes, position: int) -> CreateTopicsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 10 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatableTopic] = []
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
        num_partitions, replication_factor, count = _unpack_ihB(buffer, position)
        position += 7
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("assignments")
        if count * 6 > end - position:
            raise too_many("assignments", count, position, end)
        assignments_items: list[CreatableReplicaAssignment] = []
        for _ in range(count):
            partition_index, count = _unpack_iB(buffer, position)
            position += 5
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("broker_ids")
            if count * 4 > end - position:
                raise too_many("broker_ids", count, position, end)
            if count < len(UNPACK_INT32S):
                broker_ids = UNPACK_INT32S[count](buffer, position)
            else:
                broker_ids = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            assignments_items.append(new(CreatableReplicaAssignment, (partition_index, broker_ids)))
        assignments = tuple(assignments_items)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("configs")
        if count * 3 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[CreatableTopicConfig] = []
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
            name_2 = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            value_2: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("value", stop - position, position, end)
                value_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            configs_items.append(new(CreatableTopicConfig, (name_2, value_2)))
        configs = tuple(configs_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(CreatableTopic, (name, num_partitions, replication_factor, assignments, configs))
        )
    topics = tuple(topics_items)
    timeout_ms, validate_only, tags = _unpack_itB(buffer, position)
    position += 6
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(CreateTopicsRequest, (topics, timeout_ms, validate_only))


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    topics, timeout_ms, validate_only = value
    out += _pack_i(len(topics))
    for name, num_partitions, replication_factor, assignments, configs in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_ihi(num_partitions, replication_factor, len(assignments))
        for partition_index, broker_ids in assignments:
            out += _pack_ii(partition_index, len(broker_ids))
            out += pack_int32s(broker_ids)
        out += _pack_i(len(configs))
        for name_2, value_2 in configs:
            raw = name_2.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = b"" if value_2 is None else value_2.encode()
            out += _pack_h(-1 if value_2 is None else len(raw))
            out += raw
    out += _pack_it(timeout_ms, validate_only)
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    topics, timeout_ms, validate_only = value
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, num_partitions, replication_factor, assignments, configs in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_ih(num_partitions, replication_factor)
        size = len(assignments) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for partition_index, broker_ids in assignments:
            out += _pack_i(partition_index)
            size = len(broker_ids) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(broker_ids)
            out.append(0)
        size = len(configs) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name_2, value_2 in configs:
            raw = name_2.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            if value_2 is None:
                out.append(0)
            else:
                raw = value_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("value", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            out.append(0)
        out.append(0)
    out += _pack_itx(timeout_ms, validate_only)
    return out


def _decode_response_v2(buffer: bytes, position: int) -> CreateTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatableTopicResult] = []
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
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        topics_items.append(
            new(CreatableTopicResult, (name, NO_UUID, error_code, error_message, 0, -1, -1, ()))
        )
    topics = tuple(topics_items)
    return new(CreateTopicsResponse, (throttle_time_ms, topics))


def _decode_response_v5(buffer: bytes, position: int) -> CreateTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 12 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatableTopicResult] = []
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
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        error_message: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        num_partitions, replication_factor, count = _unpack_ihB(buffer, position)
        position += 7
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        configs: tuple[CreatableTopicConfigs, ...] | None = None
        if count >= 0:
            if count * 6 > end - position:
                raise too_many("configs", count, position, end)
            configs_items: list[CreatableTopicConfigs] = []
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
                name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                value_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("value", stop - position, position, end)
                    value_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                read_only, config_source, is_sensitive, tags = _unpack_tbtB(buffer, position)
                position += 4
                if tags:
                    position = skip_tags(buffer, position - 1)
                configs_items.append(
                    new(
                        CreatableTopicConfigs,
                        (name_2, value_2, read_only, config_source, is_sensitive),
                    )
                )
            configs = tuple(configs_items)
        tags = buffer[position]
        position += 1
        topic_config_error_code: int = 0
        if tags:
            tags, position = tag_count(buffer, position - 1)
            for _ in range(tags):
                tag_number, position, tag_end = tag_head(buffer, position)
                if tag_number == 0:
                    (topic_config_error_code_2,) = _unpack_h(buffer, position)
                    position += 2
                    topic_config_error_code = topic_config_error_code_2
                else:
                    position = tag_end
                if position != tag_end:
                    raise tag_of_another_size(tag_number, position, tag_end)
        topics_items.append(
            new(
                CreatableTopicResult,
                (
                    name,
                    NO_UUID,
                    error_code,
                    error_message,
                    topic_config_error_code,
                    num_partitions,
                    replication_factor,
                    configs,
                ),
            )
        )
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(CreateTopicsResponse, (throttle_time_ms, topics))


def _decode_response_v7(buffer: bytes, position: int) -> CreateTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 28 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatableTopicResult] = []
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
        topic_id, error_code, size = _unpack_uhB(buffer, position)
        position += 19
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        error_message: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        num_partitions, replication_factor, count = _unpack_ihB(buffer, position)
        position += 7
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        configs: tuple[CreatableTopicConfigs, ...] | None = None
        if count >= 0:
            if count * 6 > end - position:
                raise too_many("configs", count, position, end)
            configs_items: list[CreatableTopicConfigs] = []
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
                name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                value_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("value", stop - position, position, end)
                    value_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                read_only, config_source, is_sensitive, tags = _unpack_tbtB(buffer, position)
                position += 4
                if tags:
                    position = skip_tags(buffer, position - 1)
                configs_items.append(
                    new(
                        CreatableTopicConfigs,
                        (name_2, value_2, read_only, config_source, is_sensitive),
                    )
                )
            configs = tuple(configs_items)
        tags = buffer[position]
        position += 1
        topic_config_error_code: int = 0
        if tags:
            tags, position = tag_count(buffer, position - 1)
            for _ in range(tags):
                tag_number, position, tag_end = tag_head(buffer, position)
                if tag_number == 0:
                    (topic_config_error_code_2,) = _unpack_h(buffer, position)
                    position += 2
                    topic_config_error_code = topic_config_error_code_2
                else:
                    position = tag_end
                if position != tag_end:
                    raise tag_of_another_size(tag_number, position, tag_end)
        topics_items.append(
            new(
                CreatableTopicResult,
                (
                    name,
                    topic_id,
                    error_code,
                    error_message,
                    topic_config_error_code,
                    num_partitions,
                    replication_factor,
                    configs,
                ),
            )
        )
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(CreateTopicsResponse, (throttle_time_ms, topics))


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, _, error_code, error_message, _, _, _, _ in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = b"" if error_message is None else error_message.encode()
        out += _pack_hh(error_code, -1 if error_message is None else len(raw))
        out += raw
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_i(throttle_time_ms)
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for (
        name,
        _,
        error_code,
        error_message,
        topic_config_error_code,
        num_partitions,
        replication_factor,
        configs,
    ) in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_h(error_code)
        if error_message is None:
            out.append(0)
        else:
            raw = error_message.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("error_message", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out += _pack_ih(num_partitions, replication_factor)
        if configs is None:
            out.append(0)
        else:
            size = len(configs) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for name_2, value_2, read_only, config_source, is_sensitive in configs:
                raw = name_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                if value_2 is None:
                    out.append(0)
                else:
                    raw = value_2.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("value", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out += _pack_tbtx(read_only, config_source, is_sensitive)
        if topic_config_error_code != 0:
            out.append(1)
            if topic_config_error_code != 0:
                tagged = bytearray()
                tagged += _pack_h(topic_config_error_code)
                out += varint(0)
                out += varint(len(tagged))
                out += tagged
        else:
            out.append(0)
    out.append(0)
    return out


def _encode_response_v7(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_i(throttle_time_ms)
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for (
        name,
        topic_id,
        error_code,
        error_message,
        topic_config_error_code,
        num_partitions,
        replication_factor,
        configs,
    ) in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_uh(topic_id, error_code)
        if error_message is None:
            out.append(0)
        else:
            raw = error_message.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("error_message", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out += _pack_ih(num_partitions, replication_factor)
        if configs is None:
            out.append(0)
        else:
            size = len(configs) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for name_2, value_2, read_only, config_source, is_sensitive in configs:
                raw = name_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                if value_2 is None:
                    out.append(0)
                else:
                    raw = value_2.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("value", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out += _pack_tbtx(read_only, config_source, is_sensitive)
        if topic_config_error_code != 0:
            out.append(1)
            if topic_config_error_code != 0:
                tagged = bytearray()
                tagged += _pack_h(topic_config_error_code)
                out += varint(0)
                out += varint(len(tagged))
                out += tagged
        else:
            out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], CreateTopicsRequest]] = {
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v5,
    6: _decode_request_v5,
    7: _decode_request_v5,
}

ENCODE_REQUEST: dict[int, Callable[[CreateTopicsRequest], bytearray]] = {
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v5,
    6: _encode_request_v5,
    7: _encode_request_v5,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], CreateTopicsResponse]] = {
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v2,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v7,
}

ENCODE_RESPONSE: dict[int, Callable[[CreateTopicsResponse], bytearray]] = {
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v2,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v7,
}
