"""The settings of a ``server.properties`` that decide how topics are kept.

A topic leaves what it does not override to its broker. So a store notes with which of these
settings its broker was started last: without them nobody knows, once the broker has stopped, by
which rules it kept a topic. Other settings are not noted.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.settings import settings_of

_CLEANER = "log.cleaner."


def server_configs(broker: BrokerConfig) -> dict[str, str]:
    """Those that ``broker`` was started with, as text."""
    names = _names()
    return {name: text for name, text in broker.to_properties().items() if name in names}


def known_server_configs(configs: Mapping[str, str]) -> dict[str, str]:
    """Those of ``configs``, which another release may have noted, that have a meaning here."""
    names = _names()
    return {name: text for name, text in configs.items() if name in names}


def over_noted(broker: BrokerConfig, noted: Mapping[str, str]) -> BrokerConfig:
    """What ``broker`` states over what was ``noted``: for an owner that is not the broker itself,
    and keeps the topics by the rules that this had."""
    merged = BrokerConfig.from_properties({**known_server_configs(noted), **broker.to_properties()})
    # Not as text, in which a comma would part one path into two.
    return replace(merged, log_dir=broker.log_dir, log_dirs=broker.log_dirs)


@cache
def _names() -> frozenset[str]:
    synonyms = (name for each in settings_of(TopicConfig).values() for name in each.synonyms)
    cleaner = (name for name in settings_of(BrokerConfig) if name.startswith(_CLEANER))
    return frozenset((*synonyms, *cleaner))
