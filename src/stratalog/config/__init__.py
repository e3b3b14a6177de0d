"""Configuration by Kafka's names: what a broker and a topic may be told, and what they refuse."""

from stratalog.config.broker import BrokerConfig
from stratalog.config.topic import TopicConfig

__all__ = ["BrokerConfig", "TopicConfig"]
