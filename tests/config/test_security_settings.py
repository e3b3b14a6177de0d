"""Each security setting of Kafka 4.3.1 is honoured, or refused with a reason: none passed over."""

import json
import re
from pathlib import Path

import pytest

from stratalog.config import BrokerConfig
from stratalog.config.broker_file import refused_security, served_config
from stratalog.config.elsewhere import REMOVED
from stratalog.config.security import HIDDEN, SECURITY_NAMES, open_value
from stratalog.errors import ConfigError, ConfigErrors
from stratalog.metadata.dynamic_configs import check_broker_configs

_TABLE = Path(__file__).with_name("kafka_4_3_1_broker_configs.json")
_KAFKAS = json.loads(_TABLE.read_text())
_SECURITY = re.compile(
    r"(sasl|ssl|security|delegation\.token|config\.providers)\b|.*(authorizer|principal|policy\.class"
    r"|listener|authentication|reauth|max\.connection|callback\.class)"
)
HONOURED = {
    "advertised.listeners",
    "controller.listener.names",
    "listener.security.protocol.map",
    "listeners",
    "max.connections",
    "max.connections.per.ip",
}
# Of one node without an authorizer these change nothing that a client can reach.
NO_DOORS = {
    "early.start.listeners",
    "inter.broker.listener.name",
    "remote.log.metadata.manager.listener.name",
}
# Settings of Kafka's own authorizer, which its table of broker settings does not have.
AUTHORIZERS = {"super.users", "allow.everyone.if.no.acl.found"}
SETTINGS = sorted(
    {name for name in [*_KAFKAS["settings"], *_KAFKAS["others"]] if _SECURITY.match(name)}
    | AUTHORIZERS
)


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - HONOURED - NO_DOORS))
@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext.", "listener.name.a.plain."])
def test_a_value_that_would_close_a_door_is_refused_with_name_and_reason(
    prefix: str, name: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        served_config({prefix + name: "12345"})

    assert refused.value.name == prefix + name
    assert len(refused.value.rule) > 30


@pytest.mark.parametrize("name", SECURITY_NAMES)
def test_a_value_that_closes_nothing_is_accepted(name: str) -> None:
    served_config({name: f" {open_value(name)} "})
    served_config({name: ""})


def test_the_table_has_no_name_that_is_not_kafkas() -> None:
    assert set(SECURITY_NAMES) == set(SETTINGS) - HONOURED - NO_DOORS


@pytest.mark.parametrize("name", SECURITY_NAMES)
def test_no_client_can_set_what_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError):
        check_broker_configs({name: "12345"}, BrokerConfig())


def test_a_listener_of_controllers_may_ask_for_anything_since_nobody_listens_there() -> None:
    served_config(
        {
            "listeners": "PLAINTEXT://127.0.0.1:1,CTL://:2",
            "controller.listener.names": "CTL",
            "listener.security.protocol.map": "CTL:SASL_SSL,PLAINTEXT:PLAINTEXT",
            "listener.name.ctl.ssl.client.auth": "required",
        }
    )


@pytest.mark.parametrize("limit", ["max.connections", "max.connections.per.ip"])
def test_a_limit_of_one_listener_is_refused_since_it_is_kept_over_all_only(limit: str) -> None:
    with pytest.raises(ConfigError, match="a limit of one listener is not kept here"):
        served_config({f"listener.name.plaintext.{limit}": "5"})


def test_no_secret_is_shown_in_a_refusal() -> None:
    secrets = [name for name in SECURITY_NAMES if re.search("password|jaas|secret|key$", name)]
    refused = refused_security(dict.fromkeys(secrets, "hunter2"))

    assert len(refused) == len(secrets) == 7
    assert {str(each.value) for each in refused} == {HIDDEN}


def test_all_complaints_about_a_file_are_told_at_once() -> None:
    with pytest.raises(ConfigErrors) as refused:
        served_config(
            {
                "authorizer.class.name": "A",
                "num.partitons": "1",
                "num.partitions": "none",
                "log.retention.hours": "x",
                "listeners": "SASL_SSL://:1",
            }
        )

    assert {error.name for error in refused.value.errors} == {
        "authorizer.class.name",
        "num.partitons",
        "num.partitions",
        "log.retention.hours",
        "listeners",
    }
    assert str(refused.value).count("\n") == 5


@pytest.mark.parametrize("name", ["plugin.setting", "zookeeper.connect", "confluent.x.reporter"])
def test_a_name_that_kafka_does_not_know_either_is_passed_over_with_a_warning(name: str) -> None:
    assert served_config({name: "1"}) == BrokerConfig()
    assert BrokerConfig.unknown_names({name: "1"}) == (name,)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("autorizer.class.name", "authorizer.class.name"),
        ("sasl.enabled.mechanism", "sasl.enabled.mechanisms"),
        ("log_retention_hours", "log.retention.hours"),
        ("super.user", "super.users"),
        (
            "listener.name.plaintext.sasl.enabled.mechanism",
            "listener.name.plaintext.sasl.enabled.mechanisms",
        ),
        (
            "listener.name.a.plain.sasl.jaas.confg",
            "listener.name.a.plain.sasl.jaas.config",
        ),
        ("metric.reporter", "metric.reporters"),
        ("remote.log.storage.system.enabled", "remote.log.storage.system.enable"),
    ],
)
def test_a_name_that_is_nearly_one_of_kafkas_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {re.escape(meant)}"):
        served_config({name: "1"})


def test_no_name_that_kafka_has_is_told_as_nearly_another() -> None:
    names = {**_KAFKAS["settings"], **dict.fromkeys(_KAFKAS["others"])}

    assert [name for name in names if not _is_known(name)] == []


def _is_known(name: str) -> bool:
    return name in REMOVED or not BrokerConfig.unknown_names({name: "1"})


def test_a_mechanism_that_somebody_else_has_made_is_refused_too() -> None:
    name = "listener.name.plaintext.aws_msk_iam.sasl.jaas.config"

    with pytest.raises(ConfigError, match="SASL is not served"):
        served_config({name: "secret"})


@pytest.mark.parametrize(
    ("name", "asking", "open_values"),
    [
        ("cordoned.log.dirs", "/data", ["", " "]),
        ("kafka.metrics.reporters", "a.B", [""]),
        ("metric.reporters", "a.B", ["", "org.apache.kafka.common.metrics.JmxReporter"]),
        ("remote.log.storage.system.enable", "true", ["", "false", " FALSE "]),
    ],
)
def test_a_file_that_asks_for_what_is_not_done_is_refused_with_the_reason(
    name: str, asking: str, open_values: list[str]
) -> None:
    for value in open_values:
        served_config({name: value})
    with pytest.raises(ConfigError, match=r"here|JVM") as refused:
        served_config({name: asking})
    assert refused.value.name == name


def test_a_value_without_effect_that_kafka_would_refuse_is_refused_in_a_file() -> None:
    with pytest.raises(ConfigError, match=r"num\.io\.threads"):
        served_config({"num.io.threads": "many"})
