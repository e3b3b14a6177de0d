"""Configs of the resources GROUP and CLIENT_METRICS: Kafka's names and defaults, told and not kept.

All settings of a group are of the newer group protocols, and those of client metrics of telemetry.
Neither is here, so that nothing but the defaults can be had.
"""

from dataclasses import dataclass

from stratalog.config.settings import Setting, setting, settings_of

_CONSUMER = "Of a group of the consumer protocol, which is not here."
_SHARE = "Of a share group, which is not here."
_STREAMS = "Of a Streams group, which is not here."
_TELEMETRY = "Of metrics that clients push, which are not taken here."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """One group."""

    consumer_assignment_interval_ms: int = setting(1_000, doc=_CONSUMER)
    consumer_heartbeat_interval_ms: int = setting(5_000, doc=_CONSUMER)
    consumer_session_timeout_ms: int = setting(45_000, doc=_CONSUMER)
    share_assignment_interval_ms: int = setting(1_000, doc=_SHARE)
    share_auto_offset_reset: str = setting("latest", doc=_SHARE)
    share_delivery_count_limit: int = setting(5, doc=_SHARE)
    share_heartbeat_interval_ms: int = setting(5_000, doc=_SHARE)
    share_isolation_level: str = setting("read_uncommitted", doc=_SHARE)
    share_partition_max_record_locks: int = setting(2_000, doc=_SHARE)
    share_record_lock_duration_ms: int = setting(30_000, doc=_SHARE)
    share_renew_acknowledge_enable: bool = setting(True, doc=_SHARE)
    share_session_timeout_ms: int = setting(45_000, doc=_SHARE)
    streams_assignment_interval_ms: int = setting(1_000, doc=_STREAMS)
    streams_heartbeat_interval_ms: int = setting(5_000, doc=_STREAMS)
    streams_initial_rebalance_delay_ms: int = setting(3_000, doc=_STREAMS)
    streams_num_standby_replicas: int = setting(0, doc=_STREAMS)
    streams_session_timeout_ms: int = setting(45_000, doc=_STREAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMetricsConfig:
    """One subscription of client metrics."""

    interval_ms: int = setting(300_000, doc=_TELEMETRY)
    match: tuple[str, ...] = setting((), may_be_empty=True, doc=_TELEMETRY)
    metrics: tuple[str, ...] = setting((), may_be_empty=True, doc=_TELEMETRY)


GROUP_SETTINGS: dict[str, Setting] = dict(settings_of(GroupConfig))
CLIENT_METRICS_SETTINGS: dict[str, Setting] = dict(settings_of(ClientMetricsConfig))
