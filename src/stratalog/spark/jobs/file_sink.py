"""What Spark's file sink has noted in a target, and whether an export may go on from there.

The sink takes each batch for written whose number is in the target's ``_spark_metadata``, whoever
wrote it: the batches of another checkpoint, which begin at 0, would be dropped without a word.
A checkpoint notes a batch before the sink does, so the sink is ahead only of the wrong checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.places import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SINK_LOG = "_spark_metadata"
# The sink puts older batches together, in one file under the number of the last.
_BATCH = re.compile(r"(\d+)(\.compact)?")


def check_target(
    spark: SparkSession, target: str, checkpoint: str, partition_by: Sequence[str]
) -> None:
    """Refuse what the sink would drop, and what readers could not read beside the rest."""
    if not all(_is_seen(spark, place) for place in (target, checkpoint)):
        return
    written = _last_batch(spark, f"{target}/{_SINK_LOG}")
    if written is None:
        return
    begun = _last_batch(spark, f"{checkpoint}/offsets")
    if begun is None or begun < written:
        raise JobOptionError(
            "checkpoint",
            checkpoint,
            f"{target} was written with another one: Spark would take batches up to number "
            f"{written} for written, and drop their rows. Give the checkpoint that belongs to the "
            "target, or another target",
        )
    found = _partition_columns(spark, target)
    if found is not None and found != tuple(partition_by):
        raise JobOptionError(
            "partition_by",
            ", ".join(partition_by),
            f"{target} is partitioned by {', '.join(found) or 'nothing'}, and could not be read "
            "with both. Stay with that, or give another target",
        )


def _last_batch(spark: SparkSession, directory: str) -> int | None:
    """None if no batch is noted there."""
    found = (_BATCH.fullmatch(name) for name in _names(spark, directory))
    return max((int(each[1]) for each in found if each is not None), default=None)


def _partition_columns(spark: SparkSession, target: str) -> tuple[str, ...] | None:
    """By the directories of a file that was written; None if no batch had rows."""
    file = next(_files_of_batches(spark, f"{target}/{_SINK_LOG}"), None)
    if file is None:
        return None
    # The target itself may be below such directories.
    above = len(_named_directories(PurePosixPath(target)))
    return _named_directories(file.parent)[above:]


def _files_of_batches(spark: SparkSession, directory: str) -> Iterator[PurePosixPath]:
    for name in filter(_BATCH.fullmatch, _names(spark, directory)):
        # After a line that says the version, each is a file.
        for line in islice(_lines(spark, f"{directory}/{name}"), 1, None):
            yield PurePosixPath(unquote(urlsplit(json.loads(line)["path"]).path))


def _named_directories(place: PurePosixPath) -> tuple[str, ...]:
    """The names of the ``name=value`` that a path ends with."""
    names: list[str] = []
    for part in reversed(place.parts):
        name, is_named, _ = part.partition("=")
        if not is_named:
            break
        names.insert(0, name)
    return tuple(names)


# --- the files of the sink's log -----------------------------------------------------------------
#
# Spark's own readers take no notice of what is in _spark_metadata, so it is read as Spark itself
# does, through Hadoop, which knows all of its file systems. Over Spark Connect there is no JVM to
# ask, and only what this machine sees can be compared.


def _is_seen(spark: SparkSession, place: str) -> bool:
    return getattr(spark, "_jvm", None) is not None or local_path(place) is not None


def _names(spark: SparkSession, directory: str) -> list[str]:
    """None is there if the directory is not."""
    place = _in_hadoop(spark, directory)
    if place is None:
        local = Path(local_path(directory) or "")
        return [each.name for each in local.iterdir()] if local.is_dir() else []
    path, files = place
    if not files.exists(path):
        return []
    return [each.getPath().getName() for each in files.listStatus(path)]


def _lines(spark: SparkSession, file: str) -> Iterator[str]:
    place = _in_hadoop(spark, file)
    if place is None:
        with Path(local_path(file) or "").open(encoding="utf-8") as lines:
            yield from lines
        return
    path, files = place
    java: Any = spark._jvm.java  # type: ignore[union-attr]
    characters = java.nio.charset.StandardCharsets.UTF_8
    reader = java.io.BufferedReader(java.io.InputStreamReader(files.open(path), characters))
    try:
        while (line := reader.readLine()) is not None:
            yield line
    finally:
        reader.close()


def _in_hadoop(spark: SparkSession, place: str) -> tuple[Any, Any] | None:
    """Its path as Hadoop has it, and the file system that it is in."""
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        return None
    path = jvm.org.apache.hadoop.fs.Path(place)
    return path, path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
