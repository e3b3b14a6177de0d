"""Which backup is restored: decided by the manifests that can be read.

    --at ID      that one
    --until T    of one log directory, the first that was made at T or later and in which every log
                 reaches T: only that has everything up to T, and it has lost least of it since
    neither      the newest

Every log: that is each which was there at T, or may have been, in whichever backup it is found. A
topic may have been deleted since, or a backup made of other topics.

A log reaches T in a backup that holds it to the end it had when the backup was begun, or holds a
record later than T, before which a restore ends it. Beside an owner the active segments are left
out as a rule, so that logs often end earlier in their backups than they did. If all were to end
too early, the one that lacks least is taken, and what it may lack is told.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from stratalog.errors import StorageError
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.manifest import BackupManifest, BackupSource, PartitionBackup
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.layout import TopicPartition

_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``notes`` say what was passed over, and what the backup may lack."""

    manifest: BackupManifest
    notes: tuple[str, ...] = ()


def choose_backup(
    store: BackupStore,
    *,
    at: str | None = None,
    until_ms: int | None = None,
    topics: Collection[str] = (),
    source: str | None = None,
) -> Choice:
    """See the top of this file. ``source`` is the log directory that was backed up, else that of
    the newest backup. A backup without one of ``topics`` is passed over, as long as there is
    another: it may be one of other topics, or of another directory."""
    ids = store.backup_ids()
    if at is not None:
        if at not in ids:
            raise BackupError(f"{store.name} holds no backup {at}; it holds {_listed(ids)}")
        return _of_one_source([store.read_manifest(at)], (), until_ms, topics)
    if not ids:
        raise BackupError(f"{store.name} holds no backup yet")
    if until_ms is None and source is None and not topics:
        return Choice(manifest=_read_newest(store, ids))
    backups, notes = _read(store, ids, must_be_newest=until_ms is None)
    if source is not None:
        backups = _of(store, backups, source)
    fitting = [
        each for each in backups if set(topics) <= {topic.name for topic in each.topics}
    ] or backups
    newest = fitting[-1]
    same = [each for each in fitting if _is_same(each.source, newest.source)]
    others = {each.source.path for each in fitting} - {each.source.path for each in same}
    if others:
        notes.append(
            f"{store.name} also holds backups of {', '.join(sorted(others))}; those of "
            f"{newest.source.path}, of which the newest is, were looked at: --source names another"
        )
    return _of_one_source(same, notes, until_ms, topics)


def read_backups(
    store: BackupStore, ids: Iterable[str]
) -> tuple[list[BackupManifest], dict[str, StorageError]]:
    """Those whose manifests can be read, and why others cannot, by their ids."""
    found, damaged = [], {}
    for backup_id in ids:
        try:
            found.append(store.read_manifest(backup_id))
        except StorageError as error:
            damaged[backup_id] = error
    return found, damaged


def _read(
    store: BackupStore, ids: list[str], *, must_be_newest: bool
) -> tuple[list[BackupManifest], list[str]]:
    found, damaged = read_backups(store, ids)
    if ids[-1] in damaged and (must_be_newest or not found):
        _read_newest(store, ids)
    return found, [f"a backup was passed over: {error}" for error in damaged.values()]


def _read_newest(store: BackupStore, ids: list[str]) -> BackupManifest:
    """What is older is not restored unless somebody asks for it."""
    try:
        return store.read_manifest(ids[-1])
    except BackupDamagedError as error:
        if len(ids) == 1:
            raise
        reason = f"{error.reason}. It is of the newest backup; name an earlier one with --at"
        raise BackupDamagedError(error.path, reason) from error


def _listed(ids: list[str]) -> str:
    if not ids:
        return "none"
    return ", ".join(ids[-5:]) + (f" and {len(ids) - 5} before" if len(ids) > 5 else "")


# --- of which log directory ---------------------------------------------------------------------


def _of(store: BackupStore, backups: Sequence[BackupManifest], source: str) -> list[BackupManifest]:
    found = [each for each in backups if each.source.path == source]
    if not found:
        sources = ", ".join(sorted({each.source.path for each in backups}))
        raise BackupError(f"{store.name} holds no backup of {source}; it holds those of {sources}")
    return found


def _is_same(one: BackupSource, other: BackupSource) -> bool:
    """Hosts may have one path in common; a directory has no id until it was first served."""
    ids = {one.directory_id, other.directory_id} - {""}
    return one.path == other.path and len(ids) < 2


# --- for a moment -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """One log, as one backup has it."""

    topic_partition: TopicPartition
    topic_id: str
    backup: PartitionBackup
    manifest: BackupManifest

    def is_same(self, other: "_Log") -> bool:
        """A topic that was deleted and made anew is another, though it has the same name; one that
        nobody had served yet had no id."""
        ids = {self.topic_id, other.topic_id} - {""}
        return self.topic_partition == other.topic_partition and len(ids) < 2


class _Logs:
    """Logs of one or more backups."""

    def __init__(self, found: Iterable[_Log] = ()) -> None:
        self._found: dict[TopicPartition, list[_Log]] = {}
        for each in found:
            self.add(each)

    def __iter__(self) -> Iterator[_Log]:
        for each in self._found.values():
            yield from each

    def add(self, log: _Log) -> None:
        """In place of the same log of another backup."""
        others = [
            each for each in self._found.get(log.topic_partition, ()) if not each.is_same(log)
        ]
        self._found[log.topic_partition] = [*others, log]

    def find(self, log: _Log) -> _Log | None:
        found = self._found.get(log.topic_partition, ())
        return next((each for each in found if each.is_same(log)), None)


def _of_one_source(
    backups: Sequence[BackupManifest],
    notes: Iterable[str],
    until_ms: int | None,
    topics: Collection[str],
) -> Choice:
    newest = backups[-1]
    if until_ms is None:
        return Choice(manifest=newest, notes=tuple(notes))
    later = [each for each in backups if each.created_ms >= until_ms]
    wanted = _wanted(backups, until_ms, topics)
    looked = [_Reach(each, wanted, until_ms, topics) for each in later or [newest]]
    best = next((each for each in looked if not each.lacks), None)
    if best is None:
        # The first of those that lack least.
        best = min(looked, key=lambda each: (each.lacks, -each.short_end_offsets))
    return Choice(manifest=best.manifest, notes=(*notes, *best.notes(len(looked))))


def _logs(manifest: BackupManifest, topics: Collection[str]) -> Iterator[_Log]:
    for topic in manifest.topics:
        if not topics or topic.name in topics:
            for each in topic.partitions:
                yield _Log(
                    topic_partition=TopicPartition(topic.name, each.partition),
                    topic_id=topic.topic_id,
                    backup=each,
                    manifest=manifest,
                )


def _wanted(
    backups: Sequence[BackupManifest], until_ms: int, topics: Collection[str]
) -> list[_Log]:
    """The logs that were there at a moment, or may have been: each as the first backup has it that
    was made then or later, or else the last before."""
    found = _Logs()
    for each in backups:
        if each.created_ms < until_ms:
            # What it neither has nor has left out was gone by then.
            left_out = set(each.topics_left_out)
            kept = [log for log in found if log.topic_partition.topic in left_out]
            found = _Logs([*kept, *_logs(each, topics)])
    # Of a later backup, topics that one of those before it would have if they had been there.
    new: set[str] | None = None
    for each in backups:
        if each.created_ms >= until_ms:
            for log in _logs(each, topics):
                known = found.find(log)
                if known is None and new is not None and log.topic_partition.topic not in new:
                    continue  # it was made behind the moment
                if known is None or known.manifest.created_ms < until_ms:
                    found.add(log)
            left_out = set(each.topics_left_out)
            new = left_out if new is None else new & left_out
    return list(found)


class _Reach:
    """Which of the ``wanted`` logs do not reach a moment in a backup, or may not."""

    def __init__(
        self,
        manifest: BackupManifest,
        wanted: Iterable[_Log],
        until_ms: int,
        topics: Collection[str],
    ) -> None:
        self.manifest = manifest
        self._is_early = manifest.created_ms < until_ms
        self._is_unknown = False
        self._short: list[_Log] = []
        self._missing: dict[str, _Log] = {}
        here = _Logs(_logs(manifest, topics))
        for each in wanted:
            log = here.find(each)
            if log is None:
                self._missing.setdefault(each.topic_partition.topic, each)
            elif not self._reaches(log.backup, until_ms):
                self._short.append(log)

    def _reaches(self, log: PartitionBackup, until_ms: int) -> bool:
        if any(each.max_timestamp_ms > until_ms for each in log.segments):
            return True
        if self._is_early:
            return False  # what was written between the backup and the moment
        if log.log_end_offset < 0:
            self._is_unknown = True
        return log.end_offset >= log.log_end_offset

    @property
    def lacks(self) -> int:
        return len(self._short) + len(self._missing)

    @property
    def short_end_offsets(self) -> int:
        return sum(each.backup.end_offset for each in self._short)

    def notes(self, looked_at: int) -> list[str]:
        backup = f"backup {self.manifest.backup_id}"
        found = list(self._missing_notes(backup))
        if self._short and self._is_early:
            return [
                f"{backup} was made before that moment, and none later of what is restored: what "
                "came then is lacking",
                *found,
            ]
        if self._is_unknown:
            found.append(
                f"{backup} is of a version that did not note where logs ended: it may lack records "
                "from before that moment"
            )
        if self.manifest.left_out is None:
            found.append(
                f"{backup} is of a version that did not note which topics it left out: it may lack "
                "some"
            )
        of_all = (
            "" if looked_at == 1 else f"; no other of the {looked_at} made then or later has more"
        )
        for log in self._short[:_TOLD]:
            found.append(
                f"{log.topic_partition} may lack records from before that moment: {backup} ends at "
                f"offset {log.backup.end_offset}, and the log went on to "
                f"{log.backup.log_end_offset}{of_all}"
            )
        if len(self._short) > _TOLD:
            found.append(f"so may {len(self._short) - _TOLD} more logs")
        return found

    def _missing_notes(self, backup: str) -> Iterator[str]:
        """One for a topic, however many logs it has."""
        for name, log in list(self._missing.items())[:_TOLD]:
            how = f"--at {log.manifest.backup_id} --topic {name}"
            if self.manifest.topic(name) is None:
                yield (
                    f"{backup} does not have topic {name}, which may have been there at that "
                    f"moment: restore it by itself with {how}"
                )
            else:
                yield (
                    f"the topic {name} of {backup} is not the one, or not all of it, that may have "
                    f"been there at that moment: that is restored with {how}"
                )
        if len(self._missing) > _TOLD:
            yield f"{backup} does not have {len(self._missing) - _TOLD} more such topics"
