"""What a command of ``stratalog spark`` looks at before it starts Spark: topics, files, options.

Spark takes seconds to start, and may plan for minutes before it says what is wrong. Only what this
process can know counts. Where Spark may see another file system, it is asked.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from stratalog.cli.failures import CommandError

# Spark's readers of files; to others a path may be a table or anything else.
_FILE_FORMATS = frozenset(("csv", "json", "parquet", "orc", "text", "avro", "binaryfile"))
_GLOB = re.compile(r"[*?\[\]{}]")
_DEFAULT_FILE_SYSTEM = "spark.hadoop.fs.defaultfs"


def topics_in(log_dir: str) -> list[str]:
    """The topics that a log directory holds, by name."""
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.layout import parse_replica_directory

    names = (Path(each).name for each in find_replicas(OsFileSystem(), log_dir).replicas)
    return sorted({parse_replica_directory(name).topic_partition.topic for name in names})


def check_topics(log_dir: str, topics: Iterable[str]) -> None:
    """Refuse a topic of which nothing lies in the directory."""
    from stratalog.scans.errors import MissingTopicError

    known = set(topics_in(log_dir))
    for topic in topics:
        if topic not in known:
            raise MissingTopicError(topic, -1, log_dir)


def check_files(paths: Iterable[str], format_name: str | None, configs: Mapping[str, str]) -> None:
    """Refuse a path that is not there, if it is certainly one of this machine's."""
    from stratalog.spark.jobs.places import absolute, local_path

    is_of_files = (format_name or "parquet").lower() in _FILE_FORMATS
    has_default = any(name.lower() == _DEFAULT_FILE_SYSTEM for name in configs)
    if not is_of_files or has_default or "HADOOP_CONF_DIR" in os.environ:
        return
    for path in paths:
        place = local_path(absolute(path))
        if place is not None and not _GLOB.search(place) and not Path(place).exists():
            raise CommandError(f"{path}: there is no such file or directory.")


def check_source(log_dir: str, topics: Iterable[str], options: Mapping[str, str]) -> None:
    """Refuse options that the source of a query does not take."""
    from stratalog.spark.options import SourceOptions

    named = {"path": log_dir, "subscribe": ",".join(topics)}
    SourceOptions.parse({**options, **named}, is_streaming=False)
