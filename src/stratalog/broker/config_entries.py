"""Configs as clients are shown them: each value, where it comes from, and what else would count.

A topic's setting is its own, or a broker's under another name; a broker's is the node's dynamic
one, that of all nodes, the one it was started with, or the default. The synonyms of an entry are
all that is set anywhere for it, the one that counts first. Like Kafka, an entry with several names
shows only those synonyms that follow the first under its main name: ``retention.ms`` that comes
from ``log.retention.hours`` shows none.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.effectless import EFFECTLESS
from stratalog.config.group_settings import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS
from stratalog.config.settings import Kind, Setting, settings_of
from stratalog.metadata.dynamic_configs import DYNAMIC_BROKER_CONFIGS
from stratalog.metadata.image import CLUSTER_DEFAULT
from stratalog.metadata.store import MetadataStore


class ConfigSource(IntEnum):
    """Where a value was set, by the numbers of the wire protocol."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8


class Synonym(NamedTuple):
    name: str
    value: str
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    synonyms: tuple[Synonym, ...]
    type: ConfigType
    documentation: str


_TYPES = {
    Kind.BOOLEAN: ConfigType.BOOLEAN,
    Kind.STRING: ConfigType.STRING,
    Kind.INT: ConfigType.INT,
    Kind.SHORT: ConfigType.SHORT,
    Kind.LONG: ConfigType.LONG,
    Kind.DOUBLE: ConfigType.DOUBLE,
    Kind.LIST: ConfigType.LIST,
}
_CLASSES = frozenset(("create.topic.policy.class.name", "alter.config.policy.class.name"))
# Broker settings that stand for one another, the first that is set wins.
_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH_SYNONYMS = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class ConfigEntries:
    """The entries of one moment."""

    def __init__(self, store: MetadataStore) -> None:
        image = store.image
        self._broker = store.broker
        # A node has its id from the directories it owns, whatever it was started with.
        self._node = dict.fromkeys(("node.id", "broker.id"), str(image.node_id))
        static = store.static_broker.to_properties() | self._node
        self._cluster = image.broker_configs.get(CLUSTER_DEFAULT, {})
        self._levels: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
            (image.broker_configs.get(image.node_id, {}), ConfigSource.DYNAMIC_BROKER),
            (self._cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (static, ConfigSource.STATIC_BROKER),
            (_broker_defaults(), ConfigSource.DEFAULT),
        )

    def of_topic(self, configs: Mapping[str, str]) -> Iterator[ConfigEntry]:
        """The settings of a topic that overrides ``configs``."""
        effective = TopicConfig.from_properties(configs, broker=self._broker)
        for name, setting in settings_of(TopicConfig).items():
            if setting.internal and name not in configs:
                continue
            text = _text(setting, effective)
            synonyms = self._synonyms(setting.synonyms[0]) if setting.synonyms else ()
            if name in configs:
                synonyms = (Synonym(name, text or "", ConfigSource.TOPIC), *synonyms)
            yield _entry(setting, text, synonyms, is_read_only=False)

    def of_new_topic(self, configs: Mapping[str, str]) -> Iterator[ConfigEntry]:
        """As ``of_topic``, for the answer to whoever creates it. Synonyms are left out, and here
        a value counts as the broker's under whichever of its names it was set."""
        for entry in self.of_topic(configs):
            source = entry.source
            if source is not ConfigSource.TOPIC:
                names = settings_of(TopicConfig)[entry.name].synonyms
                found = (level for values, level in self._levels if values.keys() & set(names))
                source = next(found, ConfigSource.DEFAULT)
            yield entry._replace(source=source, synonyms=())

    def of_broker(self) -> Iterator[ConfigEntry]:
        """The settings of this node."""
        for name, setting in settings_of(BrokerConfig).items():
            if not setting.internal:
                text = self._node.get(name) or _text(setting, self._broker)
                yield _entry(
                    setting,
                    text,
                    self._synonyms(name),
                    is_read_only=name not in DYNAMIC_BROKER_CONFIGS,
                )
        for name, setting in EFFECTLESS.items():
            if synonyms := self._synonyms(name):
                yield _entry(setting, synonyms[0].value, synonyms, is_read_only=False)

    def of_group(self) -> Iterator[ConfigEntry]:
        """The settings of any group: the defaults."""
        return _defaults(GROUP_SETTINGS)

    def of_client_metrics(self) -> Iterator[ConfigEntry]:
        """The settings of any subscription of client metrics: the defaults."""
        return _defaults(CLIENT_METRICS_SETTINGS)

    def of_all_brokers(self) -> Iterator[ConfigEntry]:
        """The dynamic settings that all nodes share."""
        for name, text in self._cluster.items():
            synonyms = (Synonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER),)
            is_read_only = name not in DYNAMIC_BROKER_CONFIGS
            setting = settings_of(BrokerConfig).get(name) or EFFECTLESS.get(name)
            if setting is not None:
                yield _entry(setting, text, synonyms, is_read_only=is_read_only)
            else:
                yield ConfigEntry(
                    name, text, synonyms[0].source, is_read_only, synonyms, ConfigType.UNKNOWN, ""
                )

    def _synonyms(self, name: str) -> tuple[Synonym, ...]:
        found = [
            Synonym(each, values[each], source)
            for values, source in self._levels
            for each in _names_of(name)
            if each in values
        ]
        while found and found[0].name != name:
            del found[0]
        return tuple(found)


def _entry(
    setting: Setting, text: str | None, synonyms: tuple[Synonym, ...], *, is_read_only: bool
) -> ConfigEntry:
    return ConfigEntry(
        setting.name,
        text,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_read_only,
        synonyms,
        ConfigType.CLASS if setting.name in _CLASSES else _TYPES[setting.kind],
        setting.doc,
    )


def _defaults(settings: Mapping[str, Setting]) -> Iterator[ConfigEntry]:
    for setting in settings.values():
        text = setting.text(setting.default)
        synonyms = (Synonym(setting.name, text, ConfigSource.DEFAULT),)
        yield _entry(setting, text, synonyms, is_read_only=False)


def _text(setting: Setting, level: object) -> str | None:
    value = getattr(level, setting.name.replace(".", "_"))
    return None if value is None else setting.text(value)


@cache
def _broker_defaults() -> dict[str, str]:
    return {
        name: setting.text(setting.default)
        for name, setting in settings_of(BrokerConfig).items()
        if setting.default is not None
    }


@cache
def _names_of(name: str) -> tuple[str, ...]:
    if name == _FLUSH_SYNONYMS[0]:
        return _FLUSH_SYNONYMS
    return next((names for names in _SYNONYMS if name in names), (name,))
