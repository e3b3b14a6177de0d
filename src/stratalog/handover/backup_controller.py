"""Backing up the controller's log: the files of Apache Kafka's own metadata, as they lie there."""

import errno

from stratalog.errors import DiskError
from stratalog.storage.backup.copying import BatchWalk, Copier
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import CONTROLLER_FILE, StoredFile
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.layout import INDEX_SUFFIXES, LOG_SUFFIX, parse_segment_file
from stratalog.topic_names import CLUSTER_METADATA_TOPIC

_TRIES = 5


def copy_controller(files: FileSystem, log_dir: str, copier: Copier) -> dict[str, StoredFile]:
    """Nothing if it is not in ``log_dir``; of the last segment what ends with a whole batch."""
    directory = f"{log_dir}/{CLUSTER_METADATA_TOPIC}-0"
    if not files.exists(directory):
        return {}
    for _ in range(_TRIES):
        try:
            return _copy(files, directory, copier)
        except DiskError as error:
            # A controller that runs takes snapshots, and deletes what these make needless.
            if error.errno != errno.ENOENT:
                raise
            last = error
    raise BackupError(
        f"{directory} changed {_TRIES} times while it was copied ({last}); back up again"
    ) from last


def _copy(files: FileSystem, directory: str, copier: Copier) -> dict[str, StoredFile]:
    kept = {}
    for entry in files.list(directory):
        name = parse_segment_file(entry.name)
        is_passing = entry.name.endswith((".tmp", ".part", ".deleted"))
        is_kafkas = CONTROLLER_FILE.fullmatch(entry.name) is not None
        if not entry.is_file or is_passing or (name is not None and name.state) or not is_kafkas:
            continue
        data = read_file(files, f"{directory}/{entry.name}")
        if name is not None and name.kind == LOG_SUFFIX:
            walk = BatchWalk(name.offset)
            walk.feed(data)
            data = data[: walk.scan.position]
        elif name is not None and name.kind in INDEX_SUFFIXES:
            continue
        kept[entry.name] = copier.copy_bytes(data)
    return kept
