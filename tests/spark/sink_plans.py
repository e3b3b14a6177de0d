"""Plans of writes, as a driver would have made them, for tasks without Spark."""

from pathlib import Path
from typing import Any

from stratalog.records.columns import StoredRecord, decode_records
from stratalog.records.compression import Codec
from stratalog.spark.sink_plan import SinkPlan, SinkTopic, StagedRows
from stratalog.storage.layout import TopicPartition, staging_directory

STAGING_ID = "0123456789abcdef" * 2


def make_topic(path: Path, name: str, partitions: int, **more: Any) -> SinkTopic:
    """A topic whose partitions are empty directories of the log directory ``path``."""
    topic = topic_in(str(path), name, partitions, **more)
    for directory in topic.directories.values():
        Path(directory).mkdir(exist_ok=True)
    return topic


def topic_in(path: str, name: str, partitions: int, **more: Any) -> SinkTopic:
    told = {"max_message_bytes": 1 << 20, "segment_bytes": 1 << 30, "is_compacted": False, **more}
    return SinkTopic(
        name=name,
        topic_id=f"id-{name}",
        partition_count=partitions,
        directories={number: f"{path}/{name}-{number}" for number in range(partitions)},
        **told,
    )


def make_plan(
    path: Path,
    *topics: SinkTopic,
    columns: tuple[str, ...],
    topic: str | None = None,
    directory_id: str = "",
    **more: Any,
) -> SinkPlan:
    told = {
        "codec": Codec.NONE,
        "level": None,
        "batch_bytes": 4096,
        "staging_seconds": 60,
        "is_opened": False,
        "refused": {},
        **more,
    }
    return SinkPlan(
        path=str(path),
        directory_id=directory_id,
        staging_id=STAGING_ID,
        holder="a test",
        topic=topic,
        topics={each.name: each for each in topics},
        columns=columns,
        **told,
    )


def staged_records(plan: SinkPlan, staged: StagedRows) -> dict[TopicPartition, list[StoredRecord]]:
    """The records of each partition, in the order of its files."""
    found = {}
    for key, files in staged.files.items():
        directory = staging_directory(
            plan.topics[key.topic].directories[key.partition], plan.staging_id
        )
        found[key] = [
            record
            for file in files
            for record in decode_records(Path(directory, file.name).read_bytes())
        ]
        assert len(found[key]) == sum(file.record_count for file in files)
    return found
