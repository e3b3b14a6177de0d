"""Leases: what readers of a log's files hold, as values and as files in the log directory.

    <log dir>/.stratalog-lease-3f2a...    its modification time says until when it holds
    {"version": 1, "holder": "spark ...", "created_ms": ..., "ranges": {"orders": {"0": [10, 500]}}}

A lease names offsets [from, end) of partitions. While it lasts, the owner of the log directory
keeps the files of segments with such offsets, wherever they went (``lease_book``). To renew it is
to move the file's modification time, which whoever may write the file can do, on any host that has
the file system: the owner looks at it now and then. To end it is to remove the file. A plain file
at the top of a log directory is nothing to Apache Kafka.

A lease is a courtesy to a reader, never a promise to a disk: it is not synced, and what cannot be
read or written of it costs nobody but that reader anything.
"""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stratalog.errors import LeaseError, TopicNameError
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.layout import (
    TopicPartition,
    lease_file,
    parse_lease_file,
    validate_topic_name,
)

# Of all leases of an owner together, and what one may say: nobody holds more than this.
LEASES_MAX = 1_000
RANGES_MAX = 1_000_000
HOLDER_CHARACTERS_MAX = 200
CONTENT_BYTES_MAX = 16 << 20

_OFFSET_MAX = 2**63 - 1
_ID = re.compile(r"[0-9a-f]{32}")

Ranges = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Held by ``holder``, which is text for people, until ``until_ms``."""

    lease_id: str
    holder: str
    created_ms: int
    until_ms: int
    ranges: Ranges

    def covers(self, topic_partition: TopicPartition, start_offset: int, end_offset: int) -> bool:
        """Whether it holds any of the offsets [start_offset, end_offset)."""
        held = self.ranges.get(topic_partition)
        return held is not None and held[0] < end_offset and start_offset < held[1]

    def until(self, until_ms: int) -> "Lease":
        return replace(self, until_ms=until_ms)

    @property
    def topics(self) -> dict[str, int]:
        """How many partitions it holds of each topic."""
        counts: dict[str, int] = {}
        for key in self.ranges:
            counts[key.topic] = counts.get(key.topic, 0) + 1
        return counts


def new_lease_id() -> str:
    return uuid.uuid4().hex


def is_lease_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


# --- as JSON ----------------------------------------------------------------------------------


def ranges_to_json(ranges: Ranges) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), (from_offset, end_offset) in ranges.items():
        found.setdefault(topic, {})[str(partition)] = [from_offset, end_offset]
    return found


def parse_ranges(value: Any) -> dict[TopicPartition, tuple[int, int]]:
    """What ``ranges_to_json`` gave, from somebody who need not be trusted; or LeaseError."""
    if not isinstance(value, dict) or not value:
        raise LeaseError('the ranges are not {"topic": {"0": [from_offset, end_offset]}}')
    found: dict[TopicPartition, tuple[int, int]] = {}
    for topic, partitions in value.items():
        try:
            validate_topic_name(topic)
        except TopicNameError as error:
            raise LeaseError(str(error)) from error
        if not isinstance(partitions, dict):
            raise LeaseError(f"the ranges of {topic} are not by partition")
        for number, held in partitions.items():
            key = TopicPartition(topic, _partition(topic, number))
            found[key] = _range(key, held)
    if len(found) > RANGES_MAX:
        raise LeaseError(f"a lease holds at most {RANGES_MAX} partitions, not {len(found)}")
    return found


def _partition(topic: str, number: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) <= 10 and int(number) < 2**31):
        raise LeaseError(f"{number!r} is no partition of {topic}")
    return int(number)


def _range(key: TopicPartition, held: Any) -> tuple[int, int]:
    if not isinstance(held, list) or len(held) != 2 or not all(type(each) is int for each in held):
        raise LeaseError(f"the range of {key} is not [from_offset, end_offset]")
    from_offset, end_offset = held
    if not 0 <= from_offset <= end_offset <= _OFFSET_MAX:
        raise LeaseError(f"{key} has no offsets from {from_offset} to {end_offset}")
    return from_offset, end_offset


def cut_holder(holder: str) -> str:
    """For one line of a list, on any terminal."""
    text = "".join(each if each.isprintable() else " " for each in holder)
    return text[:HOLDER_CHARACTERS_MAX]


def encode_lease(lease: Lease) -> bytes:
    content = {
        "version": 1,
        "holder": lease.holder,
        "created_ms": lease.created_ms,
        "ranges": ranges_to_json(lease.ranges),
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_lease(lease_id: str, content: bytes, until_ms: int) -> Lease:
    try:
        # RecursionError: brackets in brackets, thousands deep.
        found = json.loads(content)
        holder, created_ms = found["holder"], found["created_ms"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LeaseError(f"lease {lease_id} is garbled: {error}") from error
    if not isinstance(holder, str) or type(created_ms) is not int:
        raise LeaseError(f"lease {lease_id} is garbled: who holds it since when is not said")
    return Lease(
        lease_id=lease_id,
        holder=cut_holder(holder),
        created_ms=created_ms,
        until_ms=until_ms,
        ranges=parse_ranges(found.get("ranges")),
    )


# --- as files ---------------------------------------------------------------------------------


def write_lease(files: FileSystem, log_dir: str, lease: Lease) -> None:
    """All at once for whoever looks."""
    path = lease_file(log_dir, lease.lease_id)
    temporary = f"{path}.tmp"
    files.unlink(temporary, missing_ok=True)
    file = files.open(temporary, create=True)
    try:
        file.write_at(0, [encode_lease(lease)])
    finally:
        file.close()
    files.set_modified(temporary, lease.until_ms)
    files.rename(temporary, path)


def renew_lease_file(files: FileSystem, log_dir: str, lease_id: str, until_ms: int) -> None:
    files.set_modified(lease_file(log_dir, lease_id), until_ms)


def remove_lease(files: FileSystem, log_dir: str, lease_id: str) -> None:
    path = lease_file(log_dir, lease_id)
    files.unlink(path, missing_ok=True)


def read_lease(files: FileSystem, log_dir: str, lease_id: str) -> Lease | None:
    """None if there is none of that id. LeaseError if it is garbled."""
    path = lease_file(log_dir, lease_id)
    entry = files.stat(path)
    if entry is None:
        return None
    if entry.is_directory or entry.size_bytes > CONTENT_BYTES_MAX:
        raise LeaseError(f"{path} is no lease: it is a directory, or too large")
    return decode_lease(lease_id, read_file(files, path), entry.modified_ms)


def list_lease_files(files: FileSystem, log_dir: str) -> dict[str, int]:
    """The ids of the leases here, with the time until which each holds."""
    found: dict[str, int] = {}
    for entry in files.list(log_dir):
        lease_id = None if entry.is_directory else parse_lease_file(entry.name)
        if lease_id is not None and not entry.is_link:
            found[lease_id] = entry.modified_ms
    return found
