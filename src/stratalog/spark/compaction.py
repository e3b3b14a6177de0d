"""Compaction on Spark: rounds planned by the owner, worked at by tasks, handed over in one commit.

The driver asks the owner for the rounds, which keeps its own cleaner away from then on; chooses how
to do each; lets tasks read keys and write new segments to staging; and hands over a manifest that
names each new segment with those it replaces. If a source has changed by then, all of it is
refused, and nothing has changed. A partition in which damage is met is left out, and the others are
done. Keys are hashed with one random key, made here.
"""

import errno
import json
import secrets
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stratalog.clock import SystemClock
from stratalog.errors import DiskError, DiskFullError
from stratalog.handover.compacting import Compactions
from stratalog.handover.errors import CommitUnknownError, HandoverError
from stratalog.handover.handover import open_handover
from stratalog.spark.compaction_plan import ChosenRound, Strategy, plan_compact
from stratalog.spark.compaction_tasks import (
    DAMAGED,
    HASHES_SCHEMA,
    OFFSETS_SCHEMA,
    RESULT_SCHEMA,
    Json,
    SharedWork,
    hash_each,
    mark_each,
    read_rewritten,
    run_each,
    supersede_each,
)
from stratalog.storage.cleaning.key_scan import dirty_slices, hash_ranges
from stratalog.storage.cleaning.marks import block_bits, block_count, span_of
from stratalog.storage.cleaning.outside import LeftOut
from stratalog.storage.cleaning.outside_work import (
    Rewritten,
    SliceFound,
    found_damage,
    found_marks,
    groups_of,
    hash_pieces,
    join_found,
    sum_stats,
)
from stratalog.storage.cleaning.rewriting import CleanerStats
from stratalog.storage.commits.errors import CommitBusyError, CommitError
from stratalog.storage.commits.manifest import CommitKind, Manifest
from stratalog.storage.commits.staged_log import bytes_in_log
from stratalog.storage.commits.staging import open_staging, release_staging, renew_staging
from stratalog.storage.files import OsFileSystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE_SECONDS = 120.0
_RENEW_SECONDS = 20.0
_SORTED_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class CompactedRound:
    """What became of one partition."""

    chosen: ChosenRound
    stats: CleanerStats

    @property
    def bytes_after(self) -> int:
        return self.stats.bytes_kept


@dataclass(slots=True)
class StagedWork:
    """Of one round: what its tasks have told so far. Where ``damage`` was met, no more is done."""

    marks: list[str] = field(default_factory=list)
    keys: int | None = None
    is_transactional: bool = False
    parts: list[Rewritten] = field(default_factory=list)
    damage: str | None = None


class Compaction:
    """One run. ``plan`` first; then ``run``, or ``close`` to give it up."""

    def __init__(
        self,
        spark: "SparkSession",
        log_dir: str,
        *,
        slots: int,
        map_bytes: int,
        config: dict[str, str] | None = None,
        strategy: Strategy | None = None,
        hash_key: bytes | None = None,
    ) -> None:
        self.left_out: list[LeftOut] = []
        self._reserve_bytes = 0
        self.chosen: list[ChosenRound] = []
        self.map_bytes = map_bytes
        self._spark = spark
        self._log_dir = log_dir
        self._slots = slots
        self._strategy = strategy
        self._hash_key = hash_key or secrets.token_bytes(16)
        self._handover = open_handover(log_dir, config=config)
        self._files = OsFileSystem()
        self._clock = SystemClock()
        self._staging_id = uuid.uuid4().hex
        self._compactions = Compactions(log_dir, self._staging_id, config=config)

    def plan(
        self, topics: Sequence[str], partitions: Sequence[int] | None, *, is_forced: bool
    ) -> None:
        planned = self._compactions.plan(
            topics, partitions, seconds=LEASE_SECONDS, is_forced=is_forced
        )
        self.left_out = planned.left_out
        self._reserve_bytes = planned.reserve_bytes
        self.chosen = plan_compact(
            planned.rounds, map_bytes=self.map_bytes, slots=self._slots, strategy=self._strategy
        )

    def close(self) -> None:
        """Without a commit: nothing is left of it. Tasks of a job that failed go on for a while:
        what they stage meanwhile they take away themselves."""
        self._compactions.release()
        with suppress(DiskError):
            release_staging(self._files, self._log_dir, self._staging_id)

    def run(self) -> list[CompactedRound]:
        if not self.chosen:
            return []
        with self._renewing():
            done = self.stage()
            if not done:
                self.close()
                return []
            return self.hand_over(done)

    def stage(self) -> list[StagedWork]:
        """Let tasks write the new segments; nothing of a log changes. Of what was chosen, the
        damaged is left out afterwards."""
        try:
            self._check_room()
            open_staging(
                self._files,
                self._log_dir,
                holder="stratalog spark compact",
                seconds=LEASE_SECONDS,
                clock=self._clock,
                staging_id=self._staging_id,
            )
            return self._work()
        except BaseException:
            self.close()
            raise

    def _check_room(self) -> None:
        """A full disk would be felt by whoever appends there: what is replaced goes only when all
        of the new is there."""
        needed_bytes = bytes_in_log(sum(each.bytes_before for each in self.chosen))
        free_bytes = self._files.free_bytes(self._log_dir)
        if free_bytes < needed_bytes + self._reserve_bytes:
            raise DiskFullError(
                "compact",
                self._log_dir,
                errno.ENOSPC,
                f"up to {needed_bytes} bytes are to be staged, where {free_bytes} are free and "
                f"log.dir.reserve.bytes={self._reserve_bytes} stay free: make room, or take fewer "
                "partitions at a time",
            )

    def hand_over(self, done: list[StagedWork]) -> list[CompactedRound]:
        """The commit; refused if a source is not what it was."""
        try:
            self._handover.commit(self._manifest(done))
        except (CommitUnknownError, CommitBusyError):
            raise  # it may have been made: what was staged is needed until its lease is over
        except (CommitError, HandoverError):
            self.close()  # refused. Whoever is interrupted while he waits has not been told so
            raise
        self._compactions.release()
        return [
            CompactedRound(chosen, sum_stats(chosen.round.plan, each.parts, each.keys))
            for chosen, each in zip(self.chosen, done, strict=True)
        ]

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        is_over = threading.Event()

        def renew() -> None:
            while not is_over.wait(_RENEW_SECONDS):
                renew_staging(
                    self._files, self._log_dir, self._staging_id, LEASE_SECONDS, self._clock
                )
                self._compactions.renew(LEASE_SECONDS)

        thread = threading.Thread(target=renew, name="stratalog-compaction-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    # --- tasks ----------------------------------------------------------------------------------

    def _work(self) -> list[StagedWork]:
        done = [StagedWork() for _ in self.chosen]
        shared = SharedWork(
            log_dir=self._log_dir,
            staging_id=self._staging_id,
            staging_seconds=LEASE_SECONDS,
            hash_key=self._hash_key,
            map_bytes=self.map_bytes,
            rounds=tuple(each.round.to_json() for each in self.chosen),
        )
        for number, chosen in enumerate(self.chosen):
            if chosen.strategy is Strategy.SHUFFLE:
                self._shuffle(shared, number, chosen, done[number])
        self._scan(shared, done)
        self._rewrite(shared, done)
        return self._leave_out_damaged(done)

    def _leave_out_damaged(self, done: list[StagedWork]) -> list[StagedWork]:
        """What was staged of it goes with all else that no manifest names."""
        sound = []
        for chosen, staged in zip(self.chosen, done, strict=True):
            if staged.damage is None:
                sound.append((chosen, staged))
            else:
                key = chosen.round.topic_partition
                self.left_out.append(LeftOut(key, staged.damage, is_damaged=True))
        self.chosen = [chosen for chosen, _ in sound]
        return [staged for _, staged in sound]

    def _scan(self, shared: SharedWork, done: list[StagedWork]) -> None:
        """What can be done at once: whole partitions, and the ranges of the others."""
        specs: list[Json] = []
        for number, chosen in enumerate(self.chosen):
            map_bytes = chosen.whole_map_bytes
            if chosen.strategy is Strategy.ONE_MAP:
                specs.append({"do": "clean", "round": number, "map_bytes": map_bytes})
            elif chosen.strategy is Strategy.RANGES:
                specs += _range_specs(number, chosen, chosen.ranges)
            elif chosen.strategy is Strategy.SLICES:
                count = len(dirty_slices(chosen.round.plan, self._slots))
                shape = {"of": self._slots, "map_bytes": map_bytes}
                specs += [
                    {"do": "slice", "round": number, "slice": each, **shape}
                    for each in range(count)
                ]
                # No slices at all: the log has a clean part, which they cannot decide about.
                specs += [] if count else _range_specs(number, chosen, chosen.ranges)
        again = self._take(shared, specs, done)
        specs = [
            spec for each in again for spec in _range_specs(each, self.chosen[each], self._slots)
        ]
        self._take(shared, specs, done)

    def _take(self, shared: SharedWork, specs: list[Json], done: list[StagedWork]) -> list[int]:
        """Run these, and note what they found; the rounds that have to be scanned in ranges."""
        slices: dict[int, list[Json]] = {}
        for spec, result in zip(specs, self._run(shared, specs), strict=True):
            staged = done[spec["round"]]
            if DAMAGED in result:
                staged.damage = result[DAMAGED]
            elif spec["do"] == "clean":
                staged.parts.append(read_rewritten(result))
            elif spec["do"] == "slice":
                slices.setdefault(spec["round"], []).append(result)
            else:
                staged.marks.append(result["path"])
                staged.keys = (staged.keys or 0) + result["keys"]
                staged.is_transactional |= result["transactional_batches"] > 0
        again = []
        for number, found in slices.items():
            if done[number].damage is not None:
                continue
            effort = shared.effort(f"joined-{number:05d}")
            parts = [SliceFound(**each) for each in found if each]
            whole = len(parts) == len(found)
            joined = join_found(self.chosen[number].round, parts, effort) if whole else None
            if joined is None:
                again.append(number)
            else:
                done[number].marks, done[number].keys = joined
        return again

    def _rewrite(self, shared: SharedWork, done: list[StagedWork]) -> None:
        specs: list[Json] = []
        for number, (chosen, progressed) in enumerate(zip(self.chosen, done, strict=True)):
            if chosen.strategy is Strategy.ONE_MAP or progressed.damage is not None:
                continue
            groups = list(range(len(groups_of(chosen.round.plan))))
            # Which transactions are under way is known by whoever has written all before.
            apart = [groups] if progressed.is_transactional else [[each] for each in groups]
            specs += [
                {"do": "rewrite", "round": number, "groups": each, "marks": progressed.marks}
                for each in apart
            ]
        for spec, result in zip(specs, self._run(shared, specs), strict=True):
            if DAMAGED in result:
                done[spec["round"]].damage = result[DAMAGED]
            else:
                done[spec["round"]].parts.append(read_rewritten(result))

    def _run(self, shared: SharedWork, specs: list[Json]) -> list[Json]:
        """One task for each; their results, in the same order."""
        if not specs:
            return []
        count = len(specs)
        rows = (
            self._spark.range(0, count, 1, count)
            .mapInArrow(run_each(shared, tuple(specs)), RESULT_SCHEMA)
            .collect()
        )
        found = {row["number"]: json.loads(row["result"]) for row in rows}
        return [found[number] for number in range(count)]

    def _shuffle(
        self, shared: SharedWork, number: int, chosen: ChosenRound, progressed: StagedWork
    ) -> None:
        """Spark sorts hashes and places; the offsets that the runs of equal hashes supersede, it
        brings together by block: so each mark is written once, however many parts there are."""
        from pyspark.sql.functions import col, expr

        round_ = chosen.round
        pieces, span = len(hash_pieces(round_.plan)), span_of(round_.plan)
        # Of more rows than were expected, a part spills to disk.
        parts = max(self._slots, -(-chosen.records // _SORTED_ROWS))
        hashes = self._spark.range(0, pieces, 1, pieces).mapInArrow(
            hash_each(shared, number), HASHES_SCHEMA
        )
        (
            hashes.repartition(parts, "low")
            .sortWithinPartitions("low", "high", col("place").desc())
            .mapInArrow(supersede_each(), OFFSETS_SCHEMA)
            .repartition(block_count(span), expr(f"shiftright(offset, {block_bits(span)})"))
            .mapInArrow(mark_each(shared, number), RESULT_SCHEMA)
            .collect()
        )
        effort = shared.effort("driver")
        progressed.damage = found_damage(round_, effort)
        progressed.marks, progressed.is_transactional = found_marks(round_, effort)

    # --- the manifest ---------------------------------------------------------------------------

    def _manifest(self, done: list[StagedWork]) -> Manifest:
        parts = []
        for chosen, progressed in zip(self.chosen, done, strict=True):
            files: dict[int, Any] = {
                number: file for part in progressed.parts for number, file in part.files.items()
            }
            groups = groups_of(chosen.round.plan)
            parts.append(
                chosen.round.replacement([(group, files[n]) for n, group in enumerate(groups)])
            )
        return Manifest(
            manifest_id=self._staging_id,
            kind=CommitKind.REPLACE,
            staging_id=self._staging_id,
            partitions=tuple(parts),
            holder="stratalog spark compact",
        )


def _range_specs(number: int, chosen: ChosenRound, count: int) -> list[Json]:
    shape = {"do": "scan", "round": number, "map_bytes": chosen.map_bytes}
    return [{**shape, "first": each.first, "last": each.last} for each in hash_ranges(count)]
