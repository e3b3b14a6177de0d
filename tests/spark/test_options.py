"""The options of the source: Spark's Kafka source's names, defaults and rules, and ours."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from stratalog.scans.errors import MissingTopicError, ScanOptionError
from stratalog.scans.selection import SubscribePattern
from stratalog.scans.slices import ReadMode, ScanIsolation
from stratalog.spark.choosing import AssignAsSpark, SubscribeAsSpark
from stratalog.spark.offsets import (
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    SpecificOffsets,
    SpecificTimestamps,
    parse_partition_numbers,
    write_offsets,
)
from stratalog.spark.options import KNOWN_OPTIONS, LEASE_SECONDS, SourceOptions
from stratalog.storage.layout import TopicPartition

ORDERS = (TopicPartition("orders", 0), TopicPartition("orders", 1))


def parse(*, is_streaming: bool = False, **options: str) -> SourceOptions:
    given = {"path": "/data", "subscribe": "orders", **options}
    return SourceOptions.parse(given, is_streaming=is_streaming)


def refused(*, is_streaming: bool = False, **options: str) -> ScanOptionError:
    with pytest.raises(ScanOptionError) as caught:
        parse(is_streaming=is_streaming, **options)
    return caught.value


# --- which topics ----------------------------------------------------------------------------


def test_topics_are_named_with_commas_and_spaces_around_them() -> None:
    assert parse(subscribe=" orders, , bills,orders ").selection == SubscribeAsSpark(
        ("orders", "bills")
    )


def test_a_pattern_is_taken_as_it_is() -> None:
    options = {"path": "/data", "subscribePattern": " ord.* "}
    assert SourceOptions.parse(options, is_streaming=False).selection == SubscribePattern("ord.*")


def test_partitions_are_assigned_one_by_one() -> None:
    options = {"path": "/data", "assign": '{"orders": [1, 0, 1], "bills": [3]}'}
    selection = SourceOptions.parse(options, is_streaming=False).selection
    assert selection == AssignAsSpark({"orders": (0, 1), "bills": (3,)})


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"subscribe": "a", "subscribePattern": "b"},
        {"subscribe": "a", "assign": '{"a":[0]}'},
        {"subscribe": "a", "subscribePattern": "b", "assign": '{"a":[0]}'},
    ],
)
def test_exactly_one_way_of_naming_topics_is_given(chosen: dict[str, str]) -> None:
    with pytest.raises(ScanOptionError, match="exactly one of subscribe, subscribePattern, assign"):
        SourceOptions.parse({"path": "/data", **chosen}, is_streaming=False)


@pytest.mark.parametrize(
    "chosen",
    [
        {"subscribe": " , "},
        {"subscribePattern": "  "},
        {"assign": "orders"},
        {"assign": "{}"},
        {"assign": '{"orders": []}'},
        {"assign": '{"orders": [-1]}'},
        {"assign": '{"orders": [true]}'},
        {"assign": '{"orders": ["0"]}'},
        {"assign": '{"orders": 0}'},
        {"assign": "[1]"},
    ],
)
def test_a_choice_that_chooses_nothing_is_refused(chosen: dict[str, str]) -> None:
    with pytest.raises(ScanOptionError):
        SourceOptions.parse({"path": "/data", **chosen}, is_streaming=False)


def test_internal_topics_and_partitions_that_are_not_there_are_passed_over() -> None:
    there = [*ORDERS, TopicPartition("__consumer_offsets", 0)]

    named = SubscribeAsSpark(("orders", "__consumer_offsets"))
    assert named.choose(there, "/data") == list(ORDERS)
    assigned = AssignAsSpark({"orders": (1, 7), "__consumer_offsets": (0,)})
    assert assigned.choose(there, "/data") == [ORDERS[1]]


@pytest.mark.parametrize(
    "selection", [SubscribeAsSpark(("orders", "bills")), AssignAsSpark({"bills": (0,)})]
)
def test_a_topic_that_is_not_there_is_an_error(
    selection: SubscribeAsSpark | AssignAsSpark,
) -> None:
    with pytest.raises(MissingTopicError, match="bills"):
        selection.choose(ORDERS, "/data")


# --- where to begin and end ------------------------------------------------------------------


def test_a_batch_reads_everything_and_a_stream_what_comes() -> None:
    assert (parse().starting, parse().ending) == (Earliest(), Latest())
    assert parse(is_streaming=True).starting == Latest()


@pytest.mark.parametrize("text", ["earliest", " EARLIEST ", "Earliest"])
def test_words_are_taken_in_any_case(text: str) -> None:
    assert parse(is_streaming=True, startingOffsets=text).starting == Earliest()


def test_offsets_are_given_for_each_partition() -> None:
    starting = parse(startingOffsets='{"orders":{"0":23,"1":-2}}').starting
    assert starting == SpecificOffsets("startingOffsets", {ORDERS[0]: 23, ORDERS[1]: -2})


def test_a_time_for_all_goes_before_a_time_for_each_and_that_before_offsets() -> None:
    offsets = {"startingOffsets": "earliest", "endingOffsets": "latest"}
    by_time = {
        "startingOffsetsByTimestamp": '{"orders":{"0":5}}',
        "endingOffsetsByTimestamp": '{"orders":{"0":9}}',
    }
    for_all = {"startingTimestamp": "7", "endingTimestamp": "8"}

    each = parse(**offsets, **by_time)
    assert each.starting == SpecificTimestamps(
        "startingOffsetsByTimestamp", {ORDERS[0]: 5}, NoMatch.ERROR
    )
    assert isinstance(each.ending, SpecificTimestamps)
    every = parse(**offsets, **by_time, **for_all)
    assert every.starting == GlobalTimestamp("startingTimestamp", 7, NoMatch.ERROR)
    assert every.ending == GlobalTimestamp("endingTimestamp", 8, NoMatch.ERROR)


def test_the_strategy_says_what_a_time_after_every_record_means() -> None:
    options = {"startingTimestamp": "7", "startingOffsetsByTimestampStrategy": "LATEST"}
    assert parse(**options).starting == GlobalTimestamp("startingTimestamp", 7, NoMatch.LATEST)
    assert "error or latest" in str(refused(startingOffsetsByTimestampStrategy="earliest"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"orders":{"0":-1}}'},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"orders":{"0":-2}}'},
        {"startingOffsets": '{"orders":{"0":-3}}'},
        {"startingOffsets": "yesterday"},
        {"startingOffsets": '{"orders":{"0":1.5}}'},
        {"startingOffsets": '{"orders":{"0":true}}'},
        {"startingOffsets": '{"orders":{"0":9223372036854775808}}'},
        {"startingOffsets": '{"orders":{"-1":0}}'},
        {"startingOffsets": '{"orders":{"x":0}}'},
        {"startingOffsets": '{"orders":[0]}'},
        {"startingOffsets": "[" * 100_000},
        {"startingTimestamp": "now"},
        {"startingTimestamp": "-5"},
        {"endingTimestamp": '{"orders":{"0":5}}'},
        {"startingOffsetsByTimestamp": '{"orders":{"0":-1}}'},
        {"startingOffsets": '{"orders":{"0":0}}', "endingOffsets": '{"orders":{"0":9,"1":9}}'},
        {"startingOffsets": '{"orders":{"0":9}}', "endingOffsets": '{"orders":{"0":8}}'},
        {
            "startingOffsetsByTimestamp": '{"orders":{"0":9}}',
            "endingOffsetsByTimestamp": '{"orders":{"0":8}}',
        },
    ],
)
def test_an_end_that_no_batch_can_have_is_refused(wrong: dict[str, str]) -> None:
    refused(**wrong)


@pytest.mark.parametrize("ending", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(ending: str) -> None:
    assert "no end" in str(refused(is_streaming=True, **{ending: "latest"}))


def test_a_stream_passes_over_a_time_to_end_at() -> None:
    assert parse(is_streaming=True, endingTimestamp="7").starting == Latest()


def test_a_stream_may_begin_at_the_latest_offset() -> None:
    assert parse(is_streaming=True, startingOffsets="latest").is_start_moving
    assert parse(is_streaming=True, startingOffsets='{"orders":{"0":-1}}').is_start_moving
    assert not parse(is_streaming=True, startingOffsets='{"orders":{"0":4}}').is_start_moving


names = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
partitions = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))


@given(st.dictionaries(partitions, st.integers(-2, 2**63 - 1)))
def test_offsets_read_back_as_they_were_written(offsets: dict[TopicPartition, int]) -> None:
    assert parse_partition_numbers("startingOffsets", write_offsets(offsets)) == offsets


@given(st.text())
def test_any_text_is_offsets_or_refused(text: str) -> None:
    with suppress(ScanOptionError):
        parse_partition_numbers("startingOffsets", text)


# --- the path --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/var/lib/kafka", "/var/lib/kafka"),
        ("/var/lib/kafka/", "/var/lib/kafka"),
        ("file:/var/lib/kafka", "/var/lib/kafka"),
        ("file:///var/my%20logs", "/var/my logs"),
        ("/odd:/name", "/odd:/name"),
    ],
)
def test_a_path_is_a_directory_of_this_file_system(path: str, plain: str) -> None:
    assert parse(path=path).path == plain


@pytest.mark.parametrize("path", ["", "  ", "hdfs://host/logs", "s3://bucket/logs"])
def test_other_places_are_refused(path: str) -> None:
    assert refused(path=path).option == "path"


def test_the_address_of_a_moved_query_may_be_the_directory() -> None:
    options = {"subscribe": "orders", "kafka.bootstrap.servers": "/var/lib/kafka"}
    assert SourceOptions.parse(options, is_streaming=False).path == "/var/lib/kafka"


def test_a_broker_is_not_connected_to() -> None:
    options = {"subscribe": "orders", "kafka.bootstrap.servers": "localhost:9092"}
    with pytest.raises(ScanOptionError, match="no broker is connected to"):
        SourceOptions.parse(options, is_streaming=False)
    with_both = {**options, "path": "/data"}
    assert SourceOptions.parse(with_both, is_streaming=False).path == "/data"


# --- the rest --------------------------------------------------------------------------------


def test_names_are_found_in_any_case() -> None:
    options = {"PATH": "/data", "SUBSCRIBE": "orders", "FAILONDATALOSS": "FALSE"}
    parsed = SourceOptions.parse(options, is_streaming=False)
    assert (parsed.path, parsed.fail_on_data_loss) == ("/data", False)


def test_what_is_not_said_is_as_in_sparks_kafka_source() -> None:
    parsed = parse()
    assert parsed.fail_on_data_loss
    extras = (parsed.include_headers, parsed.include_metadata, parsed.gaps, parsed.pushdown)
    assert not any(extras)
    assert parsed.isolation is ScanIsolation.READ_UNCOMMITTED
    assert parsed.mode is ReadMode.FAIL_FAST
    assert parsed.min_partitions is parsed.max_records_per_partition is None
    assert parsed.max_trigger_delay_ms == 15 * 60 * 1000
    assert parsed.lease_seconds == LEASE_SECONDS


@pytest.mark.parametrize(
    ("option", "text", "attribute", "value"),
    [
        ("kafka.isolation.level", "READ_COMMITTED", "isolation", ScanIsolation.READ_COMMITTED),
        ("mode", "PERMISSIVE", "mode", ReadMode.PERMISSIVE),
        ("includeHeaders", "True", "include_headers", True),
        ("includeMetadata", "true", "include_metadata", True),
        ("gaps", "true", "gaps", True),
        ("pushdown", "true", "pushdown", True),
        ("minPartitions", " 12 ", "min_partitions", 12),
        ("maxRecordsPerPartition", "1000", "max_records_per_partition", 1000),
        ("maxBytesPerPartition", "1048576", "max_bytes_per_partition", 1 << 20),
        ("maxBytesPerPartition", "64m", "max_bytes_per_partition", 64 << 20),
        ("maxBytesPerTrigger", "1GB", "max_bytes_per_trigger", 1 << 30),
        ("maxOffsetsPerTrigger", "7", "max_offsets_per_trigger", 7),
        ("minOffsetsPerTrigger", "7", "min_offsets_per_trigger", 7),
        ("maxTriggerDelay", "2h", "max_trigger_delay_ms", 7_200_000),
        ("maxTriggerDelay", "500", "max_trigger_delay_ms", 500),
        ("maxLateness", "90s", "max_lateness_ms", 90_000),
        ("maxLateness", "0", "max_lateness_ms", 0),
        ("leaseSeconds", "0", "lease_seconds", 0),
        ("key", "ß", "keys", frozenset(["ß".encode()])),
        ("kafka.group.id", "night", "group_id", "night"),
    ],
)
def test_an_option_is_read(option: str, text: str, attribute: str, value: Any) -> None:
    assert getattr(parse(**{option: text}), attribute) == value


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("failOnDataLoss", "yes"),
        ("includeHeaders", "1"),
        ("includeMetadata", ""),
        ("gaps", "on"),
        ("pushdown", "t"),
        ("minPartitions", "0"),
        ("minPartitions", "-1"),
        ("minPartitions", "2147483648"),
        ("minPartitions", "many"),
        ("maxRecordsPerPartition", "0"),
        ("maxOffsetsPerTrigger", "0"),
        ("maxBytesPerPartition", "0"),
        ("maxBytesPerPartition", "1x"),
        ("maxBytesPerPartition", "9" * 40),
        ("maxLateness", "soon"),
        ("maxLateness", "-1s"),
        ("maxLateness", "9" * 40),
        ("mode", "dropmalformed"),
        ("kafka.isolation.level", "serializable"),
        ("leaseSeconds", "-1"),
        ("kafka.auto.offset.reset", "earliest"),
        ("kafka.key.deserializer", "x"),
        ("kafka.value.deserializer", "x"),
        ("kafka.enable.auto.commit", "true"),
        ("kafka.interceptor.classes", "x"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_its_name(option: str, text: str) -> None:
    error = refused(**{option: text})
    assert error.option == option
    assert option in str(error)


def test_a_trigger_cannot_need_more_than_it_may_have() -> None:
    assert "maxOffsetsPerTrigger" in str(
        refused(minOffsetsPerTrigger="9", maxOffsetsPerTrigger="8")
    )


def test_what_sparks_source_ignores_is_ignored() -> None:
    told = parse(
        **{
            "kafka.security.protocol": "SSL",
            "kafka.max.poll.records": "7",
            "groupIdPrefix": "x",
            "kafkaConsumer.pollTimeoutMs": "9",
            "something": "else",
        }
    )

    assert replace(told, kafka={}) == parse()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("endOffsets", "endingOffsets"),
        ("failOnDataLos", "failOnDataLoss"),
        ("maxRecordPerPartition", "maxRecordsPerPartition"),
        ("includeHeader", "includeHeaders"),
        ("pushDowns", "pushdown"),
    ],
)
def test_a_misspelt_option_is_told_what_was_meant(written: str, meant: str) -> None:
    assert f"is {meant} meant?" in str(refused(**{written: "1"}))


@given(st.sampled_from(KNOWN_OPTIONS), st.text(max_size=20))
def test_any_value_of_any_option_is_read_or_refused(option: str, text: str) -> None:
    for is_streaming in (False, True):
        with suppress(ScanOptionError):
            parse(is_streaming=is_streaming, **{option: text})
