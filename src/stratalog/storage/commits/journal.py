"""The commit journal: the file in a log directory whose fsynced records are the commits.

    <log dir>/.stratalog-commits, a line for each record: CRC-32C in hex, a blank, JSON, newline

    {"n": 1, "type": "journal", "version": 1, "records": 0}   the first line of every journal
    {"n": 2, "type": "commit", "id": …, "kind": …, "staging": …, "app": …, "at_ms": …,
     "work": [{"topic": …, "partition": …, "mode": …, …}]}    the commit, once it is durable
    {"n": 3, "type": "done", "id": …}                         nothing of it is left to be done
    {"n": 4, "type": "known", "id": …, "app": …, "at_ms": …, "partitions": [[topic, 0, 10, 20]]}
                                                              a commit done, in a rewritten journal

``n`` counts up by one from line to line. Each record is synced before the next is written, so that
a crash can only take the end of the file: a last line that is not whole was never promised to
anybody, and is cut off. Anything else that cannot be read is damage. Then nobody can say what was
committed, and the directory does not open: forgetting a commit would let it be made twice.

Records that are not needed any more go when the file is rewritten, which is done when it has
grown. An application's last version is remembered for good; other ids for a time, by the clock, and
the newest of them whatever it says: a clock that is wrong for a moment must not let a commit be
made twice. Of those that would be too old only the id stays, so that many partitions take no room.
``records`` says how many the file was rewritten with: it was synced before it got its name, so that
no crash can take the end of those. Journals of earlier versions do not say it.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from stratalog.errors import CorruptFileError, DiskError
from stratalog.records._kernels import crc32c
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.files import File, FileSystem, read_file, replace_file
from stratalog.storage.layout import COMMIT_JOURNAL, TopicPartition

VERSION = 1
REWRITE_BYTES = 1 << 20
KEPT_IDS = 1_000

_BEGINNING = re.compile(rb'[0-9a-f]{8} \{"n":')

Offsets = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A commit that was made: where its records are, as first offset and end offset."""

    manifest_id: str
    app: AppVersion | None
    at_ms: int
    offsets: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """A commit that was made, of which something may be left to be done."""

    manifest_id: str
    kind: str
    staging_id: str
    app: AppVersion | None
    at_ms: int
    work: tuple[Mapping[str, Any], ...]

    @property
    def committed(self) -> Committed:
        offsets = {
            TopicPartition(each["topic"], each["partition"]): (
                each.get("first_offset", -1),
                each.get("end_offset", -1),
            )
            for each in self.work
        }
        return Committed(
            manifest_id=self.manifest_id, app=self.app, at_ms=self.at_ms, offsets=offsets
        )


class CommitJournal:
    """The journal of one log directory. Any thread may call.

    After ``failure`` is set nobody knows what the file will say after a crash: nothing more is
    written, and whoever wanted to commit must not go on as if it had not.
    """

    def __init__(
        self,
        files: FileSystem,
        log_dir: str,
        *,
        rewrite_bytes: int = REWRITE_BYTES,
        kept_ids: int = KEPT_IDS,
    ) -> None:
        self.path = f"{log_dir}/{COMMIT_JOURNAL}"
        self.pending: dict[str, PendingCommit] = {}
        self.failure: DiskError | None = None
        self._files = files
        self._rewrite_bytes = rewrite_bytes
        self._kept_ids = kept_ids
        self._guard = threading.RLock()
        self._exists = False
        self._end = self._rewritten_bytes = 0
        self._number = self._rewritten_number = 0
        self._by_id: dict[str, Committed] = {}
        self._by_app: dict[str, Committed] = {}

    # --- reading ------------------------------------------------------------------------------

    def load(self) -> None:
        """Read what is there, and cut off what a crash left; CorruptFileError if it cannot be."""
        if self.read() is not None:
            self._cut()

    def read(self) -> int | None:
        """Read what is there and change nothing; where the rest of a record begins that a crash
        left, if it did. CorruptFileError as for ``load``."""
        if not self._files.exists(self.path):
            return None
        content = read_file(self._files, self.path)
        for line, record in self._records(content):
            try:
                self._take(record)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise self._corrupt(self._end, f"a record lacks or garbles {error}") from error
            self._end += len(line)
            if self._number == self._rewritten_number:
                self._rewritten_bytes = self._end
        if self._number == 0:
            raise self._corrupt(0, "it does not begin as a journal does")
        if self._number < self._rewritten_number:
            raise self._corrupt(self._end, f"record {self._number + 1} cannot be read")
        self._exists = True
        return self._end if self._end < len(content) else None

    def _records(self, content: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
        position = 0
        while position < len(content):
            line = content[position : content.find(b"\n", position) + 1]
            record = _decode(line)
            if record is None:
                if _holds_records(content[position + 1 :]):
                    raise self._corrupt(position, "a record cannot be read, and others follow it")
                return
            yield line, record
            position += len(line)

    def _take(self, record: dict[str, Any]) -> None:
        number, kind = int(record["n"]), record["type"]
        if self._number and number != self._number + 1:
            raise self._corrupt(self._end, f"record {self._number + 1} is missing")
        if not self._number and (kind != "journal" or record["version"] != VERSION):
            raise self._corrupt(0, f"it is not a journal of version {VERSION}")
        self._number = number
        if kind == "journal":
            self._rewritten_number = number + int(record.get("records", 0))
        elif kind == "commit":
            self._remember_pending(_pending(record))
        elif kind == "done":
            self.pending.pop(record["id"], None)
        elif kind == "known":
            self._remember(_known(record))
        else:
            raise self._corrupt(self._end, f"nobody knows records of type {kind!r}")

    def _corrupt(self, position: int, reason: str) -> CorruptFileError:
        return CorruptFileError(
            self.path,
            f"at position {position}: {reason}; it says which commits were made, and without it "
            "one could be made twice. Put back a copy of it, or remove it if no load, compaction "
            "or restore is waiting to be tried again",
        )

    def _cut(self) -> None:
        """What a crash left of a record must not stand before the next one."""
        file = self._files.open(self.path)
        try:
            file.truncate(self._end)
            file.sync()
        finally:
            file.close()

    # --- what was committed -------------------------------------------------------------------

    def find(self, manifest_id: str, app: AppVersion | None) -> Committed | None:
        """The commit of that id, or of that version of the application or a later one."""
        # Without the guard, which is held while a disk is waited for: each look is at one value.
        if app is not None:
            last = self._by_app.get(app.name)
            if last is not None and last.app is not None and last.app.version >= app.version:
                is_it = last.app.version == app.version
                return last if is_it else _unknown_offsets(manifest_id, app, last.at_ms)
        return self._by_id.get(manifest_id)

    @property
    def last_of_apps(self) -> list[Committed]:
        """The last version of each application."""
        return list(self._by_app.values())

    def begin(self, known: Sequence[Committed]) -> None:
        """Write a first journal, of commits that were made elsewhere."""
        with self._guard:
            for each in known:
                self._remember(each)
            self._rewrite([_known_to_json(each) for each in known])
            self._exists = True

    def _remember_pending(self, commit: PendingCommit) -> None:
        self.pending[commit.manifest_id] = commit
        self._remember(commit.committed)

    def _remember(self, committed: Committed) -> None:
        app = committed.app
        if app is not None:
            last = self._by_app.get(app.name)
            if last is not None and last.app is not None:
                if last.app.version > app.version:
                    return  # a rewritten journal has what is pending behind what is done
                # Its version speaks for it from now on.
                self._by_id.pop(last.manifest_id, None)
            self._by_app[app.name] = committed
        self._by_id[committed.manifest_id] = committed

    # --- writing ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """See to it that there is a file to write to; before anything is decided."""
        with self._guard:
            self._check_usable()
            if not self._exists:
                self._rewrite([])
                self._exists = True

    def commit(self, commit: PendingCommit) -> None:
        """Write the record that is the commit: durable when this returns. If it raises, the
        commit was not made; unless ``failure`` is set, when only the next start can tell."""
        with self._guard:
            try:
                self._append(_pending_to_json(commit))
                self._remember_pending(commit)
            except DiskError:
                raise
            except BaseException as error:  # of a signal: at whatever point it was
                reason = f"interrupted by {type(error).__name__}"
                self.failure = DiskError("write", self.path, 0, reason)
                raise

    def done(self, manifest_id: str, *, forget_before_ms: int = 0) -> None:
        """Nothing of a commit is left to be done. Ids committed before ``forget_before_ms`` are
        forgotten when the file is rewritten, if they are not among the newest."""
        with self._guard:
            self._append({"type": "done", "id": manifest_id})
            self.pending.pop(manifest_id, None)
            if self._end > self._rewrite_bytes and self._end > 2 * self._rewritten_bytes:
                # Another time, if not now; where that would not be right, ``failure`` says so.
                with suppress(DiskError):
                    self.compact(forget_before_ms=forget_before_ms)

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _append(self, record: dict[str, Any]) -> None:
        self._check_usable()
        assert self._exists, f"{self.path} was not prepared"
        line = _encode({"n": self._number + 1, **record})
        file = self._files.open(self.path)
        try:
            self._write(file, line)
        finally:
            file.close()
        self._end += len(line)
        self._number += 1

    def _write(self, file: File, line: bytes) -> None:
        try:
            file.write_at(self._end, [line])
        except DiskError as error:
            # It may be there all the same. Gone for good, or nobody goes on.
            try:
                file.truncate(self._end)
                file.sync()
            except DiskError:
                self.failure = error
            raise
        try:
            file.sync()
        except DiskError as error:
            self.failure = error
            raise

    def compact(self, *, forget_before_ms: int) -> None:
        """Rewrite the file with what is still needed."""
        with self._guard:
            self._check_usable()
            self._forget(forget_before_ms)
            done = [each for key, each in self._by_id.items() if key not in self.pending]
            records = [_known_to_json(each) for each in done]
            records += [_pending_to_json(each) for each in self.pending.values()]
            try:
                self._rewrite(records)
            except DiskError as error:
                # The old file and the new one say the same. But where nobody knows which of them
                # a crash will leave, what is written to one of them could be lost with it.
                if error.path != f"{self.path}.tmp":
                    self.failure = error
                raise

    def _forget(self, before_ms: int) -> None:
        # In the order in which they were committed, which no clock changes.
        plain = [key for key, each in self._by_id.items() if each.app is None]
        newest = set(plain[max(len(plain) - self._kept_ids, 0) :])
        kept: dict[str, Committed] = {}
        for key, each in self._by_id.items():
            if each.at_ms >= before_ms or each.app is not None or key in self.pending:
                kept[key] = each
            elif key in newest:
                kept[key] = replace(each, offsets={})
        self._by_id = kept

    def _rewrite(self, records: Sequence[dict[str, Any]]) -> None:
        number = self._number
        lines = []
        first = {"type": "journal", "version": VERSION, "records": len(records)}
        for record in (first, *records):
            number += 1
            lines.append(_encode({"n": number, **record}))
        content = b"".join(lines)
        replace_file(self._files, self.path, content)
        self._number = number
        self._end = self._rewritten_bytes = len(content)


# --- lines ------------------------------------------------------------------------------------


def _encode(record: Mapping[str, Any]) -> bytes:
    body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(body), body)


def _decode(line: bytes) -> dict[str, Any] | None:
    """What a line says, None if it is not whole."""
    if len(line) < 12 or line[8:9] != b" " or not line.endswith(b"\n"):
        return None
    body = line[9:-1]
    if line[:8] != b"%08x" % crc32c(body):
        return None
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _holds_records(content: bytes) -> bool:
    """Whether a whole record begins anywhere; the end of the one before it may be lost."""
    return any(
        _decode(content[found.start() : content.find(b"\n", found.start()) + 1]) is not None
        for found in _BEGINNING.finditer(content)
    )


def _app_to_json(app: AppVersion | None) -> dict[str, Any] | None:
    return None if app is None else {"name": app.name, "version": app.version}


def _app(record: Mapping[str, Any]) -> AppVersion | None:
    app = record["app"]
    return None if app is None else AppVersion(name=str(app["name"]), version=int(app["version"]))


def _pending(record: Mapping[str, Any]) -> PendingCommit:
    pending = PendingCommit(
        manifest_id=str(record["id"]),
        kind=str(record["kind"]),
        staging_id=str(record["staging"]),
        app=_app(record),
        at_ms=int(record["at_ms"]),
        work=tuple(dict(each) for each in record["work"]),
    )
    assert pending.committed is not None
    return pending


def _pending_to_json(commit: PendingCommit) -> dict[str, Any]:
    return {
        "type": "commit",
        "id": commit.manifest_id,
        "kind": commit.kind,
        "staging": commit.staging_id,
        "app": _app_to_json(commit.app),
        "at_ms": commit.at_ms,
        "work": list(commit.work),
    }


def _known(record: Mapping[str, Any]) -> Committed:
    return Committed(
        manifest_id=str(record["id"]),
        app=_app(record),
        at_ms=int(record["at_ms"]),
        offsets={
            TopicPartition(str(topic), int(partition)): (int(first_offset), int(end_offset))
            for topic, partition, first_offset, end_offset in record["partitions"]
        },
    )


def _known_to_json(committed: Committed) -> dict[str, Any]:
    return {
        "type": "known",
        "id": committed.manifest_id,
        "app": _app_to_json(committed.app),
        "at_ms": committed.at_ms,
        "partitions": [
            [key.topic, key.partition, first_offset, end_offset]
            for key, (first_offset, end_offset) in committed.offsets.items()
        ],
    }


def _unknown_offsets(manifest_id: str, app: AppVersion, at_ms: int) -> Committed:
    """Of an earlier version of an application only that it was committed is remembered."""
    return Committed(manifest_id=manifest_id, app=app, at_ms=at_ms, offsets={})
