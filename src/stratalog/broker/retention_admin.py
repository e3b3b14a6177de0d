"""What the next check of retention would take out of each log, as values for JSON; nothing goes.

    {"topic": "orders", "partition": 0, "is_held": false, "is_checked": true, "freed_bytes": 700,
     "deletes": [{"base_offset": 0, "size_bytes": 700, "breach": "time", "explanation": …}],
     "stays": {"base_offset": 1, "hold": "age", "explanation": …}}

``is_checked`` is false where nobody checks: of a log with ``compact`` without a cleaner.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from stratalog.broker.services import Services
from stratalog.errors import StorageError
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.retention import plan_for

Json = dict[str, Any]


def next_deletions(services: Services, names: Sequence[str]) -> Iterator[Json]:
    """What retention would delete next from each online partition of these topics, or of all.
    Raises UnknownTopicError before the first."""
    image = services.store.image
    counts = {name: len(image.topic(name).partitions) for name in names or sorted(image.topics)}
    return _rows(services, counts)


def _rows(services: Services, counts: dict[str, int]) -> Iterator[Json]:
    for name, count in counts.items():
        for number in range(count):
            partition = services.replicas.find(TopicPartition(name, number))
            if partition is None or partition.log.failure is not None or partition.log.is_closed:
                continue
            yield {"topic": name, "partition": number, **_row(services, partition.log)}


def _row(services: Services, log: Log) -> Json:
    is_checked = not log.config.compact or services.logs.cleaner is not None
    row: Json = {"is_held": log.is_held, "is_checked": is_checked}
    try:
        plan = plan_for(log, services.logs.clock.now_ms())
    except StorageError as error:
        return {**row, "error": str(error)}
    stays = plan.held
    return {
        **row,
        "freed_bytes": plan.freed_bytes if is_checked else 0,
        "deletes": [
            {
                "base_offset": each.segment.base_offset,
                "size_bytes": each.segment.size_bytes,
                "breach": each.breach.value,
                "explanation": each.explanation,
            }
            for each in (plan.doomed if is_checked else ())
        ],
        "stays": None
        if stays is None
        else {
            "base_offset": stays.segment.base_offset,
            "hold": stays.hold.value,
            "explanation": stays.explanation,
        },
    }
