"""The manifest of a commit: which staged files become part of which logs, and under which id.

    {"version": 1, "id": "3f2a…", "kind": "append", "staging": "<32 hex>", "holder": "spark …",
     "app": {"name": "<query id>", "version": 17},
     "partitions": [{"topic": "orders", "topic_id": "", "partition": 0, "files": [
        {"name": "00007-0-00000.log", "size_bytes": 1048576, "record_count": 900,
         "digest": "9ae0daaf", "base_offset": 0}]}],
     "digest": "<sha256 of all the rest>"}

``kind`` is what becomes of the files:

    append    their records are put at the end of the log, in the order of ``files``
    replace   each of ``groups`` takes the place of its source segments (compaction)
    restore   an empty log becomes these segments, with the offsets they have (backup)

An id is committed at most once. With ``app``, so is each version of an application's name, and no
version is taken below one that was: a stream is (query id, batch id). Names of files are plain
names in the staging directory of their partition. Nothing of a manifest is trusted: sizes, counts
and digests are compared with the files, and each file is read and checked.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NoReturn

from stratalog.errors import TopicNameError
from stratalog.storage.commits.errors import ManifestError
from stratalog.storage.json_fields import JsonFields, digest_of, is_text
from stratalog.storage.layout import TopicPartition, validate_topic_name

VERSION = 1
CONTENT_BYTES_MAX = 64 << 20
FILES_MAX = 1_000_000
TEXT_CHARACTERS_MAX = 200
# Above these a log could not go on: another epoch has to follow, and many offsets.
EPOCH_MAX = 2**31 - 2
OFFSET_MAX = 2**62

_ID = re.compile(r"[0-9A-Za-z._:-]{1,200}")
_STAGING_ID = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[0-9a-z][0-9a-z-]{0,99}\.log")
_DIGEST = re.compile(r"[0-9a-f]{8}")


class CommitKind(StrEnum):
    APPEND = "append"
    REPLACE = "replace"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A ``.log`` of whole batches. ``digest`` is the CRC-32C of its batches' CRCs, in order: what
    giving it other offsets leaves alone; of a replacement, which keeps them, with its offsets and
    leader epochs (``kept_digest``). ``has_aborts``: a ``.txnindex`` lies beside it."""

    name: str
    size_bytes: int
    record_count: int
    digest: str
    base_offset: int = 0
    has_aborts: bool = False

    @property
    def stem(self) -> str:
        return self.name.removesuffix(".log")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSegment:
    """A segment that was read for a rewrite, as it was then. ``last_crc`` is its last batch's."""

    base_offset: int
    size_bytes: int
    last_offset: int
    last_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Segments that follow each other, and the file that takes their place."""

    sources: tuple[SourceSegment, ...]
    file: StagedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionManifest:
    """What becomes of one log: ``files`` are appended or restored, ``groups`` replaced.

    ``topic_id`` is empty where its writer knew none. ``cleaned_to`` is of a replacement: below it
    the log is clean afterwards. ``log_start_offset`` and ``epochs``, pairs of epoch and first
    offset, are of a restore.
    """

    topic: str
    partition: int
    topic_id: str = ""
    files: tuple[StagedFile, ...] = ()
    groups: tuple[Replacement, ...] = ()
    cleaned_to: int = -1
    log_start_offset: int = 0
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def all_files(self) -> tuple[StagedFile, ...]:
        return (*self.files, *(group.file for group in self.groups))

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.all_files)

    @property
    def record_count(self) -> int:
        return sum(each.record_count for each in self.all_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppVersion:
    """An application's own count of its commits: a query and its batch, a job and its run."""

    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    manifest_id: str
    kind: CommitKind
    staging_id: str
    partitions: tuple[PartitionManifest, ...]
    app: AppVersion | None = None
    holder: str = ""
    directory_id: str = ""

    def __iter__(self) -> Iterator[PartitionManifest]:
        return iter(self.partitions)

    def to_json(self) -> dict[str, Any]:
        """With the digest that ``parse_manifest`` asks for."""
        body = _body(self)
        return {**body, "digest": digest_of(body)}

    def encode(self) -> bytes:
        return json.dumps(self.to_json(), separators=(",", ":")).encode()


def stream_id(query_id: str, batch_id: int) -> str:
    return f"{query_id}:{batch_id}"


def is_staging_id(text: str) -> bool:
    return _STAGING_ID.fullmatch(text) is not None


def _body(manifest: Manifest) -> dict[str, Any]:
    body = asdict(manifest)
    named = {"id": body.pop("manifest_id"), "staging": body.pop("staging_id")}
    return {"version": VERSION, **named, **body}


# --- from somebody who need not be trusted ----------------------------------------------------


def decode_manifest(content: bytes) -> Manifest:
    if len(content) > CONTENT_BYTES_MAX:
        raise ManifestError("", f"it has {len(content)} bytes, more than {CONTENT_BYTES_MAX}")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ManifestError("", f"it is not JSON: {error}") from error
    return parse_manifest(value)


def parse_manifest(value: Any) -> Manifest:
    """What ``Manifest.to_json`` gave, or ManifestError."""
    if not isinstance(value, dict):
        raise ManifestError("", "it is not a JSON object")
    manifest_id = value.get("id")
    if not isinstance(manifest_id, str) or _ID.fullmatch(manifest_id) is None:
        manifest_id = ""
    given = _Fields(value, manifest_id)
    given.check_seal(VERSION)
    kind = given.text("kind")
    if kind not in tuple(CommitKind):
        given.refuse(f"there is no kind {kind!r}; there are {', '.join(CommitKind)}")
    manifest = Manifest(
        manifest_id=given.matching("id", _ID),
        kind=CommitKind(kind),
        staging_id=given.matching("staging", _STAGING_ID),
        partitions=tuple(
            _partition(given.inner(each, "a partition")) for each in given.list("partitions")
        ),
        app=_app(given),
        holder=given.text("holder"),
        directory_id=given.text("directory_id"),
    )
    _check_whole(manifest)
    return manifest


def _check_whole(manifest: Manifest) -> None:
    keys = [each.topic_partition for each in manifest]
    if not keys:
        raise ManifestError(manifest.manifest_id, "it names no partition")
    if len(set(keys)) != len(keys):
        raise ManifestError(manifest.manifest_id, "it names a partition twice")
    for each in manifest:
        names = [file.name for file in each.all_files]
        if len(set(names)) != len(names):
            raise ManifestError(manifest.manifest_id, f"{each.topic_partition} has a file twice")
        is_replacing = manifest.kind is CommitKind.REPLACE
        if not names or bool(each.files) == is_replacing or bool(each.groups) != is_replacing:
            wanted = "groups" if is_replacing else "files"
            raise ManifestError(
                manifest.manifest_id, f"{each.topic_partition} has no {wanted}, or not only those"
            )
    if sum(len(each.all_files) for each in manifest) > FILES_MAX:
        raise ManifestError(manifest.manifest_id, f"it names more than {FILES_MAX} files")


class _Fields(JsonFields):
    """A JSON object of a manifest."""

    text_characters_max = TEXT_CHARACTERS_MAX
    rows_max = FILES_MAX

    def __init__(self, values: Any, manifest_id: str) -> None:
        self.manifest_id = manifest_id
        super().__init__(values)

    def refuse(self, reason: str) -> NoReturn:
        raise ManifestError(self.manifest_id, reason)

    def inner(self, value: Any, what: str) -> "_Fields":
        if not isinstance(value, dict):
            self.refuse(f"{what} is not a JSON object")
        return _Fields(value, self.manifest_id)


def _app(given: _Fields) -> AppVersion | None:
    if given.values.get("app") is None:
        return None
    told = given.inner(given.values["app"], "app")
    name = told.text("name")
    if not name:
        given.refuse("the name of app is empty")
    return AppVersion(name=name, version=told.number("version"))


def _partition(given: _Fields) -> PartitionManifest:
    topic = given.values.get("topic")
    if not isinstance(topic, str) or not is_text(topic):  # it may be longer than other texts
        given.refuse("topic is not a text")
    try:
        validate_topic_name(topic)
    except TopicNameError as error:
        raise ManifestError(given.manifest_id, str(error)) from error
    partition = given.number("partition")
    if partition >= 2**31:
        given.refuse(f"{partition} is no partition of {topic}")
    return PartitionManifest(
        topic=topic,
        partition=partition,
        topic_id=given.text("topic_id"),
        files=tuple(_file(given.inner(each, "a file")) for each in given.list("files")),
        groups=tuple(_group(given.inner(each, "a group")) for each in given.list("groups")),
        cleaned_to=given.number("cleaned_to", -1, OFFSET_MAX),
        log_start_offset=given.number("log_start_offset", 0, OFFSET_MAX),
        epochs=tuple(_epoch(given, each) for each in given.list("epochs")),
    )


def _file(given: _Fields) -> StagedFile:
    return StagedFile(
        name=given.matching("name", _FILE_NAME),
        size_bytes=given.number("size_bytes"),
        record_count=given.number("record_count"),
        digest=given.matching("digest", _DIGEST),
        base_offset=given.number("base_offset", 0, OFFSET_MAX),
        has_aborts=given.flag("has_aborts"),
    )


def _group(given: _Fields) -> Replacement:
    sources = tuple(_source(given.inner(each, "a source")) for each in given.list("sources"))
    if not sources:
        given.refuse("a group names no source")
    return Replacement(sources=sources, file=_file(given.inner(given.values.get("file"), "a file")))


def _source(given: _Fields) -> SourceSegment:
    return SourceSegment(
        base_offset=given.number("base_offset"),
        size_bytes=given.number("size_bytes"),
        last_offset=given.number("last_offset", -1),
        last_crc=given.number("last_crc"),
    )


def _epoch(given: _Fields, value: Any) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or [type(each) for each in value] != [int, int]:
        given.refuse("an epoch is not [epoch, first offset]")
    epoch, start_offset = value
    if not 0 <= epoch <= EPOCH_MAX or not 0 <= start_offset <= OFFSET_MAX:
        given.refuse(
            f"[{epoch}, {start_offset}] is no epoch and its first offset: those go from 0 to "
            f"{EPOCH_MAX} and {OFFSET_MAX}"
        )
    return epoch, start_offset
