"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, in all their versions."""

from pathlib import Path
from typing import Any

import pytest
from asking import Asking, versions, with_broker
from broker_parts import create_topic
from hypothesis import given
from hypothesis import strategies as st

from stratalog.broker.config_entries import ConfigEntries, ConfigSource
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.settings import settings_of
from stratalog.metadata.dynamic_configs import DYNAMIC_BROKER_CONFIGS, effective_broker
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages import alter_configs as replacing
from stratalog.protocol.messages import incremental_alter_configs as altering
from stratalog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from stratalog.storage.layout import TopicPartition

DESCRIBE, REPLACE, ALTER = (
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
)
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, UNSET, APPEND, SUBTRACT = range(4)


async def described(
    client: Asking, kind: int, name: str, *keys: str, version: int | None = None, **fields: Any
) -> dict[str, Any]:
    resource = DescribeConfigsResource(kind, name, keys or None)
    answer = await client.ask(DESCRIBE, DescribeConfigsRequest((resource,), **fields), version)
    (result,) = answer.results
    assert (result.error_code, result.resource_type, result.resource_name) == (0, kind, name)
    return {each.name: each for each in result.configs}


async def refusal(client: Asking, kind: int, name: str) -> int:
    resource = DescribeConfigsResource(kind, name, None)
    answer = await client.ask(DESCRIBE, DescribeConfigsRequest((resource,)))
    (result,) = answer.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert not result.configs
    code: int = result.error_code
    return code


async def alter(
    client: Asking, kind: int, name: str, *configs: tuple[str, int, str | None], **fields: Any
) -> int:
    resource = altering.AlterConfigsResource(
        kind, name, tuple(altering.AlterableConfig(*each) for each in configs)
    )
    body = altering.IncrementalAlterConfigsRequest((resource,), **fields)
    (response,) = (await client.ask(ALTER, body)).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    assert (response.error_message is None) == (response.error_code == 0)
    code: int = response.error_code
    return code


async def replace(client: Asking, kind: int, name: str, **configs: str | None) -> int:
    pairs = tuple(
        replacing.AlterableConfig(key.replace("_", "."), text) for key, text in configs.items()
    )
    resource = replacing.AlterConfigsResource(kind, name, pairs)
    (response,) = (await client.ask(REPLACE, replacing.AlterConfigsRequest((resource,)))).responses
    code: int = response.error_code
    return code


# --- describing -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(DESCRIBE))
def test_every_version_describes_a_topic(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", retention_ms="5", cleanup_policy="compact")
        configs = await described(client, TOPIC, "orders", version=version, include_synonyms=True)
        wanted = {name for name, each in settings_of(TopicConfig).items() if not each.internal}
        assert set(configs) == wanted
        retention = configs["retention.ms"]
        assert (retention.value, retention.config_source) == ("5", ConfigSource.TOPIC)
        assert not retention.read_only
        assert not retention.is_sensitive
        assert [tuple(each) for each in configs["cleanup.policy"].synonyms] == [
            ("cleanup.policy", "compact", ConfigSource.TOPIC),
            ("log.cleanup.policy", "delete", ConfigSource.DEFAULT),
        ]
        if version >= 3:
            assert (retention.config_type, configs["cleanup.policy"].config_type) == (5, 7)
            assert retention.documentation is None

    with_broker(tmp_path, scenario)


def test_synonyms_and_documentation_come_only_to_who_asks(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        plain = await described(client, TOPIC, "orders")
        assert not any(each.synonyms for each in plain.values())
        assert {each.documentation for each in plain.values()} == {None}
        fully = await described(
            client, TOPIC, "orders", include_synonyms=True, include_documentation=True
        )
        assert fully["segment.bytes"].synonyms
        assert all(each.documentation for each in fully.values())

    with_broker(tmp_path, scenario)


def test_only_the_keys_asked_for_are_described(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        asked = await described(client, TOPIC, "orders", "retention.ms", "no.such.config")
        assert [*asked] == ["retention.ms"]
        resource = DescribeConfigsResource(TOPIC, "orders", ())
        answer = await client.ask(DESCRIBE, DescribeConfigsRequest((resource,)))
        assert len(answer.results[0].configs) > 20

    with_broker(tmp_path, scenario)


def test_what_cannot_be_described_has_kafkas_errors(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        here = str(client.services.node_id)
        other = str(client.services.node_id + 1)
        assert await refusal(client, TOPIC, "unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await refusal(client, TOPIC, "no/name") == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await refusal(client, BROKER, other) == ErrorCode.INVALID_REQUEST
        assert await refusal(client, BROKER, "one") == ErrorCode.INVALID_REQUEST
        assert await refusal(client, LOGGER, "") == ErrorCode.INVALID_REQUEST
        assert await refusal(client, LOGGER, here) == 0
        assert await refusal(client, CLIENT_METRICS, "") == ErrorCode.INVALID_REQUEST
        assert await refusal(client, GROUP, "") == ErrorCode.INVALID_REQUEST
        resources = (
            DescribeConfigsResource(BROKER, here, None),
            DescribeConfigsResource(99, "x", None),
        )
        answer = await client.ask(DESCRIBE, DescribeConfigsRequest(resources))
        assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST] * 2

    with_broker(tmp_path, scenario)


THROTTLE = "leader.replication.throttled.rate"


def test_what_changes_nothing_on_one_node_is_kept_and_told_until_it_is_deleted(
    tmp_path: Path,
) -> None:
    async def scenario(client: Asking) -> None:
        here = str(client.services.node_id)
        before = client.services.config
        assert THROTTLE not in await described(client, BROKER, here)
        for name, text in ((THROTTLE, "5"), ("metric.reporters", ""), ("num.io.threads", "4")):
            assert await alter(client, BROKER, here, (name, SET, text)) == 0
        assert await alter(client, BROKER, "", (THROTTLE, SET, "7")) == 0
        told = (await described(client, BROKER, here))[THROTTLE]
        assert (told.value, told.read_only) == ("5", False)
        assert told.config_source == ConfigSource.DYNAMIC_BROKER
        assert (await described(client, BROKER, ""))[THROTTLE].value == "7"
        assert await alter(client, BROKER, here, (THROTTLE, UNSET, None)) == 0
        assert (await described(client, BROKER, here))[THROTTLE].value == "7"
        assert client.services.config == before

    with_broker(tmp_path, scenario)


def test_groups_and_client_metrics_have_kafkas_defaults_and_can_be_set_to_those_alone(
    tmp_path: Path,
) -> None:
    async def scenario(client: Asking) -> None:
        for kind in (GROUP, CLIENT_METRICS):
            configs = await described(client, kind, "x")
            for name, entry in configs.items():
                assert entry.config_source == ConfigSource.DEFAULT
                assert await alter(client, kind, "x", (name, SET, entry.value)) == 0
                assert await alter(client, kind, "x", (name, UNSET, None)) == 0

    with_broker(tmp_path, scenario)


def test_each_resource_of_a_request_has_its_own_answer(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        names = ["orders", "unknown"] * 5
        resources = tuple(DescribeConfigsResource(TOPIC, name, None) for name in names)
        answer = await client.ask(DESCRIBE, DescribeConfigsRequest(resources))
        assert [(each.resource_name, each.error_code) for each in answer.results] == [
            ("orders", 0),
            ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ] * 5

    with_broker(tmp_path, scenario)


def test_no_request_is_answered_with_a_thousand_times_its_size(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "a")
        resources = (DescribeConfigsResource(TOPIC, "a", None),) * 10_001
        answer = await client.ask(DESCRIBE, DescribeConfigsRequest(resources))
        assert {each.error_code for each in answer.results} == {ErrorCode.INVALID_REQUEST}
        assert not any(each.configs for each in answer.results)
        change = (altering.AlterableConfig("retention.ms", SET, "5"),)
        changes = tuple(
            altering.AlterConfigsResource(TOPIC, f"t{n}", change) for n in range(10_001)
        )
        answer = await client.ask(ALTER, altering.IncrementalAlterConfigsRequest(changes))
        assert {each.error_code for each in answer.responses} == {ErrorCode.INVALID_REQUEST}

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(DESCRIBE))
def test_every_version_describes_this_broker(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        here = str(client.services.node_id)
        configs = await described(client, BROKER, here, version=version, include_synonyms=True)
        wanted = {name for name, each in settings_of(BrokerConfig).items() if not each.internal}
        assert set(configs) == wanted
        assert {name for name, each in configs.items() if not each.read_only} == (
            wanted & DYNAMIC_BROKER_CONFIGS
        )
        partitions = configs["num.partitions"]
        assert (partitions.value, partitions.config_source) == ("3", ConfigSource.STATIC_BROKER)
        assert [tuple(each) for each in partitions.synonyms] == [
            ("num.partitions", "3", ConfigSource.STATIC_BROKER),
            ("num.partitions", "1", ConfigSource.DEFAULT),
        ]
        assert configs["log.retention.ms"].value is None
        assert configs["log.retention.hours"].value == "168"

    with_broker(tmp_path, scenario, num_partitions=3)


def test_the_source_of_a_value_is_the_nearest_place_that_sets_it(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        here = str(client.services.node_id)

        async def told(kind: int, name: str, key: str) -> tuple[str, int, list[tuple[Any, ...]]]:
            each = (await described(client, kind, name, key, include_synonyms=True))[key]
            return each.value, each.config_source, [tuple(s)[1:] for s in each.synonyms]

        default = ("1048588", ConfigSource.DEFAULT)
        static = ("200", ConfigSource.STATIC_BROKER)
        cluster = ("300", ConfigSource.DYNAMIC_DEFAULT_BROKER)
        node = ("400", ConfigSource.DYNAMIC_BROKER)
        own = ("500", ConfigSource.TOPIC)
        key, broker_key = "max.message.bytes", "message.max.bytes"
        assert await told(TOPIC, "orders", key) == (*static, [static, default])
        assert await alter(client, BROKER, "", (broker_key, SET, "300")) == 0
        assert await told(TOPIC, "orders", key) == (*cluster, [cluster, static, default])
        assert await told(BROKER, "", broker_key) == (*cluster, [cluster])
        assert await alter(client, BROKER, here, (broker_key, SET, "400")) == 0
        assert await told(BROKER, here, broker_key) == (*node, [node, cluster, static, default])
        assert await alter(client, TOPIC, "orders", (key, SET, "500")) == 0
        assert await told(TOPIC, "orders", key) == (*own, [own, node, cluster, static, default])
        for kind, name, each in ((TOPIC, "orders", key), (BROKER, here, broker_key)):
            assert await alter(client, kind, name, (each, UNSET, None)) == 0
        assert await told(TOPIC, "orders", key) == (*cluster, [cluster, static, default])

    with_broker(tmp_path, scenario, message_max_bytes=200)


def test_a_config_with_several_names_shows_synonyms_from_its_main_name_on(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")

        async def told() -> tuple[str, int, list[tuple[Any, ...]]]:
            (each,) = (
                await described(client, TOPIC, "orders", "retention.ms", include_synonyms=True)
            ).values()
            return each.value, each.config_source, [tuple(s) for s in each.synonyms]

        assert await told() == ("3600000", ConfigSource.DEFAULT, [])
        assert await alter(client, BROKER, "", ("log.retention.ms", SET, "7")) == 0
        assert await told() == (
            "7",
            ConfigSource.DYNAMIC_DEFAULT_BROKER,
            [
                ("log.retention.ms", "7", ConfigSource.DYNAMIC_DEFAULT_BROKER),
                ("log.retention.hours", "1", ConfigSource.STATIC_BROKER),
                ("log.retention.hours", "168", ConfigSource.DEFAULT),
            ],
        )

    with_broker(tmp_path, scenario, log_retention_hours=1)


class FixedStore:
    """A store of which only the configs count."""

    def __init__(self, static: dict[str, str], cluster: dict[str, str], node: dict[str, str]):
        self.static_broker = BrokerConfig.from_properties(static)
        self.image = self
        self.node_id = 1
        self.broker_configs = {None: cluster, 1: node}
        self.broker = effective_broker(self.static_broker, {**cluster, **node})


SIZES = st.dictionaries(
    st.sampled_from(["message.max.bytes", "log.segment.delete.delay.ms", "log.retention.ms"]),
    st.integers(min_value=1, max_value=10**6).map(str),
)


@given(static=SIZES, cluster=SIZES, node=SIZES, own=st.booleans())
def test_what_is_shown_is_what_counts(
    static: dict[str, str], cluster: dict[str, str], node: dict[str, str], own: bool
) -> None:
    store: Any = FixedStore(static, cluster, node)
    overrides = {"retention.ms": "12"} if own else {}
    entries = {entry.name: entry for entry in ConfigEntries(store).of_topic(overrides)}
    effective = TopicConfig.from_properties(overrides, broker=store.broker)
    for name, each in settings_of(TopicConfig).items():
        if not each.internal:
            assert entries[name].value == each.text(getattr(effective, name.replace(".", "_")))
    for entry in [*entries.values(), *ConfigEntries(store).of_broker()]:
        if entry.synonyms:
            assert (entry.value, entry.source) == (
                entry.synonyms[0].value,
                entry.synonyms[0].source,
            )
            assert [*entry.synonyms] == sorted(entry.synonyms, key=lambda synonym: synonym.source)
        else:
            assert entry.source is ConfigSource.DEFAULT


# --- altering ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ALTER))
def test_every_version_alters_some_configs_and_leaves_the_others(
    tmp_path: Path, version: int
) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", retention_ms="5", segment_ms="6")
        resource = altering.AlterConfigsResource(
            TOPIC,
            "orders",
            (
                altering.AlterableConfig("retention.ms", UNSET, None),
                altering.AlterableConfig("segment.bytes", SET, "2000000"),
            ),
        )
        body = altering.IncrementalAlterConfigsRequest((resource,))
        (response,) = (await client.ask(ALTER, body, version)).responses
        assert tuple(response) == (0, None, TOPIC, "orders")
        expected = {"segment.ms": "6", "segment.bytes": "2000000"}
        assert client.services.store.image.topic("orders").configs == expected
        log = client.services.replicas.get(TopicPartition("orders", 0)).log
        assert log.config.to_properties() == expected

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(REPLACE))
def test_every_version_replaces_all_configs(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", retention_ms="5", segment_ms="6")
        pairs = (replacing.AlterableConfig("segment.bytes", "2000000"),)
        resource = replacing.AlterConfigsResource(TOPIC, "orders", pairs)
        body = replacing.AlterConfigsRequest((resource,))
        (response,) = (await client.ask(REPLACE, body, version)).responses
        assert tuple(response) == (0, None, TOPIC, "orders")
        expected = {"segment.bytes": "2000000"}
        assert client.services.store.image.topic("orders").configs == expected
        log = client.services.replicas.get(TopicPartition("orders", 0)).log
        assert log.config.to_properties() == expected

    with_broker(tmp_path, scenario)


def test_lists_are_appended_to_and_cut_down(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")

        def policy() -> str:
            return client.services.store.image.topic("orders").configs["cleanup.policy"]

        assert await alter(client, TOPIC, "orders", ("cleanup.policy", APPEND, "compact")) == 0
        assert policy() == "delete,compact"
        assert await alter(client, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")) == 0
        assert policy() == "compact"
        code = await alter(client, TOPIC, "orders", ("retention.ms", APPEND, "5"))
        assert code == ErrorCode.INVALID_CONFIG

    with_broker(tmp_path, scenario)


def test_changes_that_cannot_be_made_have_kafkas_errors_and_change_nothing(
    tmp_path: Path,
) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", retention_ms="5")
        here = str(client.services.node_id)
        before = client.services.store.image
        cases = [
            (ErrorCode.INVALID_CONFIG, TOPIC, "orders", [("retention.ms", SET, "soon")]),
            (ErrorCode.INVALID_CONFIG, TOPIC, "orders", [("no.such.config", SET, "1")]),
            (ErrorCode.INVALID_REQUEST, TOPIC, "orders", [("retention.ms", SET, None)]),
            (ErrorCode.INVALID_REQUEST, TOPIC, "orders", [("retention.ms", 9, "1")]),
            (
                ErrorCode.INVALID_REQUEST,
                TOPIC,
                "orders",
                [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            ),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC, "other", [("retention.ms", SET, "1")]),
            (ErrorCode.INVALID_CONFIG, TOPIC, "other", [("retention.ms", SET, "soon")]),
            (ErrorCode.INVALID_TOPIC_EXCEPTION, TOPIC, "no/name", [("retention.ms", SET, "1")]),
            (ErrorCode.INVALID_REQUEST, TOPIC, "", [("retention.ms", SET, "1")]),
            (ErrorCode.INVALID_REQUEST, BROKER, here, [("log.retention.ms", SET, "soon")]),
            (ErrorCode.INVALID_REQUEST, BROKER, here, [("num.partitions", SET, "3")]),
            (ErrorCode.INVALID_REQUEST, BROKER, "77", [("log.retention.ms", SET, "1")]),
            (ErrorCode.INVALID_REQUEST, BROKER, "x", [("log.retention.ms", SET, "1")]),
            (ErrorCode.INVALID_REQUEST, LOGGER, here, [("kafka", SET, "INFO")]),
            (ErrorCode.INVALID_CONFIG, GROUP, "g", [("x", SET, "1")]),
            (ErrorCode.INVALID_CONFIG, GROUP, "g", [("consumer.session.timeout.ms", SET, "46000")]),
            (ErrorCode.INVALID_REQUEST, GROUP, "", [("consumer.session.timeout.ms", SET, "1")]),
            (ErrorCode.INVALID_REQUEST, CLIENT_METRICS, "m", [("interval.ms", SET, "1000")]),
            (ErrorCode.INVALID_REQUEST, BROKER, here, [("metric.reporters", SET, "a.B")]),
            (ErrorCode.INVALID_REQUEST, BROKER, here, [("cordoned.log.dirs", SET, "*")]),
            (
                ErrorCode.INVALID_REQUEST,
                BROKER,
                here,
                [("leader.replication.throttled.rate", SET, "-1")],
            ),
            (ErrorCode.INVALID_REQUEST, 99, "g", [("x", SET, "1")]),
        ]
        for code, kind, name, configs in cases:
            assert (await alter(client, kind, name, *configs), kind, name) == (code, kind, name)
        assert client.services.store.image is before
        assert await replace(client, TOPIC, "orders", retention_ms=None) == (
            ErrorCode.INVALID_REQUEST
        )
        assert await replace(client, BROKER, here, num_partitions="3") == ErrorCode.INVALID_REQUEST
        assert await replace(client, TOPIC, "other") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.services.store.image is before

    with_broker(tmp_path, scenario)


def test_a_resource_that_is_there_twice_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        for name in ("a", "b"):
            await create_topic(client.services, name)
        change = (altering.AlterableConfig("retention.ms", SET, "5"),)
        resources = tuple(altering.AlterConfigsResource(TOPIC, name, change) for name in "aba")
        body = altering.IncrementalAlterConfigsRequest(resources)
        answer = await client.ask(ALTER, body)
        assert [(each.resource_name, each.error_code) for each in answer.responses] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("b", 0),
            ("a", ErrorCode.INVALID_REQUEST),
        ]
        assert client.services.store.image.topic("a").configs == {}

    with_broker(tmp_path, scenario)


def test_what_is_validated_only_changes_nothing(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        before = client.services.store.image
        for kind, name, key in (
            (TOPIC, "orders", "retention.ms"),
            (BROKER, "", "log.retention.ms"),
        ):
            assert await alter(client, kind, name, (key, SET, "5"), validate_only=True) == 0
        assert client.services.store.image is before

    with_broker(tmp_path, scenario)


def test_a_brokers_configs_are_replaced_as_a_whole(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        here = str(client.services.node_id)
        assert await replace(client, BROKER, here, log_retention_ms="5") == 0
        assert await replace(client, BROKER, here, log_segment_bytes="2000000") == 0
        assert client.services.store.broker.log_retention_ms is None
        assert client.services.logs.config.log_segment_bytes == 2_000_000
        assert await replace(client, BROKER, "", log_retention_ms="6") == 0
        assert client.services.logs.config.log_retention_ms == 6

    with_broker(tmp_path, scenario)
