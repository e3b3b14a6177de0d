"""What counts for the topics of a log directory, as far as it is known: own configs over others."""

import uuid
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.settings import settings_of
from stratalog.metadata.dynamic_configs import check_topic_configs, possible_configs
from stratalog.metadata.removal_limits import unstated_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    """``configs`` are what the topic itself overrides: all of it, unless it ``is_held``."""

    topic_id: uuid.UUID | None = None
    partition_count: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)
    is_held: bool = False


# What is not known at all.
_UNKNOWN = KnownTopic(is_held=True)


@dataclass(frozen=True, slots=True)
class KnownConfig:
    """``config`` is what counts for a topic as far as anybody knows. ``stated`` are the settings of
    its broker that are known; None: all. ``is_held``: the topic may override more than is known."""

    config: TopicConfig
    stated: frozenset[str] | None = None
    is_held: bool = False

    @property
    def is_known(self) -> bool:
        return not self.unknown and not self.is_held

    @property
    def unknown(self) -> list[str]:
        """The configs that decide what is removed, and that stand here by their default alone."""
        return [] if self.stated is None else unstated_limits(self.config, self.stated)

    def unknown_for(self, policy: str) -> list[str]:
        """Those that decide what ``policy`` of ``cleanup.policy`` removes."""
        return [] if self.stated is None else unstated_limits(self.config, self.stated, (policy,))


class TopicConfigs:
    """What counts for each of ``topics``, of whose ``broker`` some configs are ``dynamic``;
    ``is_server_known``: the others are known as well."""

    def __init__(
        self,
        topics: Mapping[str, KnownTopic],
        *,
        broker: BrokerConfig,
        dynamic: Collection[str],
        is_server_known: bool,
    ) -> None:
        self.broker = broker
        self._topics = topics
        self._dynamic = frozenset(dynamic)
        self._stated = {*broker.stated, *dynamic}
        self._is_server_known = is_server_known
        self._found: dict[Hashable, KnownConfig] = {}

    def of(
        self, name: str, given: Mapping[str, str] | None = None, *, is_stranger: bool = False
    ) -> KnownConfig:
        """What counts for a topic, with ``given`` configs over those that are known.
        ``is_stranger``: it only has the name of a topic that is known."""
        topic = _UNKNOWN if is_stranger else self._topics.get(name, _UNKNOWN)
        configs, over = frozenset(topic.configs.items()), frozenset((given or {}).items())
        # Most topics are configured as many others are.
        key = (configs, over, topic.is_held)
        if key not in self._found:
            self._found[key] = self._resolve(topic, given or {})
        return self._found[key]

    def _resolve(self, topic: KnownTopic, given: Mapping[str, str]) -> KnownConfig:
        # Apache Kafka has topic configs that are not possible here.
        check = partial(check_topic_configs, broker=self.broker)
        own, refused = possible_configs(topic.configs, check)
        config = TopicConfig.from_properties({**own, **given}, broker=self.broker)
        if topic.is_held or refused:
            # It may override what its broker has.
            return KnownConfig(config, frozenset(), is_held=True)
        if self._is_server_known:
            return KnownConfig(config)
        return KnownConfig(config, self._dynamic)

    def stated(self, config: TopicConfig) -> dict[str, str]:
        """What the topic or its broker sets, as ``DescribeConfigs`` tells it: under one of its
        lesser names, as ``log.retention.hours``, a setting counts there as a default."""
        texts = config.to_properties(every=True)
        return {
            name: texts[name]
            for name, setting in settings_of(TopicConfig).items()
            if name in config.overrides
            or (name in texts and setting.synonyms and setting.synonyms[0] in self._stated)
        }
