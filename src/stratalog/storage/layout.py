"""Names of files and directories in a log directory, built and parsed; the only place that knows.

<log dir>/orders-3/                                    a replica: topic, last dash, partition
<log dir>/orders-3.<32 hex>-delete/                    waiting to be deleted (-future, -stray)
<log dir>/orders-3/00000000000000000042.log            a segment whose base offset is 42
<log dir>/orders-3/00000000000000000042.log.deleted    the suffix comes after the whole name
<log dir>/orders-3/.stratalog/                         what is ours; Apache Kafka ignores it
<log dir>/orders-3/.stratalog/leased/                  what readers hold of segments that are gone:
  00000000000000000042-00000000000000000099-0.log      base offset, end offset, which of that name
<log dir>/.stratalog-lease-<32 hex>                    a lease: until its modification time
<log dir>/orders-3/.stratalog/staging/<32 hex>/        files that others want to become part of it
<log dir>/.stratalog-staging-<32 hex>                  those files' lease: until then they stay
<log dir>/.stratalog-commits                           the commit journal
<log dir>/.stratalog-restoring/                        a backup is being restored: not whole yet
"""

import os
import re
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from stratalog.errors import TopicNameError
from stratalog.topic_names import broken_name_rule

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
INDEX_SUFFIXES = SEGMENT_SUFFIXES[1:]

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

LOCK_FILE = ".lock"
OWNER_FILE = ".stratalog-owner"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)

OWN_DIRECTORY = ".stratalog"
TIME_RANGES_SUFFIX = ".timeranges"
LEASED_DIRECTORY = f"{OWN_DIRECTORY}/leased"
CUT_DIRECTORY = f"{OWN_DIRECTORY}/cut"
LEASE_FILE_PREFIX = ".stratalog-lease-"
STAGING_DIRECTORY = f"{OWN_DIRECTORY}/staging"
STAGING_FILE_PREFIX = ".stratalog-staging-"
COMMIT_JOURNAL = ".stratalog-commits"
RESTORING_DIRECTORY = ".stratalog-restoring"
REMOTE_INDEX_CACHE = "remote-log-index-cache"

DELETE_DIRECTORY = "-delete"
FUTURE_DIRECTORY = "-future"
STRAY_DIRECTORY = "-stray"
_DIRECTORY_SUFFIXES = (DELETE_DIRECTORY, FUTURE_DIRECTORY, STRAY_DIRECTORY)

FILE_NAME_LENGTH_MAX = 255
_SUFFIXED_DIRECTORY = re.compile(r"(\S+)-(\S+)\.(\S+)(-delete|-future|-stray)")
_SEGMENT_FILE = re.compile(
    r"(?P<offset>[0-9]{20,})(?P<kind>\.log|\.index|\.timeindex|\.txnindex|\.snapshot)"
    r"(?P<state>\.deleted|\.cleaned|\.swap)?"
)
_LEASE_FILE = re.compile(r"\.stratalog-lease-(?P<id>[0-9a-f]{32})")
_STAGING_FILE = re.compile(r"\.stratalog-staging-(?P<id>[0-9a-f]{32})")
_LEASED_FILE = re.compile(
    r"(?P<base>[0-9]{20})-(?P<end>[0-9]{20})-(?P<number>[0-9]{1,9})"
    r"(?P<kind>\.log|\.index|\.timeindex|\.txnindex)"
)


class TopicPartition(NamedTuple):
    """A tuple, since everything is looked up by it and tuples hash quickest."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class SegmentFileName:
    """A parsed file name: ``state`` is one of the three suffixes, or empty for a plain file."""

    offset: int
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class ReplicaDirectoryName:
    """A parsed directory name: ``state`` is ``-delete``, ``-future``, ``-stray`` or empty."""

    topic_partition: TopicPartition
    state: str


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


def time_ranges_file(directory: str, base_offset: int, state: str = "") -> str:
    """The side-car of a segment; ``state`` is ``.cleaned`` while its segment is."""
    return segment_file(f"{directory}/{OWN_DIRECTORY}", base_offset, TIME_RANGES_SUFFIX) + state


def parse_segment_file(name: str) -> SegmentFileName | None:
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match["offset"]) >= 2**63:
        return None
    return SegmentFileName(int(match["offset"]), match["kind"], match["state"] or "")


@dataclass(frozen=True, slots=True)
class LeasedFileName:
    """A parsed name in ``leased``: a file of a segment that owned the offsets [base, end)."""

    base_offset: int
    end_offset: int
    number: int
    kind: str


def leased_file(directory: str, name: LeasedFileName) -> str:
    return (
        f"{directory}/{LEASED_DIRECTORY}/{name.base_offset:020d}-{name.end_offset:020d}"
        f"-{name.number}{name.kind}"
    )


def parse_leased_file(name: str) -> LeasedFileName | None:
    match = _LEASED_FILE.fullmatch(name)
    if match is None:
        return None
    return LeasedFileName(
        int(match["base"]), int(match["end"]), int(match["number"]), match["kind"]
    )


def lease_file(log_dir: str, lease_id: str) -> str:
    return f"{log_dir}/{LEASE_FILE_PREFIX}{lease_id}"


def parse_lease_file(name: str) -> str | None:
    """The lease's id."""
    match = _LEASE_FILE.fullmatch(name)
    return None if match is None else match["id"]


def staging_directory(directory: str, staging_id: str) -> str:
    """Where files are staged for the partition of ``directory``."""
    return f"{directory}/{STAGING_DIRECTORY}/{staging_id}"


def staging_file(log_dir: str, staging_id: str) -> str:
    return f"{log_dir}/{STAGING_FILE_PREFIX}{staging_id}"


def parse_staging_file(name: str) -> str | None:
    """The id of what is staged."""
    match = _STAGING_FILE.fullmatch(name)
    return None if match is None else match["id"]


def validate_topic_name(name: str) -> str:
    """Return ``name``, or raise the sentence that says which of Kafka's rules it breaks."""
    if (rule := broken_name_rule(name)) is not None:
        raise TopicNameError(name, rule)
    return name


def replica_directory(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def suffixed_directory(topic_partition: TopicPartition, state: str) -> str:
    """The unique name a replica's directory takes when it is deleted, strayed or being moved.

    The topic is cut so that the whole fits a file name; only ``-future`` names are never cut,
    because the topic must be readable from them.
    """
    tail = f"-{topic_partition.partition}.{uuid.uuid4().hex}{state}"
    if state == FUTURE_DIRECTORY:
        return topic_partition.topic + tail
    return topic_partition.topic[: FILE_NAME_LENGTH_MAX - len(tail)] + tail


def parse_replica_directory(name: str) -> ReplicaDirectoryName:
    state = next((suffix for suffix in _DIRECTORY_SUFFIXES if name.endswith(suffix)), "")
    plain = name
    if state:
        if _SUFFIXED_DIRECTORY.fullmatch(name) is None:
            raise TopicNameError(name, f"a {state} directory is called topic-partition.id{state}")
        plain = name[: name.rindex(".")]
    topic, dash, partition = plain.rpartition("-")
    if not dash or not topic or not _is_partition(partition):
        raise TopicNameError(name, "a replica's directory is called topic-partition")
    return ReplicaDirectoryName(TopicPartition(topic, int(partition)), state)


def _is_partition(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < 2**31


def base_offset_of(path: str) -> int:
    """The offset a segment file's name tells, or -1 when it is no such name."""
    parsed = parse_segment_file(os.path.basename(path))
    return -1 if parsed is None else parsed.offset
