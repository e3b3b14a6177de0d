"""TopicConfig: how one topic's logs are kept, by the names and rules of Kafka's topic settings.

A setting that the topic does not override takes the broker's value for it, under the broker's
name (``segment.ms`` is ``log.roll.ms`` or ``log.roll.hours`` there), and else Kafka's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from stratalog.config.broker import HOUR_MS, BrokerConfig
from stratalog.config.settings import (
    LONG_MAX,
    Kind,
    check_settings,
    parse_settings,
    setting,
    settings_of,
    unknown_name,
)
from stratalog.errors import ConfigError

_UNSTATED: frozenset[str] = frozenset(("unstated",))
_REMOVED = {
    "message.format.version": "4.0",
    "message.downconversion.enable": "4.0",
    "message.timestamp.difference.max.ms": "4.0",
}
_THROTTLED = r"\*|([0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The settings of one topic: every value is inside its rule, and they do not contradict.

    ``overrides`` names what the topic itself sets; the rest is the broker's or the default. Made
    directly, it is all that differs from the default. It takes no part in comparisons.
    """

    overrides: frozenset[str] = field(default=_UNSTATED, compare=False)

    cleanup_policy: tuple[str, ...] = setting(
        ("delete",),
        one_of=("compact", "delete"),
        may_be_empty=True,
        synonyms=("log.cleanup.policy",),
        doc="What makes old data go: delete by age or size, compact to the last value of each "
        "key, or both. Empty keeps everything.",
    )
    compression_type: str = setting(
        "producer",
        one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=("compression.type",),
        doc="The codec that batches are stored with; producer keeps each batch's own.",
    )
    compression_gzip_level: int = setting(
        -1,
        at_least=1,
        at_most=9,
        or_equal=-1,
        synonyms=("compression.gzip.level",),
        doc="The gzip level when batches are compressed again; -1 is the codec's default.",
    )
    compression_lz4_level: int = setting(
        9,
        at_least=1,
        at_most=17,
        synonyms=("compression.lz4.level",),
        doc="The lz4 level when batches are compressed again.",
    )
    compression_zstd_level: int = setting(
        3,
        at_least=-131072,
        at_most=22,
        synonyms=("compression.zstd.level",),
        doc="The zstd level when batches are compressed again.",
    )
    delete_retention_ms: int = setting(
        24 * HOUR_MS,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.cleaner.delete.retention.ms",),
        doc="How long a tombstone stays after compaction first saw it, so that a reader that "
        "began at the start still learns of the delete.",
    )
    file_delete_delay_ms: int = setting(
        60_000,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.segment.delete.delay.ms",),
        doc="How long a file keeps the suffix .deleted before it is removed.",
    )
    flush_messages: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        synonyms=("log.flush.interval.messages",),
        doc="Flush the log once this many records have been appended since the last flush.",
    )
    flush_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        doc="Flush the log once its last flush is this long ago.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        (),
        matches=_THROTTLED,
        may_be_empty=True,
        keeps_duplicates=True,
        doc="The replicas whose fetching as followers is throttled.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        (),
        matches=_THROTTLED,
        may_be_empty=True,
        keeps_duplicates=True,
        doc="The replicas whose serving as leaders is throttled.",
    )
    index_interval_bytes: int = setting(
        4096,
        at_least=0,
        synonyms=("log.index.interval.bytes",),
        doc="Bytes of log between two entries of an index.",
    )
    internal_segment_bytes: int | None = setting(
        None,
        kind=Kind.INT,
        at_least=14,
        internal=True,
        doc="Takes the place of segment.bytes where it is set, without that one's lower bound: "
        "for tests and small machines.",
    )
    local_retention_bytes: int = setting(
        -2,
        kind=Kind.LONG,
        at_least=-2,
        synonyms=("log.local.retention.bytes",),
        doc="Of a topic with remote storage: how much stays local; -2 follows retention.bytes.",
    )
    local_retention_ms: int = setting(
        -2,
        kind=Kind.LONG,
        at_least=-2,
        synonyms=("log.local.retention.ms",),
        doc="Of a topic with remote storage: how long it stays local; -2 follows retention.ms.",
    )
    max_compaction_lag_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
        doc="A record is due for compaction at the latest when it is this old.",
    )
    max_message_bytes: int = setting(
        1_048_588,
        at_least=0,
        synonyms=("message.max.bytes",),
        doc="The largest batch that may be appended, after compression.",
    )
    message_timestamp_after_max_ms: int = setting(
        HOUR_MS,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.message.timestamp.after.max.ms",),
        doc="How far a record's timestamp may lie after the broker's clock.",
    )
    message_timestamp_before_max_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.message.timestamp.before.max.ms",),
        doc="How far a record's timestamp may lie before the broker's clock.",
    )
    message_timestamp_type: str = setting(
        "CreateTime",
        one_of=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
        doc="Whose clock stamps the records: the producer's or the broker's.",
    )
    min_cleanable_dirty_ratio: float = setting(
        0.5,
        at_least=0,
        at_most=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
        doc="The part of a log that must be not yet compacted before it is compacted again.",
    )
    min_compaction_lag_ms: int = setting(
        0,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
        doc="A record stays out of compaction until it is this old.",
    )
    min_insync_replicas: int = setting(
        1,
        at_least=1,
        synonyms=("min.insync.replicas",),
        doc="The in-sync replicas that an append with acks=all needs.",
    )
    preallocate: bool = setting(
        False,
        synonyms=("log.preallocate",),
        doc="Give a new segment file its whole size at once.",
    )
    remote_log_copy_disable: bool = setting(
        False, doc="Of a topic with remote storage: copy no more segments there."
    )
    remote_log_delete_on_disable: bool = setting(
        False, doc="Delete what remote storage holds when it is disabled for the topic."
    )
    remote_storage_enable: bool = setting(
        False, doc="Tiered storage, which stratalog does not have: only false is accepted."
    )
    retention_bytes: int = setting(
        -1,
        kind=Kind.LONG,
        synonyms=("log.retention.bytes",),
        doc="The size of a partition above which its oldest segments are deleted; negative: none.",
    )
    retention_ms: int = setting(
        7 * 24 * HOUR_MS,
        kind=Kind.LONG,
        at_least=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        doc="The age of a segment's newest record at which it is deleted; -1: never.",
    )
    segment_bytes: int = setting(
        1 << 30,
        at_least=1 << 20,
        synonyms=("log.segment.bytes",),
        doc="The size at which a log rolls to a new segment.",
    )
    segment_index_bytes: int = setting(
        10 << 20,
        at_least=4,
        synonyms=("log.index.size.max.bytes",),
        doc="The size that an index may reach; a full index makes the log roll.",
    )
    segment_jitter_ms: int = setting(
        0,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        doc="Up to this much is taken off segment.ms at random, so that logs do not all roll "
        "together.",
    )
    segment_ms: int = setting(
        7 * 24 * HOUR_MS,
        kind=Kind.LONG,
        at_least=1,
        synonyms=("log.roll.ms", "log.roll.hours"),
        doc="The age at which a log rolls even if its segment is not full.",
    )
    unclean_leader_election_enable: bool = setting(
        False,
        synonyms=("unclean.leader.election.enable",),
        doc="Let a replica outside the ISR lead when no other is left, losing data.",
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self._check_together()
        if self.overrides is _UNSTATED:
            stated = frozenset(
                name
                for name, each in settings_of(type(self)).items()
                if getattr(self, name.replace(".", "_")) != each.default
            )
            object.__setattr__(self, "overrides", stated)

    def _check_together(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                "min.compaction.lag.ms",
                self.min_compaction_lag_ms,
                f"must not exceed max.compaction.lag.ms={self.max_compaction_lag_ms}",
            )
        if self.remote_storage_enable:
            raise ConfigError("remote.storage.enable", "true", "tiered storage is not available")

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, broker: BrokerConfig | None = None
    ) -> Self:
        """The topic's own ``properties``, over the broker's values, over Kafka's defaults."""
        known = settings_of(cls)
        for name, text in properties.items():
            if name not in known:
                raise unknown_name(name, text, what="topic", known=known, removed=_REMOVED)
        values: dict[str, Any] = {}
        if broker is not None:
            for name, each in known.items():
                if each.synonyms:
                    values[name.replace(".", "_")] = broker.topic_default(each.synonyms)
        values |= parse_settings(cls, properties)
        return cls(overrides=frozenset(properties), **values)

    def to_properties(self, *, every: bool = False) -> dict[str, str]:
        """What the topic overrides, as text; ``every`` setting that has a value on demand."""
        return {
            name: each.text(value)
            for name, each in settings_of(type(self)).items()
            if (every or name in self.overrides)
            and (value := getattr(self, name.replace(".", "_"))) is not None
        }

    def altered(self, **changes: Any) -> Self:
        """This config with some fields changed, each of them now an override of the topic's."""
        changed = {name.replace("_", ".") for name in changes}
        return replace(self, overrides=self.overrides | changed, **changes)

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def segment_size_bytes(self) -> int:
        """The size at which a log rolls: ask this, not ``segment_bytes``."""
        internal = self.internal_segment_bytes
        return self.segment_bytes if internal is None else internal

    @property
    def max_segment_ms(self) -> int:
        """The age at which a log rolls. A record in the active segment cannot be compacted, so
        a compacted topic rolls in time for ``max.compaction.lag.ms``."""
        if self.compact:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms
