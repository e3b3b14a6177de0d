"""``stratalog log find``: where is the record at an offset, or the first one from a time on?

Prints each step of the search as it is made, and the record at the end.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.directories import (
    NamedDirOption,
    OnePartitionOption,
    PartitionDirArgument,
    PartitionTopicOption,
    partition_of,
)
from stratalog.cli.failures import UsageError
from stratalog.cli.output import OutputFormat, OutputOption, write_json, write_line
from stratalog.cli.values import parse_moment

if TYPE_CHECKING:
    from stratalog.storage.explain import FoundBatch
    from stratalog.storage.files import FileSystem
    from stratalog.storage.inspection import Replica

_SHOWN_BYTES = 200


def find(
    directory: PartitionDirArgument = None,
    log_dir: NamedDirOption = None,
    topic: PartitionTopicOption = None,
    partition: OnePartitionOption = None,
    offset: Annotated[int | None, typer.Option("--offset", help="The record at it.")] = None,
    timestamp: Annotated[
        str | None,
        typer.Option("--timestamp", help="The first record not older: ms, or ISO 8601 (UTC)."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Find a record, and tell every step of the search.

    \b
    Examples:
      stratalog log find data/orders-0 --offset 4711
      stratalog log find data/orders-0 --timestamp 2026-01-31T12:00:00Z
    """
    from stratalog.storage.explain import Search
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import one_replica
    from stratalog.storage.readonly import ReadOnlyFileSystem

    if (offset is None) == (timestamp is None):
        raise UsageError("Give either --offset or --timestamp.")
    if offset is not None and offset < 0:
        raise UsageError(f"--offset {offset} is negative; offsets begin at 0.")
    timestamp_ms = None if timestamp is None else parse_moment(timestamp, "--timestamp")
    files = ReadOnlyFileSystem(OsFileSystem())
    replica = one_replica(files, partition_of(directory, log_dir, topic, partition))
    search = Search(files, replica, log_start_offset=_log_start(files, replica))
    if offset is not None:
        steps = search.by_offset(offset)
    else:
        assert timestamp_ms is not None, "one of the two was given"
        steps = search.by_timestamp(timestamp_ms)
    told = []
    for step in steps:
        told.append(asdict(step))
        if output is OutputFormat.TABLE:
            write_line(step.sentence)
    record = None if search.found is None else _record(search.found)
    if output is OutputFormat.JSON:
        write_json({"steps": told, "record": record})
    else:
        write_line(_sentence(record))
    if record is None:
        raise typer.Exit(1)


def _log_start(files: "FileSystem", replica: "Replica") -> int:
    from stratalog.errors import CorruptFileError
    from stratalog.storage.checkpoint import read_offsets
    from stratalog.storage.layout import LOG_START_CHECKPOINT

    try:
        starts = read_offsets(files, f"{replica.log_directory}/{LOG_START_CHECKPOINT}")
    except CorruptFileError:
        return 0
    return starts.get(replica.topic_partition, 0)


def _record(found: "FoundBatch") -> dict[str, Any] | None:
    """The record itself: the first in the batch at the offset that was found, or after it."""
    from stratalog.cli.dump_batches import BatchReader, records_of

    header = found.header
    reader = BatchReader(found.segment.file())
    batch = next(reader.batches(header.position, header.position + header.size_bytes))
    record = next((each for each in records_of(batch) if each.offset >= found.offset), None)
    where = {"path": found.segment.path, "position": header.position}
    if record is None:
        # Compaction has emptied the end of the batch; the offset was there once.
        return {**where, "offset": found.offset, "timestamp_ms": None, "key": None, "value": None}
    return {
        **where,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "is_control": batch.is_control,
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _sentence(record: dict[str, Any] | None) -> str:
    if record is None:
        return "No record is that late."
    if record["timestamp_ms"] is None:
        return f"No record is left at offset {record['offset']}: it was compacted away."
    parts = [f"found offset {record['offset']} with timestamp {record['timestamp_ms']}"]
    if record["is_control"]:
        return f"{parts[0]}, a control record"
    for name in ("key", "value"):
        text = record[name]
        if text is None:
            parts.append(f"{name} null")
        else:
            more = f"… ({len(text)} characters)" if len(text) > _SHOWN_BYTES else ""
            parts.append(f"{name} {text[:_SHOWN_BYTES]!r}{more}")
    return ", ".join(parts)
