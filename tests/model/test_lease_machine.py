"""Leases against what they promise: the bytes that a reader has seen stay readable until its lease
ends, whatever the owner of the log does meanwhile, and then everything goes.

Hypothesis picks the steps: appends, rolls, leases granted, renewed, released and run out of time,
leases left as files by others, records deleted, compaction, topics deleted and made again, stops
and kills, logs cut at their end.
"""

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from machines import run_machine

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Record, build_batch
from stratalog.storage.layout import TopicPartition
from stratalog.storage.leases import Lease, new_lease_id, write_lease
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

START_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
LEASE_MAX_MS = 60_000
TOPIC = TopicConfig(
    cleanup_policy=("compact", "delete"),
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    min_cleanable_dirty_ratio=0.0,
    retention_ms=-1,
    file_delete_delay_ms=10_000,
)
BROKER = BrokerConfig(
    log_dirs=("/data",),
    log_dir_reserve_bytes=0,
    log_flush_on_ack=False,
    num_recovery_threads_per_data_dir=1,
    log_initial_task_delay_ms=0,
    log_segment_delete_delay_ms=10_000,
    log_retention_check_interval_ms=1_000,
    log_cleaner_backoff_ms=1_000,
    log_cleaner_dedupe_buffer_size=5 << 20,
    log_lease_max_ms=LEASE_MAX_MS,
)


durations = st.sampled_from([1, 15_000, LEASE_MAX_MS, 2 * LEASE_MAX_MS])
# Mostly all that there is.
shares = st.tuples(st.sampled_from([0.0, 0.0, 0.3, 0.6]), st.sampled_from([0.4, 0.8, 1.0, 1.0]))


@dataclass
class Seen:
    """What a reader has seen when it took its lease: the files, with what was in them."""

    until_ms: int
    contents: list[bytes]


@dataclass(frozen=True)
class Look:
    """What a reader that has no lease yet has seen."""

    at_ms: int
    offsets: tuple[int, int]
    contents: list[bytes]


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(START_MS)
        self.files = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.seen: dict[str, Seen] = {}
        self.looks: list[Look] = []
        self.rows = 0
        self.start()

    def start(self) -> None:
        self.looks.clear()  # what waits to be unlinked does not wait for the next owner
        self.manager = LogManager(
            BROKER,
            files=self.files,
            clock=self.clock,
            topic_config=lambda _topic: TOPIC,
            is_threaded=False,
        )
        self.manager.start()
        for log in self.manager:
            log.update_high_watermark(log.log_end_offset)

    @property
    def log(self) -> Log:
        return self.manager.get(ORDERS)

    @initialize(rows=st.integers(10, 40))
    def begin(self, rows: int) -> None:
        self.manager.create(ORDERS)
        self.append(rows)

    # --- what the owner does ------------------------------------------------------------------

    @rule(rows=st.integers(1, 12))
    def append(self, rows: int) -> None:
        log = self.log
        for _ in range(rows):
            self.rows += 1
            row = Record(b"k%d" % (self.rows % 3), b"row %d" % self.rows, (), START_MS)
            log.append_as_leader(build_batch([row]))
        log.flush()
        log.update_high_watermark(log.log_end_offset)

    @rule()
    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            self.log.roll()

    @rule(share=st.sampled_from([0.2, 0.5, 1.0]))
    def delete_records(self, share: float) -> None:
        log = self.log
        log.delete_records(
            log.log_start_offset + int(share * (log.log_end_offset - log.log_start_offset))
        )
        self.manager.check_retention(log, self.clock.now_ms())

    @rule(share=st.sampled_from([0.2, 0.5, 0.9]))
    def truncate(self, share: float) -> None:
        """In the active segment, which no cleaning has made gaps in."""
        log = self.log
        lowest = max(log.log_start_offset, log.segments.active.base_offset)
        length = log.log_end_offset - lowest
        if length == 0:
            return
        self.manager.truncate_to(ORDERS, lowest + int(share * length))
        # What a reader without a lease has seen is cut in place.
        self.looks.clear()

    @rule()
    def compact(self) -> None:
        assert self.manager.cleaner is not None
        self.manager.cleaner.run(self.clock.now_ms())

    @rule(
        milliseconds=st.sampled_from([1, 1_000, 5_000, 11_000, 11_000, LEASE_MAX_MS]),
        is_busy=st.booleans(),
    )
    def wait(self, milliseconds: int, is_busy: bool) -> None:
        self.clock.advance(milliseconds)
        if not is_busy:
            self.manager.run_due()

    @rule(rows=st.integers(1, 12))
    def make_anew(self, rows: int) -> None:
        self.manager.delete(ORDERS)
        self.manager.create(ORDERS)
        self.append(rows)

    @rule()
    def stop_and_start(self) -> None:
        self.manager.shutdown()
        self.start()

    @rule()
    def kill_and_start(self) -> None:
        self.files = self.files.after_crash(CrashMode.KEEP_ALL)
        self.start()

    # --- what readers do ----------------------------------------------------------------------

    def looked(self, from_offset: int, end_offset: int) -> list[bytes]:
        log = self.log
        segments = list(log.segments)
        ends = [each.base_offset for each in segments[1:]] + [log.log_end_offset]
        return [
            self.files.contents(f"{log.directory}/{segment.base_offset:020d}.log")[
                : segment.size_bytes
            ]
            for segment, end in zip(segments, ends, strict=True)
            if segment.base_offset < end_offset and from_offset < end and from_offset < end_offset
        ]

    @rule(shares=shares)
    def look(self, shares: tuple[float, float]) -> None:
        offsets = self.offsets(shares)
        self.looks.append(Look(self.clock.now_ms(), offsets, self.looked(*offsets)))

    @precondition(lambda self: self.looks)
    @rule(data=st.data(), duration_ms=durations)
    def lease(self, data: st.DataObject, duration_ms: int) -> None:
        """Of what was seen a while ago, and may have been deleted since; not too long ago."""
        now_ms = self.clock.now_ms()
        delay_ms = TOPIC.file_delete_delay_ms
        self.looks = [each for each in self.looks if now_ms < each.at_ms + delay_ms]
        if not self.looks:
            return
        look = data.draw(st.sampled_from(self.looks))
        lease, writes = self.manager.leases.grant("a reader", duration_ms, {ORDERS: look.offsets})
        for _, write in writes:
            write()
        self.manager.leases.note_written(lease, [log_dir for log_dir, _ in writes])
        assert lease.until_ms == now_ms + min(duration_ms, LEASE_MAX_MS)
        self.seen[lease.lease_id] = Seen(lease.until_ms, look.contents)

    def offsets(self, shares: tuple[float, float]) -> tuple[int, int]:
        start, end = self.log.log_start_offset, self.log.log_end_offset
        low, high = sorted(start + int(share * (end - start)) for share in shares)
        return low, high

    @rule(shares=shares)
    def lease_while_nobody_owns_it(self, shares: tuple[float, float]) -> None:
        offsets = self.offsets(shares)
        contents = self.looked(*offsets)
        self.manager.shutdown()
        now_ms = self.clock.now_ms()
        lease = Lease(
            lease_id=new_lease_id(),
            holder="a reader",
            created_ms=now_ms,
            until_ms=now_ms + 20_000,
            ranges={ORDERS: offsets},
        )
        write_lease(self.files, "/data", lease)
        self.seen[lease.lease_id] = Seen(lease.until_ms, contents)
        self.start()

    @precondition(lambda self: self.seen)
    @rule(data=st.data(), duration_ms=durations)
    def renew(self, data: st.DataObject, duration_ms: int) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.seen)))
        renewed = self.manager.leases.book.renew(lease_id, duration_ms)
        seen, now_ms = self.seen[lease_id], self.clock.now_ms()
        if seen.until_ms <= now_ms:
            assert renewed is None, "a lease that is over is not revived"
        else:
            assert renewed is not None
            seen.until_ms = max(seen.until_ms, now_ms + min(duration_ms, LEASE_MAX_MS))
            assert renewed.until_ms == seen.until_ms

    @precondition(lambda self: self.seen)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.seen)))
        self.manager.leases.book.release(lease_id)
        del self.seen[lease_id]

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def what_a_lease_covers_can_be_read(self) -> None:
        now_ms = self.clock.now_ms()
        logs = [data for path, data in self.files.tree("/data").items() if ".log" in path]
        for lease_id, seen in self.seen.items():
            if seen.until_ms > now_ms:
                assert lease_id in self.manager.leases.book.leases
                for content in seen.contents:
                    assert any(data.startswith(content) for data in logs), "leased bytes are gone"

    @invariant()
    def no_more_is_counted_than_is_there(self) -> None:
        kept = [
            len(data)
            for path, data in self.files.tree("/data").items()
            if "/.stratalog/leased/" in path or "-delete/" in path
        ]
        assert self.manager.leases.book.held_bytes() <= sum(kept)

    def teardown(self) -> None:
        """When the last lease is over, nothing is left of any."""
        for _ in range(3):
            self.clock.advance(2 * LEASE_MAX_MS)
            self.manager.run_due()
        left = [
            path
            for path in self.files.tree("/data")
            if "leased/" in path or "lease-" in path or "-delete" in path or ".deleted" in path
        ]
        assert left == []
        assert self.manager.leases.book.held_bytes() == 0
        self.manager.shutdown()


def test_leased_bytes_stay_until_the_lease_ends_and_then_all_goes() -> None:
    run_machine(LeaseMachine, examples=60, steps=30)


@pytest.mark.deep
def test_leased_bytes_stay_through_ten_thousand_steps() -> None:
    run_machine(LeaseMachine, examples=200, steps=50)
