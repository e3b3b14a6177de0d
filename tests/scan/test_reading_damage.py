"""Damaged and hostile files: an error that says where, or in permissive mode all that is sound."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import START_MS, Batch, ModelLog, Segment, logs, plain

from stratalog.errors import CorruptSegmentError
from stratalog.records import Codec, Record, build_batch
from stratalog.records._kernels import crc32c
from stratalog.scans.errors import DataLostError
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.slices import ReadMode, ScanIsolation, ScanTask

PERMISSIVE = ReadMode.PERMISSIVE


def scan(task: ScanTask, report: ScanReport | None = None, **options: object) -> list[int]:
    found: list[int] = []
    for batch in read_task(task, plain(["offset", "value"], **options), report=report):
        batch.validate(full=True)
        found += batch.column(0).to_pylist()
    return found


def gaps_of(task: ScanTask, **options: object) -> list[tuple[int, int, str]]:
    return [
        (row["startOffset"], row["endOffset"], row["reason"])
        for batch in read_task(task, plain(["offset"], gaps=True, **options))
        for row in batch.to_pylist()
    ]


def is_v2(batch: Batch) -> bool:
    """Messages of older formats are batches of their own, and what is left of a damaged one that
    held others may be found in it, since snappy keeps as it is what is too short to compress."""
    return batch.content[16] == 2


@given(logs(), st.data())
def test_permissive_returns_all_batches_but_the_damaged_and_says_which_offsets_those_hide(
    log: ModelLog, data: st.DataObject
) -> None:
    batches = [batch for segment in log.segments for batch in segment.batches]
    damaged = data.draw(st.sets(st.sampled_from(range(len(batches))), max_size=3))
    damaged = {place for place in damaged if is_v2(batches[place])}
    with TemporaryDirectory() as root:
        directory = log.write(Path(root))
        task = log.task(directory, log.segments[0].base_offset, log.end_offset)
        sizes = _damage(log, directory, damaged, data)
        report = ScanReport()
        found = scan(task, report, mode=PERMISSIVE)
        gaps = gaps_of(task, mode=PERMISSIVE)

    kept = [batch for place, batch in enumerate(batches) if place not in damaged]
    assert found == [row.offset for batch in kept if not batch.ends for row in batch.rows]
    assert report.bytes_damaged == sizes
    hidden = {
        offset for start, end, reason in gaps if reason == "damaged" for offset in range(start, end)
    }
    assert hidden >= {row.offset for place in damaged for row in batches[place].rows}
    assert not hidden & {row.offset for batch in kept for row in batch.rows}


def _damage(log: ModelLog, directory: Path, damaged: set[int], data: st.DataObject) -> int:
    """Flip a bit in the part of each batch that its CRC covers; returns their sizes together."""
    place = size = 0
    for segment in log.segments:
        content = bytearray()
        for batch in segment.batches:
            changed = bytearray(batch.content)
            if place in damaged:
                changed[data.draw(st.integers(21, len(changed) - 1))] ^= 4
                size += len(changed)
            content += changed
            place += 1
        (directory / f"{segment.base_offset:020d}.log").write_bytes(content)
    return size


@given(logs(max_batches=5), st.data(), st.sampled_from(ScanIsolation), st.booleans())
def test_any_bytes_give_rows_or_an_error_that_says_where_and_permissive_tiles_the_range(
    log: ModelLog, data: st.DataObject, isolation: ScanIsolation, cut: bool
) -> None:
    with TemporaryDirectory() as root:
        directory = log.write(Path(root))
        start = log.segments[0].base_offset
        task = log.task(directory, start, log.end_offset)
        for segment in log.segments:
            content = bytearray(segment.content)
            for _ in range(data.draw(st.integers(0, 3))):
                place = data.draw(st.integers(0, len(content) - 1))
                content[place] = data.draw(st.integers(0, 255))
            size = data.draw(st.integers(0, len(content))) if cut else len(content)
            (directory / f"{segment.base_offset:020d}.log").write_bytes(content[:size])
        with suppress(CorruptSegmentError, DataLostError):
            scan(task, isolation=isolation)
        try:
            found = scan(task, mode=PERMISSIVE, isolation=isolation)
            gaps = gaps_of(task, mode=PERMISSIVE, isolation=isolation)
        except DataLostError:
            assert cut
            return

    assert sorted([*found, *_offsets(gaps)]) == list(range(start, log.end_offset))


def _offsets(gaps: list[tuple[int, int, str]]) -> list[int]:
    return [offset for start, end, _ in gaps for offset in range(start, end)]


def one_segment(*batches: bytes, end_offset: int) -> ModelLog:
    return ModelLog((Segment(0, (Batch(b"".join(batches), (), 0, end_offset),)),))


def records(count: int) -> list[Record]:
    return [Record(b"key", b"value", timestamp_ms=START_MS) for _ in range(count)]


def sealed(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return bytes(batch)


def test_permissive_passes_over_a_batch_whose_contents_contradict_its_right_crc(
    tmp_path: Path,
) -> None:
    odd = bytearray(build_batch(records(3), base_offset=5))
    odd[57:61] = (2).to_bytes(4, "big")  # one record fewer than there are
    log = one_segment(
        build_batch(records(3)), sealed(odd), build_batch(records(3), base_offset=8), end_offset=11
    )
    task = log.task(log.write(tmp_path), 0, 11)
    report = ScanReport()

    assert scan(task, report, mode=PERMISSIVE) == [0, 1, 2, 8, 9, 10]
    assert report.bytes_damaged == len(odd)
    assert gaps_of(task, mode=PERMISSIVE) == [(3, 5, "compacted"), (5, 8, "damaged")]
    with pytest.raises(CorruptSegmentError, match="bytes remain") as raised:
        scan(task)
    assert raised.value.offset == 5


def test_a_codec_that_does_not_exist_is_damage_at_a_place(tmp_path: Path) -> None:
    odd = bytearray(build_batch(records(3), base_offset=3))
    odd[22] |= 6
    log = one_segment(build_batch(records(3)), sealed(odd), end_offset=6)
    task = log.task(log.write(tmp_path), 0, 6)

    with pytest.raises(CorruptSegmentError, match="codec 6") as raised:
        scan(task)
    assert (raised.value.position, raised.value.offset) == (len(log.segments[0].content) // 2, 3)
    assert scan(task, mode=PERMISSIVE) == [0, 1, 2]


def test_a_batch_that_decompresses_to_more_than_there_is_memory_for_is_refused(
    tmp_path: Path,
) -> None:
    bomb = build_batch([Record(None, bytes(300 << 20))], codec=Codec.ZSTD)
    log = one_segment(bomb, build_batch(records(2), base_offset=1), end_offset=3)
    task = log.task(log.write(tmp_path), 0, 3)

    with pytest.raises(CorruptSegmentError, match="limit of 268435456"):
        scan(task)
    assert scan(task, mode=PERMISSIVE) == [1, 2]


def test_permissive_leaves_out_the_batch_that_contradicts_the_others_and_not_those(
    tmp_path: Path,
) -> None:
    odd = build_batch(records(2), base_offset=1000)  # should be 2
    log = one_segment(
        build_batch(records(2)), odd, build_batch(records(2), base_offset=4), end_offset=6
    )
    task = log.task(log.write(tmp_path), 0, 6)

    assert scan(task, mode=PERMISSIVE) == [0, 1, 4, 5]
    assert gaps_of(task, mode=PERMISSIVE) == [(2, 4, "damaged")]
