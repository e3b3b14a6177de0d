"""Backups beside an owner that goes on, and what a broker makes of a restored directory."""

import json
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
from stratalog.scans.leasing import ask_leases
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.files import File, OsFileSystem


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
