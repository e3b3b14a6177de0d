"""Backups beside an owner that goes on, and what a broker makes of a restored directory."""

import json
import uuid
from pathlib import Path

import pytest
from backup_worlds import (
    START_MS,
    backed_up,
    consumed,
    log_bytes,
    produced,
    restored,
    rows,
    store_at,
    stratalog,
    values,
    write,
)
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_fixture import running_broker
from stratalog.handover.backing_up import BackupOptions, back_up
from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation
from stratalog.metadata.image import CLUSTER_DEFAULT
from stratalog.scans.errors import MissingTopicError
from stratalog.scans.leasing import ask_leases
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.check import check
from stratalog.storage.checkpoint import write_topic_id
from stratalog.storage.files import Entry, File, OsFileSystem
from stratalog.storage.layout import TopicPartition as LogName


def made(bootstrap_server: str, topic: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    wanted = {name.replace("_", "."): value for name, value in configs.items()}
    (future,) = admin.create_topics([NewTopic(topic, 1, 1, config=wanted)]).values()
    future.result()


class Retiring(OsFileSystem):
    """Removes the first segments of ``orders-0`` as they are opened, so often: as the retention of
    an owner would that gives no lease."""

    def __init__(self, times: int) -> None:
        self.times = times

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        place = Path(path)
        segments = sorted(place.parent.glob("*.log"))
        if self.times and place.parent.name == "orders-0" and place == segments[0]:
            self.times -= 1
            place.unlink()
        return super().open(path, create=create, writable=writable)


def test_a_running_broker_keeps_what_is_copied_and_is_let_go_of(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    seen = []
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders")
        produced(broker.bootstrap_server, "orders", 10)

        back_up(
            str(source),
            store_at(target),
            BackupOptions(include_active=True),
            progress=lambda _bytes: seen.append(ask_leases(str(source))),
        )

        assert [lease["holder"] for lease in seen[0]] == [f"backup to {target}"]
        assert ask_leases(str(source)) == []


def test_of_a_log_in_use_closed_segments_are_taken_and_the_active_one_if_asked(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders", segment_bytes="1048576")
        produced(broker.bootstrap_server, "orders", 10, size_bytes=300_000)
        closed = backed_up(source, target).manifest.topics[0].partitions[0]
        whole = backed_up(source, target, include_active=True).manifest.topics[0].partitions[0]

    assert [each.base_offset for each in whole.segments[:-1]] == [
        each.base_offset for each in closed.segments
    ]
    assert closed.end_offset == whole.segments[-1].base_offset
    assert whole.end_offset == 10


def test_a_restored_directory_is_served_with_its_topics_configs_ids_and_offsets(
    tmp_path: Path,
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders", retention_ms="-1", segment_bytes="1048576")
        produced(broker.bootstrap_server, "orders", 10)
        before = broker.broker.services.store.image
        backed_up(source, target, include_active=True)

    restored(target, copy)

    with running_broker(copy) as broker:
        image = broker.broker.services.store.image
        assert image.topics["orders"].configs == before.topics["orders"].configs
        assert image.topics["orders"].topic_id == before.topics["orders"].topic_id
        assert not image.topics["orders"].is_held
        assert image.cluster_id == before.cluster_id
        assert consumed(broker.bootstrap_server, "orders") == list(range(10))
        produced(broker.bootstrap_server, "orders", 3)
        assert consumed(broker.bootstrap_server, "orders")[-1] == 12


@pytest.mark.parametrize("is_running", [True, False])
def test_what_a_broker_was_told_to_do_by_default_comes_along(
    tmp_path: Path, is_running: bool
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    forever = ConfigChange("log.retention.ms", ConfigOperation.SET, "-1")
    slowly = ConfigChange("log.cleaner.threads", ConfigOperation.SET, "2")
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders")
        store = broker.broker.services.store
        broker.call(store.alter_broker_configs, CLUSTER_DEFAULT, [forever])
        broker.call(store.alter_broker_configs, store.image.node_id, [slowly])
        before = store.image.broker_configs
        if is_running:
            backed_up(source, target)
    if not is_running:
        backed_up(source, target)

    restored(target, copy)

    with running_broker(copy) as broker:
        assert broker.broker.services.store.image.broker_configs == before
        assert broker.broker.services.store.broker.log_retention_ms == -1


def test_offsets_of_groups_come_with_the_topic_that_keeps_them(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders")
        produced(broker.bootstrap_server, "orders", 10)
        committed_at = consumed(broker.bootstrap_server, "orders", commit="readers")[-1] + 1
    backed_up(source, target, include_internal=True)
    restored(target, copy)

    with running_broker(copy) as broker:
        settings = {"bootstrap.servers": broker.bootstrap_server, "group.id": "readers"}
        consumer = Consumer(settings)
        (found,) = consumer.committed([TopicPartition("orders", 0)], timeout=60)
        consumer.close()
        assert found.offset == committed_at


def test_a_restored_directory_gives_out_no_producer_id_that_the_first_has_or_goes_on_to(
    tmp_path: Path,
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders")
        produced(broker.bootstrap_server, "orders", 1)
        manifest = backed_up(source, target).manifest  # no batch of a producer is in it
        given = broker.broker.services.store.image.next_producer_id
        for _ in range(3):
            produced(broker.bootstrap_server, "orders", 1)
            after = broker.call(broker.broker.services.store.allocate_producer_ids)

    assert (manifest.source.next_producer_id, manifest.topics[0].partitions[0].segments) == (
        given,
        (),
    )
    restored(target, copy)
    with running_broker(copy) as broker:
        assert broker.broker.services.store.allocate_producer_ids()[0] > after[-1]


def test_of_an_active_segment_beside_a_broker_the_log_alone_is_taken(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders")
        produced(broker.bootstrap_server, "orders", 10)
        first = backed_up(source, target, include_active=True)
        again = backed_up(source, target, include_active=True)
        log = broker.broker.services.logs.get(LogName("orders", 0))
        rolled = back_up(
            str(source),
            store_at(tmp_path / "others"),
            BackupOptions(include_active=True),
            progress=lambda _bytes: broker.call(log.roll),  # its indexes are whole ever since
        )

    assert set(rolled.manifest.topics[0].partitions[0].segments[0].files) == {".log"}
    (segment,) = first.manifest.topics[0].partitions[0].segments
    assert set(segment.files) == {".log"}
    assert (again.copied_bytes, again.read_bytes) == (0, 0)
    restored(target, copy)
    with running_broker(copy) as broker:
        assert consumed(broker.bootstrap_server, "orders") == list(range(10))
    assert check(str(copy)) == []


def test_indexes_that_whoever_was_killed_had_preallocated_are_not_taken(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(2)]})
    index = source / "orders-0" / f"{0:020d}.index"
    index.write_bytes(index.read_bytes() + bytes(8 << 10))

    (segment,) = backed_up(source, target).manifest.topics[0].partitions[0].segments

    assert set(segment.files) == {".log"}


class Deleting(OsFileSystem):
    """Deletes ``orders-0`` as its first segment is opened, and makes it anew with another id."""

    def __init__(self, *, anew: bool) -> None:
        self.anew = anew

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        file = super().open(path, create=create, writable=writable)
        directory = Path(path).parent
        if path.endswith(f"orders-0/{0:020d}.log") and directory.is_dir():
            directory.rename(directory.with_name("gone"))
            if self.anew:
                directory.mkdir()
                write_topic_id(self, f"{directory}/partition.metadata", uuid.uuid4())
        return file


@pytest.mark.parametrize(
    ("anew", "sentence"),
    [
        (False, "orders was deleted while it was backed up, and is left out"),
        (True, "orders was deleted and made anew while it was backed up, and is left out"),
    ],
)
def test_a_topic_that_is_deleted_while_it_is_copied_is_left_out_and_that_is_told(
    tmp_path: Path, anew: bool, sentence: str
) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    batches = [rows(4 * n, 4) for n in range(4)]
    write(source, {(topic, 0): batches for topic in ("kept", "orders")})
    write_topic_id(OsFileSystem(), f"{source}/orders-0/partition.metadata", uuid.uuid4())

    result = back_up(str(source), store_at(target), files=Deleting(anew=anew))

    assert [each.name for each in result.manifest.topics] == ["kept"]
    assert sentence in result.notes
    restored(target, tmp_path / "copy")


def test_of_a_topic_that_is_deleted_while_it_is_copied_no_part_is_kept(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    batches = [rows(4 * n, 4) for n in range(4)]
    keys = [("kept", 0), *(("orders", number) for number in range(3))]
    write(source, dict.fromkeys(keys, batches))

    class DeletingAll(OsFileSystem):
        def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
            file = super().open(path, create=create, writable=writable)
            if path.endswith(f"orders-1/{0:020d}.log"):
                for each in source.glob("orders-*"):
                    each.rename(tmp_path / each.name)
            return file

    result = back_up(str(source), store_at(target), files=DeletingAll())

    assert [each.name for each in result.manifest.topics] == ["kept"]
    assert result.manifest.left_out == ("orders",)
    told = [each for each in result.notes if "deleted" in each]
    assert told == ["orders was deleted while it was backed up, and is left out"]


def test_a_topic_that_is_deleted_behind_the_listing_of_names_fails_no_backup(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {(topic, 0): [rows(0, 4)] for topic in ("kept", "orders")})

    class Listing(OsFileSystem):
        def list(self, path: str) -> list[Entry]:
            found = super().list(path)
            if path == str(source) and (source / "orders-0").is_dir():
                (source / "orders-0").rename(tmp_path / "gone")
            return found

    result = back_up(str(source), store_at(target), files=Listing())

    assert [each.name for each in result.manifest.topics] == ["kept"]
    (tmp_path / "gone").rename(source / "orders-0")
    with pytest.raises(MissingTopicError):
        back_up(str(source), store_at(target), BackupOptions(topics=("orders",)), files=Listing())


def test_what_vanishes_while_it_is_copied_is_looked_at_again(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(12)]})

    result = back_up(str(source), store_at(target), files=Retiring(times=2))

    assert result.manifest.topics[0].partitions[0].log_start_offset == 24
    restored(target, copy)
    assert log_bytes(copy) == log_bytes(source)
    assert values(copy, "orders")[0][0] == 24


def test_what_changes_too_often_is_one_clear_error_and_no_backup(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(30)]})

    with pytest.raises(BackupError, match="orders-0 changed 5 times while it was copied"):
        back_up(str(source), store_at(target), files=Retiring(times=100))

    assert store_at(target).backup_ids() == []


def test_a_lease_ends_also_if_the_store_cannot_be_had(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    with running_broker(source) as broker:
        produced(broker.bootstrap_server, "orders", 20)
        with store_at(target).begin(), pytest.raises(BackupError, match="another backup"):
            backed_up(source, target, include_active=True)
        assert ask_leases(str(source)) == []


class Snapshotting(OsFileSystem):
    """A controller that takes a snapshot as its directory was listed, so often."""

    def __init__(self, times: int) -> None:
        self.times = times

    def list(self, path: str) -> list[Entry]:
        found = super().list(path)
        if self.times and path.endswith("__cluster_metadata-0"):
            self.times -= 1
            (old,) = Path(path).glob("*.checkpoint")
            old.rename(old.with_name(f"{self.times:020d}-0000000001.checkpoint"))
        return found


def test_what_a_controller_replaces_while_it_is_copied_is_looked_at_again(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    write(source, {("orders", 0): [rows(0, 4)]})
    controller = source / "__cluster_metadata-0"
    controller.mkdir()
    (controller / f"{9:020d}-0000000001.checkpoint").write_bytes(b"a snapshot")

    made = back_up(str(source), store_at(target), files=Snapshotting(times=3))

    assert [*made.manifest.controller] == [f"{0:020d}-0000000001.checkpoint"]
    with pytest.raises(BackupError, match="__cluster_metadata-0 changed 5 times"):
        back_up(str(source), store_at(target), files=Snapshotting(times=100))


# --- the command line -------------------------------------------------------------------------


def test_the_commands_tell_what_they_did(tmp_path: Path) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    write(source, {("orders", 0): [rows(4 * n, 4) for n in range(6)]})

    done = json.loads(stratalog("log", "backup", target, "--log-dir", source, "-o", "json").stdout)
    listed = json.loads(stratalog("log", "backup", target, "--list", "-o", "json").stdout)
    checked = json.loads(stratalog("log", "backup", target, "--check", "-o", "json").stdout)
    planned = stratalog(
        *("log", "restore", target, "--log-dir", copy, "--dry-run", "-o", "json"),
        *("--until", START_MS + 9_500),
    )

    assert (done["topics"], done["segments"]) == (["orders"], 2)
    assert [each["backup_id"] for each in listed["backups"]] == [done["backup_id"]]
    assert (checked["findings"], checked["unused_files"]) == ([], 0)
    assert json.loads(planned.stdout)["partitions"][0]["end_offset"] == 8
    assert not copy.exists()
    restored_to = stratalog("log", "restore", target, "--log-dir", copy)
    assert "1 partition with" in restored_to.stdout
    assert log_bytes(copy) == log_bytes(source)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["backup", "{target}"], "Name the log directory with --log-dir"),
        (["backup", "{logs}/inside", "--log-dir", "{logs}"], "is inside"),
        (["backup", "{target}", "--log-dir", "{target}/incoming"], "is inside"),
        (["restore", "{target}", "--log-dir", "{target}/incoming"], "is inside"),
        (["restore", "{target}", "--log-dir", "{target}", "--dry-run"], "is inside"),
        (["backup", "{target}", "--log-dir", "{logs}", "--topic", "no"], "no"),
        (["backup", "{nowhere}", "--check"], "holds no backups"),
        (["restore", "{nowhere}", "--log-dir", "{copy}"], "holds no backups"),
        (["restore", "{target}", "--log-dir", "{copy}", "--at", "x"], "holds no backup x"),
        (["restore", "{target}", "--log-dir", "{copy}", "--until", "soon"], "milliseconds"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    places = {name: tmp_path / name for name in ("logs", "target", "copy", "nowhere")}
    write(places["logs"], {("orders", 0): [rows(0, 4)]})
    backed_up(places["logs"], places["target"])

    done = stratalog("log", *(each.format(**places) for each in arguments))

    is_misread = sentence.startswith(("Name", "is inside", "milli"))
    assert not (places["target"] / "incoming").exists()
    assert done.exit_code == (2 if is_misread else 1)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not places["copy"].exists()


def test_a_directory_of_an_older_release_without_an_id_is_served_once_restored(
    tmp_path: Path,
) -> None:
    source, target, copy = tmp_path / "logs", tmp_path / "backups", tmp_path / "copy"
    with running_broker(source) as broker:
        made(broker.bootstrap_server, "orders")
        produced(broker.bootstrap_server, "orders", 3)
    properties = source / "meta.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(each for each in lines if not each.startswith("directory.id")))
    backed_up(source, target)

    restored(target, copy)

    with running_broker(copy) as broker:
        assert consumed(broker.bootstrap_server, "orders") == [0, 1, 2]


def test_topics_are_made_by_no_broker_of_another_cluster(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "backups"
    with running_broker(source) as broker:
        produced(broker.bootstrap_server, "orders", 4)
    backed_up(source, target)
    with running_broker(tmp_path / "a"), running_broker(tmp_path / "b") as other:
        done = stratalog(
            *("log", "restore", target, "--log-dir", tmp_path / "a"),
            *("--bootstrap-server", other.bootstrap_server),
        )

    assert "is of cluster" in done.stderr
    assert done.exit_code == 2
    assert not (tmp_path / "b" / "orders-0").exists()
