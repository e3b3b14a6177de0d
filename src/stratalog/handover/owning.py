"""Being the owner of a log directory for a moment: where no broker runs, a driver commits itself.

It opens the directory as a broker does, with the same metadata, and a directory that nobody has
opened yet is adopted: what is not known of a topic is never guessed. Nothing is removed while it
does so: neither retention nor cleaning runs. A process that is killed anywhere in here leaves what
the next owner settles.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from stratalog.broker.staging_facts import Json, staging_facts
from stratalog.broker.startup import OpenedBroker, open_broker
from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.errors import StratalogError, TopicNameError
from stratalog.handover.errors import HandoverError
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore
from stratalog.storage.commits.committing import CommitResult
from stratalog.storage.commits.errors import CommitError, CommitRefusedError
from stratalog.storage.commits.manifest import Manifest
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import META_PROPERTIES, TopicPartition, parse_replica_directory
from stratalog.storage.log import Log

# What was staged is checked by as many at a time: there is nothing else to be done.
_WORK_THREADS = 4


class OwnerConfig(NamedTuple):
    """The settings of who owns a directory for a moment; ``is_known`` if somebody gave them."""

    broker: BrokerConfig
    is_known: bool


def owner_config(log_dir: str, settings: Mapping[str, str]) -> OwnerConfig:
    """The broker's ``settings`` for this directory alone, which nobody cleans meanwhile."""
    # Not as text, in which a comma would part one path into two.
    broker = replace(
        BrokerConfig.from_properties(settings), log_dirs=(log_dir,), log_cleaner_enable=False
    )
    return OwnerConfig(broker, bool(settings))


@contextmanager
def owned(
    config: OwnerConfig,
    files: FileSystem | None = None,
    clock: Clock | None = None,
    *,
    is_remembered: bool = False,
) -> Iterator[OpenedBroker]:
    """The directory, open; closed cleanly afterwards. Raises LogDirectoryError if it is locked.
    Of a directory that was never ours, nothing is remembered unless that is asked for."""
    if not is_remembered:
        _refuse_foreign(config.broker.log_directories[0], files or OsFileSystem())
    opened = open_broker(
        config.broker,
        files=files,
        clock=clock,
        is_config_known=config.is_known,
        is_threaded=False,
        is_for_a_moment=True,
        is_remembered=is_remembered,
    )
    try:
        opened.logs.flush_appended()
        show_all(opened.logs)
        yield opened
        show_all(opened.logs)
    finally:
        opened.close()


def _refuse_foreign(path: str, files: FileSystem) -> None:
    """To open a directory is to mark it as this broker's: an empty one that somebody has named by
    mistake could not become another's any more, and a partition's own is part of one."""
    for entry in files.list(path):
        if entry.name in (META_PROPERTIES, METADATA_FILE):
            return
        with suppress(TopicNameError):
            if entry.is_directory and parse_replica_directory(entry.name):
                return
    raise HandoverError(
        f"{path} is no log directory: there is no meta.properties in it, and no partition; name "
        "the directory that a broker has in log.dirs"
    )


class UndecidedError(StratalogError):
    """A commit was decided, or may have been, and only the next owner can tell."""


def commit_here(opened: OpenedBroker, manifest: Manifest) -> CommitResult:
    """All steps of a commit."""
    opened.logs.commits.work_threads = _WORK_THREADS
    commit = opened.logs.commits.plan(manifest)
    if isinstance(commit, CommitResult):
        return commit
    try:
        return commit.run()
    except StratalogError as error:
        if commit.is_decided:
            raise UndecidedError(f"the disk failed within the commit: {error}") from error
        if not isinstance(error, CommitError):
            raise CommitRefusedError(str(error)) from error
        raise


def show_all(logs: Iterable[Log]) -> None:
    """There are no other replicas to wait for: what is durable can be read."""
    for log in logs:
        log.raise_high_watermark(log.log_end_offset)


def look_at_topics(
    config: OwnerConfig, files: FileSystem, names: Sequence[str], clock: Clock | None = None
) -> list[Json]:
    """The facts of topics, as their next owner will know them. The logs are opened only if nobody
    has ever said what is there: adopting looks at all of them."""
    rows = _stored_facts(config.broker, files, names)
    if rows is None:
        with owned(config, files, clock) as opened:
            placed = {log.topic_partition: log.directory for log in opened.logs}
            image, broker = opened.store.image, opened.store.broker
            rows = list(staging_facts(image, broker, placed.get, names))
    return rows


def _stored_facts(
    config: BrokerConfig, files: FileSystem, names: Sequence[str]
) -> list[Json] | None:
    """None if there is no metadata, or only the beginning of some."""
    directory = LogDirectory(files, config.log_directories[0])
    path = f"{directory.path}/{METADATA_FILE}"
    _refuse_foreign(directory.path, files)
    directory.acquire()
    try:
        if not files.exists(path):
            return None
        with SqliteMetadataStore.open(path, broker=config, is_for_a_moment=True) as store:
            if not store.is_initialized:
                return None
            placed: dict[TopicPartition, str] = {
                name.topic_partition: path for path, name in directory.replicas() if not name.state
            }
            return list(staging_facts(store.image, store.broker, placed.get, names))
    finally:
        directory.release()
