"""What ``check`` sees, and what it must not mistake for damage."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    new_log,
    produced,
    reopened,
    timed_batch,
)

from stratalog.errors import AdoptionError, DiskError, LogDirectoryError
from stratalog.records import (
    AppendOrigin,
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.records._kernels import seal_batch
from stratalog.storage.check import CheckRun, check
from stratalog.storage.check_replica import at_once
from stratalog.storage.checkpoint import EpochEntry, write_epochs, write_offsets, write_topic_id
from stratalog.storage.commits.journal import CommitJournal, PendingCommit
from stratalog.storage.files import File, read_file
from stratalog.storage.findings import Finding, Kind, Severity
from stratalog.storage.layout import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    segment_file,
)
from stratalog.storage.log import Log
from stratalog.storage.producers import ProducerBatch
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.snapshots import decode_snapshot, encode_snapshot
from stratalog.storage.transactions import AbortedTransaction
from stratalog.testing import SimulatedFileSystem

SMALL_SEGMENTS: dict[str, Any] = {"internal_segment_bytes": 400, "index_interval_bytes": 80}


def kinds(findings: list[Finding]) -> set[Kind]:
    return {finding.kind for finding in findings}


def written_log(*, clean: bool = True) -> Log:
    """A log of several segments with idempotent, transactional and plain batches."""
    log = new_log(**SMALL_SEGMENTS)
    for number in range(6):
        log.append_as_leader(produced(1, 2 * number, 2))
        log.append_as_leader(batch(2, timestamp_ms=START_MS + number))
    for number in range(3):
        append_transactional(log, 2, 2 * number, 2)
        end_transaction(log, 2, commit=number == 1)
    append_transactional(log, 3, 0)
    if clean:
        log.close()
    return log


def files_of(log: Log, suffix: str) -> list[str]:
    return sorted(name for name in disk_of(log).tree(log.directory) if name.endswith(suffix))


def overwrite(log: Log, name: str, change: Callable[[bytearray], Any]) -> None:
    files = disk_of(log)
    path = f"{log.directory}/{name}"
    data = bytearray(files.contents(path))
    change(data)
    files.unlink(path)
    file = files.open(path, create=True)
    file.write_at(0, [bytes(data)])
    file.close()


# --- no false alarms ---------------------------------------------------------------------------


@given(st.data())
def test_a_log_is_in_order_after_any_operations(data: st.DataObject) -> None:
    log = new_log(**SMALL_SEGMENTS)
    sequences: dict[int, int] = {}
    epoch = 0
    for _ in range(data.draw(st.integers(0, 20))):
        operation = data.draw(st.sampled_from("appppttcarfkd"))
        if operation == "a":
            times = data.draw(st.lists(st.integers(0, 2 * START_MS), min_size=1, max_size=4))
            log.append_as_leader(timed_batch(times), leader_epoch=epoch)
        elif operation == "p":
            count = data.draw(st.integers(1, 3))
            sequence = sequences.get(1, 0)
            log.append_as_leader(produced(1, sequence, count), leader_epoch=epoch)
            sequences[1] = sequence + count
        elif operation == "t":
            producer_id = data.draw(st.sampled_from((2, 3)))
            sequence = sequences.get(producer_id, 0)
            log.append_as_leader(
                produced(producer_id, sequence, transactional=True), leader_epoch=epoch
            )
            sequences[producer_id] = sequences.get(producer_id, 0) + 1
        elif operation in "ck":
            producer_id = data.draw(st.sampled_from((2, 3)))
            marker = build_end_transaction_marker(
                commit=operation == "c",
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp_ms=START_MS,
            )
            origin = AppendOrigin.COORDINATOR
            log.append_as_leader(marker, leader_epoch=epoch, origin=origin)
        elif operation == "r":
            epoch += data.draw(st.integers(1, 2))
        elif operation == "f":
            log.flush()
        elif operation == "d":
            clean = data.draw(st.booleans())
            log = reopened(log, clean=clean)
        assert check(log) == []
    assert check(log.directory, disk_of(log)) == []
    log.close()
    assert check(log.directory, disk_of(log)) == []


@given(st.integers(0, 40))
def test_a_log_is_in_order_after_it_was_cut_anywhere(offset: int) -> None:
    log = written_log(clean=False)

    log.truncate_to(offset)

    assert check(log) == []
    log.append_as_leader(batch(), leader_epoch=5)
    assert check(log) == []


def test_the_zeros_behind_an_active_index_are_no_entries() -> None:
    log = written_log(clean=False)
    log.flush()

    active = segment_file(log.directory, log.segments.active.base_offset, ".index")
    assert disk_of(log).contents(active).endswith(bytes(100))
    assert check(log.directory, disk_of(log)) == []


def test_the_preallocated_end_of_an_active_segment_is_no_damage_while_it_is_in_use() -> None:
    log = new_log(preallocate=True, internal_segment_bytes=4000)
    log.append_as_leader(batch())

    assert check(log) == []
    found = CheckRun(disk_of(log), is_live=True).check(log.directory)
    assert found.findings == []
    assert kinds(check(log.directory, disk_of(log))) == {Kind.TAIL}


def test_a_batch_that_is_being_written_is_looked_at_again() -> None:
    log = written_log(clean=False)
    files = disk_of(log)
    path = log.segments.active.path
    whole = files.contents(path)
    cut = len(whole) - 10
    file = files.open(path)
    file.truncate(cut)
    waits: list[int] = []

    def go_on() -> None:
        waits.append(1)
        file.write_at(cut, [whole[cut:]])

    report = CheckRun(files, is_live=True, wait=go_on).check(log.directory)

    assert report.findings == []
    assert waits == [1]


def test_trouble_that_stays_is_told_even_of_a_directory_in_use() -> None:
    log = written_log(clean=False)
    overwrite(log, files_of(log, ".log")[0], lambda data: data.__setitem__(70, data[70] ^ 1))

    report = CheckRun(disk_of(log), is_live=True).check(log.directory)

    assert Kind.BATCH in kinds(report.findings)


def test_segments_that_vanish_meanwhile_are_passed_over() -> None:
    log = written_log(clean=False)
    files = disk_of(log)
    first = log.segments.first
    waiting: list[Any] = []

    class Later:
        def __init__(self, task: Callable[[], Any]) -> None:
            self.task = task
            waiting.append(task)

        def result(self) -> Any:
            if files.exists(first.path):
                files.rename(first.path, first.path + ".deleted")
            return self.task()

    report = CheckRun(files, is_live=False, submit=Later).check(log.directory)

    assert len(waiting) == len(log.segments)
    assert report.findings == []


# --- every rule sees its own trouble -----------------------------------------------------------


def test_every_flipped_bit_under_a_crc_is_found() -> None:
    log = written_log()
    name = files_of(log, ".log")[0]
    content = disk_of(log).contents(f"{log.directory}/{name}")
    headers = read_headers(content)
    covered = [at for h in headers for at in range(h.position + 16, h.position + h.size_bytes, 7)]

    for at in covered:
        files = disk_of(log).clone()
        path = f"{log.directory}/{name}"
        file = files.open(path)
        file.write_at(at, [bytes([content[at] ^ 0x10])])
        file.close()
        found = [f for f in check(log.directory, files) if f.kind is Kind.BATCH]
        expected = max(h.position for h in headers if h.position <= at)
        assert [f.position for f in found] == [expected]
        assert found[0].severity is Severity.ERROR


def test_damage_is_told_with_the_place_where_batches_go_on() -> None:
    log = written_log()
    name = files_of(log, ".log")[0]
    first, second, *_ = read_headers(disk_of(log).contents(f"{log.directory}/{name}"))
    overwrite(log, name, lambda data: data.__setitem__(30, data[30] ^ 1))

    found = next(f for f in check(log.directory, disk_of(log)) if f.kind is Kind.BATCH)

    assert (found.position, found.offset) == (0, first.base_offset)
    assert f"position {second.position} with offset {second.base_offset}" in found.sentence


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\xff" * 17, b"garbage" * 30])
def test_bytes_behind_the_last_batch_are_a_tail(tail: bytes) -> None:
    log = written_log()
    name = files_of(log, ".log")[-1]
    size = len(disk_of(log).contents(f"{log.directory}/{name}"))
    overwrite(log, name, lambda data: data.extend(tail))

    (found,) = check(log.directory, disk_of(log))

    assert (found.kind, found.severity, found.position) == (Kind.TAIL, Severity.WARNING, size)


def test_the_same_bytes_inside_the_log_are_an_error() -> None:
    log = written_log()
    overwrite(log, files_of(log, ".log")[0], lambda data: data.extend(b"garbage" * 9))

    (found,) = check(log.directory, disk_of(log))

    assert (found.kind, found.severity) == (Kind.BATCH, Severity.ERROR)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_every_wrong_bit_of_an_index_is_found(suffix: str) -> None:
    log = written_log()
    name = next(n for n in files_of(log, suffix) if disk_of(log).contents(f"{log.directory}/{n}"))
    size = len(disk_of(log).contents(f"{log.directory}/{name}"))

    for at in range(size):
        files = disk_of(log).clone()
        path = f"{log.directory}/{name}"
        file = files.open(path)
        file.write_at(at, [bytes([file.read_at(at, 1)[0] ^ 0x41])])
        file.close()
        (found, *more) = check(log.directory, files)
        assert not more
        assert found.path == path
        assert found.severity is Severity.WARNING


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_of_odd_length_or_that_is_missing_is_found(suffix: str) -> None:
    log = written_log()
    name = files_of(log, suffix)[0]
    overwrite(log, name, lambda data: data.extend(b"xyz"))
    assert [f.path.endswith(suffix) for f in check(log.directory, disk_of(log))] == [True]

    disk_of(log).unlink(f"{log.directory}/{name}")
    assert kinds(check(log.directory, disk_of(log))) == {Kind.MISSING_FILE}

    disk_of(log).unlink(f"{log.directory}/{name.split('.')[0]}.log")
    assert Kind.ORPHAN_FILE in kinds(check(log.directory, disk_of(log)))


@pytest.mark.parametrize(
    ("also", "place", "severity"),
    [
        ("", 1, Severity.ERROR),
        ("", 0, Severity.WARNING),  # retention takes the first ones
        ("", -1, Severity.WARNING),  # and a truncation the last ones
        ("{gone}.deleted", 1, Severity.WARNING),
        ("00000000000000000000.log.swap", 1, Severity.WARNING),
    ],
)
def test_a_log_that_is_gone_between_others_is_lost_data_unless_it_is_being_deleted(
    also: str, place: int, severity: Severity
) -> None:
    log = written_log()
    files = disk_of(log)
    gone = files_of(log, ".log")[place]
    files.unlink(f"{log.directory}/{gone}")
    if also:
        files.put(f"{log.directory}/{also.format(gone=gone)}", b"")

    found = [each for each in check(log.directory, files) if each.kind is Kind.ORPHAN_FILE]

    assert {(each.severity, each.path.split(".")[0]) for each in found} == {
        (severity, f"{log.directory}/{gone.split('.')[0]}")
    }


def without_a_segment() -> SimulatedFileSystem:
    """Of one record a segment, nothing is left of the third."""
    log = new_log()
    for number in range(6):
        log.append_as_leader(batch(1, timestamp_ms=START_MS + number))
        log.roll(RollReason(RollCause.REQUESTED, "a test"))
    log.close()
    files = disk_of(log)
    for suffix in (".log", ".index", ".timeindex", ".snapshot"):
        files.unlink(segment_file(log.directory, 2, suffix), missing_ok=True)
    return files


@pytest.mark.parametrize("is_live", [True, False])
def test_a_segment_of_which_nothing_is_left_is_missed_where_nothing_is_compacted(
    is_live: bool,
) -> None:
    files = without_a_segment()
    run = CheckRun(files, is_live=is_live, read_metadata=lambda _: frozenset({"t"}))

    (found,) = run.check("/logs").findings

    assert (found.kind, found.severity, found.offset) == (Kind.GAP, Severity.ERROR, 2)
    assert found.path == segment_file("/logs/t-0", 3, ".log")
    assert "[2, 3) is missing" in found.sentence


@pytest.mark.parametrize("is_live", [True, False])
def test_metadata_that_cannot_be_read_ends_no_check(is_live: bool) -> None:
    def read_metadata(_path: str) -> frozenset[str]:
        raise AdoptionError("offset 7 follows where 5 is expected")

    run = CheckRun(without_a_segment(), is_live=is_live, read_metadata=read_metadata)

    found = [each.severity for each in run.check("/logs").findings if each.kind is Kind.METADATA]
    assert found == ([] if is_live else [Severity.WARNING])


@pytest.mark.parametrize(
    "why", ["unknown", "compacted earlier", "a hole of a compaction", "dropped"]
)
def test_offsets_that_a_compaction_may_have_taken_are_not_missed(why: str) -> None:
    files = without_a_segment()
    if why == "compacted earlier":
        write_offsets(files, "/logs/cleaner-offset-checkpoint", {TopicPartition("t", 0): 3})
    elif why == "a hole of a compaction":
        first, second = (segment_file("/logs/t-0", each, ".log") for each in (0, 1))
        files.put(first, read_file(files, second))
        files.unlink(second)
    elif why == "dropped":
        files.make_directory("/logs/t-0/.stratalog/cut")
        name = segment_file("", 2, ".log.0.20260102T030405.000001Z")
        files.put("/logs/t-0/.stratalog/cut" + name, b"bytes")
    known = frozenset({"another" if why == "unknown" else "t"})
    run = CheckRun(files, is_live=False, read_metadata=lambda _: known)

    assert Kind.GAP not in kinds(run.check("/logs").findings)


def test_a_closed_segment_whose_time_index_lost_its_end_is_found() -> None:
    log = written_log()
    name = files_of(log, ".timeindex")[0]
    overwrite(log, name, lambda data: data.__delitem__(slice(-12, None)))

    (found,) = check(log.directory, disk_of(log))

    assert found.kind is Kind.TIME_INDEX
    assert "largest" in found.sentence


def test_an_overlap_of_segments_is_found() -> None:
    log = written_log()
    first, second, *_ = files_of(log, ".log")
    extra = disk_of(log).contents(f"{log.directory}/{second}")
    overwrite(log, first, lambda data: data.extend(extra))

    assert Kind.OVERLAP in kinds(check(log.directory, disk_of(log)))


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [(0, 0)],
        [(0, 0), (2, 12)],
        [(0, 0), (1, 13)],
        [(0, 0), (1, 11)],
        [(1, 0), (0, 12)],
        [(0, 0), (1, 12), (3, 14)],
    ],
)
def test_epochs_that_contradict_the_batches_are_found(entries: list[tuple[int, int]]) -> None:
    log = new_log(**SMALL_SEGMENTS)
    for number in range(8):
        log.append_as_leader(batch(3), leader_epoch=0 if number < 4 else 1)
    log.close()
    path = f"{log.directory}/leader-epoch-checkpoint"
    assert check(log.directory, disk_of(log)) == []

    write_epochs(disk_of(log), path, [EpochEntry(*entry) for entry in entries])

    assert kinds(check(log.directory, disk_of(log))) == {Kind.LEADER_EPOCHS}


def test_every_wrong_bit_of_a_snapshot_is_found() -> None:
    log = written_log()
    name = files_of(log, ".snapshot")[1]
    size = len(disk_of(log).contents(f"{log.directory}/{name}"))
    for at in range(size):
        files = disk_of(log).clone()
        file = files.open(f"{log.directory}/{name}")
        file.write_at(at, [bytes([file.read_at(at, 1)[0] ^ 1])])
        file.close()
        assert kinds(check(log.directory, files)) == {Kind.SNAPSHOT}


def test_a_snapshot_that_is_sound_but_tells_of_another_time_is_found() -> None:
    log = written_log()
    early, *_, late = files_of(log, ".snapshot")
    content = disk_of(log).contents(f"{log.directory}/{early}")
    overwrite(log, late, lambda data: data.__setitem__(slice(None), content))

    found = check(log.directory, disk_of(log))

    assert kinds(found) == {Kind.SNAPSHOT}
    assert "producer 1 has last sequence" in found[0].sentence


def test_a_snapshot_beyond_the_log_end_is_found() -> None:
    log = written_log()
    content = disk_of(log).contents(f"{log.directory}/{files_of(log, '.snapshot')[-1]}")
    file = disk_of(log).open(segment_file(log.directory, 10_000, ".snapshot"), create=True)
    file.write_at(0, [content])
    file.close()

    assert kinds(check(log.directory, disk_of(log))) == {Kind.SNAPSHOT}


def test_aborted_transactions_are_held_against_their_markers() -> None:
    log = written_log()
    names = [n for n in files_of(log, ".txnindex") if disk_of(log).contents(f"{log.directory}/{n}")]
    assert names
    changes: list[Callable[[bytearray], Any]] = [
        lambda data: data.clear(),
        lambda data: data.__setitem__(9, data[9] ^ 1),  # producer id
        lambda data: data.__setitem__(17, data[17] ^ 1),  # first offset
        lambda data: data.__setitem__(25, data[25] ^ 1),  # last offset
        lambda data: data.__setitem__(27, 1),  # last stable offset
        lambda data: data.__setitem__(1, 1),  # version
    ]
    original = disk_of(log).contents(f"{log.directory}/{names[0]}")
    for change in changes:
        overwrite(log, names[0], change)
        assert kinds(check(log.directory, disk_of(log))) == {Kind.TRANSACTION_INDEX}
        overwrite(log, names[0], lambda data: data.__setitem__(slice(None), original))
    assert check(log.directory, disk_of(log)) == []


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        (RECOVERY_POINT_CHECKPOINT, Severity.ERROR),
        (LOG_START_CHECKPOINT, Severity.ERROR),
        (HIGH_WATERMARK_CHECKPOINT, Severity.WARNING),
    ],
)
def test_checkpoints_beyond_the_log_end_are_found(name: str, severity: Severity) -> None:
    log = written_log()
    files = disk_of(log)
    end = log.log_end_offset
    write_offsets(files, f"/logs/{name}", {TopicPartition("t", 0): end})
    assert check("/logs", files) == []

    write_offsets(files, f"/logs/{name}", {TopicPartition("t", 0): end + 1})

    (found,) = check("/logs", files)
    assert (found.kind, found.severity) == (Kind.CHECKPOINT, severity)


def test_unreadable_checkpoints_and_foreign_directories_are_found() -> None:
    log = written_log()
    files = disk_of(log)
    files.make_directory("/logs/lost+found")
    file = files.open(f"/logs/{LOG_START_CHECKPOINT}", create=True)
    file.write_at(0, [b"0\n7\n"])
    file.close()
    overwrite_metadata(files, f"{log.directory}/partition.metadata")

    found = check("/logs", files)

    assert kinds(found) == {Kind.CHECKPOINT, Kind.DIRECTORY, Kind.METADATA}


# --- beside the replicas -----------------------------------------------------------------------


def written_journal(files: SimulatedFileSystem) -> str:
    journal = CommitJournal(files, "/logs")
    journal.prepare()
    for name in ("one", "two"):
        journal.commit(
            PendingCommit(
                manifest_id=name, kind="append", staging_id="ab" * 16, app=None, at_ms=0, work=()
            )
        )
        journal.done(name)
    return journal.path


@pytest.mark.parametrize("is_live", [False, True])
def test_every_flipped_bit_that_keeps_the_journal_of_commits_from_opening_is_found(
    is_live: bool,
) -> None:
    sound = disk_of(written_log())
    path = written_journal(sound)
    content = sound.contents(path)
    last = content.rindex(b"\n", 0, -1) + 1

    assert CheckRun(sound, is_live=is_live).check("/logs").findings == []
    for at in range(0, len(content), 7):
        files = sound.clone()
        files.put(path, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        before = files.contents(path)
        found = CheckRun(files, is_live=is_live).check("/logs").findings
        # The last record cannot be told from one that a crash has cut, or that is being written.
        expected = [Severity.ERROR] if at < last else [] if is_live else [Severity.WARNING]
        assert [(each.kind, each.path, each.severity) for each in found] == [
            (Kind.COMMIT_JOURNAL, path, severity) for severity in expected
        ]
        assert files.contents(path) == before


def test_a_journal_that_its_owner_mends_meanwhile_is_in_order() -> None:
    files = disk_of(written_log())
    path = written_journal(files)
    content = files.contents(path)
    files.put(path, b"x" + content)

    run = CheckRun(files, is_live=True, wait=lambda: files.put(path, content))

    assert run.check("/logs").findings == []


@pytest.mark.parametrize(
    "content",
    [b"", b"version=1\n", b"version=1\nnode.id=x\n", b"version=7\nnode.id=1\n", b"node.id=1\n"],
)
def test_a_directory_that_does_not_say_whose_it_is_is_found(content: bytes) -> None:
    files = disk_of(written_log())
    path = f"/logs/{META_PROPERTIES}"
    files.put(path, b"version=1\nnode.id=1\ncluster.id=c\n")
    assert check("/logs", files) == []
    files.put(path, content)

    (found,) = check("/logs", files)

    assert (found.kind, found.path, found.severity) == (Kind.METADATA, path, Severity.ERROR)


def overwrite_metadata(files: SimulatedFileSystem, path: str) -> None:
    file = files.open(path, create=True)
    file.truncate(0)
    file.write_at(0, [b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"])
    file.close()


def test_a_directory_without_a_log_is_an_empty_replica_and_no_end_of_the_others() -> None:
    files = disk_of(written_log())
    files.make_directory("/logs/new-0")

    report = CheckRun(files).check("/logs")

    assert [each.directory for each in report.replicas] == ["/logs/new-0", "/logs/t-0"]
    assert report.findings == []


def test_offsets_that_were_flushed_into_a_log_that_is_not_there_are_missed() -> None:
    files = disk_of(written_log())
    files.make_directory("/logs/lost-0")
    write_offsets(files, f"/logs/{RECOVERY_POINT_CHECKPOINT}", {TopicPartition("lost", 0): 7})

    (found,) = check("/logs", files)

    assert (found.kind, found.severity) == (Kind.CHECKPOINT, Severity.ERROR)
    assert "lost-0 was flushed up to 7, but it ends at 0" in found.sentence


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", ".snapshot"])
def test_a_small_file_that_cannot_be_read_is_unreadable(name: str, is_live: bool) -> None:
    log = written_log()
    files = disk_of(log)
    write_topic_id(files, f"{log.directory}/partition.metadata", UUID(int=7))
    path = f"{log.directory}/{files_of(log, name)[-1]}"
    files.fail(lambda operation: operation[1:3] == ("read", path), times=99)

    report = CheckRun(files, is_live=is_live).check("/logs")

    assert [(each.kind, each.path) for each in report.findings] == [(Kind.UNREADABLE, path)]


def test_an_index_that_cannot_be_read_a_second_time_is_unreadable() -> None:
    log = written_log()
    files = disk_of(log)
    path = f"{log.directory}/{files_of(log, '.txnindex')[0]}"
    reads: list[str] = []

    def is_second(operation: Any) -> bool:
        reads.extend([path] if operation[1:3] == ("read", path) else [])
        return len(reads) == 2

    files.fail(is_second)

    (found,) = check("/logs", files)

    assert (found.kind, found.path) == (Kind.UNREADABLE, path)


@pytest.mark.parametrize(
    ("failure", "path", "words"),
    [
        (
            DiskError("stat", "/logs/a-0/x", 5, "bad disk"),
            "/logs/a-0/x",
            "be read: bad disk",
        ),
        (
            OSError(5, "bad disk"),
            "/logs/a-0",
            "be looked at: OSError: [Errno 5] bad disk",
        ),
        (ZeroDivisionError("ours"), "/logs/a-0", "ZeroDivisionError: ours (test_check.py, line "),
    ],
)
def test_what_cannot_be_looked_at_is_a_finding_that_says_why_and_no_end_of_the_others(
    failure: Exception, path: str, words: str
) -> None:
    files = disk_of(written_log())
    files.make_directory("/logs/a-0")
    files.open(segment_file("/logs/a-0", 0, ".log"), create=True).close()
    failures = [failure]

    def submit(task: Callable[[], Any]) -> Any:
        if failures:
            raise failures.pop()
        return at_once(task)

    report = CheckRun(files, is_live=False, submit=submit).check("/logs")

    (found,) = report.findings
    assert (found.kind, found.path) == (Kind.UNREADABLE, path)
    assert words in found.sentence
    assert [each.record_count > 0 for each in report.replicas] == [False, True]


def test_a_path_that_names_no_log_is_a_finding_beside_those_that_do() -> None:
    files = disk_of(written_log())
    files.make_directory("/etc")

    wrong, right = CheckRun(files).check_each(["/etc", "/logs"])

    assert [(each.kind, each.path) for each in wrong.findings] == [(Kind.DIRECTORY, "/etc")]
    assert (len(right.replicas), right.findings) == (1, [])
    with pytest.raises(LogDirectoryError, match="/etc is neither"):
        CheckRun(files).check_each(["/etc", "/nowhere"])


def test_an_entry_of_an_abort_that_never_was_is_found() -> None:
    log = written_log()
    name = next(n for n in files_of(log, ".txnindex"))
    extra = AbortedTransaction(2, 24, 25, 24).encode()
    overwrite(log, name, lambda data: data.extend(extra))

    (found,) = check(log.directory, disk_of(log))

    assert "no such marker" in found.sentence


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_entry_that_comes_twice_is_found(suffix: str) -> None:
    log = written_log()
    name = files_of(log, suffix)[0]
    entry_bytes = 8 if suffix == ".index" else 12
    overwrite(log, name, lambda data: data.extend(data[-entry_bytes:]))

    (found,) = check(log.directory, disk_of(log))

    assert found.path.endswith(name)


def test_an_abort_that_is_written_meanwhile_is_no_trouble() -> None:
    log = written_log(clean=False)
    active = log.segments.active.path

    class Meanwhile(ReadOnlyFileSystem):
        def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
            if path == active and log.producers.get(3).transaction_first_offset is not None:
                end_transaction(log, 3, commit=False)
            return super().open(path)

    report = CheckRun(Meanwhile(disk_of(log)), is_live=False).check(log.directory)

    assert log.segments.active.path == active, "the marker is in the segment that was looked at"
    assert report.findings == []


def test_bytes_inside_a_batch_are_no_batches_though_they_look_like_it() -> None:
    log = new_log()
    log.append_as_leader(batch())
    inner = batch(base_offset=5, leader_epoch=0)
    broken = seal_batch(
        b"\xff" + inner,
        base_offset=1,
        last_offset_delta=0,
        record_count=1,
        attributes=0,
        base_timestamp_ms=START_MS,
        max_timestamp_ms=START_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        partition_leader_epoch=0,
    )
    log.close()
    after = batch(base_offset=9, leader_epoch=0)
    overwrite(log, files_of(log, ".log")[0], lambda data: data.extend(bytes(broken) + after))

    (found,) = (f for f in check(log.directory, disk_of(log)) if f.kind is Kind.BATCH)

    assert "with offset 9" in found.sentence


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda state: setattr(state, "epoch", 4), "epoch 4"),
        (lambda state: setattr(state, "transaction_first_offset", 3), "open since 3"),
        (lambda state: state.batches.append(ProducerBatch(9, 900, 0, 0)), "not below its own"),
        (lambda state: state.batches.append(ProducerBatch(9, 9, 0, 0)), "last sequence 9"),
    ],
)
def test_a_snapshot_is_held_against_the_batches(change: Callable[[Any], None], word: str) -> None:
    log = written_log()
    name = files_of(log, ".snapshot")[-1]
    path = f"{log.directory}/{name}"
    states = decode_snapshot(path, disk_of(log).contents(path))
    change(next(state for state in states if state.producer_id == 1))
    overwrite(log, name, lambda data: data.__setitem__(slice(None), encode_snapshot(states)))

    (found,) = check(log.directory, disk_of(log))

    assert found.kind is Kind.SNAPSHOT
    assert word in found.sentence


def test_a_marker_of_a_new_epoch_makes_the_old_batches_forgotten() -> None:
    log = new_log()
    append_transactional(log, 2, 0)
    end_transaction(log, 2, commit=True, epoch=1)
    log.roll()

    assert check(log) == []


def test_trouble_counts_only_if_every_look_sees_it() -> None:
    log = written_log(clean=False)
    files = disk_of(log)
    path = segment_file(log.directory, 0, ".log")
    files.flip(path, 70, 1)

    def change() -> None:
        files.flip(path, 70, 1)
        files.flip(path, 300, 1)

    report = CheckRun(files, is_live=True, wait=change).check(log.directory)

    assert report.findings == []


# --- memory against disk -----------------------------------------------------------------------


def test_an_open_log_that_believes_something_else_than_its_files_is_found() -> None:
    log = written_log(clean=False)
    log.log_end_offset -= 1
    assert Kind.MEMORY in kinds(check(log))
    log.log_end_offset += 1
    log.recovery_point = log.log_end_offset + 1
    assert Kind.MEMORY in kinds(check(log))
    log.recovery_point = 0
    assert check(log) == []
    log.segments.first.size_bytes += 10
    assert Kind.MEMORY in kinds(check(log))


def test_an_open_log_that_ends_before_its_batches_is_found() -> None:
    log = new_log()
    log.append_as_leader(batch(3))
    log.log_end_offset = 2

    assert "batches go on to 3" in check(log)[0].sentence


def test_a_segment_that_an_open_log_does_not_know_is_found() -> None:
    log = new_log()
    disk_of(log).open(segment_file(log.directory, 900, ".log"), create=True).close()

    assert any("segments [0] are known" in finding.sentence for finding in check(log))


def test_marks_of_an_open_log_that_are_out_of_order_are_found() -> None:
    log = new_log()
    log.append_as_leader(batch(3))
    log.high_watermark = 4

    assert "above the log end offset 3" in check(log)[0].sentence


def test_producers_in_memory_are_held_against_the_batches() -> None:
    log = written_log(clean=False)
    state = log.producers.get(1)
    assert state is not None

    state.batches.pop()

    assert kinds(check(log)) == {Kind.MEMORY}


def test_a_transaction_that_began_in_a_deleted_segment_is_in_order() -> None:
    log = new_log(**SMALL_SEGMENTS)
    append_transactional(log, 2, 0)
    while len(log.segments) < 3:
        log.append_as_leader(batch(2))
    append_transactional(log, 2, 1)
    end_transaction(log, 2, commit=False)
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    log.delete_segments(list(log.segments)[:2])

    assert check(log) == []
    assert check(log.directory, disk_of(log)) == []


def test_records_whose_offsets_are_not_theirs_are_a_warning_where_they_are() -> None:
    """As Apache Kafka takes them; here they are put into the log as if fetched from it."""
    log = new_log()
    log.append_as_leader(batch(2))
    position = log.size_bytes
    rows = [Record(b"k", b"1", (), START_MS), Record(b"k", b"2", (), START_MS)]
    deltas = {"offset_deltas": [1, 0], "last_offset_delta": 1}
    odd = build_batch(rows, base_offset=2, leader_epoch=0, **deltas)  # type: ignore[arg-type]
    log.append_as_follower(odd)
    log.flush()
    (found,) = check(log)
    assert (found.kind, found.severity) == (Kind.RECORD_OFFSETS, Severity.WARNING)
    assert found.position == position
