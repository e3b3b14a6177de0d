"""``stratalog log segments``: what a replica's segments hold, one line each."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stratalog.cli.directories import (
    NamedDirOption,
    OnePartitionOption,
    PartitionDirArgument,
    PartitionTopicOption,
    partition_of,
)
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    write_json,
    write_table,
)
from stratalog.cli.progress import bytes_bar, log_bytes
from stratalog.cli.table import Cells, Column, Mood, Told

if TYPE_CHECKING:
    from stratalog.storage.check_segment import SegmentFacts

_COLUMNS = {
    "base_offset": Column("base"),
    "next_offset": Column("next"),
    "records": Column("records", rank=1),
    "batches": Column("batches", rank=5),
    "size_bytes": Column("bytes", Cells.BYTES),
    "first_timestamp": Column("first", rank=4),
    "last_timestamp": Column("last", rank=2),
    "codecs": Column("codecs", rank=3),
    "index_entries": Column("index", rank=6),
    "bytes_per_entry": Column("bytes/entry", rank=8),
    "time_index_entries": Column("timeindex", rank=7),
    "roll": Column("began because of", Cells.TEXT, rank=3),
    "trouble": Column("trouble", Cells.TEXT),
}


def segments(
    directory: PartitionDirArgument = None,
    log_dir: NamedDirOption = None,
    topic: PartitionTopicOption = None,
    partition: OnePartitionOption = None,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the segments of a log.

    The directory may be in use; nothing is changed.

    \b
    Example:
      stratalog log segments data/orders-0
    """
    from stratalog.storage.check_segment import SegmentCheck
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import one_replica
    from stratalog.storage.kept_cuts import KeptCuts
    from stratalog.storage.ours import OwnFiles
    from stratalog.storage.readonly import ReadOnlyFileSystem

    files = ReadOnlyFileSystem(OsFileSystem())
    replica = one_replica(files, partition_of(directory, log_dir, topic, partition))
    rolls = OwnFiles(files, replica.directory).rolls()
    cut = {each.base_offset for each in KeptCuts(files, replica.directory).read()}
    rows = []
    with bytes_bar("reading", lambda: log_bytes([replica.directory])) as progress:
        for slot, segment in enumerate(replica.segments):
            is_last = slot == len(replica.segments) - 1
            facts = SegmentCheck(files, segment, is_last=is_last, check_records=False).run()
            progress(segment.size_bytes)
            if not facts.is_gone:
                reason = rolls.get(segment.base_offset)
                row = _row(facts, None if reason is None else str(reason))
                if segment.base_offset in cut:
                    row["trouble"].append("recovery-cut")
                rows.append(row)
    if output is OutputFormat.JSON:
        write_json({"directory": replica.directory, "segments": rows})
        return
    shown = [[_cell(name, row[name]) for name in _COLUMNS] for row in rows]
    write_table(list(_COLUMNS.values()), shown, is_wide=wide)


def _row(facts: "SegmentFacts", roll: str | None) -> dict[str, Any]:
    from stratalog.records import Codec

    codecs = [codec.name.lower() for codec in Codec if facts.codec_mask >> codec & 1]
    density = facts.size_bytes // facts.offset_entries if facts.offset_entries else None
    return {
        "base_offset": facts.files.base_offset,
        "next_offset": facts.next_offset,
        "records": facts.record_count,
        "batches": facts.batch_count,
        "size_bytes": facts.size_bytes,
        "first_timestamp": facts.first_timestamp_ms if facts.first_timestamp_ms >= 0 else None,
        "last_timestamp": facts.max_timestamp_ms if facts.max_timestamp_ms >= 0 else None,
        "codecs": codecs,
        "index_entries": facts.offset_entries,
        "bytes_per_entry": density,
        "time_index_entries": facts.time_entries,
        "roll": roll,
        "trouble": [str(finding.kind) for finding in facts.findings],
    }


def _cell(name: str, value: Any) -> Any:
    if name.endswith("_timestamp") and value is not None:
        return _time(value)
    if name == "trouble":
        return Told(",".join(value), Mood.BAD)
    return ",".join(value) if isinstance(value, list) else value


def _time(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
