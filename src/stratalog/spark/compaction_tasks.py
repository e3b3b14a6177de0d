"""What a compaction's tasks do, in the workers: one row in, one row of JSON out.

They read source segments and write to staging directories, both on a file system that all see; no
log is changed here. What was staged is kept by a lease, which whoever works at it renews.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from stratalog.clock import SystemClock
from stratalog.errors import CorruptSegmentError, DiskError
from stratalog.spark.workers import settle_in
from stratalog.storage.cleaning.key_scan import HashRange, dirty_slices, superseded_in
from stratalog.storage.cleaning.marks import block_bits, span_of
from stratalog.storage.cleaning.outside_work import (
    Effort,
    HashesFound,
    Rewritten,
    clean_whole,
    hash_pieces,
    mark_blocks,
    note_damage,
    rewrite_groups,
    scan_hashes,
    scan_range,
    scan_slice,
)
from stratalog.storage.cleaning.round_json import OutsideRound, read_round
from stratalog.storage.commits.errors import SourceChangedError
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.staging import renew_staging
from stratalog.storage.files import OsFileSystem

if TYPE_CHECKING:
    import pyarrow

RESULT_SCHEMA = "number long, result string"
HASHES_SCHEMA = "low long, high long, place long"
OFFSETS_SCHEMA = "offset long"
RENEW_SECONDS = 10.0
# In the result of a task instead of all else: what is damaged.
DAMAGED = "damaged"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWork:
    """What all tasks of a compaction are told. Pickled to them."""

    log_dir: str
    staging_id: str
    staging_seconds: float
    hash_key: bytes
    map_bytes: int
    rounds: tuple[Json, ...]

    def round(self, number: int) -> OutsideRound:
        return read_round(self.rounds[number], OsFileSystem())

    def effort(self, name: str) -> Effort:
        from pyspark import TaskContext

        context = TaskContext.get()
        # No two attempts have the same: what a lost one has written is nobody's.
        attempt = 0 if context is None else context.taskAttemptId()
        return Effort(
            staging_id=self.staging_id,
            hash_key=self.hash_key,
            map_bytes=self.map_bytes,
            map_bytes_max=self.map_bytes,
            attempt=f"{name}-{attempt}",
            progress=self._renewer(),
        )

    def _renewer(self) -> Callable[[int], None]:
        files, clock = OsFileSystem(), SystemClock()
        due = time.monotonic() + RENEW_SECONDS

        def renew(_size_bytes: int) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + RENEW_SECONDS
                renew_staging(files, self.log_dir, self.staging_id, self.staging_seconds, clock)

        return renew


def run_each(
    shared: SharedWork, specs: tuple[Json, ...]
) -> "Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]":
    """For ``mapInArrow`` over the numbers of ``specs``."""

    def run(batches: "Iterable[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        import pyarrow

        settle_in()
        for batch in batches:
            for number in _numbers(batch):
                result = json.dumps(_do(shared, number, specs[number]))
                yield pyarrow.RecordBatch.from_pydict({"number": [number], "result": [result]})

    return run


def _numbers(batch: "pyarrow.RecordBatch") -> list[int]:
    numbers: list[Any] = batch.column(0).to_pylist()
    return numbers


@contextmanager
def _sources_of(round_: OutsideRound) -> Iterator[None]:
    """Whoever reads a segment that somebody has replaced meanwhile meets nonsense: say why. A
    segment that is damaged is an error of its partition alone."""
    try:
        yield
    except (CorruptSegmentError, DiskError):
        for source in round_.plan.sources:
            found = round_.plan.files.stat(source.path)
            if found is None or found.size_bytes != source.size_bytes:
                raise SourceChangedError(
                    f"{round_.topic_partition}: segment {source.base_offset} has changed while it "
                    "was read; nothing was replaced, and the compaction can be run again"
                ) from None
        raise


def _do(shared: SharedWork, number: int, spec: Json) -> Json:
    round_ = shared.round(spec["round"])
    effort = shared.effort(f"{number:05d}")
    effort = replace(effort, map_bytes=spec.get("map_bytes", effort.map_bytes))
    try:
        with _sources_of(round_):
            return _do_in(round_, effort, spec)
    except CorruptSegmentError as error:
        # The error of a task would end the job, and with it the work on all other partitions.
        return {DAMAGED: str(error)}


def _do_in(round_: OutsideRound, effort: Effort, spec: Json) -> Json:
    match spec["do"]:
        case "clean":
            return _rewritten(clean_whole(round_, effort))
        case "scan":
            path, found = scan_range(round_, HashRange(spec["first"], spec["last"]), effort)
            return {"path": path, **asdict(found)}
        case "slice":
            sources = dirty_slices(round_.plan, spec["of"])[spec["slice"]]
            in_slice = scan_slice(round_, sources, effort)
            return {} if in_slice is None else asdict(in_slice)
        case "rewrite":
            return _rewritten(rewrite_groups(round_, spec["groups"], spec["marks"], effort))
    raise AssertionError(spec["do"])


def _rewritten(done: Rewritten) -> Json:
    files = {number: asdict(file) for number, file in done.files.items()}
    return {"files": files, "stats": done.stats}


def read_rewritten(result: Json) -> Rewritten:
    files = {int(number): StagedFile(**file) for number, file in result["files"].items()}
    return Rewritten(files, result["stats"])


# --- hashes, to be sorted ---------------------------------------------------------------------


def hash_each(
    shared: SharedWork, number: int
) -> "Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]":
    """For ``mapInArrow`` over the numbers of a round's ``hash_pieces``."""

    def run(batches: "Iterable[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        settle_in()
        round_ = shared.round(number)
        pieces = hash_pieces(round_.plan)
        for batch in batches:
            for piece in _numbers(batch):
                found = HashesFound()
                effort = shared.effort(f"hashes-{number:05d}-{piece:05d}")
                try:
                    with _sources_of(round_):
                        for columns in scan_hashes(round_, pieces[piece], effort, found):
                            yield _columns(columns, ("low", "high", "place"))
                except CorruptSegmentError as error:
                    note_damage(round_, effort, str(error))

    return run


def _columns(columns: tuple[bytes, ...], names: tuple[str, ...]) -> "pyarrow.RecordBatch":
    import pyarrow

    arrays = [
        pyarrow.Array.from_buffers(pyarrow.int64(), len(each) // 8, [None, pyarrow.py_buffer(each)])
        for each in columns
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(names))


def supersede_each() -> "Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]":
    """For ``mapInArrow`` over sorted hashes: the offsets that are superseded."""

    def run(batches: "Iterable[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        settle_in()
        for offsets in superseded_in(map(_views, batches)):
            if offsets:
                yield _columns((offsets,), ("offset",))

    return run


def mark_each(
    shared: SharedWork, number: int
) -> "Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]":
    """For ``mapInArrow`` over superseded offsets: all of some blocks."""

    def run(batches: "Iterable[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        import pyarrow
        import pyarrow.compute

        settle_in()
        round_ = shared.round(number)
        bits = block_bits(span_of(round_.plan))

        def columns() -> Iterator[tuple[list[int], memoryview]]:
            for batch in batches:
                blocks: Any = pyarrow.compute.shift_right(batch.column(0), bits).unique()
                yield blocks.to_pylist(), _view(batch.column(0))

        paths = mark_blocks(round_, columns(), shared.effort(f"blocks-{number:05d}"))
        yield pyarrow.RecordBatch.from_pydict({"number": [number], "result": [json.dumps(paths)]})

    return run


def _views(batch: "pyarrow.RecordBatch") -> tuple[memoryview, memoryview, memoryview]:
    low, high, place = (_view(batch.column(number)) for number in range(3))
    return low, high, place


def _view(column: "pyarrow.Array[Any]") -> memoryview:
    start = 8 * column.offset
    values: Any = column.buffers()[1]
    return memoryview(values)[start : start + 8 * len(column)]
