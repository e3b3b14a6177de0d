"""Dumping each kind of file, and what is told at the end about all of them."""

import re
from pathlib import Path

from stratalog.cli.dump import MAX_BYTES, DumpOptions
from stratalog.cli.dump_batches import BatchReader, DumpedBatch, DumpError, records_of
from stratalog.cli.dump_decoders import Decoder, control_text
from stratalog.cli.dump_indexes import (
    OffsetIndexFile,
    SnapshotError,
    TimeIndexFile,
    aborted_rows,
    producer_rows,
    read_whole,
)
from stratalog.cli.dump_output import DumpOutput, Pairs
from stratalog.errors import CorruptBatchError, DiskError
from stratalog.storage.files import OsFileSystem
from stratalog.storage.readonly import ReadOnlyFileSystem

_QUORUM_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"


class Dumper:
    """One run over some files. What an index got wrong is collected, and told last."""

    def __init__(self, options: DumpOptions, decoder: Decoder, output: DumpOutput) -> None:
        self._options = options
        self._decoder = decoder
        self._output = output
        self._files = ReadOnlyFileSystem(OsFileSystem())
        self._index_mismatches: dict[str, Pairs] = {}
        self._time_mismatches: dict[str, Pairs] = {}
        self._out_of_order: dict[str, Pairs] = {}
        self._not_found: dict[str, Pairs] = {}
        self._non_consecutive: dict[str, Pairs] = {}

    def run(self, paths: list[str]) -> None:
        kinds = {
            ".log": self._dump_log,
            ".checkpoint": self._dump_quorum_snapshot,
            ".index": self._dump_offset_index,
            ".timeindex": self._dump_time_index,
            ".txnindex": self._dump_transaction_index,
            ".snapshot": self._dump_snapshot,
        }
        for path in paths:
            self._output.file(path)
            kind = kinds.get(_suffix(path))
            if kind is None:
                self._output.warning(f"Ignoring unknown file {path}")
            else:
                kind(path)
        self._tell_mismatches()

    def _tell_mismatches(self) -> None:
        tell = self._output.mismatches
        # Kafka keeps some of these in maps: one line a key, in the order of the keys.
        falling = {
            path: sorted(dict(found).items(), reverse=True)
            for path, found in self._index_mismatches.items()
        }
        tell("Mismatches in :", "  Index offset: {}, log offset: {}", falling)
        tell(
            "Found timestamp mismatch in :",
            "  Index timestamp: {}, log timestamp: {}",
            self._time_mismatches,
        )
        tell(
            "Found out of order timestamp in :",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
            self._out_of_order,
        )
        tell(
            "The following indexed offsets are not found in :",
            "Indexed offset: {}, found log offset: {}",
            self._not_found,
        )
        rising = {
            path: sorted(dict(found).items()) for path, found in self._non_consecutive.items()
        }
        tell("Non-consecutive offsets in ", "  {} is followed by {}", rising)

    # --- logs ----------------------------------------------------------------------------------

    def _dump_log(self, path: str) -> None:
        base_offset = _base_offset(path)
        self._output.note(f"Log starting offset: {base_offset}", base_offset=base_offset)
        self._dump_batches(path)

    def _dump_quorum_snapshot(self, path: str) -> None:
        name = Path(path).name
        match = _QUORUM_SNAPSHOT.fullmatch(name)
        if name == _BOOTSTRAP_SNAPSHOT:
            self._output.note("KRaft bootstrap snapshot")
        elif match is not None:
            offset, epoch = int(match[1]), int(match[2])
            self._output.note(
                f"Snapshot end offset: {offset}, epoch: {epoch}", offset=offset, epoch=epoch
            )
        else:
            raise DumpError(f"{path} is not named like a snapshot of the metadata log.")
        self._dump_batches(path)

    def _dump_batches(self, path: str) -> None:
        log = self._open_log(path)
        end = min(log.size_bytes, self._options.max_bytes)
        position = 0
        last_offset = -1
        for batch in log.batches(0, end):
            self._output.batch(batch)
            if self._options.is_deep:
                last_offset = self._dump_records(path, batch, last_offset)
            position += batch.size_bytes
        if position < end and self._options.max_bytes == MAX_BYTES:
            name = Path(path).name
            self._output.note(
                f"Found {end - position} invalid bytes at the end of {name}",
                invalid_bytes=end - position,
            )

    def _dump_records(self, path: str, batch: DumpedBatch, last_offset: int) -> int:
        for record in records_of(batch):
            if record.offset != last_offset + 1:
                found = self._non_consecutive.setdefault(str(Path(path).absolute()), [])
                found.append((last_offset, record.offset))
            last_offset = record.offset
            contents = control = None
            if batch.is_control:
                try:
                    control = control_text(record)
                except CorruptBatchError as error:
                    raise DumpError(f"Offset {record.offset}: {error.reason}.") from error
            elif self._options.print_data_log:
                contents = self._decoder(record)
            self._output.record(
                batch, record, contents, control, metadata=not self._options.skip_record_metadata
            )
        return last_offset

    def _open_log(self, path: str) -> BatchReader:
        try:
            return BatchReader(self._files.open(path))
        except DiskError as error:
            raise DumpError(f"{path} cannot be read: {error.reason}.") from error

    # --- indexes -------------------------------------------------------------------------------

    def _dump_offset_index(self, path: str) -> None:
        base_offset = _base_offset(path)
        log = self._open_log(_beside(path, ".log"))
        index = OffsetIndexFile(read_whole(self._files, path), base_offset)
        if not index.entries:
            self._output.note(f"{path} is empty.")
            return
        if self._options.index_sanity_check:
            index.check(str(Path(path).absolute()))
            self._output.note(f"{path} passed sanity check.")
            return
        for row in index.rows(log, self._options.max_message_size):
            if row.log_offset != row.offset:
                found = self._index_mismatches.setdefault(str(Path(path).absolute()), [])
                found.append((row.offset, row.log_offset))
            if not self._options.verify_index_only:
                self._output.offset_entry(row)

    def _dump_time_index(self, path: str) -> None:
        base_offset = _base_offset(path)
        log = self._open_log(_beside(path, ".log"))
        beside = _beside(path, ".index")
        entries = read_whole(self._files, beside) if self._files.exists(beside) else b""
        offset_index = OffsetIndexFile(entries, base_offset)
        index = TimeIndexFile(read_whole(self._files, path), base_offset)
        if self._options.index_sanity_check:
            index.check(str(Path(path).absolute()))
            self._output.note(f"{path} passed sanity check.")
            return
        absolute = str(Path(path).absolute())
        previous_ms = -1
        for row in index.rows(log, offset_index):
            if row.log_timestamp_ms is None:
                self._not_found.setdefault(absolute, []).append((row.offset, row.log_offset))
            else:
                if row.log_timestamp_ms != row.timestamp_ms:
                    pair = (row.timestamp_ms, row.log_timestamp_ms)
                    self._time_mismatches.setdefault(absolute, []).append(pair)
                if previous_ms >= row.timestamp_ms:
                    pair = (row.timestamp_ms, previous_ms)
                    self._out_of_order.setdefault(absolute, []).append(pair)
            if not self._options.verify_index_only:
                self._output.time_entry(row)
            previous_ms = row.timestamp_ms

    def _dump_transaction_index(self, path: str) -> None:
        _base_offset(path)
        for row in aborted_rows(str(Path(path).absolute()), read_whole(self._files, path)):
            self._output.aborted(row)

    def _dump_snapshot(self, path: str) -> None:
        try:
            rows = producer_rows(read_whole(self._files, path))
        except SnapshotError as error:
            self._output.warning(str(error))
            return
        for row in rows:
            self._output.producer(row)


def _suffix(path: str) -> str:
    name = Path(path).name
    dot = name.rfind(".")
    return "" if dot < 0 else name[dot:]


def _base_offset(path: str) -> int:
    number = Path(path).name.split(".")[0]
    if not re.fullmatch(r"[+-]?[0-9]+", number):
        raise DumpError(f"{path} is no segment's file: its name does not begin with an offset.")
    return int(number)


def _beside(path: str, suffix: str) -> str:
    file = Path(path)
    return str(file.with_name(file.name.split(".")[0] + suffix))
