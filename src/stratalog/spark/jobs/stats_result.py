"""What ``stats`` found, as values that can be shown, compared and written as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class HotKey:
    """``records`` is at least how many there are; exactly, if the result is exact."""

    key: bytes
    partition: int
    records: int
    share: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """Records whose timestamps lie in [start_ms, start_ms + width)."""

    partition: int
    start_ms: int
    records: int
    key_bytes: int
    value_bytes: int
    tombstones: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStats:
    """Of the records that have a key. ``superseded``: a newer record of the partition has it too.

    Bytes are of keys and values. Not ``is_exact``: estimated from one in so many keys.
    """

    distinct: int = 0
    superseded_records: int = 0
    superseded_bytes: int = 0
    records_a_key_max: int = 0
    is_exact: bool = True
    hottest: tuple[HotKey, ...] = ()


@dataclass(frozen=True, slots=True)
class RetentionSaving:
    """What a check of retention would remove now, by ``configs``."""

    configs: dict[str, str]
    segments: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """``size_bytes`` are those of the ``.log`` files. ``codec_ratios``: how large a sample is in
    batches of that codec, against none. ``retention`` is None where configs are unknown."""

    topic: str
    partition_bytes: dict[int, int]
    segments: int
    bucket_ms: int
    buckets: tuple[Bucket, ...]
    no_key: int
    keys: KeyStats
    codec_ratios: dict[str, float] = field(default_factory=dict)
    retention: RetentionSaving | None = None
    proposed: RetentionSaving | None = None

    @property
    def size_bytes(self) -> int:
        return sum(self.partition_bytes.values())

    @property
    def records(self) -> int:
        return sum(each.records for each in self.buckets)

    @property
    def record_bytes(self) -> int:
        return sum(each.key_bytes + each.value_bytes for each in self.buckets)

    @property
    def tombstones(self) -> int:
        return sum(each.tombstones for each in self.buckets)

    @property
    def superseded_share(self) -> float:
        """Of the bytes of keys and values: what compaction of all of the log would take away."""
        return self.keys.superseded_bytes / self.record_bytes if self.record_bytes else 0.0

    @property
    def compaction_saves_bytes(self) -> int:
        """Of the files, about: as if all bytes compressed alike."""
        return round(self.size_bytes * min(self.superseded_share, 1.0))

    @property
    def best_codec(self) -> str:
        return min(self.codec_ratios, key=lambda name: self.codec_ratios[name], default="")

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partitions": len(self.partition_bytes),
            "partition_bytes": {str(key): size for key, size in self.partition_bytes.items()},
            "segments": self.segments,
            "size_bytes": self.size_bytes,
            "records": self.records,
            "record_bytes": self.record_bytes,
            "tombstones": self.tombstones,
            "records_without_key": self.no_key,
            "keys": {
                "distinct": self.keys.distinct,
                "is_exact": self.keys.is_exact,
                "records_a_key_max": self.keys.records_a_key_max,
                "superseded_records": self.keys.superseded_records,
                "superseded_bytes": self.keys.superseded_bytes,
                "hottest": [
                    {
                        "key": each.key.decode(errors="backslashreplace"),
                        "partition": each.partition,
                        "records": each.records,
                        "share": round(each.share, 6),
                    }
                    for each in self.keys.hottest
                ],
            },
            "codec_ratios": {name: round(ratio, 4) for name, ratio in self.codec_ratios.items()},
            "compaction_saves_bytes": self.compaction_saves_bytes,
            "retention": _saving(self.retention),
            "proposed_retention": _saving(self.proposed),
            "rates": [
                {
                    "from": moment(each.start_ms),
                    "partition": each.partition,
                    "records": each.records,
                    "bytes": each.key_bytes + each.value_bytes,
                    "tombstones": each.tombstones,
                }
                for each in self.buckets
            ],
        }


def _saving(saving: RetentionSaving | None) -> dict[str, Any] | None:
    if saving is None:
        return None
    return {
        "configs": saving.configs,
        "removes_segments": saving.segments,
        "removes_bytes": saving.size_bytes,
    }


def calendar_moment(timestamp_ms: int) -> datetime | None:
    """None for a year that some time zone's calendar in Python does not have: records may have any
    timestamp, and one in microseconds is in the year 55840."""
    try:
        found = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return found if MINYEAR < found.year < MAXYEAR else None


def moment(timestamp_ms: int) -> str:
    """To the minute; the number itself where no calendar reaches."""
    found = calendar_moment(timestamp_ms)
    return f"{timestamp_ms} ms" if found is None else found.isoformat(timespec="minutes")


@dataclass(frozen=True)
class StatsResult:
    spark: "SparkSession"
    log_dir: str
    topics: tuple[TopicStats, ...]
    seconds: float

    columns = (
        "topic",
        "partitions",
        "bytes",
        "records",
        "tombstones",
        "keys",
        "superseded",
        "compaction saves",
        "retention removes",
        "best codec",
    )

    def rows(self) -> list[tuple[object, ...]]:
        """One for each topic, under ``columns``."""
        return [
            (
                each.topic,
                len(each.partition_bytes),
                each.size_bytes,
                each.records,
                share(each.tombstones, each.records),
                ("" if each.keys.is_exact else "~") + str(each.keys.distinct),
                share(each.keys.superseded_records, each.records),
                each.compaction_saves_bytes,
                "unknown" if each.retention is None else each.retention.size_bytes,
                f"{each.best_codec} {each.codec_ratios[each.best_codec]:.2f}"
                if each.codec_ratios
                else "",
            )
            for each in self.topics
        ]

    def rates(self) -> "DataFrame":
        """A row for each topic, partition and stretch of time; ``start`` is null where only
        ``start_ms`` can tell it."""
        rows: Sequence[tuple[Any, ...]] = [
            (
                topic.topic,
                each.partition,
                calendar_moment(each.start_ms),
                each.start_ms,
                each.records,
                each.key_bytes + each.value_bytes,
                each.tombstones,
            )
            for topic in self.topics
            for each in topic.buckets
        ]
        schema = (
            "topic string, partition int, start timestamp, start_ms long, records long, "
            "bytes long, tombstones long"
        )
        return self.spark.createDataFrame(rows, schema)

    def to_json(self) -> dict[str, Any]:
        return {
            "log_dir": self.log_dir,
            "seconds": round(self.seconds, 3),
            "topics": [each.to_json() for each in self.topics],
        }


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""
