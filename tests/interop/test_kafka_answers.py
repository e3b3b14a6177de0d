"""The same requests, the same answers: Apache Kafka's, as recorded, and ours.

What differs is explained in ``recorded_requests_differences``, or it is wrong.
"""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import KafkaDistribution
from hypothesis import given
from hypothesis import strategies as st
from recorded_requests import BROKER_CONFIGS, replay, talking
from recorded_requests_admin import TOPIC_WALKS
from recorded_requests_differences import DIFFERENCES, LIVE_DIFFERENCES, unexplained, unused
from recorded_requests_golden import SCENARIOS, Answers, ask_kafka, compare, load
from recorded_requests_plain import CLOSED, Placeholders, Plain, plain
from recorded_requests_random import WALKS
from recorded_requests_values import VALUE_CHECKS

from broker_fixture import running_broker
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.messages.api_versions import ApiVersionsRequest
from stratalog.protocol.messages.index import CODECS
from stratalog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

LIVE = {**WALKS, **TOPIC_WALKS, **VALUE_CHECKS}
NEVER_FAIL = {
    ApiKey.LIST_GROUPS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
}
ALWAYS_FAIL = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
}


@pytest.fixture
def our_port(tmp_path: Path) -> Iterator[int]:
    settings = {name.replace(".", "_"): value for name, value in BROKER_CONFIGS.items()}
    with running_broker(tmp_path, **settings) as broker:
        yield int(broker.bootstrap_server.rpartition(":")[2])


def test_we_answer_as_apache_kafka_does_but_for_what_is_explained(our_port: int) -> None:
    found = compare(load(), replay(SCENARIOS, "127.0.0.1", our_port))

    assert "\n".join(str(each) for each in unexplained(found)) == ""
    assert [f"{known.steps}: {known.path}" for known in unused(found)] == []


@pytest.fixture(scope="module")
def kafkas(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return ask_kafka(kafka, tmp_path_factory.mktemp("answers"), {**SCENARIOS, **LIVE})


@pytest.mark.interop
def test_apache_kafka_answers_as_was_recorded(kafkas: Answers) -> None:
    found = compare(load(), {name: kafkas[name] for name in SCENARIOS})

    assert "\n".join(str(each) for each in found) == ""


@pytest.mark.interop
def test_requests_in_any_order_are_answered_alike(kafkas: Answers, our_port: int) -> None:
    ours = replay(LIVE, "127.0.0.1", our_port)
    found = compare({name: kafkas[name] for name in LIVE}, ours)

    assert "\n".join(str(each) for each in unexplained(found, LIVE_DIFFERENCES)) == ""
    assert [f"{known.steps}: {known.path}" for known in unused(found, LIVE_DIFFERENCES)] == []


def test_all_that_we_advertise_was_asked_in_its_lowest_and_its_highest_version(
    our_port: int,
) -> None:
    with talking("coverage", "127.0.0.1", our_port) as talk:
        served = {ApiKey(each.api_key) for each in talk.have(ApiVersionsRequest("c", "1")).api_keys}
    asked = {" ".join(step.split()[:2]) for steps in load().values() for step in steps}

    wanted = {f"{CODECS[key].module} v{end}" for key in served for end in SUPPORTED[key]}
    assert wanted - asked == set()


@pytest.mark.parametrize("module", sorted({CODECS[key].module for key in SUPPORTED}))
def test_what_was_asked_of_an_api_is_good_and_bad(module: str) -> None:
    answers = [
        answer
        for steps in load().values()
        for step, answer in steps.items()
        if step.split()[0] == module
    ]
    if not answers:
        return  # not served: that every API that is was asked is the test above

    key = next(key for key in SUPPORTED if CODECS[key].module == module)
    is_good = any(answer != CLOSED and not _errors(answer) for answer in answers)
    assert is_good != (key in ALWAYS_FAIL)
    assert key in NEVER_FAIL or any(_errors(answer) for answer in answers)


def _errors(answer: Plain) -> set[str]:
    if isinstance(answer, list):
        return {error for item in answer for error in _errors(item)}
    if not isinstance(answer, dict):
        return set()
    inner = {error for item in answer.values() for error in _errors(item)}
    return (inner | {str(answer.get("error_code", "NONE"))}) - {"NONE"}


def test_every_difference_has_a_reason_that_is_a_sentence() -> None:
    for known in (*DIFFERENCES, *LIVE_DIFFERENCES):
        assert known.reason.endswith(".")


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
recorded = st.dictionaries(
    st.text(max_size=3), st.dictionaries(st.text(max_size=3), values, max_size=3), max_size=3
)


@given(recorded)
def test_the_same_answers_agree(answers: Answers) -> None:
    assert compare(answers, copy.deepcopy(answers)) == []


@given(recorded, values, values)
def test_any_other_answer_is_noticed(answers: Answers, one: Plain, other: Plain) -> None:
    if one == other:
        return
    kafka = {**answers, "scenario": {"step": one}}
    ours = {**answers, "scenario": {"step": other}}

    assert {each.step for each in compare(kafka, ours)} == {"scenario/step"}
    assert {each.step for each in compare({**ours, "scenario": {}}, ours)} == {"scenario/step"}


def test_what_a_broker_chooses_is_the_same_wherever_it_returns() -> None:
    places = Placeholders(host="h", port=1, node_id=7, cluster_id="c")
    named = (("a", bytes([1] * 16)), ("b", bytes([2] * 16)))
    topics = [MetadataResponseTopic(name=name, topic_id=id_) for name, id_ in named]

    first = plain(MetadataResponse(topics=topics, controller_id=7), places)
    again = plain(MetadataResponse(topics=topics[1:], controller_id=8), places)

    assert first["controller_id"] == "<node>"
    assert again["controller_id"] == 8
    assert [topic["topic_id"] for topic in first["topics"]] == ["<topic id 1>", "<topic id 2>"]
    assert again["topics"][0]["topic_id"] == "<topic id 2>"
