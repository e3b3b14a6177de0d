"""Groups and offsets from the log, when this node begins to lead a partition of it.

Of each key only the last record counts, so records are first gone through by key, which is quick,
and only what is left is made into groups and offsets. Offsets that were written in a transaction
count from its COMMIT on. A record that cannot be read is passed over and counted. A batch that
cannot be is an error: offsets that have quietly gone back would be worse than none.

Loading is a generator: each step is short, so that whoever runs it can do something else between.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from stratalog.coordinator import log_records as codec
from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import CommittedOffset, OffsetKey
from stratalog.coordinator.offsets import Kept, TransactionalOffset
from stratalog.errors import CorruptBatchError
from stratalog.records import ControlType, parse_control_record
from stratalog.records._kernels import COLUMN_NAMES, ColumnDecoder

if TYPE_CHECKING:
    from stratalog.storage.log import Log

_STEP_RECORDS: Final = 250
_READ_BYTES: Final = 128 * 1024
_DECOMPRESSED_MAX_BYTES: Final = 1 << 28

_COLUMNS: Final = ("offset", "key", "value", "producer_id", "is_control", "is_transactional")
_WANTED: Final = sum(1 << COLUMN_NAMES.index(name) for name in _COLUMNS)

_logger = logging.getLogger("stratalog")


# Offset, key, value, producer id, whether it is in a transaction, whether it ends one.
_Row = tuple[int, bytes | None, bytes | None, int, bool, bool]


class LatestRecords:
    """The last record of each key, and what waits for the end of a transaction."""

    def __init__(self) -> None:
        self.values: dict[bytes, tuple[int, bytes]] = {}
        self.open: dict[int, dict[bytes, tuple[int, bytes]]] = {}
        self.passed_over: Counter[str] = Counter()

    def add(self, rows: Iterable[_Row]) -> None:
        values = self.values
        for offset, key, value, producer_id, is_transactional, is_control in rows:
            if is_control:
                self._end_transaction(key, value, producer_id)
            elif key is None:
                self.passed_over["a record without a key"] += 1
            elif value is None:
                values.pop(key, None)
                for pending in self.open.values():
                    pending.pop(key, None)
            elif is_transactional:
                self.open.setdefault(producer_id, {})[key] = (offset, value)
            else:
                values[key] = (offset, value)

    def _end_transaction(self, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        try:
            control_type = parse_control_record(key, value).type
        except CorruptBatchError as error:
            self.passed_over[error.reason] += 1
            return
        if not control_type.ends_transaction:
            return
        pending = self.open.pop(producer_id, {})
        if control_type is not ControlType.COMMIT:
            return
        for each, (offset, content) in pending.items():
            # Compaction may have kept this record and a later one, outside of a transaction.
            if each not in self.values or offset > self.values[each][0]:
                self.values[each] = (offset, content)


def load_groups(batches: Iterable[bytes], groups: dict[str, Group], now_ms: int) -> Iterator[None]:
    """Fill ``groups`` from the batches of a partition, a little with each step."""
    latest = LatestRecords()
    for content in batches:
        yield from _decode(content, latest)
    loader = _Loader(groups, latest.passed_over, now_ms)
    for count, (key, (_, value)) in enumerate(latest.values.items(), 1):
        loader.add(key, value)
        if count % _STEP_RECORDS == 0:
            yield
    for producer_id, pending in latest.open.items():
        for key, (offset, value) in pending.items():
            loader.add_transactional(producer_id, key, offset, value)
    for reason, times in latest.passed_over.items():
        fields = {"reason": reason, "records": times}
        _logger.warning("group_record_passed_over", extra={"fields": fields})


def _decode(content: bytes, latest: LatestRecords) -> Iterator[None]:
    decoder = ColumnDecoder(
        _WANTED,
        start_offset=0,
        end_offset=2**63 - 1,
        include_control=True,
        target_bytes=_READ_BYTES,
    )
    at = 0
    while True:
        at = decoder.add(content, at, 0, _DECOMPRESSED_MAX_BYTES)
        is_more = decoder.full
        yield from _in_steps(_rows(decoder), latest)
        if not is_more:
            return


def _in_steps(rows: Iterator[_Row], latest: LatestRecords) -> Iterator[None]:
    while step := list(islice(rows, _STEP_RECORDS)):
        latest.add(step)
        yield


def _rows(decoder: ColumnDecoder) -> Iterator[_Row]:
    count, columns = decoder.take()
    return zip(
        memoryview(columns["offset"][0]).cast("q"),
        _binary(columns["key"], count),
        _binary(columns["value"], count),
        memoryview(columns["producer_id"][0]).cast("q"),
        _bits(columns["is_transactional"][0], count),
        _bits(columns["is_control"][0], count),
        strict=True,
    )


def _binary(memory: tuple[int, bytes, bytes, bytes], count: int) -> list[bytes | None]:
    null_count, valid, offsets, data = memory
    content = bytes(data)
    bounds = memoryview(offsets).cast("i").tolist()
    found: list[bytes | None] = [content[a:b] for a, b in pairwise(bounds[: count + 1])]
    if null_count:
        for number, is_valid in enumerate(_bits(valid, count)):
            if not is_valid:
                found[number] = None
    return found


def _bits(memory: bytes, count: int) -> list[bool]:
    content = bytes(memory)
    if not any(content):
        return [False] * count
    return [bool(content[i >> 3] >> (i & 7) & 1) for i in range(count)]


class _Loader:
    """Makes groups and offsets of records."""

    def __init__(self, groups: dict[str, Group], passed_over: Counter[str], now_ms: int) -> None:
        self._groups = groups
        self._passed_over = passed_over
        self._now_ms = now_ms
        # What the keys of a group and a topic lead to, by all of them but the partition.
        self._partitions: dict[bytes, dict[int, Kept]] = {}

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, now_ms=self._now_ms)
        return group

    def add(self, key: bytes, value: bytes) -> None:
        try:
            partitions = self._partitions.get(key[:-4])
            if partitions is not None:
                partition = int.from_bytes(key[-4:], "big", signed=True)
                partitions[partition] = tuple(codec.read_offset_value(value))
                return
            kind = codec.record_type(key)
            if kind in codec.OFFSET_TYPES:
                found, committed = codec.read_offset_key(key), codec.read_offset_value(value)
                topics = self._group(found.group_id).offsets.topics
                partitions = topics.setdefault(found.topic, {})
                partitions[found.partition] = tuple(committed)
                self._partitions[key[:-4]] = partitions
            elif kind == codec.GROUP_TYPE:
                group_id, stored = codec.read_group_key(key), codec.read_group_value(value)
                self._group(group_id).restore(stored)
            else:
                self._passed_over[f"a key of type {kind}"] += 1
        except CorruptBatchError as error:
            self._passed_over[error.reason] += 1

    def add_transactional(self, producer_id: int, key: bytes, offset: int, value: bytes) -> None:
        try:
            if codec.record_type(key) not in codec.OFFSET_TYPES:
                return
            found: OffsetKey = codec.read_offset_key(key)
            committed: CommittedOffset = codec.read_offset_value(value)
        except CorruptBatchError as error:
            self._passed_over[error.reason] += 1
            return
        offsets = self._group(found.group_id).offsets
        pending = offsets.transactional.setdefault(producer_id, {})
        pending[found.topic, found.partition] = TransactionalOffset(offset, committed)


def read_batches(log: "Log", read_bytes: int = _READ_BYTES) -> Iterator[bytes]:
    """All whole batches of a log, some at a time: what it has at its end counts too, since nobody
    but its leader can have put it there, and that has been told to nobody yet."""
    from stratalog.storage.reading import Isolation

    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, max_bytes=read_bytes, isolation=Isolation.LOG_END).whole_batches()
        if not found.content:
            return
        yield found.content
        offset = found.next_offset
