"""A log that is about to be cleaned, and what a crash may leave of it: group by group, old or new.

``observe`` runs a round and keeps a copy of the disk before each of its file operations, with the
number of groups that had been swapped in for good by then. ``check_after`` opens what a crash left
of such a moment and finds which groups are new; all before them are new too, and none is a mixture.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from cleaning_model import AbortedEntry, Batch, Round, Transaction, clean
from cleaning_reading import stored_batches
from cleaning_steps import Append, Clean, End, Roll, RowSpec, Step
from cleaning_world import DIRECTORY, HOUR_MS, World

from stratalog.records import Codec
from stratalog.storage.checkpoint import read_offsets, write_offsets
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.layout import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
)
from stratalog.testing import CrashMode, SimulatedFileSystem

PARTITION = TopicPartition("t", 0)
FIXED = (CrashMode.LOSE_UNSYNCED, CrashMode.KEEP_ALL)


def row(key: int | None, *, tombstone: bool = False, size: int = 30) -> RowSpec:
    return RowSpec(key, tombstone, value_bytes=size)


def first_steps() -> Iterator[Step]:
    """Values, tombstones, every codec, transactions of both ends, producers, old messages."""
    for number in range(8):
        yield Append((row(number % 4), row(number % 7)), codec=list(Codec)[number % 5])
        yield Append((row(number % 3, tombstone=number % 2 == 0),), log_append_time=number == 3)
        yield Append((row(number % 5), row(9)), producer=7, transactional=True)
        if number % 4 == 2:
            yield End(7, commit=number % 8 == 2)
        yield Append((row(number % 6),), producer=8)
        yield Append((row(number % 4),), magic=number % 2, codec=Codec(number % 3))
    yield End(7, commit=False)


def later_steps() -> Iterator[Step]:
    for number in range(7):
        yield Append((row(number % 4), row(100 + number, size=60)), codec=list(Codec)[number % 5])
        yield Append((row(number % 6), row(200 + number)), producer=9, transactional=True)
        yield End(9, commit=number % 3 > 0)
        yield Append((row(100 + number // 2, tombstone=number % 3 == 0),), producer=8)


@cache
def _prepared() -> World:
    world = World()
    world.run([*first_steps(), Roll(), Clean(), *later_steps(), Roll()])
    world.log.flush()
    world.clock.advance(2 * HOUR_MS)
    end_offset = world.log.log_end_offset
    for name, offset in (
        (RECOVERY_POINT_CHECKPOINT, end_offset),
        (HIGH_WATERMARK_CHECKPOINT, end_offset),
        (CLEANER_CHECKPOINT, world.first_dirty_offset),
    ):
        write_offsets(world.files, f"/data/{name}", {PARTITION: offset})
    return world


def prepared() -> World:
    """A log that was cleaned once, and then went on, on a disk of its own."""
    made = _prepared()
    files = made.files.clone()
    return world_on(files, made, made.batches, dict(made.aborted), made.log.recovery_point)


def world_on(
    files: SimulatedFileSystem,
    like: World,
    batches: list[Batch],
    aborted: dict[Transaction, AbortedEntry],
    recovery_point: int,
) -> World:
    """A world that knows ``batches`` and finds them on ``files``, left there without a close."""
    world = World(like.config)
    world.clock.set(like.clock.now_ms())
    world.files = files
    world.log = world.open(files, is_clean=False, recovery_point=recovery_point)
    world.batches = list(batches)
    world.aborted = aborted
    world.first_dirty_offset = like.first_dirty_offset
    world.has_crashed = True
    return world


@dataclass(frozen=True)
class Moment:
    name: str
    files: SimulatedFileSystem
    swapped: int
    """Groups that are new whatever happens to the disk."""


@dataclass
class Observed:
    """A round, what it began with and what it should have come to."""

    before: World
    plan: Round
    groups: list[list[int]]
    after: tuple[Batch, ...]
    aborted_after: dict[Transaction, AbortedEntry]
    end_offset: int
    moments: list[Moment] = field(default_factory=list)

    def state(self, new_groups: int) -> tuple[list[Batch], dict[Transaction, AbortedEntry]]:
        """The log once that many groups are new."""
        bases = [base for group in self.groups[:new_groups] for base in group]

        def is_new(offset: int) -> bool:
            return self.plan.base_of(offset) in bases

        batches = [b for b in self.after if is_new(b.last_offset)]
        batches += [b for b in self.before.batches if not is_new(b.last_offset)]
        batches.sort(key=lambda batch: batch.last_offset)
        aborted: dict[Transaction, AbortedEntry] = {}
        for transaction, entry in self.before.aborted.items():
            if not is_new(entry.last_offset) or transaction in self.aborted_after:
                aborted[transaction] = entry
        return batches, aborted


def observe(
    run: Callable[[World, Round], None] | None = None,
    take_over: Callable[[World], None] = lambda _world: None,
) -> Observed:
    """Run a round over the prepared log. ``run`` may do it in another way, on a log that
    ``take_over`` opened in the stead of the world's own."""
    world = prepared()
    take_over(world)
    plan = world.plan()
    assert plan is not None
    expected = clean(world.batches, plan)
    groups = world.groups(plan, expected.end_offset)
    assert len(groups) > 2, "several groups"
    assert max(len(group) for group in groups) > 1, "of several segments"
    observed = Observed(
        prepared(),
        plan,
        groups,
        expected.batches,
        dict(expected.aborted),
        expected.end_offset,
    )
    originals = {segment.base_offset: segment for segment in world.log.segments}
    synced = syncing = 0

    def keep(name: str) -> None:
        nonlocal synced, syncing
        synced = max(synced, syncing)
        observed.moments.append(Moment(name, world.files.clone(), synced))
        # What is new in memory is so on the disk once the directory has been synced.
        segments = {segment.base_offset: segment for segment in world.log.segments}
        if name == f"sync_directory {DIRECTORY}":
            syncing = sum(segments.get(g[0]) is not originals[g[0]] for g in groups)

    world.files.observer = lambda operation: keep(f"{operation.kind} {operation.path}")
    (run or run_round)(world, plan)
    keep("end")
    assert synced == len(groups), "the round is durable when it ends"
    world.files.observer = None
    return observed


def run_round(world: World, plan: Round) -> None:
    clean_now(
        world.log,
        first_dirty_offset=plan.first_dirty_offset,
        now_ms=plan.now_ms,
        map_bytes=24 * plan.slots,
    )
    world.log.run_deletes(plan.now_ms + 1)


def crashes(moments: list[Moment], *, seeds: int) -> Iterator[tuple[Moment, CrashMode, int]]:
    for moment in moments:
        for mode in CrashMode:
            for seed in range(1 if mode in FIXED else seeds):
                yield moment, mode, seed


def check_after(
    observed: Observed, files: SimulatedFileSystem, swapped: int, *, is_rebuilt: bool = False
) -> World:
    """Open ``files`` and find the log whole; the world that knows which state it is in.

    ``is_rebuilt`` if indexes may have been made anew from what the batches say.
    """
    before = observed.before
    recovery_point = before.log.recovery_point
    log = before.open(files, is_clean=False, recovery_point=recovery_point)
    found = [content for _, content in stored_batches(log)]
    bases = log.segments.base_offsets
    new_groups = _new_groups(observed, bases, found)
    assert new_groups >= swapped, f"{new_groups} groups are new, {swapped} had been swapped in"
    leftovers = (".cleaned", ".swap", ".deleted")
    assert not [name for name in files.tree(log.directory) if name.endswith(leftovers)]
    assert not log.is_damaged
    log.abandon()
    checkpoint = read_offsets(files, f"/data/{CLEANER_CHECKPOINT}")[PARTITION]
    if checkpoint != before.first_dirty_offset:
        assert checkpoint == observed.end_offset
        assert new_groups == len(observed.groups), "the checkpoint is ahead of the log"
    batches, aborted = observed.state(new_groups)
    world = world_on(files, before, batches, aborted, recovery_point)
    if is_rebuilt:
        world.take_rebuilt()
    world.check()
    assert world.log.log_end_offset == before.log.log_end_offset
    return world


def _new_groups(observed: Observed, bases: list[int], found: list[bytes]) -> int:
    """How many groups are new, the first ones; what they hold is compared later."""
    sizes = [len(observed.state(number)[0]) for number in range(len(observed.groups) + 1)]
    for number in range(len(observed.groups), -1, -1):
        gone = {base for group in observed.groups[:number] for base in group[1:]}
        if set(bases) == set(observed.plan.bases) - gone and len(found) == sizes[number]:
            return number
    raise AssertionError(f"a mixture: segments {bases} with {len(found)} batches")
