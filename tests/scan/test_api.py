"""``stratalog.scan``: arguments as people give them, and what they get."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_fixture import running_broker
from stratalog import Record, open_directory
from stratalog.scans.api import Place, scan
from stratalog.scans.columns import KAFKA_COLUMNS, scan_schema
from stratalog.scans.errors import MissingTopicError, ScanOptionError, ScanReadError
from stratalog.scans.leasing import ask_leases
from stratalog.scans.reading import ScanReport
from stratalog.scans.where import Where
from stratalog.storage.files import OsFileSystem
from stratalog.storage.leases import list_lease_files

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of ``orders`` with ten records each, a second apart, and one of ``other``."""
    path = tmp_path_factory.mktemp("logs")
    start_ms = int(START.timestamp() * 1_000)
    with open_directory(path, create=True) as made:
        for topic, partition in (("orders", 0), ("orders", 1), ("other", 0)):
            log = made.create(topic, partition)
            for place in range(10):
                key = b"%s-%d" % (topic.encode(), place % 3)
                log.append([Record(key, b"v", timestamp_ms=start_ms + 1_000 * place)])
    return path


def offsets(root: Path, topic: str | list[str] | None = "orders", **arguments: Any) -> list[Any]:
    """Offsets by partition, of what a scan returns."""
    found = scan(str(root), topic, columns=("partition", "offset"), **arguments).read_all()
    rows = zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True)
    return list(rows)


def test_a_scan_returns_the_columns_of_sparks_kafka_source(root: Path) -> None:
    reader = scan(str(root), "orders")
    assert reader.schema == scan_schema(KAFKA_COLUMNS)
    assert reader.read_all().num_rows == 20


@pytest.mark.parametrize(
    "use",
    [
        lambda reader: reader.read_all(),
        lambda reader: reader.read_pandas(),
        lambda reader: pa.table(reader),
        lambda reader: pa.RecordBatchReader.from_stream(reader).read_all(),
        lambda reader: pa.Table.from_batches(list(reader)),
        lambda reader: pa.Table.from_batches([next(reader), *reader]),
        lambda reader: reader.cast(reader.schema).read_all(),
    ],
    ids=["table", "pandas", "pyarrow", "stream", "loop", "next", "cast"],
)
def test_a_reader_is_read_once_and_says_so_to_who_reads_it_again(root: Path, use: Any) -> None:
    reader = scan(str(root), "orders")

    assert len(use(reader)) == 20
    for again in (reader.read_all, lambda: list(reader), lambda: pa.table(reader)):
        with pytest.raises(ScanReadError, match="call scan again"):
            again()


def test_topics_are_one_or_several_or_all(root: Path) -> None:
    assert len(offsets(root, "other")) == 10
    assert len(offsets(root, ["orders", "other"])) == 30
    assert len(offsets(root, None)) == 30
    assert len(offsets(root / "orders-1", None)) == 10
    with pytest.raises(MissingTopicError):
        offsets(root, "no")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (3, 5, [(0, 3), (0, 4), (1, 3), (1, 4)]),
        ({0: 9}, {1: 1}, [(0, 9), (1, 0)]),
        ("latest", None, []),
        (None, "earliest", []),
        (8, "latest", [(0, 8), (0, 9), (1, 8), (1, 9)]),
        (START + timedelta(seconds=8.5), None, [(0, 9), (1, 9)]),
        (START - timedelta(days=1), START + timedelta(seconds=1), [(0, 0), (1, 0)]),
        (START + timedelta(seconds=9, microseconds=1), None, []),
        (9, START + timedelta(days=1), [(0, 9), (1, 9)]),
        (-5, 1, [(0, 0), (1, 0)]),
        (50, None, []),
    ],
)
def test_a_scan_begins_and_ends_where_it_is_told(
    root: Path, start: Place, end: Place, expected: list[Any]
) -> None:
    assert offsets(root, start=start, end=end) == expected


def test_a_condition_chooses_rows(root: Path) -> None:
    found = offsets(root, where="timestamp >= '2026-01-01 00:00:07' AND partition = 1")
    assert found == [(1, 7), (1, 8), (1, 9)]
    found = offsets(root, where="timestamp < '2026-01-01 01:00:02'", time_zone="Europe/Berlin")
    assert found == [(0, 0), (0, 1), (1, 0), (1, 1)]
    found = offsets(root, where=Where(keys=frozenset((b"orders-1",)), max_offset=4))
    assert found == [(0, 1), (0, 4), (1, 1), (1, 4)]
    # The keys are not where the default partitioner puts them, which the scan finds out.
    assert offsets(root, key=b"orders-2", end=3) == [(0, 2), (1, 2)]


def test_a_condition_that_a_scan_cannot_decide_is_refused(root: Path) -> None:
    with pytest.raises(ScanOptionError, match=r"value IS NULL.*filter what the scan returns"):
        scan(str(root), "orders", where="offset > 3 AND value IS NULL")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"isolation": "serializable"}, "read_uncommitted or read_committed"),
        ({"mode": "dropmalformed"}, "failfast or permissive"),
        ({"start": "yesterday"}, "an offset, a time, earliest or latest"),
        ({"start": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"columns": ("offset", "valeu")}, "valeu"),
    ],
)
def test_what_nobody_can_act_on_is_refused(
    root: Path, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ScanOptionError, match=sentence):
        scan(str(root), "orders", **arguments)


def test_gaps_are_what_is_missing(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        log = made.create("orders")
        log.append([Record(b"k", b"v")] * 5)
        log.delete_records(2)
    found = scan(str(tmp_path), "orders", gaps=True, start=0).read_all().to_pylist()
    assert [(row["startOffset"], row["endOffset"], row["reason"]) for row in found] == [
        (0, 2, "expired")
    ]


def test_damage_is_passed_over_and_counted_if_that_is_asked_for(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        log = made.create("orders")
        for _ in range(3):
            log.append([Record(b"k", b"v")] * 5)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    report = ScanReport()
    found = offsets(tmp_path, mode="permissive", report=report)
    assert [offset for _, offset in found] == [*range(5), *range(10, 15)]
    assert report.bytes_damaged == len(content) // 3


def test_files_are_held_while_our_broker_owns_them_and_until_the_scan_ends(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        made.create("orders").append([Record(b"k", b"v")] * 5)

    def held() -> int:
        return len(list_lease_files(OsFileSystem(), str(tmp_path)))

    with running_broker(tmp_path) as broker:
        reader = scan(str(tmp_path), "orders")
        batches: Iterator[Any] = iter(reader)
        next(batches)
        assert held() == 1
        assert list(batches) == []
        assert ask_leases(str(tmp_path)) == []
        # Which removes the files of leases on a thread of its own.
        broker.call(broker.broker.services.logs._janitor.finish)
        assert held() == 0
    assert scan(str(tmp_path), "orders").read_all().num_rows == 5
    assert held() == 0
