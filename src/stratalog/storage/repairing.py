"""Carrying out a repair plan, through the file seam, by the owner of the log directory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from stratalog.clock import Clock, SystemClock
from stratalog.config import TopicConfig
from stratalog.errors import CorruptFileError, CorruptSegmentError, StorageError
from stratalog.storage.check_replica import ReplicaCheck, ReplicaReport
from stratalog.storage.checkpoint import read_offsets, write_offsets
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.explain import Search
from stratalog.storage.files import File, FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.inspection import Replica, list_replica
from stratalog.storage.layout import (
    CUT_DIRECTORY,
    INDEX_SUFFIXES,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_CHECKPOINTS,
    OWN_DIRECTORY,
    RECOVERY_POINT_CHECKPOINT,
    SEGMENT_SUFFIXES,
    segment_file,
)
from stratalog.storage.ours import OwnFiles
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.recovery import open_log
from stratalog.storage.repair import (
    Action,
    BatchPlace,
    CutBytes,
    LowerCheckpoint,
    Reindex,
    RemoveHint,
    RepairPlan,
    RepairRequest,
    SetAsideSegment,
    plan_repair,
)

_COPY_BYTES = 4 << 20


class Repair:
    """One replica, looked at, planned for and put right.

    The caller holds the directory's lock (``owned``) for as long as it changes anything.
    """

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        *,
        clock: Clock | None = None,
        config: TopicConfig | None = None,
    ) -> None:
        """``config`` matters for ``index_interval_bytes`` only: how dense new indexes are."""
        self._files = files
        self._clock = clock or SystemClock()
        self._config = config or TopicConfig()
        self.replica: Replica = list_replica(files, directory)
        self._offsets = self._checkpointed()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Own the log directory; refused if another process does."""
        lock = self._files.lock(f"{self.replica.log_directory}/{LOCK_FILE}")
        try:
            yield
        finally:
            lock.release()

    # --- looking and planning ------------------------------------------------------------------

    def look(self) -> ReplicaReport:
        self.replica = list_replica(self._files, self.replica.directory)
        self._offsets = self._checkpointed()
        files = ReadOnlyFileSystem(self._files)
        check = ReplicaCheck(files, self.replica.directory, offsets=self._offsets)
        check.start()
        return check.finish()

    def plan(self, request: RepairRequest) -> RepairPlan:
        named = request.truncate_at if request.drop_batch is None else request.drop_batch
        return plan_repair(
            self.look(),
            request,
            named=None if named is None else self._locate(named),
            recovery_point=self._offsets.get(RECOVERY_POINT_CHECKPOINT, 0),
            snapshots=self.replica.snapshots,
            offsets=self._offsets,
        )

    def _checkpointed(self) -> dict[str, int]:
        offsets = {}
        for name in OFFSET_CHECKPOINTS:
            with suppress(CorruptFileError):
                known = read_offsets(self._files, f"{self.replica.log_directory}/{name}")
                if self.replica.topic_partition in known:
                    offsets[name] = known[self.replica.topic_partition]
        return offsets

    def _locate(self, offset: int) -> BatchPlace | None:
        """The valid batch that holds ``offset``, or the first one behind it in its segment."""
        search = Search(ReadOnlyFileSystem(self._files), self.replica)
        segment = search.owner(offset)
        if segment is None:
            return None
        try:
            header = segment.find(offset)
        except CorruptSegmentError:
            return None  # the damaged bytes themselves are what is named
        if header is None:
            return None
        end = header.position + header.size_bytes
        first = header.base_offset if header.base_offset >= 0 else header.last_offset
        return BatchPlace(segment.base_offset, first, header.next_offset, header.position, end)

    # --- acting --------------------------------------------------------------------------------

    def run(self, plan: RepairPlan, tell: Callable[[Action], None] = lambda _action: None) -> None:
        """Carry out ``plan``; the caller owns the directory."""
        for action in plan.actions:
            tell(action)
            self._act(action)
        if plan.actions:
            self._files.sync_directory(self.replica.directory)
        if not plan.decisions:
            # All is decided: the next start need not look for what was found before.
            own = OwnFiles(self._files, self.replica.directory)
            own.forget_damage()
            own.forget_uncleanable()
        if plan.changed_from is None:
            return
        if plan.decisions:
            self._rebuild_around_damage()
        else:
            self._rebuild(plan.changed_from)

    def _act(self, action: Action) -> None:
        if isinstance(action, LowerCheckpoint):
            self._lower(action)
        elif isinstance(action, RemoveHint):
            self._files.unlink(action.path, missing_ok=True)
        elif isinstance(action, SetAsideSegment):
            self._set_aside(action)
        elif isinstance(action, CutBytes):
            self._cut(action)
        elif isinstance(action, Reindex):
            self._remove_indexes(action.base_offset)

    def _lower(self, action: LowerCheckpoint) -> None:
        path = f"{self.replica.log_directory}/{action.name}"
        offsets = read_offsets(self._files, path)
        offsets[self.replica.topic_partition] = action.offset
        write_offsets(self._files, path, offsets)

    def _cut_directory(self) -> str:
        directory = self.replica.directory
        for inner in (OWN_DIRECTORY, CUT_DIRECTORY):
            path = f"{directory}/{inner}"
            if not self._files.exists(path):
                self._files.make_directory(path)
                self._files.sync_directory(path.rpartition("/")[0])
        return f"{directory}/{CUT_DIRECTORY}"

    def _now(self) -> str:
        moment = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        return moment.strftime("%Y%m%dT%H%M%S.%fZ")

    def _set_aside(self, action: SetAsideSegment) -> None:
        cut = self._cut_directory()
        now = self._now()
        # The .log goes last: until then the files are a segment like any other, and indexes
        # without a .log are thrown away by whoever opens the directory.
        for suffix in reversed(SEGMENT_SUFFIXES):
            path = segment_file(self.replica.directory, action.base_offset, suffix)
            if self._files.exists(path):
                self._files.rename(path, f"{cut}/{action.base_offset:020d}{suffix}.0.{now}")
        self._files.sync_directory(cut)
        self._files.sync_directory(self.replica.directory)

    def _cut(self, action: CutBytes) -> None:
        path = segment_file(self.replica.directory, action.base_offset, LOG_SUFFIX)
        cut = self._cut_directory()
        aside = f"{cut}/{action.base_offset:020d}{LOG_SUFFIX}.{action.start}.{self._now()}"
        file = self._files.open(path)
        try:
            self._copy(file, action.start, action.end, aside)
            self._files.sync_directory(cut)
            self._remove_indexes(action.base_offset)
            if action.end >= file.size_bytes():
                file.truncate(action.start)
                file.sync()
                return
            whole = f"{cut}/{action.base_offset:020d}{LOG_SUFFIX}.repaired"
            self._files.unlink(whole, missing_ok=True)
            self._copy(file, 0, action.start, whole)
            self._copy(file, action.end, file.size_bytes(), whole)
        finally:
            file.close()
        self._files.rename(whole, path)
        self._files.sync_directory(cut)
        self._files.sync_directory(self.replica.directory)

    def _copy(self, source: File, start: int, end: int, path: str) -> None:
        """Append bytes to ``path`` and sync it."""
        target = self._files.open(path, create=True)
        try:
            at = target.size_bytes()
            while start < end:
                piece = source.read_at(start, min(_COPY_BYTES, end - start))
                if not piece:
                    break
                target.write_at(at, [piece])
                start, at = start + len(piece), at + len(piece)
            target.sync()
        finally:
            target.close()

    def _remove_indexes(self, base_offset: int) -> None:
        for suffix in INDEX_SUFFIXES:
            path = segment_file(self.replica.directory, base_offset, suffix)
            self._files.unlink(path, missing_ok=True)
        self._files.sync_directory(self.replica.directory)

    def _rebuild_around_damage(self) -> None:
        """Damage is left that nobody has decided about: a clean start builds what is missing and
        cuts nothing."""
        context = LogContext(
            self._files, self._clock, HandleCache(), DirectoryState(), flush_on_ack=False
        )
        # What cannot be opened at all is told by the look that follows.
        with suppress(StorageError):
            open_log(
                self.replica.directory,
                self._config,
                context,
                clean=True,
                recovery_point=self._offsets.get(RECOVERY_POINT_CHECKPOINT, 0),
                log_start_offset=self._offsets.get(LOG_START_CHECKPOINT, 0),
            ).abandon()

    def _rebuild(self, from_offset: int) -> None:
        """Let the engine read the log again, and write what it builds from it."""
        context = LogContext(
            self._files, self._clock, HandleCache(), DirectoryState(), flush_on_ack=False
        )
        log = open_log(
            self.replica.directory,
            self._config,
            context,
            clean=False,
            recovery_point=from_offset,
            log_start_offset=self._offsets.get(LOG_START_CHECKPOINT, 0),
        )
        log.close()
