"""The lines of ``stratalog log dump``: Kafka's own, or one JSON object each."""

from typing import Protocol

from stratalog.cli.dump_batches import DumpedBatch, DumpedRecord
from stratalog.cli.dump_decoders import Contents
from stratalog.cli.dump_indexes import AbortedRow, OffsetRow, ProducerRow, TimeRow
from stratalog.cli.java import boolean, hash_map_order, optional_long
from stratalog.cli.output import write_error, write_json, write_line

RECORD_INDENT = "|"

Pairs = list[tuple[int, int]]


class DumpOutput(Protocol):
    """What a dump tells, in the order in which it finds it."""

    def file(self, path: str) -> None: ...
    def note(self, sentence: str, **values: object) -> None: ...
    def warning(self, sentence: str) -> None: ...
    def batch(self, batch: DumpedBatch) -> None: ...
    def record(
        self,
        batch: DumpedBatch,
        record: DumpedRecord,
        contents: Contents | None,
        control: str | None,
        *,
        metadata: bool,
    ) -> None: ...
    def offset_entry(self, row: OffsetRow) -> None: ...
    def time_entry(self, row: TimeRow) -> None: ...
    def aborted(self, row: AbortedRow) -> None: ...
    def producer(self, row: ProducerRow) -> None: ...
    def mismatches(self, title: str, line: str, found: dict[str, Pairs]) -> None: ...


class TextOutput:
    """The very lines of kafka-dump-log."""

    def file(self, path: str) -> None:
        write_line(f"Dumping {path}")

    def note(self, sentence: str, **values: object) -> None:
        write_line(sentence)

    def warning(self, sentence: str) -> None:
        write_error(sentence)

    def batch(self, batch: DumpedBatch) -> None:
        if batch.magic >= 2:
            head = (
                f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} "
                f"count: {batch.record_count} baseSequence: {batch.base_sequence} "
                f"lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
                f"producerEpoch: {batch.producer_epoch} "
                f"partitionLeaderEpoch: {batch.leader_epoch} "
                f"isTransactional: {boolean(batch.is_transactional)} "
                f"isControl: {boolean(batch.is_control)} "
                f"deleteHorizonMs: {optional_long(batch.delete_horizon_ms)}"
            )
        else:
            head = f"offset: {batch.last_offset}"
        write_line(
            f"{head} position: {batch.position} {batch.timestamp_type}: {batch.timestamp_ms} "
            f"size: {batch.size_bytes} magic: {batch.magic} compresscodec: {batch.codec} "
            f"crc: {batch.crc} isvalid: {boolean(batch.is_valid)}"
        )

    def record(
        self,
        batch: DumpedBatch,
        record: DumpedRecord,
        contents: Contents | None,
        control: str | None,
        *,
        metadata: bool,
    ) -> None:
        line = _record_metadata(batch, record) + (control or "") if metadata else ""
        if contents is not None:
            if contents.key is not None:
                line += f"{'' if line else RECORD_INDENT} key: {contents.key}"
            if contents.value is not None:
                line += f"{'' if line else RECORD_INDENT} payload: {contents.value}"
        write_line(line)

    def offset_entry(self, row: OffsetRow) -> None:
        write_line(f"offset: {row.offset} position: {row.position}")

    def time_entry(self, row: TimeRow) -> None:
        write_line(f"timestamp: {row.timestamp_ms} offset: {row.offset}")

    def aborted(self, row: AbortedRow) -> None:
        write_line(
            f"version: {row.version} producerId: {row.producer_id} "
            f"firstOffset: {row.first_offset} lastOffset: {row.last_offset} "
            f"lastStableOffset: {row.last_stable_offset}"
        )

    def producer(self, row: ProducerRow) -> None:
        first = row.transaction_first_offset
        line = (
            f"producerId: {row.producer_id} producerEpoch: {row.producer_epoch} "
            f"coordinatorEpoch: {row.coordinator_epoch} "
            f"currentTxnFirstOffset: {optional_long(first if first >= 0 else None)} "
            f"lastTimestamp: {row.timestamp_ms}"
        )
        if row.last_offset >= 0:
            line += (
                f" firstSequence: {row.first_sequence} lastSequence: {row.last_sequence} "
                f"lastOffset: {row.last_offset} offsetDelta: {row.offset_delta} "
                f"timestamp: {row.timestamp_ms}"
            )
        write_line(line)

    def mismatches(self, title: str, line: str, found: dict[str, Pairs]) -> None:
        for path in hash_map_order(found):
            write_error(title + path)
            for first, second in found[path]:
                write_error(line.format(first, second))


def _record_metadata(batch: DumpedBatch, record: DumpedRecord) -> str:
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    line = (
        f"{RECORD_INDENT} offset: {record.offset} {batch.timestamp_type}: {record.timestamp_ms} "
        f"keySize: {key_size} valueSize: {value_size}"
    )
    if batch.magic >= 2:
        names = ",".join(name for name, _ in record.headers)
        return f"{line} sequence: {record.sequence} headerKeys: [{names}]"
    return f"{line} isValid: {boolean(record.is_valid)} crc: {record.crc}"


class JsonOutput:
    """One object a line; every object says which file it is about."""

    def __init__(self) -> None:
        self._path = ""

    def _write(self, kind: str, **values: object) -> None:
        write_json({"file": self._path, "kind": kind, **values})

    def file(self, path: str) -> None:
        self._path = path
        self._write("file")

    def note(self, sentence: str, **values: object) -> None:
        self._write("note", sentence=sentence, **values)

    def warning(self, sentence: str) -> None:
        self._write("warning", sentence=sentence)

    def batch(self, batch: DumpedBatch) -> None:
        values: dict[str, object] = {"last_offset": batch.last_offset}
        if batch.magic >= 2:
            values = {
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "record_count": batch.record_count,
                "base_sequence": batch.base_sequence,
                "last_sequence": batch.last_sequence,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "leader_epoch": batch.leader_epoch,
                "is_transactional": batch.is_transactional,
                "is_control": batch.is_control,
                "delete_horizon_ms": batch.delete_horizon_ms,
            }
        self._write(
            "batch",
            **values,
            position=batch.position,
            timestamp_type=batch.timestamp_type,
            timestamp_ms=batch.timestamp_ms,
            size_bytes=batch.size_bytes,
            magic=batch.magic,
            codec=batch.codec,
            crc=batch.crc,
            is_valid=batch.is_valid,
        )

    def record(
        self,
        batch: DumpedBatch,
        record: DumpedRecord,
        contents: Contents | None,
        control: str | None,
        *,
        metadata: bool,
    ) -> None:
        values: dict[str, object] = {"offset": record.offset}
        if metadata:
            values |= {
                "timestamp_ms": record.timestamp_ms,
                "key_bytes": None if record.key is None else len(record.key),
                "value_bytes": None if record.value is None else len(record.value),
                "sequence": record.sequence,
                "header_keys": [name for name, _ in record.headers],
            }
            if control is not None:
                values["control"] = control.strip()
        if contents is not None:
            values |= {"key": contents.key, "value": contents.value}
        self._write("record", **values)

    def offset_entry(self, row: OffsetRow) -> None:
        self._write("offset_entry", offset=row.offset, position=row.position)

    def time_entry(self, row: TimeRow) -> None:
        self._write("time_entry", timestamp_ms=row.timestamp_ms, offset=row.offset)

    def aborted(self, row: AbortedRow) -> None:
        self._write(
            "aborted_transaction",
            producer_id=row.producer_id,
            first_offset=row.first_offset,
            last_offset=row.last_offset,
            last_stable_offset=row.last_stable_offset,
        )

    def producer(self, row: ProducerRow) -> None:
        first = row.transaction_first_offset
        self._write(
            "producer",
            producer_id=row.producer_id,
            producer_epoch=row.producer_epoch,
            coordinator_epoch=row.coordinator_epoch,
            transaction_first_offset=first if first >= 0 else None,
            last_sequence=row.last_sequence,
            last_offset=row.last_offset,
            offset_delta=row.offset_delta,
            timestamp_ms=row.timestamp_ms,
        )

    def mismatches(self, title: str, line: str, found: dict[str, Pairs]) -> None:
        for path, pairs in found.items():
            self._path = path
            for first, second in pairs:
                self.warning(f"{title.rstrip(':').rstrip()}: {line.format(first, second).strip()}")
