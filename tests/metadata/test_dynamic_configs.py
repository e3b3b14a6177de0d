"""Configs altered by requests: what each operation does, and what is refused as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.settings import settings_of
from stratalog.errors import ConfigError, InvalidRequestError
from stratalog.metadata import ConfigChange, ConfigOperation
from stratalog.metadata.dynamic_configs import (
    CONFIG_TEXT_LENGTH_MAX,
    DYNAMIC_BROKER_CONFIGS,
    alter_broker_configs,
    alter_topic_configs,
    check_broker_configs,
    check_topic_configs,
    effective_broker,
)

BROKER = BrokerConfig()
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
APPEND, SUBTRACT = ConfigOperation.APPEND, ConfigOperation.SUBTRACT

SIZES = ("1048576", "2097152")
names = st.sampled_from(("retention.ms", "segment.bytes", "flush.ms"))
changes = st.lists(
    st.builds(
        ConfigChange, names, st.sampled_from((SET, DELETE)), st.sampled_from(("1048576", "2097152"))
    ),
    unique_by=lambda change: change.name,
)


@given(changes, st.dictionaries(names, st.just("3145728")))
def test_setting_and_deleting_is_what_it_is_for_a_dictionary(
    altering: list[ConfigChange], before: dict[str, str]
) -> None:
    model = dict(before)
    for change in altering:
        if change.operation is SET:
            model[change.name] = change.value
        else:
            model.pop(change.name, None)
    assert alter_topic_configs(before, altering, BROKER) == model


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        ({}, APPEND, "compact", "delete,compact"),
        ({"cleanup.policy": "compact"}, APPEND, "compact", "compact"),
        ({"cleanup.policy": "compact,delete"}, SUBTRACT, "delete", "compact"),
        ({"cleanup.policy": "compact"}, SUBTRACT, "compact,delete", ""),
    ],
)
def test_lists_are_appended_to_and_cut_down(
    before: dict[str, str], operation: ConfigOperation, value: str, after: str
) -> None:
    change = ConfigChange("cleanup.policy", operation, value)
    assert alter_topic_configs(before, [change], BROKER) == {"cleanup.policy": after}


def test_a_list_that_is_not_overridden_is_the_brokers() -> None:
    broker = BrokerConfig(log_cleanup_policy=("compact",))
    change = ConfigChange("cleanup.policy", APPEND, "delete")
    assert alter_topic_configs({}, [change], broker) == {"cleanup.policy": "compact,delete"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (ConfigChange("retention.ms", APPEND, "1"), ConfigError),
        (ConfigChange("retention.ms", SUBTRACT, "1"), ConfigError),
        (ConfigChange("no.such", APPEND, "1"), ConfigError),
        (ConfigChange("no.such", SET, "1"), ConfigError),
        (ConfigChange("retention.ms", SET, None), ConfigError),
        (ConfigChange("retention.ms", SET, "-2"), ConfigError),
        (ConfigChange("segment.bytes", DELETE), InvalidRequestError),
    ],
)
def test_one_refused_change_refuses_them_all(change: ConfigChange, error: type[Exception]) -> None:
    fine = ConfigChange("segment.bytes", SET, "2097152")
    with pytest.raises(error):
        alter_topic_configs({}, [fine, change], BROKER)


def test_deleting_what_is_not_there_changes_nothing() -> None:
    assert alter_topic_configs({}, [ConfigChange("no.such", DELETE)], BROKER) == {}


def test_a_topic_must_fit_what_its_broker_says() -> None:
    broker = BrokerConfig(log_cleaner_max_compaction_lag_ms=5)
    with pytest.raises(ConfigError, match=r"max\.compaction\.lag\.ms=5"):
        check_topic_configs({"min.compaction.lag.ms": "6"}, broker)


@pytest.mark.parametrize("text", ["9" * (CONFIG_TEXT_LENGTH_MAX + 1), "\ud800"])
def test_text_that_no_store_could_keep_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        check_broker_configs({"num.io.threads": text}, BROKER)


def test_only_what_kafka_lets_be_changed_is_changed_while_a_broker_runs() -> None:
    change = ConfigChange("log.retention.ms", SET, "5")
    assert alter_broker_configs({}, [change], BROKER) == {"log.retention.ms": "5"}
    for name, text in (("log.dirs", "/d"), ("log.retention.hours", "5"), ("no.such", "1")):
        with pytest.raises(ConfigError):
            alter_broker_configs({}, [ConfigChange(name, SET, text)], BROKER)


def test_what_can_be_changed_covers_the_defaults_of_topics() -> None:
    """Kafka leaves out the coarser spellings and the scheduler's interval."""
    for setting in settings_of(TopicConfig).values():
        if setting.synonyms:
            assert setting.synonyms[0] in DYNAMIC_BROKER_CONFIGS


def test_dynamic_configs_lie_over_those_a_broker_was_started_with() -> None:
    broker = BrokerConfig(log_retention_ms=1, log_retention_bytes=2)
    effective = effective_broker(broker, {"log.retention.ms": "3"})
    assert (effective.log_retention_ms, effective.log_retention_bytes) == (3, 2)
