"""Which backup is restored: decided by the manifests that can be read.

    --at ID      that one
    --until T    of one log directory, the first that was made at T or later and in which every log
                 reaches T: only that has everything up to T, and it has lost least of it since
    neither      the newest

A log reaches T in a backup that holds it to the end it had when the backup was begun, or holds a
record later than T, before which a restore ends it. Beside an owner the active segments are left
out as a rule, so that logs often end earlier in their backups than they did. If all were to end
too early, the one that lacks least is taken, and what it may lack is told.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stratalog.errors import StorageError
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.manifest import BackupManifest, BackupSource, PartitionBackup
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.layout import TopicPartition

_LOGS_TOLD = 5

# A topic that was deleted and made anew is another, though it has the same name.
_Key = tuple[TopicPartition, str]


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
    wanted = _logs(later[0] if later else newest, topics)
    looked = [_Reach(each, wanted, until_ms, topics) for each in later or [newest]]
    best = next((each for each in looked if not each.short), None)
    if best is None:
        # The first of those that lack least.
        best = min(looked, key=lambda each: (len(each.short), -each.short_end_offsets))
    return Choice(manifest=best.manifest, notes=(*notes, *best.notes(len(looked))))


def _logs(manifest: BackupManifest, topics: Collection[str]) -> dict[_Key, PartitionBackup]:
    return {
        (TopicPartition(topic.name, each.partition), topic.topic_id): each
        for topic in manifest.topics
        if not topics or topic.name in topics
        for each in topic.partitions
    }


class _Reach:
    """Which of the ``wanted`` logs do not reach a moment in a backup, or may not."""

    def __init__(
        self,
        manifest: BackupManifest,
        wanted: Mapping[_Key, PartitionBackup],
        until_ms: int,
        topics: Collection[str],
    ) -> None:
        self.manifest = manifest
        self._is_early = manifest.created_ms < until_ms
        self._logs = _logs(manifest, topics)
        self.short: list[_Key] = []
        self._is_unknown = False
        for key in wanted:
            log = self._logs.get(key)
            if log is None or not self._reaches(log, until_ms):
                self.short.append(key)

    def _reaches(self, log: PartitionBackup, until_ms: int) -> bool:
        if any(each.max_timestamp_ms > until_ms for each in log.segments):
            return True
        if self._is_early:
            return False  # what was written between the backup and the moment
        if log.log_end_offset < 0:
            self._is_unknown = True
        return log.end_offset >= log.log_end_offset

    @property
    def short_end_offsets(self) -> int:
        return sum(self._logs[each].end_offset for each in self.short if each in self._logs)

    def notes(self, looked_at: int) -> list[str]:
        backup = f"backup {self.manifest.backup_id}"
        if self.short and self._is_early:
            return [
                f"{backup} was made before that moment, and none later: what came then is lacking"
            ]
        found = []
        if self._is_unknown:
            found.append(
                f"{backup} is of a version that did not note where logs ended: it may lack records "
                "from before that moment"
            )
        of_all = (
            "" if looked_at == 1 else f"; no other of the {looked_at} made then or later has more"
        )
        for topic_partition, topic_id in self.short[:_LOGS_TOLD]:
            log = self._logs.get((topic_partition, topic_id))
            found.append(
                f"{topic_partition} may lack records from before that moment: {backup} "
                + ("does not have it" if log is None else _ends(log))
                + of_all
            )
        if len(self.short) > _LOGS_TOLD:
            found.append(f"so may {len(self.short) - _LOGS_TOLD} more logs")
        return found


def _ends(log: PartitionBackup) -> str:
    return f"ends at offset {log.end_offset}, and the log went on to {log.log_end_offset}"
