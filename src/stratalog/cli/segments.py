"""``stratalog log segments``: what a replica's segments hold, one line each."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stratalog.cli.options import PartitionArgument
from stratalog.cli.output import OutputFormat, OutputOption, write_json, write_table
from stratalog.cli.progress import bytes_bar, log_bytes

if TYPE_CHECKING:
    from stratalog.storage.check_segment import SegmentFacts

_COLUMNS = {
    "base_offset": "base",
    "next_offset": "next",
    "records": "records",
    "batches": "batches",
    "size_bytes": "bytes",
    "first_timestamp": "first",
    "last_timestamp": "last",
    "codecs": "codecs",
    "index_entries": "index",
    "bytes_per_entry": "bytes/entry",
    "time_index_entries": "timeindex",
    "roll": "began because of",
    "trouble": "trouble",
}


def segments(
    directory: PartitionArgument,
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
    from stratalog.storage.findings import Kind
    from stratalog.storage.inspection import one_replica
    from stratalog.storage.kept_cuts import KeptCuts
    from stratalog.storage.ours import OwnFiles
    from stratalog.storage.readonly import ReadOnlyFileSystem

    files = ReadOnlyFileSystem(OsFileSystem())
    replica = one_replica(files, directory)
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
                    row["trouble"].append(str(Kind.RECOVERY_CUT))
                rows.append(row)
    if output is OutputFormat.JSON:
        write_json({"directory": replica.directory, "segments": rows})
        return
    shown = [[_cell(name, row[name]) for name in _COLUMNS] for row in rows]
    write_table(list(_COLUMNS.values()), shown)


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
    return ",".join(value) if isinstance(value, list) else value


def _time(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
