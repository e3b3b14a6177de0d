"""Kafka's broker settings that have no meaning here, so that a server.properties can be reused.

``is_elsewhere`` knows the names that Kafka 4.3.1 has and BrokerConfig has not: they are accepted
and do nothing. ``REMOVED`` tells since which release of Kafka a name is gone.
"""

_AREAS = (
    "alter.log.dirs.",
    "controlled.shutdown.",
    "controller.",
    "delegation.token.",
    "group.",
    "internal.metadata.",
    "kafka.metrics.",
    "listener.",
    "metadata.",
    "metric.",
    "metrics.",
    "quota.",
    "remote.",
    "replication.quota.",
    "rlmm.config.",
    "rsm.config.",
    "sasl.",
    "security.",
    "share.",
    "socket.",
    "ssl.",
    "telemetry.",
)

_NAMES = frozenset(
    (
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "authorizer.class.name",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "client.quota.callback.class",
        "config.providers",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "cordoned.log.dirs",
        "early.start.listeners",
        "follower.fetch.last.tiered.offset.enable",
        "initial.broker.registration.timeout.ms",
        "inter.broker.listener.name",
        "max.connection.creation.rate",
        "max.connections.per.ip.overrides",
        "num.io.threads",
        "num.network.threads",
        "num.replica.alter.log.dirs.threads",
        "principal.builder.class",
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


def is_elsewhere(name: str) -> bool:
    """Whether Kafka 4.3.1 has a broker setting of this name that does nothing here."""
    return name not in REMOVED and (name in _NAMES or name.startswith(_AREAS))
