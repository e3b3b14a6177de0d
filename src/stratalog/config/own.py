"""The settings that are stratalog's own, which Apache Kafka does not know. There are no others.

They are broker settings like the rest and sit in the same file; Kafka ignores them there.
"""

from dataclasses import dataclass

from stratalog.config.settings import Kind, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    """What BrokerConfig has beyond Kafka's settings."""

    log_flush_on_ack: bool = setting(
        True,
        ours=True,
        doc="Acknowledge, with acks=all or acks=1, and show to consumers only what has been "
        "flushed to disk. With false, replicas and the page cache are all that an acknowledgement "
        "stands for, as in Kafka.",
    )
    log_dir_reserve_bytes: int = setting(
        256 << 20,
        kind=Kind.LONG,
        at_least=0,
        ours=True,
        doc="Appends to a log directory are refused while its file system has less than this "
        "free, so that checkpoints, deletes and metadata still find room on a full disk.",
    )
    log_lease_max_bytes: int = setting(
        10 << 30,
        kind=Kind.LONG,
        at_least=0,
        ours=True,
        doc="How much of what is deleted may be kept in a log directory for those who hold a lease "
        "on it. Above it, the oldest lease ends.",
    )
    log_lease_max_ms: int = setting(
        3_600_000,
        kind=Kind.LONG,
        at_least=1,
        ours=True,
        doc="How long a lease may last after it was last renewed; who asks for more gets this.",
    )
    log_commit_append_max_bytes: int = setting(
        16 << 20,
        kind=Kind.LONG,
        at_least=0,
        ours=True,
        doc="Of a commit of staged files, what is smaller than this for a partition is appended to "
        "its active segment; what is larger becomes segments of its own.",
    )
    log_commit_id_retention_ms: int = setting(
        7 * 24 * 3_600_000,
        kind=Kind.LONG,
        at_least=1,
        ours=True,
        doc="How long a log directory remembers the id of a commit at least, so that the same one "
        "is not made twice. An application's last version is remembered for good.",
    )
    log_cleaner_hash: str = setting(
        "siphash",
        one_of=("siphash", "md5"),
        ours=True,
        doc="How the cleaner tells keys apart: by SipHash with a random key, so that nobody can "
        "craft two keys that erase each other, or by MD5, as Kafka does.",
    )
    log_cleaner_exclude_topics: tuple[str, ...] = setting(
        (),
        kind=Kind.LIST,
        may_be_empty=True,
        ours=True,
        doc="Compacted topics that the broker's own cleaner leaves alone, because a scheduled job "
        "compacts them ('stratalog spark compact'). Names; * stands for any characters.",
    )
    admin_listener: str = setting(
        "127.0.0.1:0",
        ours=True,
        doc="Where health, metrics and administration are served by HTTP, as host:port. Port 0 is "
        "any that is free, to be found in .stratalog-owner; empty: nowhere.",
    )
    event_log_format: str = setting(
        "text",
        one_of=("text", "json"),
        ours=True,
        doc="How the broker writes its events to standard error: name=value, or a JSON object a "
        "line.",
    )
