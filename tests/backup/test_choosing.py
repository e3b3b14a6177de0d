"""Which backup is restored, to a moment and without one."""

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from backup_worlds import (
    START_MS,
    backed_up,
    log_bytes,
    resealed,
    rows,
    store_at,
    stratalog,
    write,
)

from stratalog.handover.backing_up import BackupOptions, back_up
from stratalog.storage.backup.choosing import Choice, choose_backup
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.checkpoint import write_topic_id
from stratalog.storage.files import Entry, OsFileSystem
from stratalog.testing import ManualClock


class Chain:
    """A directory and its backups, each made a number of seconds after START_MS."""

    def __init__(self, tmp_path: Path, name: str = "logs", target: str = "backups") -> None:
        self.source = tmp_path / name
        self.store = store_at(tmp_path / target)
        self.ids: list[str] = []

    def write(self, first: int, count: int, *, topic: str = "orders") -> None:
        """Records of these seconds, one a batch, three batches a segment."""
        write(self.source, {(topic, 0): [rows(each, 1) for each in range(first, first + count)]})

    def back_up(self, second: int, **options: Any) -> None:
        clock = ManualClock(START_MS + 1_000 * second)
        made = back_up(str(self.source), self.store, BackupOptions(**options), clock=clock)
        self.ids.append(made.manifest.backup_id)

    def chosen(self, second: int, **options: Any) -> tuple[int, Choice]:
        choice = choose_backup(self.store, until_ms=START_MS + 1_000 * second, **options)
        return self.ids.index(choice.manifest.backup_id), choice


# --- to a moment ------------------------------------------------------------------------------


def test_a_moment_comes_from_the_first_backup_in_which_every_log_reaches_it(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 5)
    chain.back_up(6, include_active=False)  # up to offset 3 of 5
    chain.write(8, 3)
    chain.back_up(11, include_active=False)

    assert [chain.chosen(second)[0] for second in (1, 2, 4, 6)] == [0, 1, 1, 1]
    assert [chain.chosen(second)[1].notes for second in (1, 2)] == [(), ()]


def test_what_no_backup_has_of_a_moment_is_told(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 5)
    for second in (6, 7):
        chain.back_up(second, include_active=False)

    place, choice = chain.chosen(5)

    assert place == 0
    (note,) = choice.notes
    assert note == (
        f"orders-0 may lack records from before that moment: backup {chain.ids[0]} ends at offset "
        "3, and the log went on to 5; no other of the 2 made then or later has more"
    )
    told = stratalog(
        *("log", "restore", chain.store.name, "--log-dir", tmp_path / "copy", "--dry-run"),
        *("--until", START_MS + 5_000),
    )
    assert f"note: {note}" in told.stderr


@contextmanager
def owned_by_another(log_dir: Path) -> Iterator[None]:
    """By a process that gives no leases and tells nothing, as Apache Kafka is one."""
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, log_dir / ".lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.communicate()


def test_beside_an_owner_that_tells_nothing_a_log_goes_on_behind_its_checkpoint(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 5)
    checkpoint = chain.source / "replication-offset-checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("orders 0 5", "orders 0 4"))
    with owned_by_another(chain.source):
        chain.back_up(6, include_active=True)

    _, choice = chain.chosen(5)

    assert "ends at offset 4, and the log went on to 5" in choice.notes[0]


def test_of_backups_that_all_end_too_early_the_one_that_has_most_is_taken(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 4)
    chain.back_up(20, include_active=False)
    chain.write(4, 4)
    chain.back_up(21, include_active=False)

    assert chain.chosen(19)[0] == 1


def test_a_moment_behind_the_newest_backup_is_told_to_be(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 3)
    chain.back_up(4)

    assert chain.chosen(4)[1].notes == ()
    assert "was made before that moment, and none later" in chain.chosen(5)[1].notes[0]
    assert chain.chosen(1, at=chain.ids[0])[1].notes == ()
    assert "was made before that moment" in chain.chosen(5, at=chain.ids[0])[1].notes[0]


def test_a_topic_that_is_made_anew_is_no_more_of_the_one_before(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    files, metadata = OsFileSystem(), chain.source / "orders-0" / "partition.metadata"
    for number in (1, 2):
        chain.write(10 * number, 4)
        write_topic_id(files, str(metadata), uuid.UUID(int=number))
        chain.back_up(10 * number + 5, include_active=False)

    place, choice = chain.chosen(14)

    assert place == 0
    assert "ends at offset 3, and the log went on to 4" in choice.notes[0]


# --- topics that a backup has not ---------------------------------------------------------------


def delete(chain: Chain, topic: str) -> None:
    shutil.rmtree(chain.source / f"{topic}-0")


def test_a_backup_notes_the_topics_that_it_leaves_out_and_a_restore_tells(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    for topic in ("orders", "payments", "__consumer_offsets"):
        chain.write(0, 2, topic=topic)
    chain.back_up(5, topics=("payments",))

    assert chain.store.read_manifest(chain.ids[0]).left_out == ("__consumer_offsets", "orders")
    arguments = ("log", "restore", chain.store.name, "--log-dir", tmp_path / "copy", "--dry-run")
    told = stratalog(*arguments)
    assert (
        f"note: backup {chain.ids[0]} is not of all topics; left out were orders\n" in told.stderr
    )
    assert "left out" not in stratalog(*arguments, "--topic", "payments").stderr
    found = stratalog("log", "backup", chain.store.name, "--list", "-o", "json")
    assert json.loads(found.stdout)["backups"][0]["left_out"] == ["__consumer_offsets", "orders"]


def test_a_topic_that_the_first_backup_after_a_moment_left_out_comes_from_one_that_has_it(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path)
    for topic in ("orders", "payments"):
        chain.write(0, 3, topic=topic)
    chain.back_up(5, topics=("payments",))
    chain.back_up(6)

    assert chain.chosen(4)[0] == 1
    assert chain.chosen(4)[1].notes == ()
    assert chain.chosen(4, topics=["payments"])[0] == 0


def test_a_topic_that_only_another_backup_has_is_told_with_how_to_restore_it(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path)
    for topic in ("orders", "payments"):
        chain.write(0, 3, topic=topic)
    chain.back_up(3)
    delete(chain, "payments")
    chain.back_up(6)

    place, choice = chain.chosen(4)

    assert place == 1
    assert choice.notes == (
        f"backup {chain.ids[1]} does not have topic payments, which may have been there at that "
        f"moment: restore it by itself with --at {chain.ids[0]} --topic payments",
    )
    assert chain.chosen(4, topics=["orders"])[1].notes == ()


def test_a_topic_that_was_gone_before_a_moment_or_made_behind_it_is_not_missed(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path)
    for topic in ("orders", "payments"):
        chain.write(0, 2, topic=topic)
    chain.back_up(2)
    delete(chain, "payments")
    chain.back_up(3)
    chain.back_up(6)
    chain.write(7, 2, topic="new")
    chain.back_up(9, include_active=False)

    assert chain.chosen(4) == (2, Choice(manifest=chain.store.read_manifest(chain.ids[2])))


def test_a_topic_made_anew_is_not_taken_for_the_one_of_that_moment(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    files, metadata = OsFileSystem(), chain.source / "orders-0" / "partition.metadata"
    for number, second in ((1, 3), (2, 8)):
        chain.write(second - 3, 3)
        write_topic_id(files, str(metadata), uuid.UUID(int=number))
        chain.back_up(second)
        delete(chain, "orders")

    for topics in ([], ["orders"]):
        place, choice = chain.chosen(4, topics=topics)
        assert place == 1
        assert choice.notes == (
            f"the topic orders of backup {chain.ids[1]} is not the one, or not all of it, that may "
            f"have been there at that moment: that is restored with --at {chain.ids[0]} --topic "
            "orders",
        )


def test_a_topic_that_was_given_an_id_since_is_the_one_that_it_was(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 3)
    chain.back_up(3)
    metadata = chain.source / "orders-0" / "partition.metadata"
    write_topic_id(OsFileSystem(), str(metadata), uuid.UUID(int=1))
    chain.back_up(6)

    assert chain.chosen(4)[0] == 1
    assert chain.chosen(4)[1].notes == ()


def test_of_many_topics_that_a_backup_does_not_have_some_are_named(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    for number in range(8):
        chain.write(0, 1, topic=f"topic{number}")
    chain.back_up(3)
    for number in range(1, 8):
        delete(chain, f"topic{number}")
    chain.back_up(6)

    notes = chain.chosen(4)[1].notes

    assert len(notes) == 6
    assert notes[-1] == f"backup {chain.ids[1]} does not have 2 more such topics"


def test_a_backup_of_a_version_that_did_not_note_what_it_left_out_is_used_and_that_is_told(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 3)
    chain.back_up(5)

    def older(manifest: Any) -> None:
        del manifest["left_out"]

    resealed(chain.store, chain.ids[0], older)

    (note,) = chain.chosen(4)[1].notes
    assert "is of a version that did not note which topics it left out" in note


def test_a_backup_that_is_made_when_the_clock_was_set_back_is_the_newest(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 3)
    for second in (60, 5, 6):
        chain.back_up(second)

    assert chain.store.backup_ids() == chain.ids
    assert choose_backup(chain.store).manifest.backup_id == chain.ids[-1]


def test_a_backup_is_of_the_moment_before_its_logs_are_looked_at(tmp_path: Path) -> None:
    clock = ManualClock(START_MS)

    class Slow(OsFileSystem):
        def list(self, path: str) -> list[Entry]:
            clock.advance(1_000)
            return super().list(path)

    write(tmp_path / "logs", {("orders", 0): [rows(0, 1)]})
    made = back_up(
        str(tmp_path / "logs"), store_at(tmp_path / "backups"), files=Slow(), clock=clock
    )

    assert clock.now_ms() > START_MS
    assert made.manifest.created_ms == START_MS


def test_a_backup_of_an_older_version_is_used_as_it_was_and_that_is_told(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 5)
    for second in (6, 7):
        chain.back_up(second)

    def older(manifest: Any) -> None:
        del manifest["topics"][0]["partitions"][0]["log_end_offset"]

    resealed(chain.store, chain.ids[0], older)
    place, choice = chain.chosen(5)

    assert place == 0
    assert "is of a version that did not note where logs ended" in choice.notes[0]
    assert chain.chosen(3)[1].notes == ()  # a later record is in it


# --- of which directory -----------------------------------------------------------------------


def test_backups_of_two_directories_are_not_taken_for_each_other(tmp_path: Path) -> None:
    first, second = Chain(tmp_path, "first"), Chain(tmp_path, "second")
    for chain, at in ((first, 5), (second, 6)):
        chain.write(at, 1)
        chain.back_up(at)
    store = first.store

    for until_ms in (START_MS, START_MS + 5_000, None):
        choice = choose_backup(store, until_ms=until_ms, topics=["orders"])
        assert choice.manifest.source.path == str(second.source)
        assert f"also holds backups of {first.source}" in choice.notes[0]
        named = choose_backup(store, until_ms=until_ms, source=str(first.source))
        assert named.manifest.source.path == str(first.source)
    with pytest.raises(BackupError, match=r"holds no backup of /none; it holds those of .*/first"):
        choose_backup(store, source="/none")

    copy = tmp_path / "copy"
    done = stratalog("log", "restore", store.name, "--log-dir", copy, "--source", first.source)
    assert f"of {first.source}: 1 partition" in done.stdout
    assert log_bytes(copy) == log_bytes(first.source)


# --- damaged manifests --------------------------------------------------------------------------


def damaged(chain: Chain, number: int) -> None:
    path = Path(chain.store.manifest_path(chain.ids[number]))
    path.write_bytes(path.read_bytes()[:-9])


def test_a_damaged_manifest_hides_none_of_the_others_and_is_told(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 1)
    for second in (5, 6, 7):
        chain.back_up(second)
    damaged(chain, 0)

    listed = stratalog("log", "backup", chain.store.name, "--list")
    found = stratalog("log", "backup", chain.store.name, "--list", "-o", "json")

    assert (listed.exit_code, found.exit_code) == (1, 1)
    assert [each in listed.stdout for each in chain.ids] == [False, True, True]
    assert f"error: backup file {chain.store.manifest_path(chain.ids[0])}" in listed.stderr
    assert [each["backup_id"] for each in json.loads(found.stdout)["backups"]] == chain.ids[1:]
    assert [each["backup_id"] for each in json.loads(found.stdout)["damaged"]] == chain.ids[:1]
    place, choice = chain.chosen(5)
    assert place == 1
    assert "a backup was passed over" in choice.notes[0]
    assert choose_backup(chain.store, topics=["orders"]).manifest.backup_id == chain.ids[2]


@pytest.mark.parametrize("topics", [[], ["orders"]])
def test_what_is_older_than_a_damaged_newest_backup_is_not_restored_unasked(
    tmp_path: Path, topics: list[str]
) -> None:
    chain = Chain(tmp_path)
    chain.write(0, 1)
    for second in (5, 6):
        chain.back_up(second)
    damaged(chain, 1)

    with pytest.raises(BackupDamagedError, match="name an earlier one with --at"):
        choose_backup(chain.store, topics=topics)

    assert choose_backup(chain.store, at=chain.ids[0]).manifest.backup_id == chain.ids[0]
    assert chain.chosen(1)[0] == 0
    damaged(chain, 0)
    with pytest.raises(BackupDamagedError, match="is not JSON"):
        chain.chosen(1)


# --- odd values that somebody sealed --------------------------------------------------------------

PARTITION = ("topics", 0, "partitions", 0)
APP = {
    "name": "nightly",
    "version": 1,
    "commit_id": "x",
    "at_ms": 1,
    "is_whole": True,
    "offsets": [["orders", 0, 0, 9]],
}


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("created_ms",), 2**60),
        (("source", "node_id"), 2**31),
        (("source", "next_producer_id"), 2**63),
        (("source", "directory_id"), "../../x"),
        (("source", "cluster_id"), "\ud800"),
        (("topics", 0, "topic_id"), "é"),
        (("topics", 0, "topic_id"), "A" * 22),
        (("topics", 0, "configs"), {"retention.ms": "\ud800"}),
        (("topics", 0, "configs"), {"\ud800": "1"}),
        (("topics", 0, "partition_count"), 2**31),
        (("topics", 0, "name"), "payments"),
        (("topics", 0, "name"), "__cluster_metadata"),
        (("topics", 0, "topic_id"), "AAAAAAAAAAAAAAAAAAAAAQ"),
        (("left_out",), "payments"),
        (("app_versions",), {}),
        (("app_versions",), ["nightly"]),
        (("app_versions",), [APP | {"name": ""}]),
        (("app_versions",), [APP | {"version": -1}]),
        (("app_versions",), [APP | {"is_whole": 1}]),
        (("app_versions",), [APP | {"offsets": [["orders", 0, 0]]}]),
        (("app_versions",), [APP, APP]),
        (("broker_configs",), ["log.retention.ms"]),
        (("broker_configs",), {"": "log.retention.ms"}),
        (("broker_configs",), {"all": {}}),
        (("broker_configs",), {str(2**31): {}}),
        (("broker_configs",), {"1": {"log.retention.ms": 1}}),
        (("left_out",), ["../x"]),
        (("left_out",), [1]),
        ((*PARTITION, "epochs"), [[-1, 0]]),
        ((*PARTITION, "epochs"), [[0, 2**63]]),
        ((*PARTITION, "log_start_offset"), 6),
        ((*PARTITION, "end_offset"), 2**63),
        ((*PARTITION, "log_end_offset"), "5"),
    ],
)
def test_what_is_no_value_of_a_field_is_refused_by_its_name(
    tmp_path: Path, where: tuple[str | int, ...], value: object
) -> None:
    chain = Chain(tmp_path)
    for number, topic in enumerate(("orders", "payments"), start=1):
        chain.write(0, 5, topic=topic)
        metadata = chain.source / f"{topic}-0" / "partition.metadata"
        write_topic_id(OsFileSystem(), str(metadata), uuid.UUID(int=3 - number))
    chain.back_up(6)
    *above, name = where

    def change(manifest: Any) -> None:
        for each in above:
            manifest = manifest[each]
        manifest[name] = value

    resealed(chain.store, chain.ids[0], change)

    with pytest.raises(BackupDamagedError) as refused:
        chain.store.read_manifest(chain.ids[0])
    assert str(refused.value).encode()


@pytest.mark.parametrize(("field", "value"), [("base_offset", 1), ("next_offset", 2)])
def test_a_segment_whose_batches_are_not_those_of_the_manifest_is_not_restored(
    tmp_path: Path, field: str, value: int
) -> None:
    chain, copy = Chain(tmp_path), tmp_path / "copy"
    chain.write(0, 5)
    chain.back_up(6)

    def change(manifest: Any) -> None:
        manifest["topics"][0]["partitions"][0]["segments"][0][field] = value

    resealed(chain.store, chain.ids[0], change)
    done = stratalog("log", "restore", chain.store.name, "--log-dir", copy)

    assert done.exit_code == 1
    assert "of the backup's manifest" in done.stderr
    assert not copy.exists()


def test_a_directory_whose_name_is_no_unicode_is_backed_up_and_listed(tmp_path: Path) -> None:
    source = Path(f"{tmp_path}/lo\udcffgs")
    write(source, {("orders", 0): [rows(0, 1)]})

    backed_up(source, tmp_path / "backups")

    listed = stratalog("log", "backup", tmp_path / "backups", "--list")
    assert (listed.exit_code, "lo\\udcffgs" in listed.stdout) == (0, True)
    assert backed_up(source, tmp_path / "backups").read_bytes == 0
