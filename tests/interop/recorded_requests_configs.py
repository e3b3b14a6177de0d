"""Scenarios of configs: describing them, replacing them, changing some of them."""

from collections.abc import Sequence
from typing import Any

from recorded_requests import Talk, every

from stratalog.protocol.api import ApiKey
from stratalog.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from stratalog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterableConfig as Change,
)
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as ChangesResource,
)
from stratalog.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def about(kind: int, name: str, keys: Sequence[str] | None = None, **asked: Any):
    return DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], **asked)


def describe_configs(talk: Talk) -> None:
    talk.have_topic("describe-configs", cleanup_policy="compact", retention_ms="1000")
    node = str(talk.node_id)
    talk.ask_every("a topic", about(TOPIC, "describe-configs"))
    synonyms = about(TOPIC, "describe-configs", include_synonyms=True)
    talk.ask_ends("a topic, with synonyms", synonyms)
    some = ["retention.ms", "no.such.config", "segment.bytes"]
    talk.ask_every("some of a topic", about(TOPIC, "describe-configs", some))
    documented = about(TOPIC, "describe-configs", some, include_documentation=True)
    talk.ask_every("some of a topic, documented", documented, since=3)
    talk.ask_every("no keys", about(TOPIC, "describe-configs", []))
    talk.ask_every("an unknown topic", about(TOPIC, "describe-configs-unknown"))
    talk.ask_ends("an empty topic", about(TOPIC, ""))
    talk.ask_ends("a name no topic can have", about(TOPIC, "no such name!"))
    keys = [
        "auto.create.topics.enable",
        "compression.type",
        "group.initial.rebalance.delay.ms",
        "group.min.session.timeout.ms",
        "log.cleaner.threads",
        "log.cleanup.policy",
        "log.retention.hours",
        "log.retention.ms",
        "log.roll.hours",
        "log.segment.bytes",
        "message.max.bytes",
        "min.insync.replicas",
        "no.such.config",
        "node.id",
        "num.partitions",
        "offsets.retention.minutes",
        "offsets.topic.num.partitions",
        "socket.request.max.bytes",
    ]
    talk.ask_every("some of the broker", about(BROKER, node, keys, include_synonyms=True))
    talk.ask_ends("all brokers", about(BROKER, ""))
    talk.ask_ends("another broker", about(BROKER, "99"))
    talk.ask_ends("a broker called x", about(BROKER, "x"))
    talk.ask_ends("the loggers of another broker", about(BROKER_LOGGER, "99"))
    for kind in (0, 1, 3, 127):
        talk.ask_ends(f"resources of type {kind}", about(kind, "x"))
    talk.ask_ends("nothing", DescribeConfigsRequest([]))
    twice = [DescribeConfigsResource(TOPIC, "describe-configs", ["retention.ms"])] * 2
    talk.ask_ends("a topic twice", DescribeConfigsRequest(twice))


def _shown(talk: Talk, topic: str) -> Any:
    found = talk.have(about(TOPIC, topic)).results[0]
    return {config.name: config.value for config in found.configs if config.config_source == 1}


def _see(talk: Talk, topic: str, is_done) -> None:
    talk.have_until(
        about(TOPIC, topic),
        lambda answer: is_done(
            {c.name: c.value for c in answer.results[0].configs if c.config_source == 1}
        ),
    )


def alter_configs(talk: Talk) -> None:
    for version in every(ApiKey.ALTER_CONFIGS):
        _alter(talk, version)


def _alter(talk: Talk, version: int) -> None:
    node = str(talk.node_id)
    topic = f"alter-v{version}"
    talk.have_topic(topic, retention_ms="1000")

    def ask(
        step: str,
        pairs: dict[str, str | None],
        name: str | None = None,
        kind: int = TOPIC,
        checked: bool = False,
    ) -> None:
        configs = [AlterableConfig(key, value) for key, value in pairs.items()]
        resource = AlterConfigsResource(kind, topic if name is None else name, configs)
        talk.ask(step, version, AlterConfigsRequest([resource], checked))

    ask("checked only", {"segment.bytes": "2000000"}, checked=True)
    ask("replaced", {"segment.bytes": "3000000"})
    _see(talk, topic, lambda shown: shown == {"segment.bytes": "3000000"})
    talk.record("then there are", ApiKey.ALTER_CONFIGS, version, _shown(talk, topic))
    ask("an unknown config", {"no.such.config": "1"})
    ask("a bad value", {"retention.ms": "soon"})
    ask("a null value", {"retention.ms": None})
    ask("an unknown topic", {"retention.ms": "1"}, name=f"{topic}-unknown")
    ask("an empty topic", {"retention.ms": "1"}, name="")
    ask("another broker", {"message.max.bytes": "1000000"}, name="99", kind=BROKER)
    ask("a broker called x", {"message.max.bytes": "1000000"}, name="x", kind=BROKER)
    ask("what cannot change", {"node.id": "7"}, name=node, kind=BROKER)
    ask("an unknown one of a broker", {"no.such.config": "7"}, name=node, kind=BROKER)
    ask("a bad one of a broker", {"message.max.bytes": "many"}, name=node, kind=BROKER)
    ask("a good one of a broker, checked", {"message.max.bytes": "1"}, node, BROKER, True)
    ask("resources of type 3", {"a": "b"}, kind=3)
    ask("none", {})
    _see(talk, topic, lambda shown: shown == {})
    talk.record("then there are none", ApiKey.ALTER_CONFIGS, version, _shown(talk, topic))
    talk.ask("nothing", version, AlterConfigsRequest([]))
    one = AlterConfigsResource(TOPIC, topic, [AlterableConfig("retention.ms", "5")])
    talk.ask_in_vain("a topic twice", [version], AlterConfigsRequest([one, one]))
    pair = [AlterableConfig("retention.ms", "5"), AlterableConfig("retention.ms", "6")]
    twice = AlterConfigsResource(TOPIC, topic, pair)
    talk.ask("a config twice", version, AlterConfigsRequest([twice], True))


def change_configs(talk: Talk) -> None:
    for version in every(ApiKey.INCREMENTAL_ALTER_CONFIGS):
        _change(talk, version)


def _change(talk: Talk, version: int) -> None:
    node = str(talk.node_id)
    topic = f"change-v{version}"
    talk.have_topic(topic, retention_ms="1000")

    def ask(
        step: str,
        *changes: tuple[str, int, str | None],
        name: str | None = None,
        kind: int = TOPIC,
        checked: bool = False,
    ) -> None:
        configs = [Change(key, operation, value) for key, operation, value in changes]
        resource = ChangesResource(kind, topic if name is None else name, configs)
        talk.ask(step, version, IncrementalAlterConfigsRequest([resource], checked))

    def then(step: str, expected: dict[str, str]) -> None:
        _see(talk, topic, lambda shown: shown == expected)
        shown = _shown(talk, topic)
        talk.record(f"then, {step}", ApiKey.INCREMENTAL_ALTER_CONFIGS, version, shown)

    ask("checked only", ("segment.bytes", SET, "2000000"), checked=True)
    ask("set", ("segment.bytes", SET, "3000000"))
    then("set", {"retention.ms": "1000", "segment.bytes": "3000000"})
    ask("deleted", ("segment.bytes", DELETE, None))
    then("deleted", {"retention.ms": "1000"})
    ask("deleted, was never set", ("flush.ms", DELETE, ""))
    ask("added to a list", ("cleanup.policy", APPEND, "compact"))
    then("added", {"retention.ms": "1000", "cleanup.policy": "delete,compact"})
    ask("added again", ("cleanup.policy", APPEND, "compact"))
    ask("taken from a list", ("cleanup.policy", SUBTRACT, "delete"))
    then("taken", {"retention.ms": "1000", "cleanup.policy": "compact"})
    ask("taken, was not there", ("cleanup.policy", SUBTRACT, "delete"))
    ask("added to what is no list", ("retention.ms", APPEND, "5"))
    ask("no such operation", ("retention.ms", 9, "5"))
    ask("set to null", ("retention.ms", SET, None))
    ask("set to nothing", ("retention.ms", SET, ""))
    ask("an unknown config", ("no.such.config", SET, "1"))
    ask("an unknown config deleted", ("no.such.config", DELETE, None))
    ask("a bad value", ("retention.ms", SET, "soon"))
    ask("one good and one bad", ("flush.ms", SET, "5"), ("retention.ms", SET, "soon"))
    ask("one config twice", ("flush.ms", SET, "5"), ("flush.ms", SET, "6"))
    ask("no changes")
    then("refused", {"retention.ms": "1000", "cleanup.policy": "compact"})
    ask("an unknown topic", ("retention.ms", SET, "1"), name=f"{topic}-unknown")
    ask("an empty topic", ("retention.ms", SET, "1"), name="")
    ask("resources of type 3", ("a", SET, "b"), kind=3)
    _change_broker(ask, node)
    talk.ask("nothing", version, IncrementalAlterConfigsRequest([]))
    one = ChangesResource(TOPIC, topic, [Change("retention.ms", SET, "5")])
    talk.ask("a topic twice", version, IncrementalAlterConfigsRequest([one, one]))


def _change_broker(ask: Any, node: str) -> None:
    size = "message.max.bytes"
    ask("another broker", (size, SET, "1000000"), name="99", kind=BROKER)
    ask("a broker called x", (size, SET, "1000000"), name="x", kind=BROKER)
    ask("what cannot change", ("node.id", SET, "7"), name=node, kind=BROKER)
    ask("an unknown one of a broker", ("no.such.config", SET, "7"), name=node, kind=BROKER)
    ask("a bad one of a broker", (size, SET, "many"), name=node, kind=BROKER)
    ask("a broker, checked only", (size, SET, "1000012"), name=node, kind=BROKER, checked=True)
    ask("all brokers, checked only", (size, SET, "1000012"), name="", kind=BROKER, checked=True)


def broker_configs(talk: Talk) -> None:
    """Dynamic configs of the broker: its own over those of all, both over what it started with."""
    node = str(talk.node_id)
    size = "message.max.bytes"

    def change(step: str, name: str, operation: int, value: str | None) -> None:
        resource = ChangesResource(BROKER, name, [Change(size, operation, value)])
        talk.ask(step, 1, IncrementalAlterConfigsRequest([resource]))

    def see(step: str, name: str, value: str | None) -> None:
        def is_done(answer: Any) -> bool:
            shown = [config.value for config in answer.results[0].configs if config.value]
            return shown == ([value] if value else [])

        asked = about(BROKER, name, [size], include_synonyms=True)
        talk.ask_until(step, 4, asked, is_done)

    see("at first", node, "1048588")
    see("of all at first", "", None)
    change("set for all", "", SET, "900000")
    see("set for all", node, "900000")
    see("of all, set for all", "", "900000")
    change("set for one", node, SET, "800000")
    see("set for one", node, "800000")
    change("deleted for all", "", DELETE, None)
    see("deleted for all", "", None)
    see("still set for one", node, "800000")
    change("deleted for one", node, DELETE, None)
    see("deleted for one", node, "1048588")


def effectless(talk: Talk) -> None:
    """What tools set and one node has no use for, and resources that are not topics or brokers."""
    node, rate = str(talk.node_id), "leader.replication.throttled.rate"

    def change(step: str, kind: int, name: str, config: str, value: str | None) -> None:
        operation = DELETE if value is None else SET
        resource = ChangesResource(kind, name, [Change(config, operation, value)])
        talk.ask(step, 1, IncrementalAlterConfigsRequest([resource]))

    for config, value in (
        (rate, "1000"),
        (rate, "-1"),
        (rate, "x"),
        ("follower.replication.throttled.rate", "0"),
        ("replica.alter.log.dirs.io.max.bytes.per.second", "7"),
        ("metric.reporters", ""),
        ("metric.reporters", "no.such.Class"),
        ("cordoned.log.dirs", ""),
        ("cordoned.log.dirs", "/nowhere"),
    ):
        change(f"{config} {value!r}", BROKER, node, config, value)

    def is_seen(answer: Any) -> bool:
        return [config.value for config in answer.results[0].configs] == ["1000"]

    talk.ask_until("seen", 4, about(BROKER, node, [rate]), is_seen)
    for config in (rate, "cordoned.log.dirs", "metric.reporters"):
        change(f"{config} deleted", BROKER, node, config, None)
    for kind, name in ((GROUP, "g"), (GROUP, ""), (CLIENT_METRICS, "m"), (CLIENT_METRICS, "")):
        talk.ask_ends(f"of type {kind} {name!r}", about(kind, name))
    for kind, name, config, value in (
        (GROUP, "g", "no.such.config", "1"),
        (GROUP, "", "consumer.session.timeout.ms", "45000"),
        (CLIENT_METRICS, "m", "no.such.config", "1"),
        (CLIENT_METRICS, "", "interval.ms", "300000"),
    ):
        change(f"of type {kind} {name!r} {config}", kind, name, config, value)


SCENARIOS = {
    "effectless-configs": effectless,
    "describe-configs": describe_configs,
    "alter": alter_configs,
    "change": change_configs,
    "broker-configs": broker_configs,
}
