"""Checking what a log directory holds beside its replicas: whose it is, and its commits.

Damage here keeps a broker from opening the directory, so it is told as what an opener would say.
Nothing is written, and no lock is taken.
"""

from collections.abc import Callable
from dataclasses import dataclass

from stratalog.config.properties import parse_properties
from stratalog.errors import ConfigError, CorruptFileError, DiskError, StratalogError
from stratalog.storage.check_looks import LOOKS
from stratalog.storage.commits.journal import CommitJournal
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.findings import Finding, Kind, error, warning
from stratalog.storage.layout import COMMIT_JOURNAL, META_PROPERTIES

# Given a log directory, the topics that its metadata store knows not to be compacted; raises what
# an opener of the store would.
ReadMetadata = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class DirectoryIdentity:
    """What ``meta.properties`` says; empty where it says nothing."""

    path: str
    cluster_id: str = ""
    node_id: str = ""
    directory_id: str = ""

    @property
    def broker(self) -> tuple[str, str] | None:
        """Whose directory it is, if that is known."""
        return (self.cluster_id, self.node_id) if self.cluster_id and self.node_id else None


@dataclass(frozen=True, slots=True)
class DirectoryCheck:
    """``not_compacted``: topics of which that is known."""

    identity: DirectoryIdentity
    findings: list[Finding]
    not_compacted: frozenset[str]


def read_identity(files: FileSystem, path: str) -> tuple[DirectoryIdentity, list[Finding]]:
    """What can be read of it, and why an opener would refuse the rest."""
    place = f"{path}/{META_PROPERTIES}"
    try:
        if not files.exists(place):
            return DirectoryIdentity(path), []
        said = parse_properties(read_file(files, place))
    except DiskError as failure:
        sentence = f"cannot be read: {failure.reason}"
        return DirectoryIdentity(path), [error(Kind.UNREADABLE, place, sentence)]
    except (ConfigError, ValueError) as failure:
        return DirectoryIdentity(path), [error(Kind.METADATA, place, str(failure))]
    identity = DirectoryIdentity(
        path,
        said.get("cluster.id", ""),
        said.get("node.id", said.get("broker.id", "")),
        said.get("directory.id", ""),
    )
    return identity, _refusals(files, path)


def _refusals(files: FileSystem, path: str) -> list[Finding]:
    try:
        LogDirectory(files, path).identity()
    except CorruptFileError as corrupt:
        return [error(Kind.METADATA, corrupt.path, corrupt.reason)]
    except DiskError:
        return []  # it has just been read, so its owner is replacing it
    return []


def check_directory(
    files: FileSystem,
    path: str,
    *,
    is_live: bool,
    read_metadata: ReadMetadata | None = None,
    wait: Callable[[], None] = lambda: None,
) -> DirectoryCheck:
    """``read_metadata`` asks the owner, or reads the metadata of a directory without one, which is
    of a layer that this one does not know; ``wait`` is called between two looks."""
    identity, findings = read_identity(files, path)
    findings += _check_journal(files, path, is_live=is_live, wait=wait)
    not_compacted: frozenset[str] = frozenset()
    if read_metadata is not None:
        try:
            not_compacted = read_metadata(path)
        except StratalogError as failure:
            # An owner has read all of it, and may be writing to it now.
            if not is_live:
                findings.append(_unread_metadata(path, failure))
    return DirectoryCheck(identity, findings, not_compacted)


def _unread_metadata(path: str, failure: StratalogError) -> Finding:
    if isinstance(failure, CorruptFileError):
        return error(Kind.METADATA, failure.path, failure.reason)
    if isinstance(failure, DiskError):
        return error(Kind.UNREADABLE, failure.path, f"cannot be read: {failure.reason}")
    # A KRaft controller's, which its owner puts right, and others go on without.
    return warning(Kind.METADATA, path, str(failure))


def _check_journal(
    files: FileSystem, path: str, *, is_live: bool, wait: Callable[[], None]
) -> list[Finding]:
    found = _look_at_journal(files, path, is_live=is_live)
    for _ in range(LOOKS - 1 if is_live else 0):
        if not found:
            break
        wait()
        found = _look_at_journal(files, path, is_live=is_live)
    return found


def _look_at_journal(files: FileSystem, log_directory: str, *, is_live: bool) -> list[Finding]:
    path = f"{log_directory}/{COMMIT_JOURNAL}"
    try:
        torn_at = CommitJournal(files, log_directory).read()
    except CorruptFileError as corrupt:
        return [error(Kind.COMMIT_JOURNAL, path, corrupt.reason)]
    except DiskError as failure:
        return [error(Kind.UNREADABLE, path, f"cannot be read: {failure.reason}")]
    # An owner may be writing that record now.
    if torn_at is None or is_live:
        return []
    sentence = "its last record is not whole, and is dropped when the directory is opened"
    return [warning(Kind.COMMIT_JOURNAL, path, sentence, position=torn_at)]
