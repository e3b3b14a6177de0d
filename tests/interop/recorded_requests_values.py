"""Scenarios of setting values: every config of a topic, and those of a broker, given odd ones.

Nothing is changed by them: all are only to be checked. Like the walks they are put to both brokers
in one run, and nothing of them is kept.
"""

from recorded_requests import Scenario, Talk
from recorded_requests_configs import APPEND, BROKER, SET, SUBTRACT, TOPIC, about
from recorded_requests_topics import new

from stratalog.protocol.messages.create_topics import CreatableTopicConfig, CreateTopicsRequest
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

VALUES = (
    *("", " ", "0", "1", "-1", "-2", "100", "1.5", "0.5", "1e3", "+5", " 7 ", "0x10", "1_000"),
    *("2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "14", "1048576"),
    *("true", "TRUE", " false ", "yes", "none", "abc", "gzip", "GZIP", "zstd", "uncompressed"),
    *("delete", "compact", "compact,delete", "delete, compact", "delete,delete", "none,delete"),
    *("producer", "CreateTime", "LogAppendTime", "createtime", ","),
    *("*", "0:1", "0:1,1:2", "0-1", "3.0-IV1"),
)
LISTS = ("cleanup.policy", "leader.replication.throttled.replicas", "retention.ms")


def topic_values(talk: Talk) -> None:
    """One topic to be made for each config and value."""
    talk.have_topic("values")
    described = talk.have(about(TOPIC, "values")).results[0].configs
    for name in sorted(config.name for config in described):
        for value in (*VALUES, None):
            topic = new("values-new")._replace(configs=[CreatableTopicConfig(name, value)])
            answer = talk.have(CreateTopicsRequest([topic], 30_000, True)).topics[0]
            talk.record(f"{name}={value!r}", None, -1, answer.error_code)


def list_values(talk: Talk) -> None:
    """Adding to lists and taking from them."""
    talk.have_topic("lists", cleanup_policy="delete")
    for name in LISTS:
        for operation in (APPEND, SUBTRACT):
            for value in (*VALUES, None):
                change = AlterableConfig(name, operation, value)
                resource = AlterConfigsResource(TOPIC, "lists", [change])
                answer = talk.have(IncrementalAlterConfigsRequest([resource], True))
                code = answer.responses[0].error_code
                talk.record(f"{name} {operation} {value!r}", None, -1, code)


def broker_values(talk: Talk) -> None:
    """One change to be made of the broker, and of all, for each of its configs and some values."""
    node = str(talk.node_id)
    described = talk.have(about(BROKER, node)).results[0].configs
    names = {config.name for config in described if not config.read_only}
    for name in sorted(names & SHARED_BROKER_CONFIGS):
        for value in (*VALUES, None):
            for broker in ("", node):
                change = AlterableConfig(name, SET, value)
                resource = AlterConfigsResource(BROKER, broker, [change])
                answer = talk.have(IncrementalAlterConfigsRequest([resource], True))
                code = answer.responses[0].error_code
                talk.record(f"{name}={value!r} of {broker or 'all'}", None, -1, code)


SHARED_BROKER_CONFIGS = {
    "compression.type",
    "log.cleaner.threads",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.index.interval.bytes",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "message.max.bytes",
    "min.insync.replicas",
    "unclean.leader.election.enable",
}

VALUE_CHECKS: dict[str, Scenario] = {
    "values": topic_values,
    "lists": list_values,
    "broker-values": broker_values,
}
