"""Log directories as a broker leaves them, made without a network: topics with configs, and records
of chosen ages, one a segment."""

import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stratalog.broker.startup import OpenedBroker, open_broker
from stratalog.config import BrokerConfig
from stratalog.metadata import NewTopic
from stratalog.records import Record, build_batch
from stratalog.storage.layout import TopicPartition

DAY_MS = 86_400_000
# A segment for each record, of whatever time it is.
SMALL = {"internal.segment.bytes": "400", "message.timestamp.after.max.ms": str(2**62)}
_VALUE = b"v" * 250


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def opened(path: Path, server: Mapping[str, str] | None = None) -> OpenedBroker:
    """The directory as a broker has it that was started with ``server``."""
    named = {"log.dirs": str(path), "log.dir.reserve.bytes": "0", **(server or {})}
    path.mkdir(exist_ok=True)
    return open_broker(BrokerConfig.from_properties(named), is_threaded=False)


def make_topic(
    broker: OpenedBroker,
    name: str,
    configs: Mapping[str, str],
    ages_days: Sequence[float] = (),
    *,
    is_held: bool = False,
) -> uuid.UUID:
    """A topic of one partition, whose records have these ages; all have one key."""
    topic = broker.store.create_topic(NewTopic(name=name, configs={**SMALL, **configs}))
    log = broker.logs.create(TopicPartition(name, 0), topic_id=topic.topic_id)
    broker.store.mark_live(topic.topic_id)
    for days in ages_days:
        rows = [Record(b"k", _VALUE, (), now_ms() - int(days * DAY_MS))]
        log.append_as_leader(build_batch(rows), leader_epoch=log.epochs.latest_epoch)
    broker.logs.flush_appended()
    log.raise_high_watermark(log.log_end_offset)
    if is_held:
        held = replace(broker.store.image.topic(name), is_held=True)
        broker.store._put(held)
    return topic.topic_id


def leave(
    path: Path,
    topics: Mapping[str, Mapping[str, str]],
    *,
    ages_days: Sequence[float] = (400, 300, 1),
    server: Mapping[str, str] | None = None,
) -> Path:
    """What a broker with these topics leaves at a clean stop."""
    broker = opened(path, server)
    for name, configs in topics.items():
        make_topic(broker, name, configs, ages_days)
    broker.close()
    return path


def make_kafkas(path: Path, controller_log: bytes) -> Path:
    """What is ours taken away, and the log of a controller put in its place."""
    for each in path.glob(".stratalog*"):
        each.unlink()
    controller = path / "__cluster_metadata-0"
    controller.mkdir()
    (controller / f"{0:020}.log").write_bytes(controller_log)
    return path


def copy_of(path: Path, target: Path) -> Path:
    """The directory as it is at this moment: a killed broker leaves no less."""
    return Path(shutil.copytree(path, target, copy_function=shutil.copyfile))


def segments_of(path: Path, topic: str) -> list[int]:
    """The base offsets of the segments of partition 0."""
    return sorted(int(each.stem) for each in (path / f"{topic}-0").glob("*.log"))
