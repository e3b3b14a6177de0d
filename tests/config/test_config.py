"""Topic and broker configuration: what wins, what is refused, and that errors say why."""

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.settings import Kind, Setting, settings_of
from stratalog.errors import ConfigError

BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def values_of(setting: Setting) -> st.SearchStrategy[Any]:
    """Any value that the setting's own rule allows."""
    if setting.kind is Kind.BOOLEAN:
        return st.booleans()
    if setting.kind is Kind.STRING:
        return st.sampled_from(setting.one_of)
    if setting.kind is Kind.DOUBLE:
        return st.floats(setting.at_least, setting.at_most, allow_nan=False)
    if setting.kind is Kind.LIST and setting.matches:
        pair = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda two: f"{two[0]}:{two[1]}")
        return st.just(("*",)) | st.lists(pair, max_size=3).map(tuple)
    if setting.kind is Kind.LIST:
        return st.lists(st.sampled_from(setting.one_of), unique=True).map(tuple)
    low = -(1 << BITS[setting.kind] - 1) if setting.at_least is None else int(setting.at_least)
    high = (1 << BITS[setting.kind] - 1) - 1 if setting.at_most is None else int(setting.at_most)
    return st.integers(low, high)


@st.composite
def topic_properties(draw: st.DrawFn) -> dict[str, str]:
    settings = settings_of(TopicConfig)
    free = [name for name in settings if name not in ("remote.storage.enable",)]
    chosen = draw(st.lists(st.sampled_from(free), unique=True))
    properties = {name: settings[name].text(draw(values_of(settings[name]))) for name in chosen}
    if all(name in properties for name in LAGS):
        lags = sorted((properties[name] for name in LAGS), key=int)
        properties |= dict(zip(LAGS, lags, strict=True))
    return properties


LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")


@given(topic_properties())
def test_overrides_read_back_the_same_whatever_the_broker_says(properties: dict[str, str]) -> None:
    broker = BrokerConfig(log_retention_hours=1, log_cleanup_policy=("compact",))
    config = TopicConfig.from_properties(properties, broker=broker)

    assert config.to_properties() == {
        name: properties[name] for name in settings_of(TopicConfig) if name in properties
    }
    assert TopicConfig.from_properties(config.to_properties(), broker=broker) == config
    assert TopicConfig.from_properties(config.to_properties(every=True)) == config
    assert pickle.loads(pickle.dumps(config)) == config


def test_a_topics_own_value_wins_even_where_it_equals_the_default() -> None:
    broker = BrokerConfig(log_retention_ms=5)
    own = TopicConfig.from_properties({"retention.ms": "604800000"}, broker=broker)

    assert own.retention_ms == 604800000
    assert own.to_properties() == {"retention.ms": "604800000"}
    assert TopicConfig.from_properties({}, broker=broker).to_properties() == {}


def test_made_directly_a_config_overrides_what_differs_from_the_default() -> None:
    config = TopicConfig(segment_ms=7, retention_ms=604800000, cleanup_policy=("compact",))

    assert config.to_properties() == {"cleanup.policy": "compact", "segment.ms": "7"}


def test_an_altered_config_overrides_what_was_altered() -> None:
    broker = BrokerConfig(log_roll_ms=9)
    config = TopicConfig.from_properties({"flush.ms": "3"}, broker=broker)

    assert config.altered(segment_ms=9).to_properties() == {"flush.ms": "3", "segment.ms": "9"}
    with pytest.raises(ConfigError, match=r"segment\.ms=0"):
        config.altered(segment_ms=0)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("segment_bytes", 1048575, "must be a whole number from 1048576 to 2147483647"),
        ("segment_bytes", 2**31, "must be a whole number from 1048576 to 2147483647"),
        ("index_interval_bytes", True, "must be a whole number from 0 to 2147483647"),
        ("segment_bytes", 2e6, "must be a whole number from 1048576 to 2147483647"),
        ("segment_bytes", "2097152", "must be a whole number from 1048576 to 2147483647"),
        ("segment_bytes", None, "must be a whole number from 1048576 to 2147483647"),
        ("min_cleanable_dirty_ratio", float("nan"), "must be a number from 0 to 1"),
        ("preallocate", 1, "must be true or false"),
        ("cleanup_policy", "compact", "must be a list of compact, delete, parted by commas"),
        ("compression_type", "brotli", "must be one of uncompressed, zstd, lz4, snappy, gzip"),
        ("compression_gzip_level", 0, "must be a whole number from 1 to 9, or -1"),
    ],
)
def test_a_refusal_names_the_setting_the_value_and_the_rule(
    field: str, value: object, sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        TopicConfig(**{field: value})

    assert str(refused.value).startswith(f"{field.replace('_', '.')}={value}: {sentence}")


@pytest.mark.parametrize(
    ("level", "name", "rule"),
    [
        (TopicConfig, "retention.mss", "did you mean retention.ms?"),
        (TopicConfig, "segment_bytes", "did you mean segment.bytes?"),
        (TopicConfig, "overrides", "there is no such topic setting"),
        (TopicConfig, "xyzzy", "there is no such topic setting"),
        (TopicConfig, "message.format.version", "was removed in Kafka 4.0"),
        (BrokerConfig, "log.retention.hour", "did you mean log.retention.hours?"),
        (BrokerConfig, "log.flush.onack", "did you mean log.flush.on.ack?"),
        (BrokerConfig, "log.message.format.version", "was removed in Kafka 4.0"),
        (BrokerConfig, "zookeeper.connect", "was removed in Kafka 4.0"),
    ],
)
def test_an_unknown_name_is_refused_with_the_likely_one(level: Any, name: str, rule: str) -> None:
    with pytest.raises(ConfigError) as refused:
        level.from_properties({name: "1"})

    assert refused.value.rule.endswith(rule)


def test_the_lags_of_compaction_may_not_cross() -> None:
    assert TopicConfig(min_compaction_lag_ms=5, max_compaction_lag_ms=5).min_compaction_lag_ms == 5
    with pytest.raises(ConfigError, match=r"must not exceed max\.compaction\.lag\.ms=5"):
        TopicConfig(min_compaction_lag_ms=6, max_compaction_lag_ms=5)


def test_lags_cross_also_when_one_of_them_is_the_brokers() -> None:
    broker = BrokerConfig(log_cleaner_min_compaction_lag_ms=60)

    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms=60"):
        TopicConfig.from_properties({"max.compaction.lag.ms": "59"}, broker=broker)


def test_the_internal_segment_size_goes_below_the_public_bound() -> None:
    assert TopicConfig().segment_size_bytes == 1 << 30
    assert TopicConfig(segment_bytes=2 << 20).segment_size_bytes == 2 << 20
    assert TopicConfig(segment_bytes=2 << 20, internal_segment_bytes=14).segment_size_bytes == 14
    with pytest.raises(ConfigError, match=r"internal\.segment\.bytes=13"):
        TopicConfig(internal_segment_bytes=13)


def test_only_a_compacted_topic_rolls_for_its_compaction_lag() -> None:
    lag = {"segment_ms": 100, "max_compaction_lag_ms": 60}

    assert TopicConfig(**lag).max_segment_ms == 100
    assert TopicConfig(cleanup_policy=["compact", "delete"], **lag).max_segment_ms == 60
    assert TopicConfig(cleanup_policy=("compact",), segment_ms=9).max_segment_ms == 9


def test_policies_are_asked_by_name() -> None:
    both = TopicConfig(cleanup_policy=("compact", "delete"))
    neither = TopicConfig(cleanup_policy=())

    assert (both.compact, both.delete) == (True, True)
    assert (neither.compact, neither.delete) == (False, False)


def test_a_list_given_directly_is_kept_as_a_tuple_without_repetitions() -> None:
    config = TopicConfig(cleanup_policy=["compact", "delete", "compact"])

    assert config.cleanup_policy == ("compact", "delete")
    assert hash(config) == hash(TopicConfig(cleanup_policy=("compact", "delete")))


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TopicConfig().segment_ms = 5  # type: ignore[misc]


def test_nan_is_no_number_even_where_there_are_no_bounds() -> None:
    with pytest.raises(ConfigError, match=r"load\.factor=NaN: must be a number"):
        BrokerConfig.from_properties({"log.cleaner.io.buffer.load.factor": "NaN"})


def test_one_directory_may_not_be_named_in_two_ways() -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs=/b/\.\./a: is the same directory as /a"):
        BrokerConfig(log_dirs=("/a", "/b/../a"))
    with pytest.raises(ConfigError, match=r"log\.dir=/a/: is the same directory as /a"):
        BrokerConfig(log_dir=("/a", "/a/"))


@given(st.integers(-(2**31), 2**31 - 1).filter(bool), st.sampled_from(["minutes", "hours"]))
def test_every_negative_retention_is_no_limit_and_units_are_converted(
    count: int, unit: str
) -> None:
    broker = BrokerConfig.from_properties({f"log.retention.{unit}": str(count)})
    retention_ms = TopicConfig.from_properties({}, broker=broker).retention_ms

    assert retention_ms == (
        -1 if count < 0 else count * {"minutes": 60, "hours": 3600}[unit] * 1000
    )


def test_a_brokers_properties_read_back_the_same() -> None:
    broker = BrokerConfig(log_dirs=("/a", "/b"), log_flush_on_ack=False, log_roll_ms=5)

    assert broker.to_properties() == {
        "log.flush.on.ack": "false",
        "log.dirs": "/a,/b",
        "log.roll.ms": "5",
    }
    assert BrokerConfig.from_properties(broker.to_properties()) == broker
    assert BrokerConfig.from_properties(broker.to_properties(every=True)) == broker


def test_what_a_broker_was_told_is_known_even_where_it_is_the_default() -> None:
    told = BrokerConfig.from_properties({"num.partitions": "1", "broker.rack": "a"})

    assert told.stated == {"num.partitions", "broker.rack"}
    assert told.to_properties() == {"num.partitions": "1", "broker.rack": "a"}
    assert told == BrokerConfig(broker_rack="a")


def test_our_own_settings_are_these() -> None:
    own = {name: each for name, each in settings_of(BrokerConfig).items() if each.ours}

    assert {name: each.text(each.default) for name, each in own.items()} == {
        "log.flush.on.ack": "true",
        "log.dir.reserve.bytes": "268435456",
        "log.lease.max.bytes": "10737418240",
        "log.lease.max.ms": "3600000",
        "log.commit.append.max.bytes": "16777216",
        "log.commit.id.retention.ms": "604800000",
        "log.cleaner.exclude.topics": "",
        "log.cleaner.hash": "siphash",
        "admin.listener": "127.0.0.1:0",
        "event.log.format": "text",
    }
    with pytest.raises(ConfigError, match=r"log\.dir\.reserve\.bytes=-1"):
        BrokerConfig(log_dir_reserve_bytes=-1)


def test_every_setting_tells_what_it_is_for() -> None:
    for level in (TopicConfig, BrokerConfig):
        for name, each in settings_of(level).items():
            assert each.doc.endswith("."), name
            assert len(each.doc) > 15, name


def test_a_log_directory_inside_another_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs=/a/b: lies inside /a"):
        BrokerConfig(log_dirs=("/a/b", "/a"))
    BrokerConfig(log_dirs=("/a", "/ab"))
