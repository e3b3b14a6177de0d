"""Fetch (key 1), versions 4 to 18.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence, Sized
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    NO_UUID,
    STRING_BYTES_MAX,
    UNPACK_INT32S,
    Records,
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


class FetchPartition(NamedTuple):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = NO_UUID
    high_watermark: int = 9223372036854775807


class FetchTopic(NamedTuple):
    topic: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[FetchPartition] = ()


class ReplicaState(NamedTuple):
    replica_id: int = -1
    replica_epoch: int = -1


_DEFAULT_ReplicaState = ReplicaState()


class ForgottenTopic(NamedTuple):
    topic: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[int] = ()


class FetchRequest(NamedTuple):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()
    rack_id: str = ""


class AbortedTransaction(NamedTuple):
    producer_id: int = 0
    first_offset: int = 0


class EpochEndOffset(NamedTuple):
    epoch: int = -1
    end_offset: int = -1


_DEFAULT_EpochEndOffset = EpochEndOffset()


class LeaderIdAndEpoch(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


_DEFAULT_LeaderIdAndEpoch = LeaderIdAndEpoch()


class SnapshotId(NamedTuple):
    end_offset: int = -1
    epoch: int = -1


_DEFAULT_SnapshotId = SnapshotId()


class PartitionData(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: Sequence[AbortedTransaction] | None = ()
    preferred_read_replica: int = -1
    records: Records | None = None


class FetchableTopicResponse(NamedTuple):
    topic: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class FetchResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


_pack_u = Struct(">16s").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ihi = Struct(">ihi").pack
_pack_ihii = Struct(">ihii").pack
_pack_ihqqi = Struct(">ihqqi").pack
_pack_ihqqq = Struct(">ihqqq").pack
_pack_ihqqqi = Struct(">ihqqqi").pack
_pack_ii = Struct(">ii").pack
_pack_iiibii = Struct(">iiibii").pack
_pack_iiiibi = Struct(">iiiibi").pack
_pack_iiiibii = Struct(">iiiibii").pack
_pack_iiiibiii = Struct(">iiiibiii").pack
_pack_iiqiqi = Struct(">iiqiqi").pack
_pack_iiqiqix = Struct(">iiqiqix").pack
_pack_iiqqi = Struct(">iiqqi").pack
_pack_iix = Struct(">iix").pack
_pack_iqi = Struct(">iqi").pack
_pack_iqqi = Struct(">iqqi").pack
_pack_iqx = Struct(">iqx").pack
_pack_q = Struct(">q").pack
_pack_qix = Struct(">qix").pack
_pack_qq = Struct(">qq").pack
_pack_qqx = Struct(">qqx").pack
_unpack_u = Struct(">16s").unpack_from
_unpack_uB = Struct(">16sB").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ihiB = Struct(">ihiB").unpack_from
_unpack_ihii = Struct(">ihii").unpack_from
_unpack_ihqqi = Struct(">ihqqi").unpack_from
_unpack_ihqqqB = Struct(">ihqqqB").unpack_from
_unpack_ihqqqi = Struct(">ihqqqi").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiB = Struct(">iiB").unpack_from
_unpack_iiibiiB = Struct(">iiibiiB").unpack_from
_unpack_iiiibi = Struct(">iiiibi").unpack_from
_unpack_iiiibiiB = Struct(">iiiibiiB").unpack_from
_unpack_iiiibiii = Struct(">iiiibiii").unpack_from
_unpack_iiqiqiB = Struct(">iiqiqiB").unpack_from
_unpack_iiqqi = Struct(">iiqqi").unpack_from
_unpack_iqB = Struct(">iqB").unpack_from
_unpack_iqi = Struct(">iqi").unpack_from
_unpack_iqqi = Struct(">iqqi").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qiB = Struct(">qiB").unpack_from
_unpack_qq = Struct(">qq").unpack_from
_unpack_qqB = Struct(">qqB").unpack_from


def _decode_request_v4(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, count = _unpack_iiiibi(
        buffer, position
    )
    position += 21
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
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
        if count * 16 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            partition, fetch_offset, partition_max_bytes = _unpack_iqi(buffer, position)
            position += 16
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        -1,
                        fetch_offset,
                        -1,
                        -1,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(FetchTopic, (topic, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(
        FetchRequest,
        (
            None,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            0,
            -1,
            topics,
            (),
            "",
        ),
    )


def _decode_request_v5(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, count = _unpack_iiiibi(
        buffer, position
    )
    position += 21
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
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
        if count * 24 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            partition, fetch_offset, log_start_offset, partition_max_bytes = _unpack_iqqi(
                buffer, position
            )
            position += 24
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        -1,
                        fetch_offset,
                        -1,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(FetchTopic, (topic, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(
        FetchRequest,
        (
            None,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            0,
            -1,
            topics,
            (),
            "",
        ),
    )


def _decode_request_v7(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = _unpack_iiiibiii(buffer, position)
    position += 29
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
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
        if count * 24 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            partition, fetch_offset, log_start_offset, partition_max_bytes = _unpack_iqqi(
                buffer, position
            )
            position += 24
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        -1,
                        fetch_offset,
                        -1,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(FetchTopic, (topic, NO_UUID, partitions)))
    topics = tuple(topics_items)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 6 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        forgotten_topics_data_items.append(new(ForgottenTopic, (topic_2, NO_UUID, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    return new(
        FetchRequest,
        (
            None,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            "",
        ),
    )


def _decode_request_v9(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = _unpack_iiiibiii(buffer, position)
    position += 29
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
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
        if count * 28 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, fetch_offset, log_start_offset, partition_max_bytes = (
                _unpack_iiqqi(buffer, position)
            )
            position += 28
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        -1,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(FetchTopic, (topic, NO_UUID, partitions)))
    topics = tuple(topics_items)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 6 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        forgotten_topics_data_items.append(new(ForgottenTopic, (topic_2, NO_UUID, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    return new(
        FetchRequest,
        (
            None,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            "",
        ),
    )


def _decode_request_v11(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = _unpack_iiiibiii(buffer, position)
    position += 29
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
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
        if count * 28 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, fetch_offset, log_start_offset, partition_max_bytes = (
                _unpack_iiqqi(buffer, position)
            )
            position += 28
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        -1,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(FetchTopic, (topic, NO_UUID, partitions)))
    topics = tuple(topics_items)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 6 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        forgotten_topics_data_items.append(new(ForgottenTopic, (topic_2, NO_UUID, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("rack_id")
    stop = position + size
    if stop > end:
        raise too_long("rack_id", stop - position, position, end)
    rack_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    return new(
        FetchRequest,
        (
            None,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
        ),
    )


def _decode_request_v12(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = _unpack_iiiibiiB(buffer, position)
    position += 26
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 3 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
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
        if count * 33 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = _unpack_iiqiqiB(buffer, position)
            position += 33
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        last_fetched_epoch,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(FetchTopic, (topic, NO_UUID, partitions)))
    topics = tuple(topics_items)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 3 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
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
        topic_2 = str(buffer[position:stop], "utf-8", "replace")
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
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        forgotten_topics_data_items.append(new(ForgottenTopic, (topic_2, NO_UUID, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("rack_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("rack_id", stop - position, position, end)
    rack_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    cluster_id: str | None = None
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number, position, tag_end = tag_head(buffer, position)
            if tag_number == 0:
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                cluster_id_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("cluster_id", stop - position, position, end)
                    cluster_id_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                cluster_id = cluster_id_2
            else:
                position = tag_end
            if position != tag_end:
                raise tag_of_another_size(tag_number, position, tag_end)
    return new(
        FetchRequest,
        (
            cluster_id,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
        ),
    )


def _decode_request_v13(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = _unpack_iiiibiiB(buffer, position)
    position += 26
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 18 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 33 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = _unpack_iiqiqiB(buffer, position)
            position += 33
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        last_fetched_epoch,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(FetchTopic, ("", topic_id, partitions)))
    topics = tuple(topics_items)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 18 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        topic_id_2, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        forgotten_topics_data_items.append(new(ForgottenTopic, ("", topic_id_2, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("rack_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("rack_id", stop - position, position, end)
    rack_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    cluster_id: str | None = None
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number, position, tag_end = tag_head(buffer, position)
            if tag_number == 0:
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                cluster_id_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("cluster_id", stop - position, position, end)
                    cluster_id_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                cluster_id = cluster_id_2
            else:
                position = tag_end
            if position != tag_end:
                raise tag_of_another_size(tag_number, position, tag_end)
    return new(
        FetchRequest,
        (
            cluster_id,
            replica_id,
            _DEFAULT_ReplicaState,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
        ),
    )


def _decode_request_v15(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, count = (
        _unpack_iiibiiB(buffer, position)
    )
    position += 22
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 18 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 33 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = _unpack_iiqiqiB(buffer, position)
            position += 33
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        last_fetched_epoch,
                        log_start_offset,
                        partition_max_bytes,
                        NO_UUID,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(FetchTopic, ("", topic_id, partitions)))
    topics = tuple(topics_items)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 18 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        topic_id_2, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        forgotten_topics_data_items.append(new(ForgottenTopic, ("", topic_id_2, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("rack_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("rack_id", stop - position, position, end)
    rack_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    cluster_id: str | None = None
    replica_state: ReplicaState = _DEFAULT_ReplicaState
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number, position, tag_end = tag_head(buffer, position)
            if tag_number == 0:
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                cluster_id_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("cluster_id", stop - position, position, end)
                    cluster_id_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                cluster_id = cluster_id_2
            elif tag_number == 1:
                replica_id, replica_epoch, tags = _unpack_iqB(buffer, position)
                position += 13
                if tags:
                    position = skip_tags(buffer, position - 1)
                replica_state_2 = new(ReplicaState, (replica_id, replica_epoch))
                replica_state = replica_state_2
            else:
                position = tag_end
            if position != tag_end:
                raise tag_of_another_size(tag_number, position, tag_end)
    return new(
        FetchRequest,
        (
            cluster_id,
            -1,
            replica_state,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
        ),
    )


def _decode_request_v17(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, count = (
        _unpack_iiibiiB(buffer, position)
    )
    position += 22
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 18 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 33 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = _unpack_iiqiqiB(buffer, position)
            position += 33
            replica_directory_id: bytes = NO_UUID
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        (replica_directory_id_2,) = _unpack_u(buffer, position)
                        position += 16
                        replica_directory_id = replica_directory_id_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        last_fetched_epoch,
                        log_start_offset,
                        partition_max_bytes,
                        replica_directory_id,
                        9223372036854775807,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(FetchTopic, ("", topic_id, partitions)))
    topics = tuple(topics_items)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 18 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        topic_id_2, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        forgotten_topics_data_items.append(new(ForgottenTopic, ("", topic_id_2, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("rack_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("rack_id", stop - position, position, end)
    rack_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    cluster_id: str | None = None
    replica_state: ReplicaState = _DEFAULT_ReplicaState
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number_2, position, tag_end_2 = tag_head(buffer, position)
            if tag_number_2 == 0:
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                cluster_id_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("cluster_id", stop - position, position, end)
                    cluster_id_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                cluster_id = cluster_id_2
            elif tag_number_2 == 1:
                replica_id, replica_epoch, tags = _unpack_iqB(buffer, position)
                position += 13
                if tags:
                    position = skip_tags(buffer, position - 1)
                replica_state_2 = new(ReplicaState, (replica_id, replica_epoch))
                replica_state = replica_state_2
            else:
                position = tag_end_2
            if position != tag_end_2:
                raise tag_of_another_size(tag_number_2, position, tag_end_2)
    return new(
        FetchRequest,
        (
            cluster_id,
            -1,
            replica_state,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
        ),
    )


def _decode_request_v18(buffer: bytes, position: int) -> FetchRequest:
    end = len(buffer)
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, count = (
        _unpack_iiibiiB(buffer, position)
    )
    position += 22
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 18 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[FetchTopic] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 33 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = _unpack_iiqiqiB(buffer, position)
            position += 33
            replica_directory_id: bytes = NO_UUID
            high_watermark: int = 9223372036854775807
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        (replica_directory_id_2,) = _unpack_u(buffer, position)
                        position += 16
                        replica_directory_id = replica_directory_id_2
                    elif tag_number == 1:
                        (high_watermark_2,) = _unpack_q(buffer, position)
                        position += 8
                        high_watermark = high_watermark_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partitions_items.append(
                new(
                    FetchPartition,
                    (
                        partition,
                        current_leader_epoch,
                        fetch_offset,
                        last_fetched_epoch,
                        log_start_offset,
                        partition_max_bytes,
                        replica_directory_id,
                        high_watermark,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(FetchTopic, ("", topic_id, partitions)))
    topics = tuple(topics_items)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("forgotten_topics_data")
    if count * 18 > end - position:
        raise too_many("forgotten_topics_data", count, position, end)
    forgotten_topics_data_items: list[ForgottenTopic] = []
    for _ in range(count):
        topic_id_2, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions_2 = UNPACK_INT32S[count](buffer, position)
        else:
            partitions_2 = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        forgotten_topics_data_items.append(new(ForgottenTopic, ("", topic_id_2, partitions_2)))
    forgotten_topics_data = tuple(forgotten_topics_data_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("rack_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("rack_id", stop - position, position, end)
    rack_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    cluster_id: str | None = None
    replica_state: ReplicaState = _DEFAULT_ReplicaState
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number_2, position, tag_end_2 = tag_head(buffer, position)
            if tag_number_2 == 0:
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                cluster_id_2: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("cluster_id", stop - position, position, end)
                    cluster_id_2 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                cluster_id = cluster_id_2
            elif tag_number_2 == 1:
                replica_id, replica_epoch, tags = _unpack_iqB(buffer, position)
                position += 13
                if tags:
                    position = skip_tags(buffer, position - 1)
                replica_state_2 = new(ReplicaState, (replica_id, replica_epoch))
                replica_state = replica_state_2
            else:
                position = tag_end_2
            if position != tag_end_2:
                raise tag_of_another_size(tag_number_2, position, tag_end_2)
    return new(
        FetchRequest,
        (
            cluster_id,
            -1,
            replica_state,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
        ),
    )


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    _, replica_id, _, max_wait_ms, min_bytes, max_bytes, isolation_level, _, _, topics, _, _ = value
    out += _pack_iiiibi(replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, len(topics))
    for topic, _, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition, _, fetch_offset, _, _, partition_max_bytes, _, _ in partitions:
            out += _pack_iqi(partition, fetch_offset, partition_max_bytes)
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    _, replica_id, _, max_wait_ms, min_bytes, max_bytes, isolation_level, _, _, topics, _, _ = value
    out += _pack_iiiibi(replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, len(topics))
    for topic, _, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition,
            _,
            fetch_offset,
            _,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iqqi(partition, fetch_offset, log_start_offset, partition_max_bytes)
    return out


def _encode_request_v7(value: Any) -> bytearray:
    out = bytearray()
    (
        _,
        replica_id,
        _,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        _,
    ) = value
    out += _pack_iiiibiii(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        len(topics),
    )
    for topic, _, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition,
            _,
            fetch_offset,
            _,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iqqi(partition, fetch_offset, log_start_offset, partition_max_bytes)
    out += _pack_i(len(forgotten_topics_data))
    for topic_2, _, partitions_2 in forgotten_topics_data:
        raw = topic_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions_2))
        out += pack_int32s(partitions_2)
    return out


def _encode_request_v9(value: Any) -> bytearray:
    out = bytearray()
    (
        _,
        replica_id,
        _,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        _,
    ) = value
    out += _pack_iiiibiii(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        len(topics),
    )
    for topic, _, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            _,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iiqqi(
                partition, current_leader_epoch, fetch_offset, log_start_offset, partition_max_bytes
            )
    out += _pack_i(len(forgotten_topics_data))
    for topic_2, _, partitions_2 in forgotten_topics_data:
        raw = topic_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions_2))
        out += pack_int32s(partitions_2)
    return out


def _encode_request_v11(value: Any) -> bytearray:
    out = bytearray()
    (
        _,
        replica_id,
        _,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    ) = value
    out += _pack_iiiibiii(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        len(topics),
    )
    for topic, _, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            _,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iiqqi(
                partition, current_leader_epoch, fetch_offset, log_start_offset, partition_max_bytes
            )
    out += _pack_i(len(forgotten_topics_data))
    for topic_2, _, partitions_2 in forgotten_topics_data:
        raw = topic_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions_2))
        out += pack_int32s(partitions_2)
    raw = rack_id.encode()
    out += _pack_h(len(raw))
    out += raw
    return out


def _encode_request_v12(value: Any) -> bytearray:
    out = bytearray()
    (
        cluster_id,
        replica_id,
        _,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    ) = value
    out += _pack_iiiibii(
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    )
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for topic, _, partitions in topics:
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
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iiqiqix(
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            )
        out.append(0)
    size = len(forgotten_topics_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for topic_2, _, partitions_2 in forgotten_topics_data:
        raw = topic_2.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("topic", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(partitions_2) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += pack_int32s(partitions_2)
        out.append(0)
    raw = rack_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("rack_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if cluster_id is not None:
        out.append(1)
        if cluster_id is not None:
            tagged = bytearray()
            if cluster_id is None:
                tagged.append(0)
            else:
                raw = cluster_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("cluster_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged.append(size)
                else:
                    tagged += varint(size)
                tagged += raw
            out += varint(0)
            out += varint(len(tagged))
            out += tagged
    else:
        out.append(0)
    return out


def _encode_request_v13(value: Any) -> bytearray:
    out = bytearray()
    (
        cluster_id,
        replica_id,
        _,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    ) = value
    out += _pack_iiiibii(
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    )
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partitions in topics:
        out += _pack_u(topic_id)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iiqiqix(
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            )
        out.append(0)
    size = len(forgotten_topics_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id_2, partitions_2 in forgotten_topics_data:
        out += _pack_u(topic_id_2)
        size = len(partitions_2) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += pack_int32s(partitions_2)
        out.append(0)
    raw = rack_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("rack_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if cluster_id is not None:
        out.append(1)
        if cluster_id is not None:
            tagged = bytearray()
            if cluster_id is None:
                tagged.append(0)
            else:
                raw = cluster_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("cluster_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged.append(size)
                else:
                    tagged += varint(size)
                tagged += raw
            out += varint(0)
            out += varint(len(tagged))
            out += tagged
    else:
        out.append(0)
    return out


def _encode_request_v15(value: Any) -> bytearray:
    out = bytearray()
    (
        cluster_id,
        _,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    ) = value
    out += _pack_iiibii(
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    )
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partitions in topics:
        out += _pack_u(topic_id)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            _,
            _,
        ) in partitions:
            out += _pack_iiqiqix(
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            )
        out.append(0)
    size = len(forgotten_topics_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id_2, partitions_2 in forgotten_topics_data:
        out += _pack_u(topic_id_2)
        size = len(partitions_2) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += pack_int32s(partitions_2)
        out.append(0)
    raw = rack_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("rack_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if cluster_id is not None or (
        replica_state is not _DEFAULT_ReplicaState and replica_state != _DEFAULT_ReplicaState
    ):
        out.append(
            (cluster_id is not None)
            + (
                replica_state is not _DEFAULT_ReplicaState
                and replica_state != _DEFAULT_ReplicaState
            )
        )
        if cluster_id is not None:
            tagged = bytearray()
            if cluster_id is None:
                tagged.append(0)
            else:
                raw = cluster_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("cluster_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged.append(size)
                else:
                    tagged += varint(size)
                tagged += raw
            out += varint(0)
            out += varint(len(tagged))
            out += tagged
        if replica_state is not _DEFAULT_ReplicaState and replica_state != _DEFAULT_ReplicaState:
            tagged_2 = bytearray()
            replica_id, replica_epoch = replica_state
            tagged_2 += _pack_iqx(replica_id, replica_epoch)
            out += varint(1)
            out += varint(len(tagged_2))
            out += tagged_2
    else:
        out.append(0)
    return out


def _encode_request_v17(value: Any) -> bytearray:
    out = bytearray()
    (
        cluster_id,
        _,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    ) = value
    out += _pack_iiibii(
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    )
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partitions in topics:
        out += _pack_u(topic_id)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            replica_directory_id,
            _,
        ) in partitions:
            out += _pack_iiqiqi(
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            )
            if replica_directory_id != NO_UUID:
                out.append(1)
                if replica_directory_id != NO_UUID:
                    tagged = bytearray()
                    tagged += _pack_u(replica_directory_id)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
            else:
                out.append(0)
        out.append(0)
    size = len(forgotten_topics_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id_2, partitions_2 in forgotten_topics_data:
        out += _pack_u(topic_id_2)
        size = len(partitions_2) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += pack_int32s(partitions_2)
        out.append(0)
    raw = rack_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("rack_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if cluster_id is not None or (
        replica_state is not _DEFAULT_ReplicaState and replica_state != _DEFAULT_ReplicaState
    ):
        out.append(
            (cluster_id is not None)
            + (
                replica_state is not _DEFAULT_ReplicaState
                and replica_state != _DEFAULT_ReplicaState
            )
        )
        if cluster_id is not None:
            tagged_2 = bytearray()
            if cluster_id is None:
                tagged_2.append(0)
            else:
                raw = cluster_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("cluster_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged_2.append(size)
                else:
                    tagged_2 += varint(size)
                tagged_2 += raw
            out += varint(0)
            out += varint(len(tagged_2))
            out += tagged_2
        if replica_state is not _DEFAULT_ReplicaState and replica_state != _DEFAULT_ReplicaState:
            tagged_3 = bytearray()
            replica_id, replica_epoch = replica_state
            tagged_3 += _pack_iqx(replica_id, replica_epoch)
            out += varint(1)
            out += varint(len(tagged_3))
            out += tagged_3
    else:
        out.append(0)
    return out


def _encode_request_v18(value: Any) -> bytearray:
    out = bytearray()
    (
        cluster_id,
        _,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    ) = value
    out += _pack_iiibii(
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
    )
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partitions in topics:
        out += _pack_u(topic_id)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            replica_directory_id,
            high_watermark,
        ) in partitions:
            out += _pack_iiqiqi(
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            )
            if replica_directory_id != NO_UUID or high_watermark != 9223372036854775807:
                out.append(
                    (replica_directory_id != NO_UUID) + (high_watermark != 9223372036854775807)
                )
                if replica_directory_id != NO_UUID:
                    tagged = bytearray()
                    tagged += _pack_u(replica_directory_id)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
                if high_watermark != 9223372036854775807:
                    tagged_2 = bytearray()
                    tagged_2 += _pack_q(high_watermark)
                    out += varint(1)
                    out += varint(len(tagged_2))
                    out += tagged_2
            else:
                out.append(0)
        out.append(0)
    size = len(forgotten_topics_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id_2, partitions_2 in forgotten_topics_data:
        out += _pack_u(topic_id_2)
        size = len(partitions_2) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += pack_int32s(partitions_2)
        out.append(0)
    raw = rack_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("rack_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if cluster_id is not None or (
        replica_state is not _DEFAULT_ReplicaState and replica_state != _DEFAULT_ReplicaState
    ):
        out.append(
            (cluster_id is not None)
            + (
                replica_state is not _DEFAULT_ReplicaState
                and replica_state != _DEFAULT_ReplicaState
            )
        )
        if cluster_id is not None:
            tagged_3 = bytearray()
            if cluster_id is None:
                tagged_3.append(0)
            else:
                raw = cluster_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("cluster_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged_3.append(size)
                else:
                    tagged_3 += varint(size)
                tagged_3 += raw
            out += varint(0)
            out += varint(len(tagged_3))
            out += tagged_3
        if replica_state is not _DEFAULT_ReplicaState and replica_state != _DEFAULT_ReplicaState:
            tagged_4 = bytearray()
            replica_id, replica_epoch = replica_state
            tagged_4 += _pack_iqx(replica_id, replica_epoch)
            out += varint(1)
            out += varint(len(tagged_4))
            out += tagged_4
    else:
        out.append(0)
    return out


def _decode_response_v4(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
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
        if count * 30 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            partition_index, error_code, high_watermark, last_stable_offset, count = _unpack_ihqqi(
                buffer, position
            )
            position += 26
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 16 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset = _unpack_qq(buffer, position)
                    position += 16
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            (size,) = _unpack_i(buffer, position)
            position += 4
            records: memoryview | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code,
                        high_watermark,
                        last_stable_offset,
                        -1,
                        _DEFAULT_EpochEndOffset,
                        _DEFAULT_LeaderIdAndEpoch,
                        _DEFAULT_SnapshotId,
                        aborted_transactions,
                        -1,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        responses_items.append(new(FetchableTopicResponse, (topic, NO_UUID, partitions)))
    responses = tuple(responses_items)
    return new(FetchResponse, (throttle_time_ms, 0, 0, responses, ()))


def _decode_response_v5(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
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
        if count * 38 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = _unpack_ihqqqi(buffer, position)
            position += 34
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 16 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset = _unpack_qq(buffer, position)
                    position += 16
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            (size,) = _unpack_i(buffer, position)
            position += 4
            records: memoryview | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        _DEFAULT_EpochEndOffset,
                        _DEFAULT_LeaderIdAndEpoch,
                        _DEFAULT_SnapshotId,
                        aborted_transactions,
                        -1,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        responses_items.append(new(FetchableTopicResponse, (topic, NO_UUID, partitions)))
    responses = tuple(responses_items)
    return new(FetchResponse, (throttle_time_ms, 0, 0, responses, ()))


def _decode_response_v7(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, error_code, session_id, count = _unpack_ihii(buffer, position)
    position += 14
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
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
        if count * 38 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = _unpack_ihqqqi(buffer, position)
            position += 34
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 16 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset = _unpack_qq(buffer, position)
                    position += 16
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            (size,) = _unpack_i(buffer, position)
            position += 4
            records: memoryview | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code_2,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        _DEFAULT_EpochEndOffset,
                        _DEFAULT_LeaderIdAndEpoch,
                        _DEFAULT_SnapshotId,
                        aborted_transactions,
                        -1,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        responses_items.append(new(FetchableTopicResponse, (topic, NO_UUID, partitions)))
    responses = tuple(responses_items)
    return new(FetchResponse, (throttle_time_ms, error_code, session_id, responses, ()))


def _decode_response_v11(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, error_code, session_id, count = _unpack_ihii(buffer, position)
    position += 14
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
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
        if count * 42 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = _unpack_ihqqqi(buffer, position)
            position += 34
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 16 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset = _unpack_qq(buffer, position)
                    position += 16
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            preferred_read_replica, size = _unpack_ii(buffer, position)
            position += 8
            records: memoryview | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code_2,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        _DEFAULT_EpochEndOffset,
                        _DEFAULT_LeaderIdAndEpoch,
                        _DEFAULT_SnapshotId,
                        aborted_transactions,
                        preferred_read_replica,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        responses_items.append(new(FetchableTopicResponse, (topic, NO_UUID, partitions)))
    responses = tuple(responses_items)
    return new(FetchResponse, (throttle_time_ms, error_code, session_id, responses, ()))


def _decode_response_v12(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, error_code, session_id, count = _unpack_ihiB(buffer, position)
    position += 11
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 3 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
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
        if count * 37 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = _unpack_ihqqqB(buffer, position)
            position += 31
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 17 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset, tags = _unpack_qqB(buffer, position)
                    position += 17
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            preferred_read_replica, size = _unpack_iB(buffer, position)
            position += 5
            if size > 127:
                size, position = long_length(buffer, position - 1)
            records: memoryview | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            diverging_epoch: EpochEndOffset = _DEFAULT_EpochEndOffset
            current_leader: LeaderIdAndEpoch = _DEFAULT_LeaderIdAndEpoch
            snapshot_id: SnapshotId = _DEFAULT_SnapshotId
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        epoch, end_offset, tags = _unpack_iqB(buffer, position)
                        position += 13
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        diverging_epoch_2 = new(EpochEndOffset, (epoch, end_offset))
                        diverging_epoch = diverging_epoch_2
                    elif tag_number == 1:
                        leader_id, leader_epoch, tags = _unpack_iiB(buffer, position)
                        position += 9
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        current_leader_2 = new(LeaderIdAndEpoch, (leader_id, leader_epoch))
                        current_leader = current_leader_2
                    elif tag_number == 2:
                        end_offset_2, epoch_2, tags = _unpack_qiB(buffer, position)
                        position += 13
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        snapshot_id_2 = new(SnapshotId, (end_offset_2, epoch_2))
                        snapshot_id = snapshot_id_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code_2,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        diverging_epoch,
                        current_leader,
                        snapshot_id,
                        aborted_transactions,
                        preferred_read_replica,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(FetchableTopicResponse, (topic, NO_UUID, partitions)))
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(FetchResponse, (throttle_time_ms, error_code, session_id, responses, ()))


def _decode_response_v13(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, error_code, session_id, count = _unpack_ihiB(buffer, position)
    position += 11
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 18 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 37 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = _unpack_ihqqqB(buffer, position)
            position += 31
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 17 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset, tags = _unpack_qqB(buffer, position)
                    position += 17
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            preferred_read_replica, size = _unpack_iB(buffer, position)
            position += 5
            if size > 127:
                size, position = long_length(buffer, position - 1)
            records: memoryview | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            diverging_epoch: EpochEndOffset = _DEFAULT_EpochEndOffset
            current_leader: LeaderIdAndEpoch = _DEFAULT_LeaderIdAndEpoch
            snapshot_id: SnapshotId = _DEFAULT_SnapshotId
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        epoch, end_offset, tags = _unpack_iqB(buffer, position)
                        position += 13
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        diverging_epoch_2 = new(EpochEndOffset, (epoch, end_offset))
                        diverging_epoch = diverging_epoch_2
                    elif tag_number == 1:
                        leader_id, leader_epoch, tags = _unpack_iiB(buffer, position)
                        position += 9
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        current_leader_2 = new(LeaderIdAndEpoch, (leader_id, leader_epoch))
                        current_leader = current_leader_2
                    elif tag_number == 2:
                        end_offset_2, epoch_2, tags = _unpack_qiB(buffer, position)
                        position += 13
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        snapshot_id_2 = new(SnapshotId, (end_offset_2, epoch_2))
                        snapshot_id = snapshot_id_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code_2,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        diverging_epoch,
                        current_leader,
                        snapshot_id,
                        aborted_transactions,
                        preferred_read_replica,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(FetchableTopicResponse, ("", topic_id, partitions)))
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(FetchResponse, (throttle_time_ms, error_code, session_id, responses, ()))


def _decode_response_v16(buffer: memoryview, position: int) -> FetchResponse:
    end = len(buffer)
    throttle_time_ms, error_code, session_id, count = _unpack_ihiB(buffer, position)
    position += 11
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 18 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[FetchableTopicResponse] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 37 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = _unpack_ihqqqB(buffer, position)
            position += 31
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            aborted_transactions: tuple[AbortedTransaction, ...] | None = None
            if count >= 0:
                if count * 17 > end - position:
                    raise too_many("aborted_transactions", count, position, end)
                aborted_transactions_items: list[AbortedTransaction] = []
                for _ in range(count):
                    producer_id, first_offset, tags = _unpack_qqB(buffer, position)
                    position += 17
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    aborted_transactions_items.append(
                        new(AbortedTransaction, (producer_id, first_offset))
                    )
                aborted_transactions = tuple(aborted_transactions_items)
            preferred_read_replica, size = _unpack_iB(buffer, position)
            position += 5
            if size > 127:
                size, position = long_length(buffer, position - 1)
            records: memoryview | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            diverging_epoch: EpochEndOffset = _DEFAULT_EpochEndOffset
            current_leader: LeaderIdAndEpoch = _DEFAULT_LeaderIdAndEpoch
            snapshot_id: SnapshotId = _DEFAULT_SnapshotId
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        epoch, end_offset, tags = _unpack_iqB(buffer, position)
                        position += 13
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        diverging_epoch_2 = new(EpochEndOffset, (epoch, end_offset))
                        diverging_epoch = diverging_epoch_2
                    elif tag_number == 1:
                        leader_id, leader_epoch, tags = _unpack_iiB(buffer, position)
                        position += 9
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        current_leader_2 = new(LeaderIdAndEpoch, (leader_id, leader_epoch))
                        current_leader = current_leader_2
                    elif tag_number == 2:
                        end_offset_2, epoch_2, tags = _unpack_qiB(buffer, position)
                        position += 13
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        snapshot_id_2 = new(SnapshotId, (end_offset_2, epoch_2))
                        snapshot_id = snapshot_id_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partitions_items.append(
                new(
                    PartitionData,
                    (
                        partition_index,
                        error_code_2,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        diverging_epoch,
                        current_leader,
                        snapshot_id,
                        aborted_transactions,
                        preferred_read_replica,
                        records,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(FetchableTopicResponse, ("", topic_id, partitions)))
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number_2, position, tag_end_2 = tag_head(buffer, position)
            if tag_number_2 == 0:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("node_endpoints")
                if count * 11 > end - position:
                    raise too_many("node_endpoints", count, position, end)
                node_endpoints_2_items: list[NodeEndpoint] = []
                for _ in range(count):
                    node_id, size = _unpack_iB(buffer, position)
                    position += 5
                    if size > 127:
                        size, position = long_string_length(buffer, position - 1)
                    if not size:
                        raise null_field("host")
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("host", stop - position, position, end)
                    host = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                    port, size = _unpack_iB(buffer, position)
                    position += 5
                    if size > 127:
                        size, position = long_string_length(buffer, position - 1)
                    rack: str | None = None
                    if size:
                        stop = position + size - 1
                        if stop > end:
                            raise too_long("rack", stop - position, position, end)
                        rack = str(buffer[position:stop], "utf-8", "replace")
                        position = stop
                    tags = buffer[position]
                    position += 1
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    node_endpoints_2_items.append(new(NodeEndpoint, (node_id, host, port, rack)))
                node_endpoints_2 = tuple(node_endpoints_2_items)
                node_endpoints = node_endpoints_2
            else:
                position = tag_end_2
            if position != tag_end_2:
                raise tag_of_another_size(tag_number_2, position, tag_end_2)
    return new(FetchResponse, (throttle_time_ms, error_code, session_id, responses, node_endpoints))


def _encode_response_v4(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, _, _, responses, _ = value
    out += _pack_ii(throttle_time_ms, len(responses))
    for topic, _, partitions in responses:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            error_code,
            high_watermark,
            last_stable_offset,
            _,
            _,
            _,
            _,
            aborted_transactions,
            _,
            records,
        ) in partitions:
            out += _pack_ihqqi(
                partition_index,
                error_code,
                high_watermark,
                last_stable_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for producer_id, first_offset in aborted_transactions or ():
                out += _pack_qq(producer_id, first_offset)
            out += _pack_i(-1 if records is None else len(records))
            if records is not None:
                out = bytearray()
                parts += (records, out)
    return parts


def _encode_response_v5(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, _, _, responses, _ = value
    out += _pack_ii(throttle_time_ms, len(responses))
    for topic, _, partitions in responses:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            error_code,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            _,
            _,
            _,
            aborted_transactions,
            _,
            records,
        ) in partitions:
            out += _pack_ihqqqi(
                partition_index,
                error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for producer_id, first_offset in aborted_transactions or ():
                out += _pack_qq(producer_id, first_offset)
            out += _pack_i(-1 if records is None else len(records))
            if records is not None:
                out = bytearray()
                parts += (records, out)
    return parts


def _encode_response_v7(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, error_code, session_id, responses, _ = value
    out += _pack_ihii(throttle_time_ms, error_code, session_id, len(responses))
    for topic, _, partitions in responses:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            error_code_2,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            _,
            _,
            _,
            aborted_transactions,
            _,
            records,
        ) in partitions:
            out += _pack_ihqqqi(
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for producer_id, first_offset in aborted_transactions or ():
                out += _pack_qq(producer_id, first_offset)
            out += _pack_i(-1 if records is None else len(records))
            if records is not None:
                out = bytearray()
                parts += (records, out)
    return parts


def _encode_response_v11(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, error_code, session_id, responses, _ = value
    out += _pack_ihii(throttle_time_ms, error_code, session_id, len(responses))
    for topic, _, partitions in responses:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            error_code_2,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            _,
            _,
            _,
            aborted_transactions,
            preferred_read_replica,
            records,
        ) in partitions:
            out += _pack_ihqqqi(
                partition_index,
                error_code_2,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for producer_id, first_offset in aborted_transactions or ():
                out += _pack_qq(producer_id, first_offset)
            out += _pack_ii(preferred_read_replica, -1 if records is None else len(records))
            if records is not None:
                out = bytearray()
                parts += (records, out)
    return parts


def _encode_response_v12(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, error_code, session_id, responses, _ = value
    out += _pack_ihi(throttle_time_ms, error_code, session_id)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for topic, _, partitions in responses:
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
        for (
            partition_index,
            error_code_2,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            diverging_epoch,
            current_leader,
            snapshot_id,
            aborted_transactions,
            preferred_read_replica,
            records,
        ) in partitions:
            out += _pack_ihqqq(
                partition_index, error_code_2, high_watermark, last_stable_offset, log_start_offset
            )
            if aborted_transactions is None:
                out.append(0)
            else:
                size = len(aborted_transactions) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                for producer_id, first_offset in aborted_transactions:
                    out += _pack_qqx(producer_id, first_offset)
            out += _pack_i(preferred_read_replica)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out = bytearray()
                parts += (records, out)
            if (
                (
                    diverging_epoch is not _DEFAULT_EpochEndOffset
                    and diverging_epoch != _DEFAULT_EpochEndOffset
                )
                or (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                )
                or (snapshot_id is not _DEFAULT_SnapshotId and snapshot_id != _DEFAULT_SnapshotId)
            ):
                out.append(
                    (
                        diverging_epoch is not _DEFAULT_EpochEndOffset
                        and diverging_epoch != _DEFAULT_EpochEndOffset
                    )
                    + (
                        current_leader is not _DEFAULT_LeaderIdAndEpoch
                        and current_leader != _DEFAULT_LeaderIdAndEpoch
                    )
                    + (
                        snapshot_id is not _DEFAULT_SnapshotId
                        and snapshot_id != _DEFAULT_SnapshotId
                    )
                )
                if (
                    diverging_epoch is not _DEFAULT_EpochEndOffset
                    and diverging_epoch != _DEFAULT_EpochEndOffset
                ):
                    tagged = bytearray()
                    epoch, end_offset = diverging_epoch
                    tagged += _pack_iqx(epoch, end_offset)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
                if (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                ):
                    tagged_2 = bytearray()
                    leader_id, leader_epoch = current_leader
                    tagged_2 += _pack_iix(leader_id, leader_epoch)
                    out += varint(1)
                    out += varint(len(tagged_2))
                    out += tagged_2
                if snapshot_id is not _DEFAULT_SnapshotId and snapshot_id != _DEFAULT_SnapshotId:
                    tagged_3 = bytearray()
                    end_offset_2, epoch_2 = snapshot_id
                    tagged_3 += _pack_qix(end_offset_2, epoch_2)
                    out += varint(2)
                    out += varint(len(tagged_3))
                    out += tagged_3
            else:
                out.append(0)
        out.append(0)
    out.append(0)
    return parts


def _encode_response_v13(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, error_code, session_id, responses, _ = value
    out += _pack_ihi(throttle_time_ms, error_code, session_id)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partitions in responses:
        out += _pack_u(topic_id)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            partition_index,
            error_code_2,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            diverging_epoch,
            current_leader,
            snapshot_id,
            aborted_transactions,
            preferred_read_replica,
            records,
        ) in partitions:
            out += _pack_ihqqq(
                partition_index, error_code_2, high_watermark, last_stable_offset, log_start_offset
            )
            if aborted_transactions is None:
                out.append(0)
            else:
                size = len(aborted_transactions) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                for producer_id, first_offset in aborted_transactions:
                    out += _pack_qqx(producer_id, first_offset)
            out += _pack_i(preferred_read_replica)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out = bytearray()
                parts += (records, out)
            if (
                (
                    diverging_epoch is not _DEFAULT_EpochEndOffset
                    and diverging_epoch != _DEFAULT_EpochEndOffset
                )
                or (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                )
                or (snapshot_id is not _DEFAULT_SnapshotId and snapshot_id != _DEFAULT_SnapshotId)
            ):
                out.append(
                    (
                        diverging_epoch is not _DEFAULT_EpochEndOffset
                        and diverging_epoch != _DEFAULT_EpochEndOffset
                    )
                    + (
                        current_leader is not _DEFAULT_LeaderIdAndEpoch
                        and current_leader != _DEFAULT_LeaderIdAndEpoch
                    )
                    + (
                        snapshot_id is not _DEFAULT_SnapshotId
                        and snapshot_id != _DEFAULT_SnapshotId
                    )
                )
                if (
                    diverging_epoch is not _DEFAULT_EpochEndOffset
                    and diverging_epoch != _DEFAULT_EpochEndOffset
                ):
                    tagged = bytearray()
                    epoch, end_offset = diverging_epoch
                    tagged += _pack_iqx(epoch, end_offset)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
                if (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                ):
                    tagged_2 = bytearray()
                    leader_id, leader_epoch = current_leader
                    tagged_2 += _pack_iix(leader_id, leader_epoch)
                    out += varint(1)
                    out += varint(len(tagged_2))
                    out += tagged_2
                if snapshot_id is not _DEFAULT_SnapshotId and snapshot_id != _DEFAULT_SnapshotId:
                    tagged_3 = bytearray()
                    end_offset_2, epoch_2 = snapshot_id
                    tagged_3 += _pack_qix(end_offset_2, epoch_2)
                    out += varint(2)
                    out += varint(len(tagged_3))
                    out += tagged_3
            else:
                out.append(0)
        out.append(0)
    out.append(0)
    return parts


def _encode_response_v16(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    throttle_time_ms, error_code, session_id, responses, node_endpoints = value
    out += _pack_ihi(throttle_time_ms, error_code, session_id)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partitions in responses:
        out += _pack_u(topic_id)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            partition_index,
            error_code_2,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            diverging_epoch,
            current_leader,
            snapshot_id,
            aborted_transactions,
            preferred_read_replica,
            records,
        ) in partitions:
            out += _pack_ihqqq(
                partition_index, error_code_2, high_watermark, last_stable_offset, log_start_offset
            )
            if aborted_transactions is None:
                out.append(0)
            else:
                size = len(aborted_transactions) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                for producer_id, first_offset in aborted_transactions:
                    out += _pack_qqx(producer_id, first_offset)
            out += _pack_i(preferred_read_replica)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out = bytearray()
                parts += (records, out)
            if (
                (
                    diverging_epoch is not _DEFAULT_EpochEndOffset
                    and diverging_epoch != _DEFAULT_EpochEndOffset
                )
                or (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                )
                or (snapshot_id is not _DEFAULT_SnapshotId and snapshot_id != _DEFAULT_SnapshotId)
            ):
                out.append(
                    (
                        diverging_epoch is not _DEFAULT_EpochEndOffset
                        and diverging_epoch != _DEFAULT_EpochEndOffset
                    )
                    + (
                        current_leader is not _DEFAULT_LeaderIdAndEpoch
                        and current_leader != _DEFAULT_LeaderIdAndEpoch
                    )
                    + (
                        snapshot_id is not _DEFAULT_SnapshotId
                        and snapshot_id != _DEFAULT_SnapshotId
                    )
                )
                if (
                    diverging_epoch is not _DEFAULT_EpochEndOffset
                    and diverging_epoch != _DEFAULT_EpochEndOffset
                ):
                    tagged = bytearray()
                    epoch, end_offset = diverging_epoch
                    tagged += _pack_iqx(epoch, end_offset)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
                if (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                ):
                    tagged_2 = bytearray()
                    leader_id, leader_epoch = current_leader
                    tagged_2 += _pack_iix(leader_id, leader_epoch)
                    out += varint(1)
                    out += varint(len(tagged_2))
                    out += tagged_2
                if snapshot_id is not _DEFAULT_SnapshotId and snapshot_id != _DEFAULT_SnapshotId:
                    tagged_3 = bytearray()
                    end_offset_2, epoch_2 = snapshot_id
                    tagged_3 += _pack_qix(end_offset_2, epoch_2)
                    out += varint(2)
                    out += varint(len(tagged_3))
                    out += tagged_3
            else:
                out.append(0)
        out.append(0)
    if len(node_endpoints) > 0:
        out.append(1)
        if len(node_endpoints) > 0:
            tagged_4 = bytearray()
            size = len(node_endpoints) + 1
            if size < 128:
                tagged_4.append(size)
            else:
                tagged_4 += varint(size)
            for node_id, host, port, rack in node_endpoints:
                tagged_4 += _pack_i(node_id)
                raw = host.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("host", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged_4.append(size)
                else:
                    tagged_4 += varint(size)
                tagged_4 += raw
                tagged_4 += _pack_i(port)
                if rack is None:
                    tagged_4.append(0)
                else:
                    raw = rack.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("rack", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        tagged_4.append(size)
                    else:
                        tagged_4 += varint(size)
                    tagged_4 += raw
                tagged_4.append(0)
            out += varint(0)
            out += varint(len(tagged_4))
            out += tagged_4
    else:
        out.append(0)
    return parts


DECODE_REQUEST: dict[int, Callable[[bytes, int], FetchRequest]] = {
    4: _decode_request_v4,
    5: _decode_request_v5,
    6: _decode_request_v5,
    7: _decode_request_v7,
    8: _decode_request_v7,
    9: _decode_request_v9,
    10: _decode_request_v9,
    11: _decode_request_v11,
    12: _decode_request_v12,
    13: _decode_request_v13,
    14: _decode_request_v13,
    15: _decode_request_v15,
    16: _decode_request_v15,
    17: _decode_request_v17,
    18: _decode_request_v18,
}

ENCODE_REQUEST: dict[int, Callable[[FetchRequest], bytearray]] = {
    4: _encode_request_v4,
    5: _encode_request_v5,
    6: _encode_request_v5,
    7: _encode_request_v7,
    8: _encode_request_v7,
    9: _encode_request_v9,
    10: _encode_request_v9,
    11: _encode_request_v11,
    12: _encode_request_v12,
    13: _encode_request_v13,
    14: _encode_request_v13,
    15: _encode_request_v15,
    16: _encode_request_v15,
    17: _encode_request_v17,
    18: _encode_request_v18,
}

DECODE_RESPONSE: dict[int, Callable[[memoryview, int], FetchResponse]] = {
    4: _decode_response_v4,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v7,
    8: _decode_response_v7,
    9: _decode_response_v7,
    10: _decode_response_v7,
    11: _decode_response_v11,
    12: _decode_response_v12,
    13: _decode_response_v13,
    14: _decode_response_v13,
    15: _decode_response_v13,
    16: _decode_response_v16,
    17: _decode_response_v16,
    18: _decode_response_v16,
}

ENCODE_RESPONSE: dict[int, Callable[[FetchResponse], list[Sized]]] = {
    4: _encode_response_v4,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v7,
    8: _encode_response_v7,
    9: _encode_response_v7,
    10: _encode_response_v7,
    11: _encode_response_v11,
    12: _encode_response_v12,
    13: _encode_response_v13,
    14: _encode_response_v13,
    15: _encode_response_v13,
    16: _encode_response_v16,
    17: _encode_response_v16,
    18: _encode_response_v16,
}
