"""A log cleaned twice, from the same bytes: by the local cleaner, and by tasks that hand over."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cleaning_world import DIRECTORY, World

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.key_scan import dirty_slices, hash_ranges, superseded_in
from stratalog.storage.cleaning.marks import block_bits, span_of
from stratalog.storage.cleaning.outside import LeftOut, OutsideRounds
from stratalog.storage.cleaning.outside_work import (
    Effort,
    HashesFound,
    Rewritten,
    clean_whole,
    groups_of,
    hash_pieces,
    join_found,
    mark_blocks,
    rewrite_groups,
    scan_hashes,
    scan_range,
    scan_slice,
)
from stratalog.storage.cleaning.round_json import OutsideRound, read_round
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.commits.manifest import CommitKind, Manifest, decode_manifest
from stratalog.storage.commits.staging import open_staging
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

KEY = TopicPartition("t", 0)
HASH_KEY = bytes(range(16))
STAGING_ID = "5" * 32
MAP_BYTES = 24 * 2000
SMALL_MAP_BYTES = 24 * 4

Strategy = Callable[[OutsideRound], list[Rewritten]]


@dataclass
class Side:
    """A log directory of its own, opened by a manager."""

    files: SimulatedFileSystem
    manager: LogManager

    def tree(self) -> dict[str, tuple[bytes, int]]:
        """What lies in the partition's directory, but for what is about to be unlinked: bytes and
        age."""
        found = {}
        for name, content in self.files.tree(DIRECTORY).items():
            path = f"{DIRECTORY}/{name}"
            entry = self.files.stat(path)
            if entry is None or entry.is_directory or "cleaner" in name:
                continue
            aged = name.endswith((".log", ".index", ".timeindex"))
            # The seal of time ranges tells one file from another, not only its bytes.
            sealed = name.endswith(".timeranges")
            found[name] = (b"" if sealed else content, entry.modified_ms if aged else 0)
        return {name: each for name, each in found.items() if not name.endswith(".deleted")}


def open_side(files: SimulatedFileSystem, config: TopicConfig, now_ms: int) -> Side:
    clock = ManualClock(now_ms)
    manager = LogManager(
        BrokerConfig(
            log_dirs=("/data",),
            num_recovery_threads_per_data_dir=1,
            log_flush_on_ack=False,
            log_dir_reserve_bytes=0,
            log_commit_append_max_bytes=1,
        ),
        files=files,
        clock=clock,
        topic_config=lambda _topic: config,
        is_threaded=False,
    )
    manager.start()
    log = manager.get(KEY)
    log.update_high_watermark(log.log_end_offset)
    return Side(files, manager)


def two_sides(world: World) -> tuple[Side, Side]:
    """Not cleaned yet, and the same in every byte."""
    world.log.flush()
    now_ms = world.clock.now_ms()
    first = open_side(world.files.clone(), world.config, now_ms)
    second = open_side(world.files.clone(), world.config, now_ms)
    assert first.tree() == second.tree()
    return first, second


def clean_locally(side: Side, first_dirty_offset: int) -> None:
    log = side.manager.get(KEY)
    clean_now(
        log,
        first_dirty_offset=first_dirty_offset,
        now_ms=side.manager.clock.now_ms(),
        offset_map=OffsetMap(MAP_BYTES, key=HASH_KEY),
    )
    side.manager.files.sync_directory(DIRECTORY)
    log.run_deletes(2**62)


def plan_outside(side: Side, first_dirty_offset: int) -> OutsideRound | LeftOut:
    manager = side.manager
    manager.directories[0].note_cleaner_offset(KEY, first_dirty_offset)
    outside = OutsideRounds(lambda: manager.config, manager.directories, lambda: manager.cleaner)
    now_ms = manager.clock.now_ms()
    outside.begin(STAGING_ID, seconds=60, steady_ms=now_ms)
    found = outside.add(STAGING_ID, KEY, now_ms=now_ms, is_forced=True)
    outside.release(STAGING_ID)
    if isinstance(found, LeftOut):
        return found
    return read_round(json.loads(json.dumps(found.to_json())), side.files)


def effort(attempt: str, map_bytes: int = MAP_BYTES) -> Effort:
    return Effort(staging_id=STAGING_ID, hash_key=HASH_KEY, map_bytes=map_bytes, attempt=attempt)


# --- the ways to do it ----------------------------------------------------------------------------


def by_one_map(round_: OutsideRound) -> list[Rewritten]:
    return [clean_whole(round_, effort("whole"))]


def by_a_map_that_is_too_small(round_: OutsideRound) -> list[Rewritten]:
    return [clean_whole(round_, effort("whole", SMALL_MAP_BYTES))]


def by_ranges(round_: OutsideRound) -> list[Rewritten]:
    paths, transactional = [], 0
    for number, hashes in enumerate(hash_ranges(3)):
        path, found = scan_range(round_, hashes, effort(f"range-{number}", SMALL_MAP_BYTES))
        paths.append(path)
        transactional += found.transactional_batches
    return rewritten(round_, paths, is_apart=not transactional)


def by_slices(round_: OutsideRound) -> list[Rewritten]:
    slices = dirty_slices(round_.plan, 3)
    found = [
        scan_slice(round_, sources, effort(f"slice-{number}"))
        for number, sources in enumerate(slices)
    ]
    whole = [each for each in found if each is not None]
    if not whole or len(whole) < len(found):
        return by_ranges(round_)
    joined = join_found(round_, whole, effort("joined"))
    assert joined is not None
    return rewritten(round_, joined[0], is_apart=True)


def by_sorting(round_: OutsideRound) -> list[Rewritten]:
    rows: list[tuple[int, int, int]] = []
    paths, transactional = [], 0
    for number, sources in enumerate(hash_pieces(round_.plan)):
        found = HashesFound()
        for columns in scan_hashes(round_, sources, effort(f"hashes-{number}"), found):
            rows += zip(*(memoryview(each).cast("q") for each in columns), strict=True)
        paths.append(found.path)
        transactional += found.keys.transactional_batches
    rows.sort(key=lambda row: (row[0], row[1], -row[2]))
    middle = len(rows) // 2
    while 0 < middle < len(rows) and rows[middle - 1][:2] == rows[middle][:2]:
        middle += 1  # one key is sorted in one place
    bits = block_bits(span_of(round_.plan))
    offsets = [
        (sorted({each >> bits for each in memoryview(found).cast("q")}), found)
        for part in (rows[:middle], rows[middle:])
        for found in superseded_in(pieces(part))
    ]
    paths += mark_blocks(round_, offsets, effort("blocks"))
    return rewritten(round_, paths, is_apart=not transactional)


def pieces(
    rows: list[tuple[int, int, int]],
) -> Iterator[tuple[memoryview, memoryview, memoryview]]:
    """Three rows at a time: runs of one key go over their ends."""
    for start in range(0, len(rows), 3):
        low, high, place = zip(*rows[start : start + 3], strict=True)
        yield column(low), column(high), column(place)


def column(values: tuple[int, ...]) -> memoryview:
    return memoryview(b"".join(each.to_bytes(8, "little", signed=True) for each in values))


def rewritten(round_: OutsideRound, paths: list[str], *, is_apart: bool) -> list[Rewritten]:
    numbers = list(range(len(groups_of(round_.plan))))
    if not is_apart:
        return [rewrite_groups(round_, numbers, paths, effort("rest"))]
    return [rewrite_groups(round_, [each], paths, effort(f"g-{each}")) for each in numbers]


STRATEGIES = (by_one_map, by_a_map_that_is_too_small, by_slices, by_ranges, by_sorting)


# --- handing over ---------------------------------------------------------------------------------


def manifest_of(round_: OutsideRound, parts: list[Rewritten]) -> Manifest:
    files = {number: file for part in parts for number, file in part.files.items()}
    groups = groups_of(round_.plan)
    manifest = Manifest(
        manifest_id=uuid.uuid4().hex,
        kind=CommitKind.REPLACE,
        staging_id=STAGING_ID,
        partitions=(round_.replacement([(group, files[n]) for n, group in enumerate(groups)]),),
        holder="a test",
    )
    return decode_manifest(manifest.encode())


def hold_staging(side: Side) -> None:
    open_staging(
        side.files,
        "/data",
        holder="a test",
        seconds=60,
        clock=side.manager.clock,
        staging_id=STAGING_ID,
    )


def commit(side: Side, manifest: Manifest) -> None:
    side.manager.commits.run(manifest)
    side.manager.get(KEY).run_deletes(2**62)
