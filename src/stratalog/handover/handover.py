"""Handover: a driver's way to the owner of a log directory, whoever that is at the moment.

    our broker          asked over its admin port; if it stops or is killed meanwhile, whoever owns
                        the directory next is asked, with the same id
    nobody              this process takes the lock, commits, and lets go
    another driver      does the same for a moment: waited for
    a live Apache Kafka takes no commits: refused, before anything is staged

A commit ends with a result, with an error that says that nothing was committed, or with
CommitUnknownError if nobody answered for so long: then only asking again will tell.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stratalog.broker.commit_answers import (
    REFUSED,
    RUNNING,
    UNKNOWN,
    refusal_from_json,
    result_from_json,
)
from stratalog.clock import Clock
from stratalog.directories.owners import Ownership, find_owner
from stratalog.errors import DirectoryLockedError, StratalogError
from stratalog.handover.asking import ask_commit, ask_status, ask_topics
from stratalog.handover.errors import CommitUnknownError, HandoverError
from stratalog.handover.facts import TopicFacts, read_facts
from stratalog.handover.owning import (
    UndecidedError,
    commit_here,
    look_at_topics,
    owned,
    owner_config,
)
from stratalog.storage.commits.committing import ALREADY_COMMITTED, COMMITTED, CommitResult
from stratalog.storage.commits.errors import CommitBusyError, CommitError
from stratalog.storage.commits.manifest import AppVersion, Manifest, decode_manifest
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.owner_file import Owner

SECONDS = 60.0
_PAUSE_SECONDS = 0.05
_PAUSE_SECONDS_MAX = 0.5
# For a broker or a driver in this very process to let go; it may also be the one that waits.
_HERE_SECONDS = 5.0
# What an owner says that does not know of commits, or does not take what it was sent for one.
_NOT_UNDERSTOOD = (400, 404, 405, 413)


def open_handover(
    log_dir: str | Path,
    *,
    config: Mapping[str, str] | None = None,
    files: FileSystem | None = None,
    clock: Clock | None = None,
) -> "Handover":
    """``config`` are the settings of the broker that serves ``log_dir``, for when it does not run:
    what a topic does not say itself, it has from them."""
    path = Path(log_dir).absolute()
    if not path.is_dir():
        raise HandoverError(f"{path} is not a directory: name the log directory of a broker")
    return Handover(str(path), config or {}, files or OsFileSystem(), clock)


class Handover:
    """See the top of this file. Nothing is held open between two calls."""

    def __init__(
        self,
        log_dir: str,
        config: Mapping[str, str],
        files: FileSystem,
        clock: Clock | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.log_dir = log_dir
        self._config = owner_config(log_dir, config)
        self._files = files
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep

    # --- before ---------------------------------------------------------------------------------

    def topics(
        self, names: Sequence[str] | None = None, *, seconds: float = SECONDS
    ) -> dict[str, TopicFacts]:
        """What is known of these topics, or of all; of one that is not there, nothing."""
        wanted = [] if names is None else list(names)
        if names is not None and not wanted:
            return {}
        patience = self._patience(seconds)
        while True:
            ownership, owner = find_owner(self.log_dir)
            if owner is not None:
                answer = ask_topics(owner, wanted)
                rows = answer.body.get("topics")
                if answer.status == 200 and isinstance(rows, list):
                    facts = read_facts(rows)
                    return {name: facts[name] for name in names or facts if name in facts}
                reason = f"process {owner.pid}: {answer.reason}"
            elif ownership.kind == "none":
                try:
                    return read_facts(
                        look_at_topics(self._config, self._files, wanted, self._clock)
                    )
                except DirectoryLockedError as error:
                    reason = str(error)
            else:
                reason = self._check_owner(ownership, patience)
            if not patience.wait():
                raise HandoverError(f"{self.log_dir}: {reason}")

    # --- the commit -----------------------------------------------------------------------------

    def commit(self, manifest: Manifest, *, seconds: float = SECONDS) -> CommitResult:
        """Hand the staged files over. Asks until there is a definite answer, or for ``seconds``
        without a sign of life."""
        content = manifest.encode()
        decode_manifest(content)  # who would refuse it need not be asked
        patience = self._patience(seconds)
        may_be_committed = False
        while True:
            try:
                found = self._try(manifest, content, patience)
            except HandoverError as error:
                if not may_be_committed:
                    raise
                # Who owns it now cannot say what the one before has done.
                reason = str(error)
                raise CommitUnknownError(
                    manifest.manifest_id, self.log_dir, seconds, reason
                ) from error
            if isinstance(found, CommitResult):
                return found
            may_be_committed = may_be_committed or found.may_be_committed
            if not patience.wait():
                reason = found.reason
                if may_be_committed:
                    raise CommitUnknownError(manifest.manifest_id, self.log_dir, seconds, reason)
                raise HandoverError(f"{self.log_dir}: {reason}")

    def _try(
        self, manifest: Manifest, content: bytes, patience: "_Patience"
    ) -> "CommitResult | _Wait":
        ownership, owner = find_owner(self.log_dir)
        if owner is not None:
            return self._ask(owner, manifest, content, patience)
        if ownership.kind == "none":
            return self._commit_here(manifest)
        return _Wait(self._check_owner(ownership, patience))

    def _ask(
        self, owner: Owner, manifest: Manifest, content: bytes, patience: "_Patience"
    ) -> "CommitResult | _Wait":
        answer = ask_commit(owner, content)
        has_begun = False
        while answer.body.get("status") == RUNNING:
            has_begun = True
            patience.renew()
            patience.wait()
            answer = ask_status(owner, manifest.manifest_id, manifest.app, self.log_dir)
        status = answer.body.get("status")
        if status == REFUSED:
            refusal = refusal_from_json(answer.body)
            if isinstance(refusal, CommitBusyError):
                return _Wait(f"process {owner.pid}: {refusal}")
            raise refusal
        if status in (COMMITTED, ALREADY_COMMITTED):
            with suppress(KeyError, TypeError, ValueError):
                return result_from_json(answer.body)
        # Who does not understand after it has begun is another process, at the same address.
        if answer.status in _NOT_UNDERSTOOD and not has_begun:
            raise HandoverError(f"process {owner.pid} takes no such commit: {answer.reason}")
        return _Wait(f"process {owner.pid}: {answer.reason}", may_be_committed=True)

    def _commit_here(self, manifest: Manifest) -> "CommitResult | _Wait":
        # Whatever is known by then: closing a directory whose disk fails changes none of it.
        found: CommitResult | _Wait | None = None
        try:
            with owned(self._config, self._files, self._clock) as opened:
                try:
                    found = commit_here(opened, manifest)
                except UndecidedError as error:
                    # To open the directory again is to learn it.
                    found = _Wait(str(error), may_be_committed=True)
                # What drivers that were killed have left goes with whoever comes next.
                opened.logs.commits.sweep(opened.logs.clock.now_ms())
        except DirectoryLockedError as error:  # somebody else was first
            found = found or _Wait(str(error))
        except StratalogError as error:
            if found is None:
                raise _not_made(self.log_dir, error) from error
        assert found is not None, "a commit ends in one way or another"
        return found

    def _check_owner(self, ownership: Ownership, patience: "_Patience") -> str:
        """Why to wait for an owner that cannot be asked; raises if that is in vain."""
        if ownership.is_here:
            patience.lose(_HERE_SECONDS)
            return "this process has it open itself: close it, and hand over then"
        if is_java(ownership.pid):
            raise HandoverError(
                f"process {ownership.pid}, an Apache Kafka, owns {self.log_dir} and takes no "
                "staged segments. Write over the wire, with the option kafka.bootstrap.servers"
            )
        return (
            f"process {ownership.pid} owns it and cannot be asked: it starts, stops, has no admin "
            "port or is another user's"
        )

    # --- afterwards -----------------------------------------------------------------------------

    def status(self, manifest: Manifest, *, seconds: float = SECONDS) -> str:
        """'committed', 'already committed', 'running', 'refused' or 'unknown': nothing is known of
        it, so that it was not committed (or so long ago that its id was forgotten)."""
        return self.status_of(manifest.manifest_id, manifest.app, seconds=seconds)

    def status_of(
        self, manifest_id: str, app: AppVersion | None = None, *, seconds: float = SECONDS
    ) -> str:
        patience = self._patience(seconds)
        while True:
            ownership, owner = find_owner(self.log_dir)
            if owner is not None:
                answer = ask_status(owner, manifest_id, app, self.log_dir)
                if answer.status == 200 and "status" in answer.body:
                    return str(answer.body["status"])
                reason = answer.reason
            elif ownership.kind == "none":
                try:
                    with owned(self._config, self._files, self._clock) as opened:
                        found = opened.logs.commits.status(manifest_id, app)
                        return UNKNOWN if found is None else found.status
                except DirectoryLockedError as error:
                    reason = str(error)
            else:
                reason = self._check_owner(ownership, patience)
            if not patience.wait():
                raise CommitUnknownError(manifest_id, self.log_dir, seconds, reason)

    def _patience(self, seconds: float) -> "_Patience":
        return _Patience(seconds, self._monotonic, self._sleep)


@dataclass(frozen=True, slots=True)
class _Wait:
    """There is no answer yet, and why; and whether the commit may have been made all the same."""

    reason: str
    may_be_committed: bool = False


@dataclass(slots=True)
class _Patience:
    """How long to go on asking: longer and longer pauses, until the time is over."""

    seconds: float
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    _until: float = 0.0
    _pause: float = _PAUSE_SECONDS
    _has_less: bool = False

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """There was a sign of life."""
        self._until = self.monotonic() + self.seconds
        self._has_less = False

    def lose(self, seconds: float) -> None:
        """What is waited for now takes no longer than that."""
        if not self._has_less:
            self._until = min(self._until, self.monotonic() + seconds)
            self._has_less = True

    def wait(self) -> bool:
        """Whether to ask again."""
        if self.monotonic() >= self._until:
            return False
        self.sleep(self._pause)
        self._pause = min(self._pause * 1.5, _PAUSE_SECONDS_MAX)
        return True


def _not_made(log_dir: str, error: StratalogError) -> StratalogError:
    """Nobody else is at it here: who is too busy now is a directory that went offline."""
    if isinstance(error, CommitError | HandoverError) and not isinstance(error, CommitBusyError):
        return error
    return HandoverError(f"{log_dir} takes no commit: {error}")


def is_java(pid: int | None) -> bool:
    """Whether a process runs a JVM. Where that cannot be told, it is waited for instead."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.startswith("java")
    except OSError:
        return False
