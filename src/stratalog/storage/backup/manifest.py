"""The manifest of a backup: what a log directory held at one moment, and where its bytes are.

    {"version": 1, "backup_id": "20261116T094500123Z-3fa2c1d0", "created_ms": …, "parent": "…",
     "source": {"path": …, "cluster_id": …, "node_id": 1, "directory_id": …, "owner": "none",
                "next_producer_id": 2000},
     "topics": [{"name": "orders", "topic_id": "…", "partition_count": 3, "configs": {…},
       "partitions": [{"partition": 0, "log_start_offset": 0, "end_offset": 900,
         "log_end_offset": 950, "epochs": [[0, 0]], "producer_id_max": 17,
         "snapshots": {"900": {"digest": …, "size_bytes": 10}},
         "segments": [{"base_offset": 0, "next_offset": 900, "record_count": 900,
           "max_timestamp_ms": …, "producer_id_max": -1, "damage": "",
           "files": {".log": {"digest": "<sha256>", "size_bytes": 1048576}, ".index": …},
           "source": {"inode": 17, "size_bytes": 1048576, "modified_ns": …}}]}]}],
     "broker_configs": {"": {"log.retention.ms": "-1"}, "1": {}},
     "app_versions": [{"name": "nightly", "version": 17, "commit_id": "…", "at_ms": …,
       "is_whole": true, "offsets": [["orders", 0, 0, 900]]}],
     "left_out": ["payments"], "controller": {"quorum-state": …}, "notes": [],
     "digest": "<sha256 of all the rest>"}

Every manifest is complete: to restore it, no other is needed. ``configs`` is null where nobody
could say what they are. ``log_end_offset`` is where the log ended when the backup was begun, which
is behind ``end_offset`` if not all of it was taken; it is missing in what older versions wrote.
``broker_configs`` are the dynamic ones, of all brokers (under "") and of each by its id; null where
nobody could say, and missing in what older versions wrote.
``app_versions`` are the last commits of applications, with first and end offset in each log, and
whether the backup has all their records; missing in what older versions wrote.
``left_out`` are topics that lay there too, and were not taken; older versions did not write it.
``source`` of a segment is how its file looked, so that the next backup knows without reading it
that it has not changed. ``controller`` are files of Apache Kafka's own ``__cluster_metadata-0``.
``digest`` seals the manifest: one that was changed is not believed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn

from stratalog.errors import TopicNameError
from stratalog.storage.backup.errors import BackupDamagedError
from stratalog.storage.checkpoint import parse_id
from stratalog.storage.json_fields import JsonFields, digest_of, is_text
from stratalog.storage.layout import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    TopicPartition,
    validate_topic_name,
)
from stratalog.topic_names import CLUSTER_METADATA_TOPIC

VERSION = 1
CONTENT_BYTES_MAX = 1 << 30

_OFFSET_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_CREATED_MS_MAX = 253_402_300_799_999  # the last moment of the year 9999
# More than Kafka could serve: each of them is a row of the metadata that a restore writes.
PARTITIONS_MAX = 1_000_000

_BACKUP_ID = re.compile(r"[0-9]{8}T[0-9]{9}Z-[0-9a-f]{8}")
_NODE = re.compile(r"[0-9]{1,10}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
CONTROLLER_FILE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """Bytes that a store has, by their SHA-256."""

    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file as it was listed: one that still looks so was not changed."""

    inode: int
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """One segment, or the first part of one. ``next_offset`` is that behind its last batch.

    ``damage`` says what is wrong with its batches, if anything was when it was copied. Then the
    facts about them are those of the batches before it.
    """

    base_offset: int
    next_offset: int
    record_count: int
    max_timestamp_ms: int
    producer_id_max: int
    files: Mapping[str, StoredFile]
    source: SourceFile
    damage: str = ""

    @property
    def log(self) -> StoredFile:
        return self.files[LOG_SUFFIX]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBackup:
    """One log, up to ``end_offset``. ``snapshots`` are those of its producers, by offset.

    ``log_end_offset`` is -1 in backups of older versions, which did not note it.
    """

    partition: int
    log_start_offset: int
    end_offset: int
    epochs: tuple[tuple[int, int], ...]
    segments: tuple[StoredSegment, ...]
    snapshots: Mapping[int, StoredFile] = field(default_factory=dict)
    producer_id_max: int = -1
    log_end_offset: int = -1

    @property
    def files(self) -> Iterator[StoredFile]:
        for segment in self.segments:
            yield from segment.files.values()
        yield from self.snapshots.values()

    @property
    def size_bytes(self) -> int:
        return sum(segment.log.size_bytes for segment in self.segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicBackup:
    """``partitions`` are those of the log directory that was backed up, of ``partition_count``."""

    name: str
    topic_id: str
    partition_count: int
    configs: Mapping[str, str] | None
    partitions: tuple[PartitionBackup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSource:
    """The log directory: whose it is, as its ``meta.properties`` says, and who owned it then."""

    path: str
    cluster_id: str = ""
    node_id: int = -1
    directory_id: str = ""
    owner: str = "none"
    next_producer_id: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAppVersion:
    """The last version of an application that was committed. ``is_whole``: the backup has all its
    records. ``offsets`` are topic, partition, first offset and end offset; -1 for none."""

    name: str
    version: int
    commit_id: str
    at_ms: int
    is_whole: bool
    offsets: tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    backup_id: str
    created_ms: int
    source: BackupSource
    topics: tuple[TopicBackup, ...]
    parent: str = ""
    controller: Mapping[str, StoredFile] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] | None = None
    broker_configs: Mapping[str, Mapping[str, str]] | None = None
    app_versions: tuple[StoredAppVersion, ...] = ()

    @property
    def topics_left_out(self) -> tuple[str, ...]:
        """As far as they were noted."""
        return self.left_out or ()

    @property
    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionBackup]]:
        for topic in self.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition), each

    @property
    def files(self) -> Iterator[StoredFile]:
        for _, partition in self.partitions:
            yield from partition.files
        yield from self.controller.values()

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in {each.digest: each for each in self.files}.values())

    def topic(self, name: str) -> TopicBackup | None:
        return next((each for each in self.topics if each.name == name), None)

    def encode(self) -> bytes:
        body = json.loads(json.dumps({"version": VERSION, **asdict(self)}))
        return json.dumps({**body, "digest": digest_of(body)}, separators=(",", ":")).encode()


def as_unicode(text: str) -> str:
    """Names of files need not be Unicode; what a manifest says of them is."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_backup_id(text: str) -> bool:
    return _BACKUP_ID.fullmatch(text) is not None


def is_id(text: str) -> bool:
    """Whether it is the text form of a topic's or a directory's id; that of zeros is of none."""
    try:
        return parse_id(text).int != 0
    except ValueError:
        return False


def is_epoch(epoch: int, start_offset: int) -> bool:
    return 0 <= epoch <= _INT32_MAX and 0 <= start_offset <= _OFFSET_MAX


# --- from a disk that need not be trusted -----------------------------------------------------


def decode_manifest(path: str, content: bytes) -> BackupManifest:
    """What ``encode`` gave, or BackupDamagedError."""
    try:
        # RecursionError: brackets in brackets, thousands deep.
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BackupDamagedError(path, f"it is not JSON: {error}") from error
    given = _Fields(path, value, "the manifest")
    given.check_seal(VERSION)
    return BackupManifest(
        backup_id=given.matching("backup_id", _BACKUP_ID),
        created_ms=given.number("created_ms", 0, _CREATED_MS_MAX),
        parent=given.text("parent"),
        source=_source(given.inner("source")),
        topics=_topics(given),
        controller=_files(given.inner("controller"), CONTROLLER_FILE),
        # Sentences, some about files whose names are no text.
        notes=tuple(each for each in given.list("notes") if isinstance(each, str)),
        left_out=_left_out(given),
        broker_configs=_broker_configs(given),
        app_versions=_app_versions(given),
    )


class _Fields(JsonFields):
    """A JSON object of a manifest; ``what`` it is."""

    def __init__(self, path: str, values: Any, what: str) -> None:
        self.path = path
        self.what = what
        super().__init__(values)

    def refuse(self, reason: str) -> NoReturn:
        raise BackupDamagedError(self.path, f"{self.what}: {reason}")

    def topic_or_directory_id(self, name: str) -> str:
        """Kafka's text form of an id, or nothing."""
        value = self.text(name)
        if value and not is_id(value):
            self.refuse(f"{name} is {value[:100]!r}, which is no id")
        return value

    def inner(self, name: str) -> "_Fields":
        return _Fields(self.path, self.values.get(name), name)

    def rows(self, name: str) -> Iterator["_Fields"]:
        for each in self.list(name):
            yield _Fields(self.path, each, f"one of {name}")


class _FileFields(_Fields):
    number_max = 2**64 - 1  # an inode's number takes all of its 64 bits


def _source(given: _Fields) -> BackupSource:
    return BackupSource(
        path=given.path_text("path"),
        cluster_id=given.text("cluster_id"),
        node_id=given.number("node_id", -1, _INT32_MAX),
        directory_id=given.topic_or_directory_id("directory_id"),
        owner=given.text("owner"),
        next_producer_id=given.number("next_producer_id", -1),
    )


def _left_out(given: _Fields) -> tuple[str, ...] | None:
    if given.values.get("left_out") is None:
        return None
    try:
        return tuple(map(validate_topic_name, given.list("left_out")))
    except (TopicNameError, TypeError) as error:
        given.refuse(f"left_out: {error}")


def _broker_configs(given: _Fields) -> dict[str, dict[str, str]] | None:
    if given.values.get("broker_configs") is None:
        return None
    told = given.inner("broker_configs")
    for node in told.values:
        if node and (_NODE.fullmatch(node) is None or int(node) > _INT32_MAX):
            told.refuse(f"{node[:100]!r} is the id of no broker")
    return {node: _configs(told.inner(node)) for node in told.values}


def _app_versions(given: _Fields) -> tuple[StoredAppVersion, ...]:
    if "app_versions" not in given.values:
        return ()
    found = tuple(_app_version(each) for each in given.rows("app_versions"))
    if len({each.name for each in found}) != len(found):
        given.refuse("app_versions has one name twice")
    return found


def _app_version(given: _Fields) -> StoredAppVersion:
    offsets = []
    for each in given.list("offsets"):
        if not isinstance(each, list) or [type(part) for part in each] != [str, int, int, int]:
            given.refuse("an offset is not [topic, partition, first offset, end offset]")
        if not is_text(each[0]) or not all(-1 <= part <= _OFFSET_MAX for part in each[1:]):
            given.refuse(f"{each!r:.100} are no offsets of a log")
        offsets.append((each[0], each[1], each[2], each[3]))
    if not given.text("name"):
        given.refuse("the name is empty")
    return StoredAppVersion(
        name=given.text("name"),
        version=given.number("version"),
        commit_id=given.text("commit_id"),
        at_ms=given.number("at_ms"),
        is_whole=given.flag("is_whole"),
        offsets=tuple(offsets),
    )


def _configs(told: _Fields) -> dict[str, str]:
    if not all(map(is_text, told.values)):
        told.refuse("a name has a half of a character: it cannot be written as UTF-8")
    return {each: told.text(each) for each in told.values}


def _topics(given: _Fields) -> tuple[TopicBackup, ...]:
    topics = tuple(_topic(each) for each in given.rows("topics"))
    names = [each.name for each in topics]
    ids = [each.topic_id for each in topics if each.topic_id]
    if len({*names}) != len(names) or len({*ids}) != len(ids):
        given.refuse("two of its topics have one name, or one id")
    if CLUSTER_METADATA_TOPIC in names:
        given.refuse(f"{CLUSTER_METADATA_TOPIC} is no topic of it")
    return topics


def _topic(given: _Fields) -> TopicBackup:
    try:
        name = validate_topic_name(given.text("name"))
    except TopicNameError as error:
        given.refuse(str(error))
    partitions = tuple(_partition(each) for each in given.rows("partitions"))
    numbers = {each.partition for each in partitions}
    count = given.number("partition_count", 0, PARTITIONS_MAX)
    if len(numbers) != len(partitions) or max(numbers, default=-1) >= count:
        given.refuse(f"{name} has {count} partitions and names others, or one twice")
    configs = given.values.get("configs")
    if configs is not None:
        configs = _configs(given.inner("configs"))
    return TopicBackup(
        name=name,
        topic_id=given.topic_or_directory_id("topic_id"),
        partition_count=count,
        configs=configs,
        partitions=partitions,
    )


def _partition(given: _Fields) -> PartitionBackup:
    segments = tuple(_segment(each) for each in given.rows("segments"))
    end_offset, at = given.number("end_offset"), -1
    for each in segments:
        if not at < each.base_offset <= each.next_offset <= end_offset:
            given.refuse(f"its segment {each.base_offset} does not follow the one before")
        at = max(each.base_offset, each.next_offset - 1)
    log_start_offset = given.number("log_start_offset")
    if log_start_offset > end_offset:
        given.refuse(f"it starts at {log_start_offset}, behind its end at {end_offset}")
    snapshots = given.inner("snapshots")
    return PartitionBackup(
        partition=given.number("partition"),
        log_start_offset=log_start_offset,
        end_offset=end_offset,
        epochs=tuple(_epoch(given, each) for each in given.list("epochs")),
        segments=segments,
        snapshots={
            _offset(given, name): file
            for name, file in _files(snapshots, re.compile(r"[0-9]{1,19}")).items()
        },
        producer_id_max=given.number("producer_id_max", -1),
        log_end_offset=given.number("log_end_offset", -1)
        if "log_end_offset" in given.values
        else -1,
    )


def _offset(given: _Fields, text: str) -> int:
    if int(text) > _OFFSET_MAX:
        given.refuse(f"{text} is no offset")
    return int(text)


def _epoch(given: _Fields, value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or [type(each) for each in value] != [int, int]:
        given.refuse("an epoch is not [epoch, first offset]")
    if not is_epoch(*value):
        given.refuse(f"{value} is no epoch with its first offset")
    return value[0], value[1]


def _segment(given: _Fields) -> StoredSegment:
    source = _FileFields(given.path, given.values.get("source"), "source")
    suffixes = "|".join(map(re.escape, (LOG_SUFFIX, *INDEX_SUFFIXES)))
    files = _files(given.inner("files"), re.compile(suffixes))
    if LOG_SUFFIX not in files:
        given.refuse(f"a segment has no {LOG_SUFFIX}")
    return StoredSegment(
        base_offset=given.number("base_offset"),
        next_offset=given.number("next_offset"),
        record_count=given.number("record_count"),
        max_timestamp_ms=given.number("max_timestamp_ms", -(2**63)),
        producer_id_max=given.number("producer_id_max", -1),
        damage=given.path_text("damage"),
        files=files,
        source=SourceFile(
            inode=source.number("inode"),
            size_bytes=source.number("size_bytes"),
            modified_ns=source.number("modified_ns", -(2**63)),
        ),
    )


def _files(given: _Fields, names: re.Pattern[str]) -> dict[str, StoredFile]:
    found = {}
    for name in given.values:
        if names.fullmatch(name) is None:
            given.refuse(f"{name[:100]!r} does not belong there")
        file = given.inner(name)
        found[name] = StoredFile(
            digest=file.matching("digest", _DIGEST), size_bytes=file.number("size_bytes")
        )
    return found
