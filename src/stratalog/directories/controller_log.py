"""The log of a KRaft controller in the log directories of its node; nothing is changed."""

from collections.abc import Sequence

from stratalog.errors import AdoptionError
from stratalog.metadata.cluster_log import ClusterMetadata, is_metadata_file, read_cluster_metadata
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem, read_file
from stratalog.topic_names import CLUSTER_METADATA_TOPIC


def controller_state(directories: Sequence[LogDirectory]) -> str:
    """Another one after a controller has written to its log, be it a tick; nothing without one."""
    place = _place(directories)
    if place is None:
        return ""
    files, path = place
    written = (each for each in files.list(path) if is_metadata_file(each.name))
    return ",".join(sorted(f"{each.name}:{each.size_bytes}" for each in written))


def read_controller(directories: Sequence[LogDirectory]) -> ClusterMetadata | None:
    """What a KRaft controller left in one of the directories; None if none did."""
    place = _place(directories)
    if place is None:
        return None
    files, path = place
    names = [entry.name for entry in files.list(path)]
    try:
        return read_cluster_metadata(names, lambda name: read_file(files, f"{path}/{name}"))
    except AdoptionError as error:
        raise AdoptionError(
            f"{path} cannot be read ({error}). Apache Kafka may mend it by being started once; if "
            "it is moved away, topics are adopted without their configs, and held"
        ) from error


def _place(directories: Sequence[LogDirectory]) -> tuple[FileSystem, str] | None:
    found = []
    for directory in directories:
        path = f"{directory.path}/{CLUSTER_METADATA_TOPIC}-0"
        entry = directory.files.stat(path)
        if entry is not None and entry.is_directory:
            found.append((directory.files, path))
    if len(found) > 1:
        places = " and ".join(path for _, path in found)
        raise AdoptionError(f"there are two logs of a controller, {places}")
    return found[0] if found else None
