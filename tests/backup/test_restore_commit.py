"""Restoring into topics that are there and empty: as a commit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backup_worlds import (
    START_MS,
    backed_up,
    consumed,
    end_offset,
    log_bytes,
    produced,
    produced_rows,
    resealed,
    restored,
    rows,
    served,
    store_at,
    stratalog,
    values,
    write,
)
from simulated_worlds import LOG_DIR, ORDERS, World, batches_of, open_manager, staged

import stratalog as engine
from broker_fixture import running_broker
from stratalog.config import TopicConfig
from stratalog.handover import restoring_commit
from stratalog.handover.handover import Handover
from stratalog.handover.owning import owned, owner_config
from stratalog.handover.restoring import RestoreResult, restore_directory, retention_notes
from stratalog.handover.restoring_commit import restore_topics
from stratalog.records import build_batch
from stratalog.records.compression import Codec
from stratalog.storage.backup.choosing import choose_backup
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.restore_plan import plan_restore
from stratalog.storage.check import check
from stratalog.storage.commits.errors import CommitRefusedError, StagedFileError
from stratalog.storage.commits.manifest import EPOCH_MAX, Manifest
from stratalog.storage.commits.one_commit import Commit
from stratalog.testing import ManualClock, SimulatedFileSystem
from stratalog.testing.legacy import legacy_message_set


def committed(target: Path, log_dir: Path, *, until_ms: int | None = None) -> RestoreResult:
    store = store_at(target)
    manifest = choose_backup(store, until_ms=until_ms).manifest
    plan = plan_restore(store, manifest, until_ms=until_ms)
    result = restore_topics(store, plan, str(log_dir))
    assert check(str(log_dir)) == []
    return result


def test_a_commit_restores_the_same_bytes_into_an_empty_topic(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", p): [rows(p * 100 + 4 * n, 4) for n in range(8)] for p in (0, 1)})
    backed_up(source, target)
    served(other, "orders", partitions=2)

    committed(target, other)

    assert log_bytes(other) == log_bytes(source)
    assert values(other, "orders", 1) == values(source, "orders", 1)
    assert not list(other.glob(".stratalog-staging-*"))


def test_a_topic_that_holds_records_is_not_restored_into(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(0, 4)]})
    backed_up(source, target)
    served(other, "orders")
    committed(target, other)
    before = log_bytes(other)

    with pytest.raises(CommitRefusedError, match="orders-0 is not empty"):
        committed(target, other)

    assert log_bytes(other) == before
    assert not list(other.glob(".stratalog-staging-*"))


def test_a_partition_that_was_empty_is_not_restored_beside_records(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    served(source, "orders", partitions=2)
    write(source, {("orders", 1): [rows(0, 4)]})
    backed_up(source, target)
    served(other, "orders", partitions=2)
    write(other, {("orders", 0): [rows(0, 2)]})
    before = log_bytes(other)

    with pytest.raises(BackupError, match="orders-0 holds records, and was empty"):
        committed(target, other)

    assert log_bytes(other) == before
    assert not list(other.glob("*/.stratalog-staging-*"))


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages_of_the_oldest_formats_are_restored_too(
    tmp_path: Path, magic: int
) -> None:
    """They do not say how many records they hold."""
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(0, 1)]})
    messages = [(None, b"v%d" % n, START_MS + n) for n in range(4)]
    log = source / "orders-0" / f"{0:020d}.log"
    log.write_bytes(
        b"".join(
            legacy_message_set(messages, magic=magic, base_offset=base, codec=Codec.GZIP)
            for base in (0, 4)
        )
    )
    for suffix in (".index", ".timeindex"):
        log.with_suffix(suffix).unlink(missing_ok=True)
    backed_up(source, target)
    served(other, "orders")

    committed(target, other)

    assert log_bytes(other) == log_bytes(source)
    assert values(other, "orders") == [(n, b"v%d" % (n % 4)) for n in range(8)]


def test_a_running_broker_takes_a_backup_in_and_goes_on_with_a_later_epoch(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    with running_broker(source) as broker:
        produced(broker.bootstrap_server, "orders", 20)
    with running_broker(source) as broker:  # a second leader epoch
        produced(broker.bootstrap_server, "orders", 20)
        backed_up(source, target, include_active=True)
    with running_broker(other) as broker:
        done = stratalog("log", "restore", str(target), "--log-dir", str(other))
        assert done.exit_code == 0, done.stderr
        assert consumed(broker.bootstrap_server, "orders") == list(range(40))
        produced(broker.bootstrap_server, "orders", 5)
        assert consumed(broker.bootstrap_server, "orders")[-5:] == list(range(40, 45))

    before = (source / "orders-0" / f"{0:020d}.log").read_bytes()
    assert (other / "orders-0" / f"{0:020d}.log").read_bytes() == before
    assert check(str(other)) == []
    epochs = (other / "orders-0" / "leader-epoch-checkpoint").read_text().split("\n")[2:]
    assert len(epochs) >= 3
    assert sorted(epochs[:-1], key=lambda line: int(line.split()[0])) == epochs[:-1]


def test_dynamic_configs_of_brokers_are_taken_by_a_new_directory_and_told_elsewhere(
    tmp_path: Path,
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    served(source, "orders")
    made = backed_up(source, target).manifest
    assert made.broker_configs == {}

    def change(manifest: Any) -> None:
        told = {"log.retention.ms": "-1", "log.retention.bytes": "many", "no.such": "1"}
        manifest["app_versions"] = [
            {"name": "nightly", "version": 3, "commit_id": "x", "at_ms": 1, "is_whole": True}
            | {"offsets": [["orders", 0, 0, 0]]}
        ]
        manifest["broker_configs"] = {"": told, "77": {"log.cleaner.threads": "2"}}

    resealed(store_at(target), made.backup_id, change)
    served(other, "payments")
    by_commit = stratalog("log", "restore", target, "--log-dir", other)
    anew = stratalog("log", "restore", target, "--log-dir", tmp_path / "copy")

    assert (
        "note: the dynamic configs of brokers in the backup are not taken over by one that is "
        "there: log.cleaner.threads, log.retention.bytes, log.retention.ms, no.such"
    ) in by_commit.stderr
    forgotten = "which versions were committed is not known any more of nightly: "
    assert (forgotten in by_commit.stderr, forgotten in anew.stderr) == (True, False)
    told = "note: a dynamic config of all brokers is not possible here, and is left out: "
    assert anew.stderr.count(told) == 2
    for log_dir, configs in ((other, {}), (tmp_path / "copy", {None: {"log.retention.ms": "-1"}})):
        with owned(owner_config(str(log_dir), {})) as opened:
            assert opened.store.image.broker_configs == configs


def test_a_moment_can_be_restored_by_a_commit(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(8)]})
    backed_up(source, target)
    served(other, "orders")

    committed(target, other, until_ms=START_MS + 17_500)

    assert [offset for offset, _ in values(other, "orders")] == list(range(16))
    assert log_bytes(source)[f"orders-0/{12:020d}.log"].startswith(
        log_bytes(other)[f"orders-0/{12:020d}.log"]
    )


def test_a_log_that_starts_late_and_ends_behind_its_last_batch_does_so_again(
    tmp_path: Path,
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    with engine.open_directory(source, topics={"orders": {}}) as logs:
        logs.log("orders").delete_records(before_offset=6)
    # A compaction has taken the last batch of the last closed segment.
    last = source / "orders-0" / f"{12:020d}.log"
    last.write_bytes(last.read_bytes()[: last.stat().st_size * 2 // 3])
    backed_up(source, target)
    served(other, "orders")

    committed(target, other)

    assert values(other, "orders")[0][0] == 6
    assert values(other, "orders")[-1][0] == 19
    assert end_offset(other, "orders") == end_offset(source, "orders") == 24


@pytest.mark.parametrize(
    "emptied", [(3,), (0,), (0, 3), (9,), (6, 9), (0, 3, 6, 9)], ids=lambda each: f"{each}"
)
def test_a_log_whose_segments_were_compacted_away_is_restored_by_a_commit_too(
    tmp_path: Path, emptied: tuple[int, ...]
) -> None:
    """Its cleaner leaves empty files."""
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(n, 1) for n in range(12)]})
    for base_offset in emptied:
        (source / "orders-0" / f"{base_offset:020d}.log").write_bytes(b"")
    backed_up(source, target)
    served(other, "orders")
    committed(target, other)
    restored(target, tmp_path / "copy", is_sound=False)

    assert values(other, "orders") == values(tmp_path / "copy", "orders")
    assert end_offset(other, "orders") == end_offset(tmp_path / "copy", "orders")
    with engine.open_directory(other, topics={"orders": {}}) as logs:
        start = logs.log("orders").start_offset
    assert start == (0 if len(emptied) < 4 else end_offset(other, "orders"))


def test_a_log_starts_at_its_first_segment_if_that_cannot_reach_back_to_its_start(
    tmp_path: Path,
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    far = 3_000_000_000
    (source / "orders-0").mkdir(parents=True)
    (source / "orders-0" / f"{0:020d}.log").touch()
    path = source / "orders-0" / f"{far:020d}.log"
    path.write_bytes(build_batch(rows(0, 2), base_offset=far))
    backed_up(source, target)
    served(other, "orders")
    committed(target, other)

    assert [offset for offset, _ in values(other, "orders")] == [far, far + 1]


def test_aborted_transactions_stay_aborted_and_open_ones_open(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    produced_rows(source)
    backed_up(source, target)
    served(other, "orders")

    committed(target, other)

    def facts(log_dir: Path) -> object:
        with engine.open_directory(log_dir, topics={"orders": {}}) as logs:
            log = logs.log("orders")._log
            indexes = [list(each.transaction_index) for each in log.segments if each.size_bytes]
            return indexes, log.last_stable_offset

    assert facts(other) == facts(source)


def test_a_topic_that_is_not_there_is_made_with_the_configs_it_had(tmp_path: Path) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    served(source, "orders", partitions=2, configs={"retention.ms": "-1"})
    with running_broker(source) as broker:
        produced(broker.bootstrap_server, "orders", 5)
    backed_up(source, target)
    served(other, "payments")

    result = committed(target, other)

    assert any("topic orders was made" in note for note in result.notes)
    with owned(owner_config(str(other), {})) as opened:
        topic = opened.store.image.topics["orders"]
        assert (len(topic.partitions), topic.configs) == (2, {"retention.ms": "-1"})
    assert log_bytes(other) == log_bytes(source)


def test_a_segment_whose_batches_are_not_those_of_the_manifest_is_not_staged(
    tmp_path: Path,
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    manifest = backed_up(source, target).manifest

    def change(fields: Any) -> None:
        fields["topics"][0]["partitions"][0]["segments"][0]["next_offset"] = 11

    resealed(store_at(target), manifest.backup_id, change)
    served(other, "orders")

    with pytest.raises(BackupDamagedError, match="its batches end at offset 12, not at 11"):
        committed(target, other)

    assert log_bytes(other) == {}


@pytest.mark.parametrize("change", ["flipped", "other offsets", "swept"])
def test_a_staged_file_that_was_tampered_with_is_refused_and_nothing_is_left(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    backed_up(source, target)
    served(other, "orders")
    commit = Handover.commit

    def tamper(handover: Handover, manifest: Manifest) -> object:
        path = next((other / "orders-0").glob(f".stratalog/staging/*/{12:020d}.log"))
        content = bytearray(path.read_bytes())
        content[{"flipped": 70, "other offsets": 7, "swept": 0}[change]] ^= 1
        path.write_bytes(content)
        if change == "swept":
            path.unlink()
        return commit(handover, manifest)

    monkeypatch.setattr(Handover, "commit", tamper)
    with pytest.raises(StagedFileError):
        committed(target, other)

    assert log_bytes(other) == {}
    assert not list(other.glob(".stratalog-staging-*"))
    assert not list(other.glob("orders-0/.stratalog/staging/*"))


def test_topics_that_a_running_broker_keeps_in_memory_are_not_restored_into_it(
    tmp_path: Path,
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    with running_broker(source) as broker:
        produced(broker.bootstrap_server, "orders", 5)
        consumed(broker.bootstrap_server, "orders", commit="readers")
    backed_up(source, target, include_internal=True)
    with running_broker(other) as broker:
        done = stratalog("log", "restore", target, "--log-dir", other)
        only = stratalog("log", "restore", target, "--log-dir", other, "--topic", "orders")
        assert consumed(broker.bootstrap_server, "orders") == list(range(5))

    assert done.exit_code == 1
    assert "stop it first, or leave the topic out with --topic" in done.stderr
    assert only.exit_code == 0, only.stderr


OLD_MS = START_MS + 8 * 86_400_000  # a day after the retention of seven


@pytest.mark.parametrize(
    ("configs", "now_ms", "note"),
    [
        (
            {},
            OLD_MS,
            "2 of the 2 segments restored to orders are older than retention.ms=604800000",
        ),
        ({}, START_MS + 1000, ""),
        ({"retention.ms": "1000"}, START_MS + 14_000, "1 of the 2 segments restored to orders"),
        ({"retention.ms": "-1"}, OLD_MS, ""),
        ({"cleanup.policy": "compact"}, OLD_MS, ""),
        ({"cleanup.policy": "compact,delete"}, OLD_MS, "2 of the 2 segments"),
    ],
)
def test_a_restore_says_which_of_its_records_retention_is_going_to_delete(
    tmp_path: Path, configs: dict[str, str], now_ms: int, note: str
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    backed_up(source, target)
    served(other, "orders", configs=configs)
    store = store_at(target)
    plan = plan_restore(store, choose_backup(store).manifest)

    done = restore_topics(store, plan, str(other), clock=ManualClock(now_ms))
    known = replace(plan, topics=tuple(replace(each, configs=configs) for each in plan.topics))
    whole = restore_directory(store, known, str(tmp_path / "new"), clock=ManualClock(now_ms))

    for result in (done, whole):
        notes = [each for each in result.notes if "retention.ms" in each]
        assert len(notes) == bool(note)
        assert not note or note in notes[0]


def test_of_a_segment_that_a_moment_cuts_no_record_is_taken_for_older_than_it_is(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    backed_up(source, target)
    store, until_ms = store_at(target), START_MS + 6_000
    plan = plan_restore(store, choose_backup(store, until_ms=until_ms).manifest, until_ms=until_ms)
    config = TopicConfig(retention_ms=1000)

    assert not list(retention_notes(plan, {"orders": config}, until_ms + 1000))
    assert list(retention_notes(plan, {"orders": config}, until_ms + 1001))


def test_a_broker_that_runs_takes_no_internal_topic_whoever_asks_and_one_that_is_stopped_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    one = {"offsets_topic_num_partitions": "1"}
    with running_broker(source, **one) as broker:
        produced(broker.bootstrap_server, "orders", 5)
        consumed(broker.bootstrap_server, "orders", commit="readers")
    backed_up(source, target, include_internal=True)
    served(other, "orders", "__consumer_offsets")
    monkeypatch.setattr(restoring_commit, "_refuse_internal", lambda *_: None)

    with (
        running_broker(other, **one),
        pytest.raises(CommitRefusedError, match="__consumer_offsets is kept in memory"),
    ):
        committed(target, other)
    assert log_bytes(other) == {}
    committed(target, other)

    assert log_bytes(other) == log_bytes(source)


@pytest.mark.parametrize("is_served", [False, True])
def test_appends_go_on_behind_the_epochs_of_the_batches_whatever_a_backup_says(
    tmp_path: Path, is_served: bool
) -> None:
    source, target, other = tmp_path / "logs", tmp_path / "backups", tmp_path / "other"
    produced_rows(source)
    told = (source / "orders-0" / "leader-epoch-checkpoint").read_text()
    (source / "orders-0" / "leader-epoch-checkpoint").write_text("garbage")
    backed_up(source, target)
    served(other, "orders")
    if is_served:
        with running_broker(other) as broker:
            committed(target, other)
            produced(broker.bootstrap_server, "orders", 5)
    else:
        committed(target, other)
    found = (other / "orders-0" / "leader-epoch-checkpoint").read_text().split("\n")
    with running_broker(other) as broker:
        produced(broker.bootstrap_server, "orders", 5)

    assert check(str(other)) == []
    assert found[2:7] == told.split("\n")[2:7] == ["0 0", "1 3", "2 7", "3 11", "4 14"]
    assert found[7:-1] == (["5 17"] if is_served else [])


def test_appends_go_on_above_an_epoch_that_no_manifest_tells_of() -> None:
    world = World()
    world.append(batches_of([[1], [2], [3]]))
    world.back_up()
    disk = SimulatedFileSystem(now_ms=world.clock.now_ms)
    manager = open_manager(disk, world.clock)
    manager.create(ORDERS)
    manifest = staged(world, disk)
    path = f"{LOG_DIR}/orders-0/.stratalog/staging/{manifest.staging_id}/{0:020d}.log"
    for epoch, reason in ((50, ""), (EPOCH_MAX + 1, "none can follow")):
        file = disk.open(path)
        middle = file.size_bytes() // 3
        file.write_at(middle + 12, [epoch.to_bytes(4)])  # no CRC covers it
        file.close()
        commit = manager.commits.plan(manifest)
        assert isinstance(commit, Commit)
        if reason:
            with pytest.raises(StagedFileError, match=reason):
                commit.check()
        else:
            commit.check()
            assert commit.leader_epochs == {ORDERS: epoch}
        commit.abandon()
