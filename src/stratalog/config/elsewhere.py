"""Kafka's broker settings that have no meaning here, so that a server.properties can be reused.

``is_elsewhere`` knows the names that Kafka 4.3.1 has and BrokerConfig has not: they are accepted
and do nothing, but for those in ``security``, of which a broker accepts only what closes no door.
``REMOVED`` tells since which release of Kafka a name is gone.
"""

from collections.abc import Iterable

from stratalog.config.security import LISTENER_LIMITS, SECURITY_NAMES, is_security_name, split_door
from stratalog.config.unhonoured import UNHONOURED_NAMES

_AREAS = (
    "alter.log.dirs.",
    "controlled.shutdown.",
    "controller.",
    "group.",
    "internal.metadata.",
    "kafka.metrics.",
    "listener.name.",
    "metadata.",
    "metric.",
    "metrics.",
    "quota.",
    "remote.",
    "replication.quota.",
    "rlmm.config.",
    "rsm.config.",
    "share.",
    "socket.",
    "telemetry.",
)

_NAMES = frozenset(
    (
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "cordoned.log.dirs",
        "early.start.listeners",
        "follower.fetch.last.tiered.offset.enable",
        "initial.broker.registration.timeout.ms",
        "inter.broker.listener.name",
        "num.io.threads",
        "num.network.threads",
        "num.replica.alter.log.dirs.threads",
        "process.roles",
        "queued.max.requests",
        "request.timeout.ms",
        "server.max.startup.time.ms",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.state.log.load.buffer.size",
        "transaction.two.phase.commit.enable",
        "transactional.id.expiration.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    )
)

REMOVED = {
    "auto.include.jmx.reporter": "4.0",
    "broker.id.generation.enable": "4.0",
    "control.plane.listener.name": "4.0",
    "controlled.shutdown.max.retries": "4.0",
    "controlled.shutdown.retry.backoff.ms": "4.0",
    "delegation.token.master.key": "4.0",
    "eligible.leader.replicas.enable": "4.0",
    "group.coordinator.new.enable": "4.1",
    "group.share.enable": "4.3",
    "group.share.max.groups": "4.1",
    "inter.broker.protocol.version": "4.0",
    "leader.imbalance.per.broker.percentage": "4.0",
    "log.message.downconversion.enable": "4.0",
    "log.message.format.version": "4.0",
    "log.message.timestamp.difference.max.ms": "4.0",
    "metadata.log.segment.min.bytes": "4.1",
    "offsets.commit.required.acks": "4.0",
    "password.encoder.cipher.algorithm": "4.0",
    "password.encoder.iterations": "4.0",
    "password.encoder.key.length": "4.0",
    "password.encoder.keyfactory.algorithm": "4.0",
    "password.encoder.old.secret": "4.0",
    "password.encoder.secret": "4.0",
    "reserved.broker.max.id": "4.0",
    "zookeeper.clientCnxnSocket": "4.0",
    "zookeeper.connect": "4.0",
    "zookeeper.connection.timeout.ms": "4.0",
    "zookeeper.max.in.flight.requests": "4.0",
    "zookeeper.metadata.migration.enable": "4.0",
    "zookeeper.metadata.migration.min.batch.size": "4.0",
    "zookeeper.session.timeout.ms": "4.0",
    "zookeeper.set.acl": "4.0",
}


# How much of a name must agree with another for it to be a misspelling, and not somebody else's.
_NEAR = 0.9
# Of these not every value is accepted.
_REFUSED = (*SECURITY_NAMES, *UNHONOURED_NAMES, *LISTENER_LIMITS)


def is_elsewhere(name: str) -> bool:
    """Whether Kafka 4.3.1 has a broker setting of this name that does nothing here."""
    if name in REMOVED:
        return False
    if name in _NAMES or name in UNHONOURED_NAMES or is_security_name(name):
        return True
    # Whoever closes a door with a name that is nearly right believes that it is closed.
    return name.startswith(_AREAS) and _nearest(name, _REFUSED) is None


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The setting of Kafka or of ``known`` that ``name`` probably means; None if it has its own
    meaning, to a plug-in or to another release."""
    if name in REMOVED:
        return None
    return _nearest(name, [*known, *_NAMES, *_REFUSED])


def _nearest(name: str, names: Iterable[str]) -> str | None:
    """Which of ``names`` is nearly ``name``, of the same listener and mechanism; None if it is
    one of them."""
    import difflib  # slow to import, and only needed here

    door, base = split_door(name)
    close = difflib.get_close_matches(base.replace("_", "."), names, n=1, cutoff=_NEAR)
    return door + close[0] if close and close[0] != base else None
