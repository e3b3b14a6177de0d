"""BrokerConfig: the settings of one broker, by Kafka's names and rules.

Those of storage and replication are here; ``network``, ``groups`` and ``own`` have the others.
Many of them are only the defaults of topic settings, under older names; ``topic_default`` answers
for those. Of Kafka's other broker settings, those in ``elsewhere`` are accepted and do nothing, and
of those in ``security`` a broker is served only with what closes no door.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from stratalog.config.elsewhere import REMOVED, is_elsewhere, misspelt
from stratalog.config.groups import GroupSettings
from stratalog.config.security import SECURITY_NAMES
from stratalog.config.settings import (
    LONG_MAX,
    Kind,
    check_settings,
    parse_settings,
    raise_together,
    setting,
    settings_of,
    unknown_name,
)
from stratalog.errors import ConfigError, ConfigErrors

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
_UNIT_MS = {"minutes": MINUTE_MS, "hours": HOUR_MS}
_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_DEDUPE_BYTES_MIN = 1 << 20
_CODEC_IDS = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig(GroupSettings):
    """The settings of one broker: every value is inside its rule, and they do not contradict.

    ``stated`` names what somebody has set, be it to its default. It takes no part in comparisons.
    """

    stated: frozenset[str] = field(default=frozenset(), compare=False)

    # Where logs live, and what runs beside them
    log_dir: tuple[str, ...] = setting(
        ("/tmp/kafka-logs",), doc="The log directories when log.dirs is not set."
    )
    log_dirs: tuple[str, ...] | None = setting(None, kind=Kind.LIST, doc="The log directories.")
    log_dir_failure_timeout_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        at_least=1,
        doc="How long a broker goes on when it cannot report a failed directory.",
    )
    num_recovery_threads_per_data_dir: int = setting(
        2, at_least=1, doc="Threads that open and recover the logs of one directory."
    )
    background_threads: int = setting(10, at_least=1, doc="Threads for background work.")
    log_initial_task_delay_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        at_least=0,
        internal=True,
        doc="How long after the start the periodic tasks first run.",
    )

    # Topics
    num_partitions: int = setting(
        1, at_least=1, doc="Partitions of a topic that is created without saying how many."
    )
    default_replication_factor: int = setting(
        1, doc="Replicas of a topic that is created without saying how many."
    )
    auto_create_topics_enable: bool = setting(
        True, doc="Create a topic when a client first asks for it."
    )
    delete_topic_enable: bool = setting(True, doc="Let clients delete topics.")
    create_topic_policy_class_name: str | None = setting(
        None,
        kind=Kind.STRING,
        doc="Kafka's plug-in for refusing topics: no broker is served with one.",
    )
    alter_config_policy_class_name: str | None = setting(
        None,
        kind=Kind.STRING,
        doc="Kafka's plug-in for refusing configs: no broker is served with one.",
    )

    # Defaults of topic settings
    log_cleanup_policy: tuple[str, ...] = setting(
        ("delete",),
        one_of=("compact", "delete"),
        may_be_empty=True,
        doc="Default of cleanup.policy.",
    )
    compression_type: str = setting(
        "producer",
        one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        doc="Default of the topic setting of this name.",
    )
    compression_gzip_level: int = setting(
        -1, at_least=1, at_most=9, or_equal=-1, doc="Default of the topic setting of this name."
    )
    compression_lz4_level: int = setting(
        9, at_least=1, at_most=17, doc="Default of the topic setting of this name."
    )
    compression_zstd_level: int = setting(
        3, at_least=-131_072, at_most=22, doc="Default of the topic setting of this name."
    )
    message_max_bytes: int = setting(1_048_588, at_least=0, doc="Default of max.message.bytes.")
    log_message_timestamp_type: str = setting(
        "CreateTime",
        one_of=("CreateTime", "LogAppendTime"),
        doc="Default of message.timestamp.type.",
    )
    log_message_timestamp_before_max_ms: int = setting(
        LONG_MAX, kind=Kind.LONG, at_least=0, doc="Default of message.timestamp.before.max.ms."
    )
    log_message_timestamp_after_max_ms: int = setting(
        HOUR_MS, kind=Kind.LONG, at_least=0, doc="Default of message.timestamp.after.max.ms."
    )
    min_insync_replicas: int = setting(
        1, at_least=1, doc="Default of the topic setting of this name."
    )
    unclean_leader_election_enable: bool = setting(
        False, doc="Default of the topic setting of this name."
    )
    log_preallocate: bool = setting(False, doc="Default of preallocate.")
    log_segment_bytes: int = setting(1 << 30, at_least=1 << 20, doc="Default of segment.bytes.")
    log_roll_ms: int | None = setting(
        None, kind=Kind.LONG, doc="Default of segment.ms; wins over log.roll.hours."
    )
    log_roll_hours: int = setting(168, at_least=1, doc="Default of segment.ms, in hours.")
    log_roll_jitter_ms: int | None = setting(
        None, kind=Kind.LONG, doc="Default of segment.jitter.ms; wins over log.roll.jitter.hours."
    )
    log_roll_jitter_hours: int = setting(
        0, at_least=0, doc="Default of segment.jitter.ms, in hours."
    )
    log_index_size_max_bytes: int = setting(
        10 << 20, at_least=4, doc="Default of segment.index.bytes."
    )
    log_index_interval_bytes: int = setting(
        4_096, at_least=0, doc="Default of index.interval.bytes."
    )
    log_segment_delete_delay_ms: int = setting(
        60_000, kind=Kind.LONG, at_least=0, doc="Default of file.delete.delay.ms."
    )
    log_retention_ms: int | None = setting(
        None,
        kind=Kind.LONG,
        doc="Default of retention.ms; wins over minutes and hours. Negative: never.",
    )
    log_retention_minutes: int | None = setting(
        None,
        kind=Kind.INT,
        doc="Default of retention.ms, in minutes; wins over hours. Negative: never.",
    )
    log_retention_hours: int = setting(
        168, doc="Default of retention.ms, in hours. Negative: never."
    )
    log_retention_bytes: int = setting(-1, kind=Kind.LONG, doc="Default of retention.bytes.")
    log_local_retention_ms: int = setting(
        -2, kind=Kind.LONG, at_least=-2, doc="Default of local.retention.ms."
    )
    log_local_retention_bytes: int = setting(
        -2, kind=Kind.LONG, at_least=-2, doc="Default of local.retention.bytes."
    )
    log_flush_interval_messages: int = setting(
        LONG_MAX, kind=Kind.LONG, at_least=1, doc="Default of flush.messages."
    )
    log_flush_interval_ms: int | None = setting(None, kind=Kind.LONG, doc="Default of flush.ms.")

    # Retention, flushing and checkpoints
    log_retention_check_interval_ms: int = setting(
        300_000,
        kind=Kind.LONG,
        at_least=1,
        doc="How often logs are looked at for segments to delete.",
    )
    log_flush_scheduler_interval_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        doc="How often logs are looked at for a flush; the default of flush.ms when "
        "log.flush.interval.ms is not set.",
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=0, doc="How often recovery points are written."
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=0, doc="How often log start offsets are written."
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        5_000, kind=Kind.LONG, doc="How often high watermarks are written."
    )

    # The log cleaner
    log_cleaner_enable: bool = setting(
        True, doc="Run the cleaner, without which compacted topics only grow."
    )
    log_cleaner_threads: int = setting(1, at_least=0, doc="Threads that clean.")
    log_cleaner_dedupe_buffer_size: int = setting(
        128 << 20,
        kind=Kind.LONG,
        doc="Memory for the keys of the logs being cleaned, over all threads.",
    )
    log_cleaner_io_buffer_size: int = setting(
        512 << 10, at_least=0, doc="Memory for reading and writing, over all threads."
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        0.9, doc="How full the table of keys may become."
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        sys.float_info.max, doc="Bytes that cleaning may read and write a second."
    )
    log_cleaner_backoff_ms: int = setting(
        15_000,
        kind=Kind.LONG,
        at_least=0,
        doc="How long a cleaner thread sleeps when nothing needs cleaning.",
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        0.5, at_least=0, at_most=1, doc="Default of min.cleanable.dirty.ratio."
    )
    log_cleaner_delete_retention_ms: int = setting(
        24 * HOUR_MS, kind=Kind.LONG, at_least=0, doc="Default of delete.retention.ms."
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        0, kind=Kind.LONG, at_least=0, doc="Default of min.compaction.lag.ms."
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        LONG_MAX, kind=Kind.LONG, at_least=1, doc="Default of max.compaction.lag.ms."
    )

    # Replication and fetching
    replica_lag_time_max_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        doc="A follower that has not caught up for this long leaves the ISR.",
    )
    replica_fetch_max_bytes: int = setting(
        1 << 20, at_least=0, doc="Bytes a follower asks for per partition; one batch always comes."
    )
    replica_fetch_response_max_bytes: int = setting(
        10 << 20, at_least=0, doc="Bytes a follower asks for in one response."
    )
    replica_fetch_min_bytes: int = setting(1, doc="Bytes that a follower's fetch waits for.")
    replica_fetch_wait_max_ms: int = setting(500, doc="How long a follower's fetch waits for them.")
    replica_fetch_backoff_ms: int = setting(
        1_000, at_least=0, doc="How long a follower waits after a failed fetch."
    )
    replica_socket_timeout_ms: int = setting(
        30_000, doc="How long a follower waits for a response."
    )
    replica_socket_receive_buffer_bytes: int = setting(
        64 << 10, doc="The receive buffer of a follower's socket."
    )
    replica_selector_class: str | None = setting(
        None,
        kind=Kind.STRING,
        doc="Kafka's plug-in that picks the replica to read from.",
    )
    num_replica_fetchers: int = setting(1, at_least=1, doc="Fetchers from each other broker.")
    fetch_max_bytes: int = setting(
        55 << 20, at_least=1_024, doc="Bytes that a fetch response may hold."
    )
    fetch_purgatory_purge_interval_requests: int = setting(
        1_000, doc="Parked fetches between two sweeps."
    )
    producer_purgatory_purge_interval_requests: int = setting(
        1_000, doc="Parked produce requests between two sweeps."
    )
    delete_records_purgatory_purge_interval_requests: int = setting(
        1, doc="Parked DeleteRecords between two sweeps."
    )
    unclean_leader_election_interval_ms: int = setting(
        300_000,
        kind=Kind.LONG,
        at_least=1,
        internal=True,
        doc="How often unclean elections are looked for.",
    )
    auto_leader_rebalance_enable: bool = setting(
        True, doc="Give leadership back to preferred replicas."
    )
    leader_imbalance_check_interval_seconds: int = setting(
        300, kind=Kind.LONG, at_least=1, doc="How often leadership is looked at for that."
    )

    # Internal topics, producers and transactions
    offsets_topic_num_partitions: int = setting(
        50, at_least=1, doc="Partitions of __consumer_offsets."
    )
    offsets_topic_segment_bytes: int = setting(
        100 << 20, at_least=1, doc="Segment size of __consumer_offsets."
    )
    offsets_topic_replication_factor: int = setting(
        3, kind=Kind.SHORT, at_least=1, doc="Replicas of __consumer_offsets."
    )
    offsets_topic_compression_codec: int = setting(
        0, doc="The codec id of batches in __consumer_offsets."
    )
    transaction_state_log_num_partitions: int = setting(
        50, at_least=1, doc="Partitions of __transaction_state."
    )
    transaction_state_log_segment_bytes: int = setting(
        100 << 20, at_least=1, doc="Segment size of __transaction_state."
    )
    transaction_state_log_replication_factor: int = setting(
        3, kind=Kind.SHORT, at_least=1, doc="Replicas of __transaction_state."
    )
    transaction_state_log_min_isr: int = setting(
        2, at_least=1, doc="In-sync replicas that an append to __transaction_state needs."
    )
    transaction_max_timeout_ms: int = setting(
        900_000, at_least=1, doc="The longest transaction timeout that a producer may ask for."
    )
    transaction_partition_verification_enable: bool = setting(
        True,
        doc="Refuse batches of a transaction that no coordinator has begun here, which is all of "
        "them. With false they are stored, and their transaction stays open for good.",
    )
    producer_id_expiration_ms: int = setting(
        24 * HOUR_MS, at_least=1, doc="Forget a producer id this long after its last append."
    )
    producer_id_expiration_check_interval_ms: int = setting(
        600_000, at_least=1, internal=True, doc="How often producer ids are looked at for that."
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self._check_directories()
        self._check_times()
        self._check_cleaner()
        self._check_replication()
        if self.node_id is not None and self.broker_id not in (-1, self.node_id):
            raise ConfigError("broker.id", self.broker_id, f"is not node.id={self.node_id}")
        if self.offsets_topic_compression_codec not in _CODEC_IDS:
            raise ConfigError(
                "offsets.topic.compression.codec",
                self.offsets_topic_compression_codec,
                "must be the id of a codec, from 0 to 4",
            )

    def _check_directories(self) -> None:
        spelt: dict[str, str] = {}
        for directory in self.log_directories:
            other = spelt.setdefault(os.path.normpath(Path(directory).absolute()), directory)
            if other != directory:
                name = "log.dir" if self.log_dirs is None else "log.dirs"
                raise ConfigError(name, directory, f"is the same directory as {other}")
        for inner, directory in spelt.items():
            for outer, other in spelt.items():
                if inner.startswith(outer.rstrip("/") + "/"):
                    name = "log.dir" if self.log_dirs is None else "log.dirs"
                    raise ConfigError(
                        name, directory, f"lies inside {other}, another log directory"
                    )

    def _check_times(self) -> None:
        # Only the synonym that counts must be right: Kafka looks at no other.
        for synonyms, at_least in ((_ROLL, 1), (_ROLL_JITTER, 0)):
            name = self._first_set(synonyms)
            value = getattr(self, name.replace(".", "_"))
            if value < at_least:
                raise ConfigError(name, value, f"must be at least {at_least}")
        name = self._first_set(_RETENTION)
        if getattr(self, name.replace(".", "_")) == 0:
            raise ConfigError(name, 0, "must be at least 1, or negative for no limit")

    def _check_cleaner(self) -> None:
        if self.log_cleaner_threads == 0:
            raise ConfigError("log.cleaner.threads", 0, "must be at least 1 for compaction to work")
        if self.log_cleaner_dedupe_buffer_size // self.log_cleaner_threads <= _DEDUPE_BYTES_MIN:
            raise ConfigError(
                "log.cleaner.dedupe.buffer.size",
                self.log_cleaner_dedupe_buffer_size,
                f"must be more than {_DEDUPE_BYTES_MIN} bytes for each of "
                f"log.cleaner.threads={self.log_cleaner_threads}",
            )

    def _check_replication(self) -> None:
        for limit in ("replica.lag.time.max.ms", "replica.socket.timeout.ms"):
            limit_ms = getattr(self, limit.replace(".", "_"))
            if self.replica_fetch_wait_max_ms > limit_ms:
                raise ConfigError(
                    "replica.fetch.wait.max.ms",
                    self.replica_fetch_wait_max_ms,
                    f"must not exceed {limit}={limit_ms}",
                )

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, allows_unknown: bool = False
    ) -> Self:
        """The settings in ``properties``; see ``unused_names`` for what of them does nothing.

        ``allows_unknown``: a name that neither Kafka nor stratalog has is passed over, as Kafka
        does, unless it is nearly one of theirs. All complaints are raised together.
        """
        known = settings_of(cls)
        errors = []
        for name, text in properties.items():
            if name in known or is_elsewhere(name):
                continue
            if not allows_unknown:
                names = [*known, *SECURITY_NAMES]
                error = unknown_name(name, text, what="broker", known=names, removed=REMOVED)
                errors.append(error)
            elif meant := misspelt(name, known):
                rule = f"there is no such broker setting; did you mean {meant}?"
                errors.append(ConfigError(name, text, rule))
        used = {name: text for name, text in properties.items() if name in known}
        values = {}
        try:
            values = parse_settings(cls, used)
        except ConfigErrors as refused:
            errors += refused.errors
        except ConfigError as refused:
            errors.append(refused)
        raise_together(errors)
        return cls(stated=frozenset(used), **values)

    @classmethod
    def unused_names(cls, properties: Mapping[str, str]) -> tuple[str, ...]:
        """The names in ``properties`` that mean something to Kafka but nothing here."""
        known = settings_of(cls)
        return tuple(name for name in properties if name not in known and is_elsewhere(name))

    @classmethod
    def unknown_names(cls, properties: Mapping[str, str]) -> tuple[str, ...]:
        """The names in ``properties`` that mean nothing to Kafka either."""
        known = settings_of(cls)
        return tuple(name for name in properties if name not in known and not is_elsewhere(name))

    def to_properties(self, *, every: bool = False) -> dict[str, str]:
        """The settings that are stated or not their defaults, as text; ``every`` one on demand."""
        return {
            name: each.text(value)
            for name, each in settings_of(type(self)).items()
            if (value := getattr(self, name.replace(".", "_"))) is not None
            and (every or name in self.stated or value != each.default)
        }

    @property
    def log_directories(self) -> tuple[str, ...]:
        """The directories that hold logs: ``log.dirs``, or ``log.dir`` where that is not set."""
        return self.log_dir if self.log_dirs is None else self.log_dirs

    @property
    def stated_node_id(self) -> int | None:
        """``node.id``, or ``broker.id`` where that is not set; None if nobody says."""
        if self.node_id is None and self.broker_id >= 0:
            return self.broker_id
        return self.node_id

    def topic_default(self, synonyms: Sequence[str]) -> Any:
        """The value that the first of ``synonyms`` that is set gives to a topic setting."""
        name = self._first_set(synonyms)
        value = getattr(self, name.replace(".", "_"))
        if name in _RETENTION and value < 0:
            return -1
        unit = name.rpartition(".")[2]
        return value * _UNIT_MS[unit] if unit in _UNIT_MS else value

    def _first_set(self, synonyms: Sequence[str]) -> str:
        for name in synonyms:
            if getattr(self, name.replace(".", "_")) is not None:
                return name
        return synonyms[-1]
