"""Answers as plain values: what JSON can hold, without what a broker may choose as it likes.

A message becomes the fields that are not at their defaults, except that an error code is always
shown, by name. Freely chosen values become placeholders such as ``<topic id 1>``, numbered by first
appearance; the value that had a number keeps it. Sentences become ``<text>``: each broker has its
own. Lists whose order means nothing are sorted.
"""

import re
import struct
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records._kernels import read_headers

Plain: TypeAlias = "bool | int | str | list[Plain] | dict[str, Plain] | None"

CLOSED = "the connection is closed"
NO_ANSWER = "no answer"

_RECENT_MS = 120_000
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# The fields whose values are chosen by the broker, and what they stand for.
_FIXED = {
    "node_id": "node",
    "leader_id": "node",
    "controller_id": "node",
    "broker_id": "node",
    "host": "host",
    "port": "port",
    "cluster_id": "cluster",
}
_NUMBERED = {"producer_id": "producer id", "session_id": "session id"}
_NODE_LISTS = {"replica_nodes", "isr_nodes", "offline_replicas"}
_TEXTS = {"error_message", "batch_index_error_message", "documentation"}
_ERRORS = {"error_code", "topic_config_error_code"}
_TIMES = {"log_append_time_ms", "timestamp"}
_NUMBERS = {"total_bytes", "usable_bytes", "finalized_features_epoch"}
_MEMBERS = {"member_id", "leader"}
# Made from hash tables by Kafka, or by name here: topics of an answer about all, and the like.
_SORTED = {
    "MetadataResponse.topics": "name",
    "ListGroupsResponse.groups": "group_id",
    "DescribeLogDirsResult.topics": "name",
    "DescribeLogDirsTopic.partitions": "partition_index",
    "DeleteTopicsResponse.responses": "name",
    "DeleteGroupsResponse.results": "group_id",
    "CreatePartitionsResponse.results": "name",
    "TopicProduceResponse.partition_responses": "index",
    "FetchableTopicResponse.partitions": "partition_index",
}
_IN_ANY_ORDER = {"JoinGroupResponse.members", "DescribedGroup.members"}
_BY_NAME = {"DescribeConfigsResult.configs", "CreatableTopicResult.configs"}


class Placeholders:
    """What stands for which value, within one scenario."""

    def __init__(self, *, host: str, port: int, node_id: int, cluster_id: str) -> None:
        self._fixed: dict[tuple[str, Any], str] = {
            ("host", host): "<host>",
            ("port", port): "<port>",
            ("node", node_id): "<node>",
            ("cluster", cluster_id): "<cluster>",
        }
        self._numbered: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def fixed(self, kind: str, value: Any) -> Any:
        return self._fixed.get((kind, value), value)

    def numbered(self, kind: str, value: Any) -> str:
        if (kind, value) not in self._numbered:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbered[kind, value] = f"<{kind} {self._counts[kind]}>"
        return self._numbered[kind, value]

    def seen(self, member: Any) -> tuple[int, str]:
        """Sorts members of groups by first appearance, with those not seen before at the end."""
        return self.place_of(member.member_id)[0], repr(member[1:])

    def place_of(self, member_id: str) -> tuple[int, str]:
        found = _UUID.search(member_id)
        key = ("uuid", found[0] if found else None)
        keys = list(self._numbered)
        return keys.index(key) if key in keys else len(keys), member_id

    def in_text(self, kind: str, text: str) -> str:
        """A text with the random ids inside it replaced."""
        return _UUID.sub(lambda found: self.numbered(kind, found[0]), text)


def plain(message: Any, places: Placeholders, own: str = "") -> dict[str, Plain]:
    """A message's fields, ready to be compared.

    With ``own``, an answer about all there is keeps only the topics and groups of that prefix.
    """
    kind = type(message).__name__
    fields: dict[str, Plain] = {}
    for name, value in zip(message._fields, message, strict=True):
        if name not in _ERRORS and value == message._field_defaults[name]:
            continue
        path = f"{kind}.{name}"
        if path == "ApiVersionsResponse.api_keys":
            fields[name] = {_api_name(key): f"{low}-{high}" for key, low, high in value}
        elif path in _BY_NAME and value is not None:
            ordered = sorted(value, key=lambda config: config.name)
            fields[name] = {c.name: plain(c._replace(name=""), places) for c in ordered}
        elif path in _IN_ANY_ORDER:
            fields[name] = [plain(item, places) for item in sorted(value, key=places.seen)]
        elif path == "FetchResponse.responses":
            fields[name] = [plain(topic, places) for topic in _once_each(value)]
        elif path in _SORTED:
            fields[name] = [plain(item, places, own) for item in _sorted(path, value, own)]
        else:
            fields[name] = _field(name, value, places, own)
    return fields


def _api_name(key: int) -> str:
    return ApiKey(key).name if key in ApiKey._value2member_map_ else str(key)


def _once_each(topics: Sequence[Any]) -> list[Any]:
    """Kafka puts partitions that failed at the end, in a second entry of their topic."""
    found: dict[Any, Any] = {}
    for topic in topics:
        known = found.get(topic[:2])
        parts = topic.partitions if known is None else [*known.partitions, *topic.partitions]
        found[topic[:2]] = topic._replace(partitions=parts)
    return list(found.values())


def _sorted(path: str, items: Sequence[Any], own: str) -> list[Any]:
    key = _SORTED[path]
    if key.endswith("index"):
        return sorted(items, key=lambda item: getattr(item, key))
    named = sorted(items, key=lambda item: (getattr(item, key) is None, getattr(item, key)))
    return [item for item in named if (getattr(item, key) or "").startswith(own)]


def _field(name: str, value: Any, places: Placeholders, own: str) -> Plain:
    if hasattr(value, "_fields"):
        return plain(value, places, own)
    if name == "records":
        return _batches(value, places)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(name, bytes(value), places)
    if isinstance(value, Sequence) and not isinstance(value, str):
        inner = "node_id" if name in _NODE_LISTS else name
        return [_field(inner, item, places, own) for item in value]
    return _scalar(name, value, places)


def _bytes(name: str, value: bytes, places: Placeholders) -> str:
    if name == "topic_id":
        return places.numbered("topic id", value)
    return value.decode("latin-1")


def _scalar(name: str, value: Any, places: Placeholders) -> Plain:
    result = value
    if name in _ERRORS:
        result = ErrorCode(value).name if value in ErrorCode._value2member_map_ else value
    elif name in _FIXED:
        result = places.fixed(_FIXED[name], value)
    elif name in _TEXTS and value is not None:
        result = "<text>"
    elif name in _MEMBERS:
        result = places.in_text("uuid", value)
    elif name in _NUMBERED and value >= 0:
        result = places.numbered(_NUMBERED[name], value)
    elif name in _TIMES and abs(value - time.time() * 1000) < _RECENT_MS:
        result = "<now>"
    elif name in _NUMBERS and value > 0:
        result = "<number>"
    elif name == "log_dir":
        result = "<log dir>"
    return result


def _batches(records: Any, places: Placeholders) -> Plain:
    """What a fetch gave, batch by batch: where, how large, and the CRC for all that is inside."""
    if records is None:
        return None
    data = bytes(records)
    batches: list[Plain] = []
    rest = data
    for header in read_headers(data, 0, False):
        epoch = header.partition_leader_epoch
        producer_id, producer_epoch, sequence = struct.unpack_from(
            ">qhi", data, header.position + 43
        )
        text = f"{header.base_offset}-{header.last_offset} {header.size_bytes} bytes epoch {epoch}"
        if producer_id >= 0:  # the id is inside the CRC
            producer = places.numbered("producer id", producer_id)
            text += f" {producer} {producer_epoch} from {sequence}"
        elif header.is_log_append_time:  # so is the time
            text += " append time"
        else:
            text += f" crc {header.crc & 0xFFFFFFFF:08x}"
        batches.append(text)
        rest = data[header.position + header.size_bytes :]
    if rest:
        batches.append(f"{len(rest)} bytes of another")
    return batches
