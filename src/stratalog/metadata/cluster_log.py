"""What a KRaft controller wrote down: ``__cluster_metadata-0`` read, and what it says in the end.

    00000000000000000000.log                        records, one after the other
    00000000000000004711-0000000003.checkpoint      a snapshot: all that was so below offset 4711

A snapshot is whole if its last record is the footer. The newest whole one counts, and after it
every record of the log from its offset on. Records between the beginning and the end of a
transaction count together, when it has ended. Nothing is guessed: offsets that are missing or
records that cannot be read make the whole thing unreadable.
"""

import base64
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from typing_extensions import Buffer

from stratalog.errors import AdoptionError, CorruptBatchError, RecordError
from stratalog.metadata.image import CLUSTER_DEFAULT, NO_LEADER
from stratalog.metadata.record_schemas import METADATA_RECORDS
from stratalog.records import find_valid_batch, read_headers
from stratalog.records.columns import iterate_columns
from stratalog.records.control import ControlType, parse_control_record
from stratalog.records.messages import decode_framed

_LOG = re.compile(r"([0-9]{20})\.log")
_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_NODE = re.compile(r"[0-9]{0,10}")

_TOPIC = 2
_PARTITION = 3
_CONFIG = 4
_PARTITION_CHANGE = 5
_REMOVE_TOPIC = 9
_PRODUCER_IDS = 15
_BEGIN_TRANSACTION, _END_TRANSACTION, _ABORT_TRANSACTION = 23, 24, 25
_APPLIED = (_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE, _REMOVE_TOPIC, _PRODUCER_IDS)
_TRANSACTIONS = (_BEGIN_TRANSACTION, _END_TRANSACTION, _ABORT_TRANSACTION)

_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPartition:
    replicas: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: tuple[int, ...] = ()
    # In which directory of its node each replica lies; as many as replicas, or none.
    directories: tuple[uuid.UUID, ...] = ()


@dataclass(slots=True)
class RecordedTopic:
    name: str
    topic_id: uuid.UUID
    partitions: dict[int, RecordedPartition] = field(default_factory=dict)


@dataclass(slots=True)
class ClusterMetadata:
    """What counted when the log ended. ``skipped`` counts records of types that are not known."""

    topics: dict[uuid.UUID, RecordedTopic] = field(default_factory=dict)
    removed: set[uuid.UUID] = field(default_factory=set)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[int | None, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    end_offset: int = 0
    skipped: int = 0


class _Record(NamedTuple):
    offset: int
    is_control: bool
    key: bytes | None
    value: bytes | None


def is_metadata_file(name: str) -> bool:
    """Whether a file of that name holds records of the controller."""
    return bool(_LOG.fullmatch(name) or _SNAPSHOT.fullmatch(name))


def read_cluster_metadata(
    names: Iterable[str], read: Callable[[str], Buffer]
) -> ClusterMetadata | None:
    """What the files of ``__cluster_metadata-0`` say; None if there are none of its kind.

    ``names`` are the names in the directory; ``read`` gives the bytes of one of them.
    """
    listed = sorted(names)
    logs = {int(found[1]): name for name in listed if (found := _LOG.fullmatch(name))}
    snapshots = {int(found[1]): name for name in listed if (found := _SNAPSHOT.fullmatch(name))}
    if not logs and not snapshots:
        return None
    replay = _read_snapshot(snapshots, read)
    start_offset = replay.metadata.end_offset
    needed = [base for base in logs if base <= start_offset]
    first = max(needed, default=min(logs, default=start_offset))
    for base in sorted(base for base in logs if base >= first):
        _read_log(replay, logs[base], read(logs[base]))
    return replay.metadata


def _read_snapshot(snapshots: Mapping[int, str], read: Callable[[str], Buffer]) -> "_Replay":
    """What the newest whole snapshot says; nothing if there is none."""
    for end_offset in sorted(snapshots, reverse=True):
        name = snapshots[end_offset]
        replay, is_whole = _Replay(), False
        try:
            for record in _records(name, read(name)):
                is_whole = record.is_control and _is_footer(record)
                replay.add(name, record)
        except AdoptionError:
            continue
        if is_whole:
            replay.metadata.end_offset = end_offset
            return replay
    return _Replay()


def _is_footer(record: _Record) -> bool:
    return parse_control_record(record.key, record.value).type is ControlType.SNAPSHOT_FOOTER


def _read_log(replay: "_Replay", name: str, data: Buffer) -> None:
    _check_end(name, data)
    metadata = replay.metadata
    for record in _records(name, data):
        if record.offset < metadata.end_offset:
            continue
        if record.offset != metadata.end_offset:
            raise AdoptionError(
                f"{name}: offset {record.offset} follows where {metadata.end_offset} is expected"
            )
        replay.add(name, record)
        metadata.end_offset += 1


def _check_end(name: str, data: Buffer) -> None:
    """A write that was interrupted is at the end. Where a whole batch follows, something else is
    wrong, and what comes after it would be missed."""
    try:
        headers = read_headers(data)
    except RecordError as error:
        raise AdoptionError(f"{name}: {error}") from error
    end = headers[-1].position + headers[-1].size_bytes if headers else 0
    if find_valid_batch(data, end, 0, 0, 2**63 - 1) >= 0:
        raise AdoptionError(f"{name}: what is at byte {end} is no batch, and batches follow it")


def _records(name: str, data: Buffer) -> Iterator[_Record]:
    columns = ("offset", "is_control", "key", "value")
    try:
        for batch in iterate_columns(data, columns=columns, include_control=True):
            rows = (batch.column(column).to_pylist() for column in columns)
            yield from map(_Record._make, zip(*rows, strict=True))
    except RecordError as error:
        raise AdoptionError(f"{name}: {error}") from error


def _id(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


class _Replay:
    """Takes records in order and keeps what they come to."""

    def __init__(self) -> None:
        self.metadata = ClusterMetadata()
        self._pending: list[tuple[int, dict[str, Any]]] | None = None
        self._apply: dict[int, Callable[[dict[str, Any]], None]] = {
            _TOPIC: self._topic,
            _PARTITION: self._partition,
            _CONFIG: self._config,
            _PARTITION_CHANGE: self._partition_change,
            _REMOVE_TOPIC: self._remove_topic,
            _PRODUCER_IDS: self._producer_ids,
        }

    def add(self, name: str, record: _Record) -> None:
        if record.is_control:
            return
        try:
            self._add(record.value or b"")
        except RecordError as error:
            raise AdoptionError(f"{name}, offset {record.offset}: {error}") from error

    def _add(self, value: bytes) -> None:
        # Version of the frame and type are a byte each as long as both are below 128; most
        # records are idle ticks of the controller, which need not be decoded.
        kind = value[1] if len(value) > 1 and value[0] == 1 else -1
        if kind in METADATA_RECORDS and kind not in _APPLIED and kind not in _TRANSACTIONS:
            return
        if kind >= 0 and kind not in METADATA_RECORDS:
            self.metadata.skipped += 1
            return
        kind, _, fields = decode_framed(METADATA_RECORDS, value)
        if kind == _BEGIN_TRANSACTION:
            self._pending = []
        elif kind == _ABORT_TRANSACTION:
            self._pending = None
        elif kind == _END_TRANSACTION:
            ended, self._pending = self._pending or [], None
            for each, its_fields in ended:
                self._apply[each](its_fields)
        elif self._pending is not None:
            self._pending.append((kind, fields))
        else:
            self._apply[kind](fields)

    def _known_topic(self, fields: dict[str, Any]) -> RecordedTopic:
        topic = self.metadata.topics.get(_id(fields["topicId"]))
        if topic is None:
            raise CorruptBatchError(f"there is no topic with the id {fields['topicId']}")
        return topic

    def _topic(self, fields: dict[str, Any]) -> None:
        topic_id = _id(fields["topicId"])
        self.metadata.topics[topic_id] = RecordedTopic(fields["name"], topic_id)

    def _partition(self, fields: dict[str, Any]) -> None:
        topic = self._known_topic(fields)
        topic.partitions[fields["partitionId"]] = RecordedPartition(
            replicas=tuple(fields["replicas"]),
            leader=fields["leader"],
            leader_epoch=fields["leaderEpoch"],
            partition_epoch=fields["partitionEpoch"],
            isr=tuple(fields["isr"]),
            directories=tuple(map(_id, fields.get("directories", ()))),
        )

    def _partition_change(self, fields: dict[str, Any]) -> None:
        topic = self._known_topic(fields)
        before = topic.partitions.get(fields["partitionId"])
        if before is None:
            raise CorruptBatchError(f"{topic.name} has no partition {fields['partitionId']}")
        after = replace(before, partition_epoch=before.partition_epoch + 1)
        if (replicas := fields.get("replicas")) is not None:
            after = replace(after, replicas=tuple(replicas))
        if (isr := fields.get("isr")) is not None:
            after = replace(after, isr=tuple(isr))
        if (directories := fields.get("directories")) is not None:
            after = replace(after, directories=tuple(map(_id, directories)))
        if "leader" in fields:
            after = replace(after, leader=fields["leader"], leader_epoch=before.leader_epoch + 1)
        topic.partitions[fields["partitionId"]] = after

    def _config(self, fields: dict[str, Any]) -> None:
        resource: str = fields["resourceName"]
        if fields["resourceType"] == _TOPIC_RESOURCE:
            configs = self.metadata.topic_configs.setdefault(resource, {})
        elif fields["resourceType"] == _BROKER_RESOURCE and _NODE.fullmatch(resource):
            node = int(resource) if resource else CLUSTER_DEFAULT
            configs = self.metadata.broker_configs.setdefault(node, {})
        else:
            return
        if fields["value"] is None:
            configs.pop(fields["name"], None)
        else:
            configs[fields["name"]] = fields["value"]

    def _remove_topic(self, fields: dict[str, Any]) -> None:
        topic = self._known_topic(fields)
        del self.metadata.topics[topic.topic_id]
        self.metadata.removed.add(topic.topic_id)
        self.metadata.topic_configs.pop(topic.name, None)

    def _producer_ids(self, fields: dict[str, Any]) -> None:
        self.metadata.next_producer_id = fields["nextProducerId"]
