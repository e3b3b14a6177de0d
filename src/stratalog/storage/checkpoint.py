"""Small text files: offset checkpoints, leader epochs, a partition's topic id.

    0                 version
    2                 number of entries
    orders 0 1234     topic, partition, offset    (offset checkpoints)
    7 1234            epoch, start offset         (leader-epoch-checkpoint)

Each is replaced as a whole: temporary file, fsync, rename, fsync of the directory.
"""

import base64
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stratalog.errors import CorruptFileError
from stratalog.storage.files import FileSystem, read_file, replace_file
from stratalog.storage.layout import TopicPartition

_VERSION = 0
_INTEGER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """From ``start_offset`` on, batches were written by the leader of ``epoch``."""

    epoch: int
    start_offset: int


def read_offsets(files: FileSystem, path: str) -> dict[TopicPartition, int]:
    """The checkpointed offsets; a missing or empty file holds none."""
    offsets = {}
    for topic, partition, offset in _read_lines(files, path, fields=3):
        key = TopicPartition(topic, _integer(path, partition))
        offsets[key] = _integer(path, offset)
    return offsets


def read_offsets_if_sound(files: FileSystem, path: str) -> dict[TopicPartition, int]:
    """The same for whoever only looks: what is damaged tells nothing, and is others' to mend."""
    try:
        return read_offsets(files, path)
    except CorruptFileError:
        return {}


def write_offsets(files: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = [f"{key.topic} {key.partition} {offset}" for key, offset in offsets.items()]
    replace_file(files, path, _format_lines(lines))


def read_epochs(files: FileSystem, path: str) -> list[EpochEntry]:
    return [
        EpochEntry(_integer(path, epoch), _integer(path, start))
        for epoch, start in _read_lines(files, path, fields=2)
    ]


def write_epochs(
    files: FileSystem, path: str, entries: Sequence[EpochEntry], *, is_synced: bool = True
) -> None:
    replace_file(files, path, format_epochs(entries), is_synced=is_synced)


def format_epochs(entries: Sequence[EpochEntry]) -> bytes:
    return _format_lines([f"{entry.epoch} {entry.start_offset}" for entry in entries])


def read_topic_id(files: FileSystem, path: str) -> uuid.UUID | None:
    """The id in ``partition.metadata``; None when there is no such file."""
    if not files.exists(path):
        return None
    values = {}
    for line in _text(files, path).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            values[name.strip()] = value.strip()
    if not values.get("version", "").isdigit():
        raise CorruptFileError(path, "has no line 'version: N'")
    try:
        topic_id = parse_id(values["topic_id"])
    except (KeyError, ValueError) as error:
        raise CorruptFileError(path, "has no line 'topic_id: <base64 uuid>'") from error
    if topic_id.int == 0:
        raise CorruptFileError(path, "holds the zero topic id, which no topic has")
    return topic_id


def write_topic_id(
    files: FileSystem, path: str, topic_id: uuid.UUID, *, is_synced: bool = True
) -> None:
    content = f"version: 0\ntopic_id: {format_id(topic_id)}".encode()
    replace_file(files, path, content, is_synced=is_synced)


def format_id(value: uuid.UUID) -> str:
    """Kafka's text form of a uuid: base64url without padding, 22 characters."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_id(text: str) -> uuid.UUID:
    """Read Kafka's text form; ``ValueError`` if it is none."""
    if len(text) != 22:
        raise ValueError(f"{text!r} is no 22-character uuid")
    return uuid.UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))


def _read_lines(files: FileSystem, path: str, *, fields: int) -> list[list[str]]:
    if not files.exists(path):
        return []
    lines = _text(files, path).splitlines()
    if not lines:
        return []
    if _integer(path, lines[0]) != _VERSION:
        raise CorruptFileError(path, f"has version {lines[0]!r}; only {_VERSION} is known")
    if len(lines) == 1:
        return []
    count = _integer(path, lines[1])
    rows = [line.split() for line in lines[2:]]
    for row in rows:
        if len(row) != fields:
            raise CorruptFileError(path, f"has a malformed line: {' '.join(row)!r}")
    if len(rows) != count:
        raise CorruptFileError(path, f"announces {count} entries and holds {len(rows)}")
    return rows


def _format_lines(lines: Sequence[str]) -> bytes:
    return ("\n".join([str(_VERSION), str(len(lines)), *lines]) + "\n").encode()


def _text(files: FileSystem, path: str) -> str:
    try:
        return read_file(files, path).decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, "is not UTF-8 text") from error


def _integer(path: str, text: str) -> int:
    if _INTEGER.fullmatch(text) is None or not -(2**63) <= int(text) < 2**63:
        raise CorruptFileError(path, f"has {text[:40]!r} where a number is expected")
    return int(text)
