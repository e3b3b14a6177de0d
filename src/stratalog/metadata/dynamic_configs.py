"""Configs changed while brokers run: what a request may alter, and what is refused.

Overrides are kept as the text they were given as. Every change is checked as a whole, over the
broker's own settings, before any of it counts.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.effectless import EFFECTLESS
from stratalog.config.security import security_refusals
from stratalog.config.settings import Kind, Setting, raise_together, settings_of
from stratalog.config.unhonoured import check_unhonoured
from stratalog.errors import ConfigError, InvalidRequestError

CONFIG_TEXT_LENGTH_MAX = 0x7FFF

# What Kafka lets a request change without a restart.
DYNAMIC_BROKER_CONFIGS = frozenset(EFFECTLESS) | frozenset(
    (
        "background.threads",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.threads",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.preallocate",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "message.max.bytes",
        "min.insync.replicas",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
        "unclean.leader.election.enable",
    )
)


class ConfigOperation(enum.IntEnum):
    """What to do with one config, by the numbers of the wire protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    operation: ConfigOperation
    value: str | None = None


def possible_configs(
    configs: Mapping[str, str], check: Callable[[dict[str, str]], object]
) -> tuple[dict[str, str], list[ConfigError]]:
    """Those of another broker that ``check`` takes, and why it does not take the others."""
    kept: dict[str, str] = {}
    refused = []
    for name in sorted(configs):
        try:
            check({**kept, name: configs[name]})
        except ConfigError as error:
            refused.append(error)
        else:
            kept[name] = configs[name]
    return kept, refused


def alter_topic_configs(
    configs: Mapping[str, str], changes: Sequence[ConfigChange], broker: BrokerConfig
) -> dict[str, str]:
    """A topic's overrides after ``changes``; nothing of them counts if one is refused."""
    defaults = TopicConfig.from_properties({}, broker=broker).to_properties(every=True)
    altered = _altered(configs, changes, settings_of(TopicConfig), defaults)
    return check_topic_configs(altered, broker)


def check_topic_configs(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """The overrides of a topic, if they are such."""
    texts = _texts(configs)
    TopicConfig.from_properties(texts, broker=broker)
    return texts


def alter_broker_configs(
    configs: Mapping[str, str], changes: Sequence[ConfigChange], broker: BrokerConfig
) -> dict[str, str]:
    """Dynamic configs of a node or of all after ``changes``, over what ``broker`` has itself."""
    defaults = broker.to_properties(every=True)
    known = {**EFFECTLESS, **settings_of(BrokerConfig)}
    altered = _altered(configs, changes, known, defaults)
    return check_broker_configs(altered, broker)


def check_broker_configs(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    texts = _texts(configs)
    raise_together(security_refusals(texts))
    effective_broker(broker, texts)
    for name, text in texts.items():
        if name in EFFECTLESS:
            check_unhonoured(name, text)
        elif name not in DYNAMIC_BROKER_CONFIGS:
            raise ConfigError(name, text, "cannot be changed while the broker runs")
    return texts


def effective_broker(broker: BrokerConfig, overrides: Mapping[str, str]) -> BrokerConfig:
    """A broker's own settings with dynamic ones over them."""
    effective = {name: text for name, text in overrides.items() if name not in EFFECTLESS}
    if not effective:
        return broker
    return BrokerConfig.from_properties({**broker.to_properties(), **effective})


def _altered(
    configs: Mapping[str, str],
    changes: Sequence[ConfigChange],
    known: Mapping[str, Setting],
    defaults: Mapping[str, str],
) -> dict[str, str | None]:
    if len({change.name for change in changes}) != len(changes):
        raise InvalidRequestError("a config is changed twice in one request")
    altered: dict[str, str | None] = dict(configs)
    for change in changes:
        name = change.name
        if change.operation is ConfigOperation.DELETE:
            altered.pop(name, None)
        elif change.operation is ConfigOperation.SET:
            altered[name] = change.value
        else:
            setting = known.get(name)
            if setting is None or setting.kind is not Kind.LIST:
                raise ConfigError(name, change.value, "only a list can be appended to or cut down")
            current = configs.get(name, defaults.get(name, ""))
            altered[name] = _change_list(current, change)
    return altered


def _change_list(current: str, change: ConfigChange) -> str:
    parts = [part for part in current.split(",") if part]
    given = (change.value or "").split(",")
    if change.operation is ConfigOperation.APPEND:
        parts += [part for part in dict.fromkeys(given) if part not in parts]
    else:
        parts = [part for part in parts if part not in given]
    return ",".join(part for part in parts if part)


def _texts(configs: Mapping[str, str | None]) -> dict[str, str]:
    texts = {}
    for name, text in configs.items():
        if text is None:
            raise ConfigError(name, None, "a config has a value")
        if not text.isascii() and text.encode(errors="replace").decode() != text:
            raise ConfigError(name, ascii(text), "is not text")
        if len(text) > CONFIG_TEXT_LENGTH_MAX:
            raise ConfigError(
                name, f"{text[:40]}...", f"has at most {CONFIG_TEXT_LENGTH_MAX} characters"
            )
        texts[name] = text
    return texts
