"""Broker settings that Kafka lets be changed while it runs, and that change nothing on one node.

They are checked, kept and told like others: tools set them before and after what they do. Replicas
are not fetched here, so that a throttle of that holds; there are no tiers, and no groups of the
newer protocols. What a value may not ask for is in ``unhonoured``.
"""

from dataclasses import dataclass

from stratalog.config.settings import Kind, Setting, setting, settings_of


def _rate(doc: str) -> int:
    rate: int = setting(2**63 - 1, kind=Kind.LONG, at_least=0, doc=doc)
    return rate


def _count(doc: str) -> int:
    count: int = setting(1, kind=Kind.INT, at_least=1, doc=doc)
    return count


def _size(doc: str) -> int:
    size: int = setting(1, kind=Kind.LONG, at_least=1, doc=doc)
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectlessSettings:
    """The defaults are of no meaning: only what was set is told."""

    leader_replication_throttled_rate: int = _rate("Bytes a second to followers: there are none.")
    follower_replication_throttled_rate: int = _rate("Bytes a second from leaders elsewhere: none.")
    replica_alter_log_dirs_io_max_bytes_per_second: int = _rate(
        "Bytes a second between directories: replicas are not moved."
    )
    cordoned_log_dirs: tuple[str, ...] = setting(
        (), may_be_empty=True, doc="Directories that get no new replicas: only none is accepted."
    )
    metric_reporters: tuple[str, ...] = setting(
        (), may_be_empty=True, doc="Kafka's plug-ins for metrics: only its own is accepted."
    )
    follower_fetch_last_tiered_offset_enable: bool = setting(
        False, doc="Where followers begin with a tiered topic: there are none."
    )
    num_io_threads: int = _count("Threads that answer requests; here it is one loop.")
    num_network_threads: int = _count("Threads of a listener; here it is one loop.")
    group_consumer_assignment_interval_ms: int = setting(
        1_000, at_least=0, doc="Of groups of the consumer protocol, which are not here."
    )
    group_share_assignment_interval_ms: int = setting(
        1_000, at_least=0, doc="Of share groups, which are not here."
    )
    group_streams_assignment_interval_ms: int = setting(
        1_000, at_least=0, doc="Of Streams groups, which are not here."
    )
    group_coordinator_cached_buffer_max_bytes: int = _count("A buffer that is not here.")
    share_coordinator_cached_buffer_max_bytes: int = _count("A buffer that is not here.")
    remote_fetch_max_wait_ms: int = _count("Of tiered topics, which are not here.")
    remote_list_offsets_request_timeout_ms: int = _size("Of tiered topics, which are not here.")
    remote_log_index_file_cache_total_size_bytes: int = _size(
        "Of tiered topics, which are not here."
    )
    remote_log_manager_copier_thread_pool_size: int = _count(
        "Of tiered topics, which are not here."
    )
    remote_log_manager_copy_max_bytes_per_second: int = _size(
        "Of tiered topics, which are not here."
    )
    remote_log_manager_expiration_thread_pool_size: int = _count(
        "Of tiered topics, which are not here."
    )
    remote_log_manager_fetch_max_bytes_per_second: int = _size(
        "Of tiered topics, which are not here."
    )
    remote_log_manager_follower_thread_pool_size: int = _count(
        "Of tiered topics, which are not here."
    )
    remote_log_reader_threads: int = _count("Of tiered topics, which are not here.")


EFFECTLESS: dict[str, Setting] = dict(settings_of(EffectlessSettings))
