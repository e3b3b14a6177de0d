"""Backups of directories that nobody owns, and restoring them into empty ones."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from backup_worlds import (
    START_MS,
    backed_up,
    end_offset,
    log_bytes,
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
from hypothesis import given
from hypothesis import strategies as st

import stratalog as engine
from commit_harness import (
    LARGE,
    LOG_DIR,
    ORDERS,
    OTHERS,
    SMALL,
    Owner,
    Values,
    flat,
    new_disk,
    stage,
)
from stratalog.errors import LogDirectoryError
from stratalog.handover.backing_up import BackupOptions, back_up
from stratalog.handover.owning import owned, owner_config
from stratalog.handover.restoring import restore_directory
from stratalog.records import build_batch
from stratalog.storage.backup.checking import check_store
from stratalog.storage.backup.choosing import choose_backup
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.manifest import decode_manifest
from stratalog.storage.backup.restore_plan import plan_restore
from stratalog.storage.backup.store import LocalBackupStore, LocalStoreRun
from stratalog.storage.check import check
from stratalog.storage.checkpoint import write_offsets
from stratalog.storage.commits.committing import ALREADY_COMMITTED, COMMITTED
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.commits.work import topic_id_of
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.testing import ManualClock


def test_what_is_restored_has_the_same_bytes_offsets_and_records(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", p): [rows(p * 100 + 4 * n, 4) for n in range(8)] for p in (0, 1)})

    backed_up(source, target)
    restored(target, copy)

    assert log_bytes(copy) == log_bytes(source)
    for partition in (0, 1):
        assert values(copy, "orders", partition) == values(source, "orders", partition)
        assert end_offset(copy, "orders", partition) == end_offset(source, "orders", partition)


def test_a_second_backup_reads_and_copies_only_new_segments(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(9)]})
    first = backed_up(source, target)
    again = backed_up(source, target)
    write(source, {("orders", 0): [rows(100, 4)]})

    third = backed_up(source, target)

    assert (again.copied_files, again.read_bytes) == (0, 0)
    assert 0 < third.read_bytes < first.read_bytes / 2
    assert third.manifest.parent == again.manifest.backup_id


def test_a_segment_that_was_rewritten_is_copied_anew(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    first = backed_up(source, target)
    path = source / "orders-0" / f"{0:020d}.log"
    kept = path.read_bytes()
    path.unlink()
    path.write_bytes(kept[: len(kept) // 3])  # a compaction has left the first of three batches

    second = backed_up(source, target)

    assert second.copied_bytes == len(kept) // 3
    restored(target, tmp_path / "now", is_sound=False)  # its indexes tell of more
    assert log_bytes(tmp_path / "now") == log_bytes(source)
    restored(target, tmp_path / "then", at=first.manifest.backup_id)
    assert log_bytes(tmp_path / "then")[f"orders-0/{0:020d}.log"] == kept


def test_a_log_that_starts_inside_a_segment_starts_there_again(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    with engine.open_directory(source, topics={"orders": {}}) as logs:
        logs.log("orders").delete_records(before_offset=6)

    backed_up(source, target)
    restored(target, copy)

    assert values(copy, "orders") == values(source, "orders")
    assert values(copy, "orders")[0][0] == 6


def test_a_moment_before_all_that_is_left_restores_an_empty_log_that_goes_on_there(
    tmp_path: Path,
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    with engine.open_directory(source, topics={"orders": {}}) as logs:
        logs.log("orders").delete_records(before_offset=14)
    backed_up(source, target)

    restored(target, copy, until_ms=START_MS + 2000)

    assert values(copy, "orders") == []
    assert end_offset(copy, "orders") == 14


def test_producers_and_transactions_are_what_they_were(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    produced_rows(source)

    backed_up(source, target)
    restored(target, copy)

    def facts(log_dir: Path) -> object:
        with engine.open_directory(log_dir, topics={"orders": {}}) as logs:
            log = logs.log("orders")._log
            return (
                [(each.producer_id, each.epoch, each.last_sequence) for each in log.producers],
                [list(each.transaction_index) for each in log.segments if each.size_bytes],
                log.last_stable_offset,
                log.epochs.entries,
            )

    assert facts(copy) == facts(source)


@pytest.mark.parametrize("suffix", [".timeindex", ".txnindex"])
def test_without_one_of_its_indexes_a_segment_is_restored_without_any(
    tmp_path: Path, suffix: str
) -> None:
    """They are built anew then: else what was aborted would be read as committed."""
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    produced_rows(source)
    wanted = committed_rows(source)
    lost = [path for path in source.glob(f"orders-0/*{suffix}") if path.stat().st_size]
    for path in lost:
        path.unlink()

    (topic,) = backed_up(source, target).manifest.topics
    restored(target, copy, is_sound=False)

    without = [each.base_offset for each in topic.partitions[0].segments if len(each.files) == 1]
    assert without == sorted(int(path.stem) for path in lost)
    assert without
    assert committed_rows(copy) == wanted


def committed_rows(log_dir: Path) -> list[tuple[int, int]]:
    """The transactions that readers are told to pass over, when the directory is opened."""
    with engine.open_directory(log_dir, topics={"orders": {}}) as logs:
        segments = logs.log("orders")._log.segments
        return [
            (each.producer_id, each.last_offset)
            for segment in segments
            for each in segment.transaction_index
        ]


def test_an_unfinished_restore_is_not_backed_up(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    (source / ".stratalog-restoring").mkdir()

    with pytest.raises(LogDirectoryError, match=r"logs: a backup is being restored into it"):
        backed_up(source, target)

    assert not target.exists()


def test_configs_that_are_not_possible_here_hold_a_topic_and_that_is_told(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    served(source, "orders", "payments", configs={"retention.ms": "-1"})
    made = backed_up(source, target)

    def change(manifest: Any) -> None:
        manifest["topics"][0]["configs"]["shelf.life"] = "1"

    resealed(store_at(target), made.manifest.backup_id, change)
    done = stratalog("log", "restore", target, "--log-dir", copy)

    assert done.exit_code == 0
    assert "note: a config of orders is not possible here, and it is held: " in done.stderr
    assert "shelf.life" in done.stderr
    with owned(owner_config(str(copy), {})) as opened:
        topics = opened.store.image.topics
        assert {name: (each.is_held, each.configs) for name, each in topics.items()} == {
            "orders": (True, {"retention.ms": "-1"}),
            "payments": (False, {"retention.ms": "-1"}),
        }


def test_a_store_whose_incoming_leads_elsewhere_is_not_swept(tmp_path: Path) -> None:
    source, target, elsewhere = tmp_path / "logs", tmp_path / "backups", tmp_path / "precious"
    write(source, {("orders", 0): [rows(0, 4)]})
    backed_up(source, target)
    elsewhere.mkdir()
    (elsewhere / "letter").touch()
    (target / "incoming").symlink_to(elsewhere)

    with pytest.raises(BackupError, match="incoming is no directory of this store"):
        backed_up(source, target)

    assert (elsewhere / "letter").exists()


def test_a_file_that_does_not_belong_into_a_store_hides_no_finding(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    made = backed_up(source, target)
    (target / "files" / "README").write_text("mine")
    segment = made.manifest.topics[0].partitions[0].segments[0]
    Path(store_at(target).path(segment.log)).write_bytes(b"?")

    found = check_store(store_at(target))

    assert len(found.findings) == 1
    assert (found.unused_files, found.unused_bytes) == (1, 4)


def test_only_the_topics_that_are_asked_for_are_restored(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)], ("payments", 0): [rows(0, 2)]})
    backed_up(source, target)

    restored(target, tmp_path / "copy", topics=["payments"])

    assert set(log_bytes(tmp_path / "copy")) == {f"payments-0/{0:020d}.log"}
    with pytest.raises(BackupError, match="has no topic nothing"):
        restored(target, tmp_path / "other", topics=["nothing"])


def test_a_moment_comes_from_the_first_backup_that_was_made_then_or_later(tmp_path: Path) -> None:
    source, store = tmp_path / "logs", store_at(tmp_path / "backups")
    made = []
    for number in range(3):
        write(source, {("orders", 0): [rows(number, 1)]})
        clock = ManualClock(START_MS + 1_000 * number)
        made.append(back_up(str(source), store, BackupOptions(), clock=clock).manifest.backup_id)

    def chosen(after_ms: int) -> int:
        chosen = choose_backup(store, until_ms=START_MS + after_ms)
        return made.index(chosen.manifest.backup_id)

    assert [chosen(each) for each in (-1, 0, 1, 1_000, 1_001, 9_000)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("until_ms", [None, 0, 2**60])
def test_a_topic_comes_from_a_backup_that_has_it(tmp_path: Path, until_ms: int | None) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)], ("payments", 0): [rows(0, 2)]})
    backed_up(source, target, topics=("orders",))
    backed_up(source, target, topics=("payments",))
    backed_up(source, target, topics=("orders",))

    restored(target, tmp_path / "copy", topics=["payments"], until_ms=until_ms)

    assert (tmp_path / "copy" / "payments-0").is_dir()


def test_a_directory_that_is_not_empty_is_not_restored_into(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    backed_up(source, target)
    before = log_bytes(source)

    with pytest.raises(BackupError, match="is not empty"):
        restored(target, source)

    assert log_bytes(source) == before


def test_a_directory_that_holds_other_things_is_not_backed_up_to(tmp_path: Path) -> None:
    source = tmp_path / "logs"
    write(source, {("orders", 0): [rows(0, 4)]})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear reader")

    with pytest.raises(BackupError, match="is not empty and holds no backups"):
        backed_up(source, tmp_path / "home")


class Overtaken(OsFileSystem):
    """Before its operation number ``place``, somebody else does ``meanwhile``."""

    def __init__(self, place: int, meanwhile: Callable[[], object]) -> None:
        self.place = place
        self.meanwhile = meanwhile

    def __getattribute__(self, name: str) -> Any:
        if name in OsFileSystem.__dict__ and not name.startswith("_"):
            self.place -= 1
            if self.place == 0:
                self.meanwhile()
        return super().__getattribute__(name)


@pytest.mark.parametrize("is_done", [True, False], ids=["done", "under way"])
def test_of_two_first_backups_to_a_target_one_is_made_and_the_other_told_to_wait(
    tmp_path: Path, is_done: bool
) -> None:
    told: set[str] = set()
    runs: list[LocalStoreRun] = []

    def begin(store: LocalBackupStore, *, is_done: bool) -> None:
        try:
            runs.append(store.begin())
        except BackupError as error:
            told.add(str(error).partition(":")[0].replace(store.name, "T"))
        else:
            if is_done:
                runs[-1].close()

    for place in range(1, 60):
        target = store_at(tmp_path / str(place))
        files = Overtaken(place, partial(begin, target, is_done=is_done))
        begin(LocalBackupStore(files, target.name), is_done=True)
        for each in runs:
            each.close()
        assert target.backup_ids() == []
        if files.place > 0:
            break
    else:
        pytest.fail("to begin is fewer operations than that")
    assert told == {"another backup is being written to T"}


def test_a_store_of_a_later_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    backed_up(source, target)
    (target / "stratalog-backup.json").write_text('{"version": 2}')
    before = sorted(target.rglob("*"))

    for arguments in (("backup", target, "--log-dir", source), ("backup", target, "--list")):
        done = stratalog("log", *arguments)
        assert done.exit_code == 1
        assert "is of version 2 of the store, and this is written for version 1" in done.stderr
    assert sorted(target.rglob("*")) == before


@pytest.mark.parametrize("name", ["99991231T235959999Z-00000000", "99990231T000000000Z-00000000"])
def test_a_backup_behind_which_none_can_be_named_is_told_in_one_sentence_before_all_else(
    tmp_path: Path, name: str
) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    store_at(target).begin().close()
    (target / "backups" / f"{name}.json").write_text("{}")

    done = stratalog("log", "backup", target, "--log-dir", source)

    assert done.exit_code == 1
    assert f"no backup can be named behind {name}" in done.stderr
    assert f"{name}.json" in done.stderr
    assert list((target / "files").iterdir()) == []


# --- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["flipped", "cut", "missing"])
def test_a_backup_that_was_tampered_with_is_refused_and_leaves_nothing(
    tmp_path: Path, change: str
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    manifest = backed_up(source, target).manifest
    stored = manifest.topics[0].partitions[0].segments[1].log
    path = Path(store_at(target).path(stored))
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content[:-1] if change == "cut" else content)
    if change == "missing":
        path.unlink()

    with pytest.raises(BackupDamagedError):
        restored(target, copy)

    assert not copy.exists() or {each.name for each in copy.iterdir()} <= {".lock"}
    found = check_store(store_at(target))
    assert len(found.findings) == 1
    assert manifest.backup_id in found.findings[0]
    if change == "flipped":
        with pytest.raises(BackupDamagedError, match="remove the file and back up again"):
            backed_up(source, target, verify=True)
        path.unlink()
    backed_up(source, target, verify=True)
    restored(target, copy, at=manifest.backup_id)


def test_a_manifest_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    manifest = backed_up(source, target).manifest
    path = Path(store_at(target).manifest_path(manifest.backup_id))
    changed = json.loads(path.read_bytes())
    changed["topics"][0]["partitions"][0]["log_start_offset"] = 1
    path.write_text(json.dumps(changed))

    with pytest.raises(BackupDamagedError, match="it was changed after it was made"):
        restored(target, tmp_path / "copy")
    assert "it was changed" in check_store(store_at(target)).findings[0]


@given(
    content=st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_a_manifest_holds_is_refused_in_one_sentence(content: bytes) -> None:
    with pytest.raises(BackupDamagedError):
        decode_manifest("m.json", content)


def test_damage_of_the_source_is_told_and_kept_as_it_is(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})
    path = source / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)

    done = stratalog("log", "backup", target, "--log-dir", source)

    assert done.exit_code == 1
    assert "orders-0: segment 0 at byte" in done.stderr
    restored(target, copy, is_sound=False)
    assert log_bytes(copy) == log_bytes(source)
    with pytest.raises(BackupError, match="Where a moment lies in it cannot be told"):
        restored(target, tmp_path / "other", until_ms=START_MS)


def test_a_last_batch_that_tells_a_higher_offset_than_the_next_segment_is_damage(
    tmp_path: Path,
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {(topic, 0): [rows(4 * n, 4) for n in range(6)] for topic in ("orders", "sound")})
    path = source / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    last = content.rindex((8).to_bytes(8, "big"))
    content[last + 5] ^= 1  # of its base offset, which no sum covers
    path.write_bytes(content)

    done = stratalog("log", "backup", target, "--log-dir", source)

    assert done.exit_code == 1
    assert (
        "orders-0: segment 0 at its end: its batches go up to offset 65548, but the next segment "
        "begins at 12"
    ) in done.stderr
    restored(target, tmp_path / "other", topics=["sound"])
    restored(target, copy, is_sound=False)
    assert log_bytes(copy) == log_bytes(source)


def meddled(log_dir: Path, what: str) -> None:
    """A log directory with something in it that no manifest can say."""
    first, second = log_dir / "orders-0", log_dir / "sound-0"
    if what == "a stray directory":
        (log_dir / "old-20261119").mkdir()
    elif what == "no name of a topic":
        (log_dir / "my own-0").mkdir()
    elif what == "an unlinked file":
        (log_dir / "__cluster_metadata-0").mkdir()
        (log_dir / "__cluster_metadata-0" / ".nfs000000a1").touch()
    elif what in ("garbage", "AAAAAAAAAAAAAAAAAAAAAA"):
        properties = f"version=1\nnode.id=1\ncluster.id=x\ndirectory.id={what}\n"
        (log_dir / "meta.properties").write_text(properties)
    elif what == "an id of zeros":
        (first / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 22}\n")
    elif what == "a missing end":
        path = log_dir / "replication-offset-checkpoint"
        write_offsets(OsFileSystem(), str(path), {TopicPartition("orders", 0): 30})
    elif what == "one id of two":
        for each in (first, second):
            (each / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 21}Q\n")
    else:
        (first / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4294967296 4\n")


@pytest.mark.parametrize(
    ("what", "note"),
    [
        ("a stray directory", "old-20261119 is left out: no topic has so many partitions"),
        ("no name of a topic", ""),
        ("an unlinked file", ""),
        ("garbage", "directory.id='garbage' is no id, and is left out"),
        ("AAAAAAAAAAAAAAAAAAAAAA", "is no id, and is left out"),
        ("an id of zeros", ""),
        ("one id of two", "the id of orders is left out, since sound has the same"),
        ("a missing end", "orders-0 has lost the offsets 24 to 29 (6 of them)"),
        ("an epoch", "orders-0: its leader-epoch-checkpoint has epoch 4294967296 from offset 4"),
    ],
)
def test_what_no_manifest_can_say_is_left_out_and_costs_nothing_else(
    tmp_path: Path, what: str, note: str
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {(topic, 0): [rows(4 * n, 4) for n in range(6)] for topic in ("orders", "sound")})
    meddled(source, what)

    notes = backed_up(source, target).notes

    assert any(note in each for each in notes)
    restored(target, copy)
    assert log_bytes(copy) == log_bytes(source)


def test_a_manifest_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    made = backed_up(source, target).manifest
    wrong = replace(made, topics=made.topics * 2)

    with (
        store_at(target).begin() as run,
        pytest.raises(BackupError, match=r"could not be read again: .*two of its topics have one"),
    ):
        run.write_manifest(replace(wrong, backup_id="20991231T000000000Z-00000000"))

    assert store_at(target).backup_ids() == [made.backup_id]


def test_a_half_written_batch_at_the_end_is_left_out(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(5)]})
    path = sorted((source / "orders-0").glob("*.log"))[-1]
    content = path.read_bytes()
    path.write_bytes(content + content[:40])

    backed_up(source, target)
    restored(target, copy)

    assert end_offset(copy, "orders") == 20
    assert check(str(copy)) == []


def test_a_record_of_the_very_moment_is_kept_and_epochs_that_began_later_are_not(
    tmp_path: Path,
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    with engine.open_directory(source, create=True, topics={"orders": {}}) as logs:
        log = logs.create("orders")._log
        for epoch in range(4):
            log.append_as_leader(build_batch(rows(3 * epoch, 3)), leader_epoch=epoch)
    backed_up(source, target)

    restored(target, copy, until_ms=START_MS + 5_000)  # the last of the second batch

    epochs = (copy / "orders-0" / "leader-epoch-checkpoint").read_text()
    assert epochs == "0\n2\n0 0\n1 3\n"
    assert end_offset(copy, "orders") == 6


@pytest.mark.parametrize("partitions", [1, 12])
def test_several_threads_make_the_same_backup(tmp_path: Path, partitions: int) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    batches = {("orders", p): [rows(100 * p + n, 1) for n in range(5)] for p in range(partitions)}
    write(source, batches, segment_batches=2)

    with ThreadPoolExecutor(4) as pool:
        result = back_up(str(source), store_at(target), BackupOptions(verify=True), each=pool.map)
    restored(target, copy)

    assert log_bytes(copy) == log_bytes(source)
    assert len(list(result.manifest.partitions)) == partitions


# --- versions of applications -------------------------------------------------------------------


def committed_to(owner: Owner, version: int, *keys: TopicPartition, values: Values = LARGE) -> str:
    """A batch of ``query-1``, whose number is ``version``."""
    manifest = stage(
        owner.files,
        owner.clock,
        dict.fromkeys(keys, values),
        manifest_id=f"batch {version} {owner.clock.now_ms()}",
        app=AppVersion(name="query-1", version=version),
        topic_ids={key: topic_id_of(owner.log(key)) for key in keys},
    )
    owner.clock.advance(1)
    return owner.run(manifest).status


def owner_of_restored(
    owner: Owner, options: BackupOptions, *, until_ms: int | None = None
) -> tuple[Owner, list[str]]:
    """Who opens what ``owner`` wrote, backed up and restored; and what the restore told."""
    disk = new_disk(owner.clock)
    store = LocalBackupStore(disk, "/backups")
    back_up(LOG_DIR, store, options, files=owner.files, clock=owner.clock)
    plan = plan_restore(store, choose_backup(store).manifest, until_ms=until_ms)
    copy = new_disk(owner.clock)
    result = restore_directory(store, plan, LOG_DIR, files=copy, clock=owner.clock)
    return Owner(copy), [each for each in result.notes if "query-1" in each]


def test_a_version_of_an_application_is_not_written_twice_over_a_restore() -> None:
    owner = Owner()
    owner.create(ORDERS, OTHERS)
    for version in (4, 5):
        committed_to(owner, version, ORDERS, OTHERS)
    owner.manager.shutdown()

    restored_owner, notes = owner_of_restored(owner, BackupOptions())

    end_offset = restored_owner.log().log_end_offset
    assert notes == []
    assert committed_to(restored_owner, 5, ORDERS) == ALREADY_COMMITTED
    assert committed_to(restored_owner, 4, ORDERS) == ALREADY_COMMITTED
    assert restored_owner.log().log_end_offset == end_offset
    assert committed_to(restored_owner, 6, ORDERS) == COMMITTED


@pytest.mark.parametrize(
    ("options", "until_ms"),
    [
        (BackupOptions(include_active=False), None),
        (BackupOptions(topics=("orders",)), None),
        (BackupOptions(), 2**60),
    ],
)
def test_a_version_of_which_records_may_be_missing_is_forgotten_and_that_is_told(
    options: BackupOptions, until_ms: int | None
) -> None:
    owner = Owner()
    owner.create(ORDERS, OTHERS)
    committed_to(owner, 5, ORDERS, OTHERS, values=SMALL)  # into the active segments
    owner.manager.shutdown()

    restored_owner, notes = owner_of_restored(owner, options, until_ms=until_ms)

    assert notes == [
        "which versions were committed is not known any more of query-1: a batch or a load that "
        "it tries again is written again"
    ]
    assert committed_to(restored_owner, 5, ORDERS) == COMMITTED


def test_a_version_whose_topic_was_deleted_since_was_committed_all_the_same() -> None:
    owner = Owner()
    owner.create(ORDERS, OTHERS)
    committed_to(owner, 5, ORDERS, OTHERS)
    owner.manager.delete(OTHERS)
    owner.manager.shutdown()

    restored_owner, notes = owner_of_restored(owner, BackupOptions())

    assert notes == []
    assert committed_to(restored_owner, 5, ORDERS) == ALREADY_COMMITTED


def test_a_version_is_forgotten_where_records_of_an_earlier_one_are_missing() -> None:
    owner = Owner()
    owner.create(ORDERS, OTHERS)
    committed_to(owner, 4, OTHERS, values=SMALL)
    committed_to(owner, 5, ORDERS)  # into segments of its own
    owner.manager.shutdown()

    _, notes = owner_of_restored(owner, BackupOptions(include_active=False))

    assert len(notes) == 1


def test_a_version_that_is_committed_while_its_logs_are_copied_is_forgotten() -> None:
    owner = Owner()
    owner.create(ORDERS, OTHERS)
    committed_to(owner, 5, ORDERS, OTHERS)
    store = LocalBackupStore(new_disk(owner.clock), "/backups")

    def commit_more(_bytes: int) -> None:
        if owner.log().log_end_offset < 2 * len(flat(LARGE)):
            committed_to(owner, 6, ORDERS, OTHERS)

    made = back_up(LOG_DIR, store, files=owner.files, clock=owner.clock, progress=commit_more)

    (told,) = made.manifest.app_versions
    assert (told.name, told.version, told.is_whole) == ("query-1", 6, False)
