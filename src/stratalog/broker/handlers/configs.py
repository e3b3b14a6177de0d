"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, of topics and brokers.

Each resource of a request is answered by itself. What a topic is told wrongly is INVALID_CONFIG,
what a broker is told wrongly INVALID_REQUEST, as in Kafka.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from stratalog.broker.config_entries import ConfigEntries, ConfigEntry
from stratalog.broker.error_mapping import code_of, message_of
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.config.group_settings import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS
from stratalog.errors import ConfigError, InvalidRequestError, StratalogError, UnknownTopicError
from stratalog.metadata.config_resources import ResourceType
from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation, check_topic_configs
from stratalog.metadata.image import CLUSTER_DEFAULT
from stratalog.metadata.names import validate_topic_name
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages import alter_configs as replacing
from stratalog.protocol.messages import incremental_alter_configs as altering
from stratalog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

# One resource has a few dozen to a hundred configs: after so many of them others get their turn.
_RESOURCES_AT_ONCE = 4
# An answer is many times as long as its question.
_RESOURCES_MAX = 10_000


# Resources whose configs are told, and cannot be other than they are.
_DEFAULTS_ALONE = {
    ResourceType.GROUP: (GROUP_SETTINGS, "groups of the newer protocols are not here"),
    ResourceType.CLIENT_METRICS: (CLIENT_METRICS_SETTINGS, "metrics of clients are not taken here"),
}
# Resources of which a wrong config is INVALID_REQUEST.
_WRONG_REQUESTS = (ResourceType.BROKER, ResourceType.CLIENT_METRICS)
_KNOWN_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN}


class ConfigHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_CONFIGS: self.describe_configs,
            ApiKey.ALTER_CONFIGS: self.alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self.incremental_alter_configs,
        }

    # --- DescribeConfigs ----------------------------------------------------------------------

    async def describe_configs(self, request: Request) -> DescribeConfigsResponse:
        body: DescribeConfigsRequest = request.body
        if any(resource.resource_type not in _KNOWN_TYPES for resource in body.resources):
            return _refuse_all(body, "it asks for a type of resource that does not exist")
        if len(body.resources) > _RESOURCES_MAX:
            return _refuse_all(body, f"it asks for more than {_RESOURCES_MAX} resources")
        entries = ConfigEntries(self._services.store)
        results = []
        for number, resource in enumerate(body.resources):
            if number % _RESOURCES_AT_ONCE == _RESOURCES_AT_ONCE - 1:
                await asyncio.sleep(0)
            try:
                shown = self._entries(resource, entries)
            except StratalogError as error:
                result = DescribeConfigsResult(code_of(error), message_of(error))
            else:
                result = DescribeConfigsResult(configs=_described(shown, resource, body))
            results.append(
                result._replace(
                    resource_type=resource.resource_type, resource_name=resource.resource_name
                )
            )
        return DescribeConfigsResponse(results=results)

    def _entries(
        self, resource: DescribeConfigsResource, entries: ConfigEntries
    ) -> list[ConfigEntry]:
        kind, name = resource.resource_type, resource.resource_name
        if kind == ResourceType.TOPIC:
            topic = self._services.store.image.topic(validate_topic_name(name))
            return [*entries.of_topic(topic.configs)]
        if kind == ResourceType.BROKER:
            if not name:
                return [*entries.of_all_brokers()]
            self._check_node(name)
            return [*entries.of_broker()]
        if kind == ResourceType.BROKER_LOGGER:
            self._check_node(name)
            return []
        if not name:
            raise InvalidRequestError(f"a resource of type {ResourceType(kind).name} has a name")
        return [
            *(entries.of_group() if kind == ResourceType.GROUP else entries.of_client_metrics())
        ]

    def _check_node(self, name: str) -> None:
        node_id = self._services.node_id
        if name != str(node_id):
            raise InvalidRequestError(f"{name!r} is not this node's id, which is {node_id}")

    # --- changing -----------------------------------------------------------------------------

    async def alter_configs(self, request: Request) -> replacing.AlterConfigsResponse:
        """All that a resource overrides, from now on."""
        body: replacing.AlterConfigsRequest = request.body
        answers = await self._alter_each(
            body.resources, lambda resource: self._replace(resource, body.validate_only)
        )
        return replacing.AlterConfigsResponse(
            responses=[replacing.AlterConfigsResourceResponse(*each) for each in answers]
        )

    async def incremental_alter_configs(
        self, request: Request
    ) -> altering.IncrementalAlterConfigsResponse:
        body: altering.IncrementalAlterConfigsRequest = request.body
        answers = await self._alter_each(
            body.resources, lambda resource: self._alter(resource, body.validate_only)
        )
        return altering.IncrementalAlterConfigsResponse(
            responses=[altering.AlterConfigsResourceResponse(*each) for each in answers]
        )

    async def _alter_each(
        self, resources: Sequence[Any], alter: Callable[[Any], Awaitable[None]]
    ) -> list[tuple[int, str | None, int, str]]:
        counts = Counter((each.resource_type, each.resource_name) for each in resources)
        answers = []
        for resource in resources:
            kind, name = resource.resource_type, resource.resource_name
            code, message = ErrorCode.NONE, None
            try:
                if counts[kind, name] > 1:
                    raise InvalidRequestError("a resource is there more than once in one request")
                if len(counts) > _RESOURCES_MAX:
                    raise InvalidRequestError(f"there are more than {_RESOURCES_MAX} resources")
                _check_changes(resource)
                await alter(resource)
            except StratalogError as error:
                code, message = code_of(error), message_of(error)
                if kind in _WRONG_REQUESTS and isinstance(error, ConfigError):
                    code = ErrorCode.INVALID_REQUEST
            answers.append((int(code), message, kind, name))
        return answers

    async def _replace(self, resource: replacing.AlterConfigsResource, validate_only: bool) -> None:
        configs = dict(resource.configs)
        if resource.resource_type in _DEFAULTS_ALONE:
            _refuse_other_than_defaults(resource, configs)
            return
        if resource.resource_type == ResourceType.TOPIC:
            name = self._known_topic(resource.resource_name, configs)
            await self._services.topics.replace_topic_configs(
                name, configs, validate_only=validate_only
            )
        else:
            await self._services.topics.replace_broker_configs(
                self._node(resource), configs, validate_only=validate_only
            )

    async def _alter(self, resource: altering.AlterConfigsResource, validate_only: bool) -> None:
        changes = [_change(config) for config in resource.configs]
        if resource.resource_type in _DEFAULTS_ALONE:
            deleted = ConfigOperation.DELETE
            kept = {each.name: each.value for each in changes if each.operation is not deleted}
            _refuse_other_than_defaults(resource, kept)
            return
        if resource.resource_type == ResourceType.TOPIC:
            given = {
                change.name: change.value
                for change in changes
                if change.operation is ConfigOperation.SET
            }
            name = self._known_topic(resource.resource_name, given)
            await self._services.topics.alter_topic_configs(
                name, changes, validate_only=validate_only
            )
        else:
            await self._services.topics.alter_broker_configs(
                self._node(resource), changes, validate_only=validate_only
            )

    def _known_topic(self, name: str, configs: dict[str, str | None]) -> str:
        """A topic that is there. Of one that is not, bad configs are complained about first."""
        if not name:
            raise InvalidRequestError("a topic has a name: there are no configs of all topics")
        validate_topic_name(name)
        if name not in self._services.store.image.topics:
            check_topic_configs(configs, self._services.config)
            raise UnknownTopicError(name)
        return name

    def _node(self, resource: Any) -> int | None:
        if resource.resource_type != ResourceType.BROKER:
            raise InvalidRequestError(
                f"configs of resource type {resource.resource_type} cannot be changed here"
            )
        if not resource.resource_name:
            return CLUSTER_DEFAULT
        self._check_node(resource.resource_name)
        return self._services.node_id


def _refuse_other_than_defaults(resource: Any, configs: Mapping[str, str | None]) -> None:
    kind = ResourceType(resource.resource_type)
    if not resource.resource_name:
        raise InvalidRequestError(f"a resource of type {kind.name} has a name")
    known, reason = _DEFAULTS_ALONE[kind]
    for name, text in configs.items():
        setting = known.get(name)
        if setting is None:
            raise ConfigError(name, text, f"there is no such setting of type {kind.name}")
        if setting.parse(text or "") != setting.default:
            raise ConfigError(
                name, text, f"{reason}; only {setting.text(setting.default)!r} can be"
            )


def _check_changes(resource: Any) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise InvalidRequestError("a config is there more than once for one resource")
    without = [
        config.name
        for config in resource.configs
        if config.value is None
        and getattr(config, "config_operation", ConfigOperation.SET) != ConfigOperation.DELETE
    ]
    if without:
        raise InvalidRequestError(f"there is no value for {', '.join(without)}")


def _change(config: altering.AlterableConfig) -> ConfigChange:
    try:
        operation = ConfigOperation(config.config_operation)
    except ValueError:
        raise InvalidRequestError(
            f"{config.config_operation} is nothing that can be done with a config"
        ) from None
    return ConfigChange(config.name, operation, config.value)


def _described(
    entries: Sequence[ConfigEntry], resource: DescribeConfigsResource, body: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    keys = resource.configuration_keys
    return [
        DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=False,
            synonyms=[DescribeConfigsSynonym(*each) for each in entry.synonyms]
            if body.include_synonyms
            else (),
            config_type=entry.type,
            documentation=entry.documentation if body.include_documentation else None,
        )
        for entry in entries
        if not keys or entry.name in keys
    ]


def _refuse_all(body: DescribeConfigsRequest, reason: str) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                ErrorCode.INVALID_REQUEST,
                f"the request is refused: {reason}",
                resource.resource_type,
                resource.resource_name,
            )
            for resource in body.resources
        ]
    )
