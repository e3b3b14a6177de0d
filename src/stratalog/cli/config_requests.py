"""Which configs there are, and altering them: requests over a connection of our own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from stratalog.cli.client import BrokerUnreachableError, ClientError, Connection
from stratalog.cli.client_wire import Wire
from stratalog.cli.failures import CommandError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode

_DESCRIBE_VERSION, _ALTER_VERSION, _METADATA_VERSION = 4, 1, 8
_SET, _DELETE = 0, 1
_RESOURCES = {"topics": 2, "brokers": 4}
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}


@dataclass(frozen=True, slots=True)
class Entity:
    """A topic, a broker, or with an empty name all brokers."""

    kind: str
    name: str

    @property
    def one(self) -> str:
        return self.kind.removesuffix("s")

    @property
    def own_source(self) -> str:
        if self.kind == "topics":
            return "DYNAMIC_TOPIC_CONFIG"
        return "DYNAMIC_BROKER_CONFIG" if self.name else "DYNAMIC_DEFAULT_BROKER_CONFIG"

    def as_json(self) -> dict[str, Any]:
        return {"entity_type": self.kind, "entity_name": self.name or None}


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """One config. ``synonyms`` are all that could give its value, the first of them does."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]

    def is_own(self, entity: Entity) -> bool:
        return self.source == entity.own_source

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "source": self.source,
            "is_read_only": self.is_read_only,
            "is_sensitive": self.is_sensitive,
            "synonyms": [
                {"name": one.name, "value": one.value, "source": one.source}
                for one in self.synonyms
            ],
        }


class ConfigClient:
    """Asks any broker about topics and cluster defaults, and a broker about itself."""

    def __init__(self, connection: Connection) -> None:
        if not connection.is_plain:
            raise CommandError("Configs can be asked for over plaintext listeners only.")
        self._bootstrap_server = connection.bootstrap_server
        self._wire = connection.open_wire()
        self._brokers: dict[int, tuple[str, int]] = {}
        self._opened: dict[int, Wire] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for wire in (self._wire, *self._opened.values()):
            wire.close()

    def entities(self, kind: str) -> list[Entity]:
        """All there are, in order; after the brokers what holds for all of them."""
        if kind == "topics":
            names = sorted(topic.name for topic in self._metadata(None).topics)
        else:
            names = [*map(str, sorted(self._find_brokers())), ""]
        return [Entity(kind, name) for name in names]

    def ensure_exists(self, entity: Entity) -> None:
        if entity.kind == "topics":
            (topic,) = self._metadata(entity.name).topics
            is_there = topic.error_code == ErrorCode.NONE
        else:
            is_there = not entity.name or int(entity.name) in self._find_brokers()
        if not is_there:
            raise CommandError(f"There is no {entity.one} {entity.name}.")

    def describe(self, entity: Entity) -> list[ConfigFacts]:
        from stratalog.protocol.messages.describe_configs import (
            DescribeConfigsRequest,
            DescribeConfigsResource,
        )

        resource = DescribeConfigsResource(_RESOURCES[entity.kind], entity.name, None)
        request = DescribeConfigsRequest((resource,), include_synonyms=True)
        answer = self._ask(entity, ApiKey.DESCRIBE_CONFIGS, _DESCRIBE_VERSION, request)
        (result,) = answer.results
        _check(result, f"Describing configs of {_named(entity)}")
        found = [
            ConfigFacts(
                each.name,
                each.value,
                _source(each.config_source),
                each.read_only,
                each.is_sensitive,
                tuple(Synonym(one.name, one.value, _source(one.source)) for one in each.synonyms),
            )
            for each in result.configs
        ]
        return sorted(found, key=lambda each: each.name)

    def alter(self, entity: Entity, added: Mapping[str, str], deleted: Iterable[str]) -> None:
        from stratalog.protocol.messages.incremental_alter_configs import (
            AlterableConfig,
            AlterConfigsResource,
            IncrementalAlterConfigsRequest,
        )

        changes = [AlterableConfig(name, _DELETE, None) for name in deleted]
        changes += [AlterableConfig(name, _SET, value) for name, value in added.items()]
        resource = AlterConfigsResource(_RESOURCES[entity.kind], entity.name, changes)
        request = IncrementalAlterConfigsRequest((resource,))
        answer = self._ask(entity, ApiKey.INCREMENTAL_ALTER_CONFIGS, _ALTER_VERSION, request)
        (result,) = answer.responses
        _check(result, f"Altering configs of {_named(entity)}")

    # --- asking -------------------------------------------------------------------------------

    def _ask(self, entity: Entity, api_key: int, version: int, request: Any) -> Any:
        try:
            return self._wire_to(entity).ask(api_key, version, request)
        except OSError as error:
            raise self._lost(error) from error

    def _wire_to(self, entity: Entity) -> Wire:
        if entity.kind != "brokers" or not entity.name:
            return self._wire
        broker = int(entity.name)
        address = self._find_brokers().get(broker)
        if address is None:
            raise CommandError(f"There is no broker {broker}.")
        if broker not in self._opened:
            self._opened[broker] = Wire.open(*address)
        return self._opened[broker]

    def _find_brokers(self) -> dict[int, tuple[str, int]]:
        if not self._brokers:
            brokers = self._metadata("").brokers
            self._brokers = {each.node_id: (each.host, each.port) for each in brokers}
        return self._brokers

    def _metadata(self, topic: str | None) -> Any:
        """``None`` for all topics, empty for none."""
        from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

        topics = None if topic is None else [MetadataRequestTopic(name=topic)] if topic else []
        request = MetadataRequest(topics, allow_auto_topic_creation=False)
        try:
            return self._wire.ask(ApiKey.METADATA, _METADATA_VERSION, request)
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError) -> BrokerUnreachableError:
        return BrokerUnreachableError(self._bootstrap_server, error.strerror or str(error))


def _named(entity: Entity) -> str:
    return f"{entity.one} {entity.name}" if entity.name else f"all {entity.kind}"


def _source(number: int) -> str:
    return _SOURCES.get(number, f"SOURCE_{number}")


def _check(result: Any, what: str) -> None:
    if result.error_code == ErrorCode.NONE:
        return
    try:
        name = ErrorCode(result.error_code).name
    except ValueError:
        name = f"ERROR_{result.error_code}"
    raise ClientError(what, name, result.error_message or name.lower().replace("_", " "))
