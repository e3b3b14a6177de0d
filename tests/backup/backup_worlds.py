"""Log directories to back up, and how two of them compare."""

import contextlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

import stratalog as engine
from stratalog.cli.app import run
from stratalog.handover.backing_up import BackupOptions, BackupResult, back_up
from stratalog.handover.owning import owned, owner_config
from stratalog.handover.restoring import restore_directory
from stratalog.metadata.topics import NewTopic
from stratalog.records import AppendOrigin, Record, build_batch, build_end_transaction_marker
from stratalog.storage.backup.choosing import choose_backup
from stratalog.storage.backup.restore_plan import plan_restore
from stratalog.storage.backup.store import LocalBackupStore
from stratalog.storage.check import check
from stratalog.storage.files import OsFileSystem
from stratalog.storage.findings import Kind
from stratalog.storage.json_fields import digest_of

START_MS = 1_700_000_000_000
SMALL_SEGMENTS = {"segment.bytes": "1048576"}


def rows(first: int, count: int) -> list[Record]:
    """One second apart; the value says which it is."""
    return [
        Record(b"k%d" % (n % 5), b"v%d" % n, (), START_MS + 1000 * n)
        for n in range(first, first + count)
    ]


def write(
    log_dir: Path,
    batches: Mapping[tuple[str, int], Sequence[Sequence[Record]]],
    *,
    segment_batches: int = 3,
) -> None:
    """Append, with a new segment after every so many batches."""
    topics = {topic: {} for topic, _ in batches}
    with engine.open_directory(log_dir, create=True, topics=topics) as logs:
        present = set(logs.partitions())
        for (topic, partition), found in batches.items():
            is_there = (topic, partition) in present
            log = logs.log(topic, partition) if is_there else logs.create(topic, partition)
            for number, batch in enumerate(found, start=1):
                log.append(batch)
                if number % segment_batches == 0:
                    log._log.roll()


def served(
    log_dir: Path, *topics: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    """A directory that a broker of ours knows, with these topics, empty."""
    config = owner_config(str(log_dir), {})
    with owned(config, is_remembered=True) as opened:
        for each in topics:
            opened.store.create_topic(
                NewTopic(
                    name=each,
                    partition_count=partitions,
                    replication_factor=1,
                    configs=configs or {},
                )
            )
    with owned(config, is_remembered=True):
        pass


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def stratalog(*arguments: object) -> Done:
    """What the command line said, and how it ended."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = run([str(each) for each in arguments])
    return Done(exit_code, stdout.getvalue(), stderr.getvalue())


def store_at(path: Path) -> LocalBackupStore:
    return LocalBackupStore(OsFileSystem(), str(path))


def backed_up(log_dir: Path, target: Path, **options: object) -> BackupResult:
    return back_up(str(log_dir), store_at(target), BackupOptions(**options))  # type: ignore[arg-type]


def restored(
    target: Path,
    log_dir: Path,
    *,
    at: str | None = None,
    until_ms: int | None = None,
    topics: Sequence[str] = (),
    is_sound: bool = True,
) -> None:
    store = store_at(target)
    manifest = choose_backup(store, at=at, until_ms=until_ms, topics=topics).manifest
    plan = plan_restore(store, manifest, topics=topics, until_ms=until_ms)
    restore_directory(store, plan, str(log_dir))
    # What is only cut has no indexes yet: they are built when it is opened.
    found = [each for each in check(str(log_dir)) if each.kind is not Kind.MISSING_FILE]
    assert found == [] or not is_sound, found


def resealed(store: LocalBackupStore, backup_id: str, change: Callable[[Any], None]) -> Path:
    """Its manifest, with a change that whoever wrote it could have made."""
    path = Path(store.manifest_path(backup_id))
    body = {name: each for name, each in json.loads(path.read_bytes()).items() if name != "digest"}
    change(body)
    path.write_text(json.dumps({**body, "digest": digest_of(body)}))
    return path


def log_bytes(log_dir: Path) -> dict[str, bytes]:
    """The segments, by partition and name; empty ones at an end are nothing."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(log_dir.glob("*-*/*.log"))
        if path.stat().st_size
    }


def segments_of(log_dir: Path, replica: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((log_dir / replica).glob("*.log"))]


def produced_rows(log_dir: Path) -> None:
    """Batches of an idempotent producer, an aborted, a committed and an open transaction."""
    with engine.open_directory(log_dir, create=True, topics={"orders": {}}) as logs:
        log = logs.create("orders")._log
        for epoch, (producer_id, sequence, ending) in enumerate(
            [(7, 0, None), (8, 0, False), (9, 0, True), (7, 3, None), (10, 0, None)]
        ):
            is_transactional = producer_id != 7
            batch = build_batch(
                rows(0, 3),
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=is_transactional,
            )
            log.append_as_leader(batch, leader_epoch=epoch)
            if ending is not None:
                marker = build_end_transaction_marker(
                    commit=ending,
                    producer_id=producer_id,
                    producer_epoch=0,
                    coordinator_epoch=0,
                    timestamp_ms=1,
                )
                log.append_as_leader(marker, leader_epoch=epoch, origin=AppendOrigin.COORDINATOR)
            log.roll()
        log.flush()
        log.raise_high_watermark(log.log_end_offset)


def values(log_dir: Path, topic: str, partition: int = 0) -> list[tuple[int, bytes]]:
    with engine.open_directory(log_dir, topics={topic: {}}) as logs:
        found = logs.log(topic, partition)
        return [(each.offset, each.value) for each in found.records(found.start_offset)]


def end_offset(log_dir: Path, topic: str, partition: int = 0) -> int:
    with engine.open_directory(log_dir, topics={topic: {}}) as logs:
        return logs.log(topic, partition).end_offset


def produced(bootstrap_server: str, topic: str, count: int, *, size_bytes: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_server, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, (b"p%d" % number).ljust(size_bytes, b"."), partition=0)
    assert producer.flush(60) == 0


def consumed(bootstrap_server: str, topic: str, *, commit: str = "") -> list[int]:
    """The offsets that a client sees, up to the end; committed for a group, if one is named."""
    settings = {"bootstrap.servers": bootstrap_server, "group.id": commit or "reader"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "check.crcs": True})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
        consumer.assign([TopicPartition(topic, 0, low)])
        offsets: list[int] = []
        while not offsets or offsets[-1] < high - 1:
            message = consumer.poll(60)
            assert message is not None, f"nothing behind {offsets[-1:]}"
            assert message.error() is None, message.error()
            offsets.append(message.offset())
        if commit:
            consumer.commit(message=message, asynchronous=False)
        return offsets
    finally:
        consumer.close()
