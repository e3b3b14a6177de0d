"""Settings of the group coordinator and of committed offsets: Kafka's names, defaults and rules."""

from dataclasses import dataclass

from stratalog.config.network import NetworkSettings
from stratalog.config.settings import Kind, setting

_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings(NetworkSettings):
    """What BrokerConfig says about consumer groups."""

    group_min_session_timeout_ms: int = setting(
        6_000, doc="The shortest session timeout that a member may ask for."
    )
    group_max_session_timeout_ms: int = setting(
        1_800_000, doc="The longest session timeout that a member may ask for."
    )
    group_max_size: int = setting(_INT_MAX, at_least=1, doc="Members that a group may have.")
    group_initial_rebalance_delay_ms: int = setting(
        3_000, doc="How long the first rebalance of an empty group waits for more members."
    )
    offsets_retention_minutes: int = setting(
        7 * 24 * 60,
        at_least=1,
        doc="Forget committed offsets this long after their group has become empty.",
    )
    offsets_retention_check_interval_ms: int = setting(
        600_000, kind=Kind.LONG, at_least=1, doc="How often offsets are looked at for that."
    )
    offset_metadata_max_bytes: int = setting(
        4_096, doc="The metadata that may be committed along with an offset."
    )
    offsets_commit_timeout_ms: int = setting(
        5_000, at_least=1, doc="How long a commit waits until it is durable."
    )
    offsets_load_buffer_size: int = setting(
        5 << 20, at_least=1, doc="Bytes read at a time when committed offsets are loaded."
    )
