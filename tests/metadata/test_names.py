"""Topic names, and ids for new topics."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import InvalidRequestError, InvalidTopicError, TopicNameError
from stratalog.metadata.names import (
    is_internal,
    metric_name,
    random_topic_id,
    validate_new_topic_name,
    validate_topic_name,
)
from stratalog.storage import layout

names = st.text(st.sampled_from("ab.Z_-09 ä/\0\n"), max_size=4) | st.text(max_size=3)
lengths = st.integers(245, 255).map("x".__mul__)


@given(names | lengths)
def test_the_store_allows_the_names_that_directories_can_have_and_says_the_same(name: str) -> None:
    try:
        layout.validate_topic_name(name)
    except TopicNameError as refused:
        with pytest.raises(InvalidTopicError, match=re.escape(refused.rule)):
            validate_topic_name(name)
    else:
        assert validate_topic_name(name) == name


@given(st.text(st.sampled_from("ab._")), st.text(st.sampled_from("ab._")))
def test_two_names_have_one_metric_name_if_they_differ_in_dots_alone(one: str, two: str) -> None:
    if metric_name(one) is not None and metric_name(two) is not None:
        alike = all(a == b or {a, b} == {".", "_"} for a, b in zip(one, two, strict=False))
        assert (metric_name(one) == metric_name(two)) == (alike and len(one) == len(two))


def test_the_metadata_log_is_no_topic_to_create() -> None:
    with pytest.raises(InvalidRequestError):
        validate_new_topic_name("__cluster_metadata")


def test_kafkas_own_topics_are_known() -> None:
    assert is_internal("__consumer_offsets")
    assert not is_internal("__cluster_metadata")


def test_ids_of_new_topics_differ_and_never_begin_with_a_dash() -> None:
    ids = [random_topic_id() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    assert not any(base64.urlsafe_b64encode(each.bytes).startswith(b"-") for each in ids)
