"""A small log on a simulated disk: written once, then broken and opened by the tests."""

from functools import cache

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import segment_file
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation
from stratalog.storage.recovery import RecoveryReport, open_log
from stratalog.testing import ManualClock, SimulatedFileSystem

DIRECTORY = "/data/orders-0"
START_MS = 1_700_000_000_000

# Four batches of ``written()`` fill a segment, and each but the first has an index entry.
CONFIG = TopicConfig(
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    file_delete_delay_ms=0,
)


def produced(text: str = "", *, count: int = 2, at_ms: int = START_MS, **fields: int) -> bytes:
    rows = [Record(b"k%d" % n, f"{text} {n}".encode(), (), at_ms + n) for n in range(count)]
    return build_batch(rows, **fields)


def new_disk() -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    for path in ("/data", DIRECTORY):
        files.make_directory(path)
        files.sync_directory(path.rpartition("/")[0] or "/")
    return files


def opened(
    files: SimulatedFileSystem,
    *,
    config: TopicConfig = CONFIG,
    clean: bool = False,
    recovery_point: int | None = None,
    log_start_offset: int = 0,
) -> Log:
    context = LogContext(
        files, ManualClock(START_MS), HandleCache(), DirectoryState(), flush_on_ack=False
    )
    log = open_log(
        DIRECTORY,
        config,
        context,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    )
    log.update_high_watermark(log.log_end_offset)
    return log


def report(log: Log) -> RecoveryReport:
    assert isinstance(log.recovery_report, RecoveryReport)
    return log.recovery_report


@cache
def _written(batches: int, clean: bool) -> SimulatedFileSystem:
    files = new_disk()
    log = opened(files)
    for number in range(batches):
        batch = produced(
            f"batch {number:2}",
            at_ms=START_MS + 10 * number,
            producer_id=7,
            producer_epoch=0,
            base_sequence=2 * number,
        )
        log.append_as_leader(batch, leader_epoch=number // 3)
    log.flush()
    if clean:
        log.close()
    else:
        log.abandon()
    return files


def written(batches: int = 10, *, clean: bool = False) -> SimulatedFileSystem:
    """A disk with a log of ``batches`` batches of two records: four batches a segment, three a
    leader epoch. All is flushed; left as a crash leaves it, or closed."""
    return _written(batches, clean).clone()


def log_file(base_offset: int, suffix: str = ".log") -> str:
    return segment_file(DIRECTORY, base_offset, suffix)


def batches_in(data: bytes) -> list[bytes]:
    """The whole batches in ``data``; their CRCs are checked."""
    return [data[h.position : h.position + h.size_bytes] for h in read_headers(data)]


def stored(files: SimulatedFileSystem) -> list[bytes]:
    """The batches in the plain ``.log`` files of the directory, in order."""
    tree = files.tree(DIRECTORY)
    return [
        batch for name in sorted(tree) if name.endswith(".log") for batch in batches_in(tree[name])
    ]


def readable(log: Log) -> list[bytes]:
    """Every batch that a reader gets, from the log start to the log end, around damage."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            fetched = log.read(offset, max_bytes=150, isolation=Isolation.LOG_END)
        except CorruptSegmentError:
            offset += 1
            continue
        if fetched.records is None:
            break
        batches = batches_in(fetched.records.read())
        assert batches, "a read returns at least one whole batch with a right CRC"
        found += [batch for batch in batches if batch not in found]
        offset = max(offset + 1, read_headers(batches[-1])[0].next_offset)
    return found
