"""Our settings against tables that Apache Kafka 4.3.1 printed of its own.

``*_configs.json`` are its definitions; ``values.json`` says for many texts which value Kafka made
of them for each topic setting (a text that is missing was refused), and what a broker resolved.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.elsewhere import REMOVED, is_elsewhere
from stratalog.config.settings import Kind, Setting, settings_of
from stratalog.errors import ConfigError


def kafkas(what: str) -> Any:
    return json.loads(Path(__file__).with_name(f"kafka_4_3_1_{what}.json").read_text())


TOPIC = kafkas("topic_configs")
BROKER = kafkas("broker_configs")
VALUES = kafkas("values")
KAFKAS_BROKER = {name: each for name, each in settings_of(BrokerConfig).items() if not each.ours}

# Deliberate: each is listed in docs/reference/config.md.
OURS_ONLY_REFUSE = {("remote.storage.enable", "true"), ("remote.storage.enable", " TRUE ")} | {
    ("internal.segment.bytes", text)
    for text in VALUES["accepted"]["internal.segment.bytes"]
    if int(text) < 14
}
OUR_DEFAULTS = {"listeners": "PLAINTEXT://127.0.0.1:9092"}


def test_topic_names_are_kafkas() -> None:
    assert sorted(settings_of(TopicConfig)) == sorted(TOPIC)


def test_broker_names_are_kafkas_or_marked_as_ours() -> None:
    assert sorted(KAFKAS_BROKER) == sorted(BROKER["settings"])


@pytest.mark.parametrize("name", TOPIC)
def test_a_topic_setting_is_defined_as_in_kafka(name: str) -> None:
    ours, theirs = settings_of(TopicConfig)[name], TOPIC[name]

    _assert_same_definition(ours, theirs)
    assert list(ours.synonyms) == theirs["synonyms"]


@pytest.mark.parametrize("name", BROKER["settings"])
def test_a_broker_setting_is_defined_as_in_kafka(name: str) -> None:
    _assert_same_definition(KAFKAS_BROKER[name], BROKER["settings"][name])


def _assert_same_definition(ours: Setting, theirs: dict[str, Any]) -> None:
    # A class is a name to us.
    assert ours.kind.value == {"CLASS": "string"}.get(theirs["type"], theirs["type"].lower())
    default = None if ours.default is None else ours.text(ours.default)
    assert default == OUR_DEFAULTS.get(ours.name, theirs["default"])
    assert ours.internal == theirs["internal"]
    if ours.name != "internal.segment.bytes":
        assert _valid(ours) == (theirs["valid"] or "")


def _valid(ours: Setting) -> str:
    """The rule as Kafka's validators print it."""
    if ours.matches is not None:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    if ours.one_of:
        return f"[{', '.join(ours.one_of)}]"
    if ours.at_least is None:
        assert ours.at_most is None
        return ""
    high = "" if ours.at_most is None else f",{ours.at_most}"
    return f"[{ours.at_least},...{high}]{'' if ours.or_equal is None else f' or {ours.or_equal}'}"


@pytest.mark.parametrize("name", VALUES["accepted"])
def test_texts_mean_what_they_mean_to_kafka(name: str) -> None:
    accepted = VALUES["accepted"][name]
    expected = {
        text: accepted.get(text) for text in VALUES["texts"] if (name, text) not in OURS_ONLY_REFUSE
    }

    assert {text: _read(name, text) for text in expected} == expected


@pytest.mark.parametrize(("name", "text"), sorted(OURS_ONLY_REFUSE))
def test_what_only_we_refuse_is_refused(name: str, text: str) -> None:
    assert _read(name, text) is None


def _read(name: str, text: str) -> str | None:
    try:
        return TopicConfig.from_properties({name: text}).to_properties()[name]
    except ConfigError as refused:
        return None if refused.name == name else f"refused because of {refused.name}"


@pytest.mark.parametrize(("properties", "resolved"), VALUES["broker"])
def test_a_broker_resolves_what_kafka_resolves(
    properties: dict[str, str], resolved: dict[str, Any] | None
) -> None:
    if resolved is None:
        with pytest.raises(ConfigError):
            TopicConfig.from_properties({}, broker=BrokerConfig.from_properties(properties))
        return
    broker = BrokerConfig.from_properties(properties)
    topic = TopicConfig.from_properties({}, broker=broker)

    assert {
        "dirs": list(broker.log_directories),
        "retention.ms": topic.retention_ms,
        "segment.ms": topic.segment_ms,
        "segment.jitter.ms": topic.segment_jitter_ms,
        "flush.ms": topic.flush_ms,
    } == resolved


def test_every_other_broker_setting_of_kafka_is_accepted_and_reported_unused() -> None:
    others = dict.fromkeys(BROKER["others"], "x")

    assert BrokerConfig.from_properties(others) == BrokerConfig()
    assert list(BrokerConfig.unused_names(others)) == BROKER["others"]


def test_no_setting_that_kafka_still_has_is_called_removed() -> None:
    assert set(REMOVED).isdisjoint(BROKER["others"])
    assert set(REMOVED).isdisjoint(BROKER["settings"])
    assert not any(is_elsewhere(name) for name in REMOVED)


def test_a_topic_without_a_broker_has_the_values_of_one_with_an_unchanged_broker() -> None:
    assert TopicConfig.from_properties({}, broker=BrokerConfig()) == TopicConfig()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-123456789.5, "-1.234567895E8"),
        (1e22, "1.0E22"),
        (0.0, "0.0"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    setting = settings_of(BrokerConfig)["log.cleaner.io.max.bytes.per.second"]

    assert setting.kind is Kind.DOUBLE
    assert setting.text(value) == text
    assert setting.parse(text) == value
