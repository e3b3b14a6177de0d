"""A topic that was deleted and made anew under a stream's checkpoint, told by its id."""

import json
import logging
import shutil
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_stream_reader import NO_LIMIT, Stream, open_stream, position, rows
from topics import write_topic

from stratalog.scans.errors import DataLostError
from stratalog.spark.admission import offsets_from_json, offsets_to_json, topic_ids_from_json
from stratalog.spark.losses import TopicRemadeError
from stratalog.spark.offsets import parse_partition_numbers
from stratalog.storage.checkpoint import format_id, write_topic_id
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition

OLD, NEW = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)


def make(path, topic_id, records, partitions=2):
    """The topic anew, as a broker makes it."""
    for number in range(partitions):
        shutil.rmtree(path / f"orders-{number}", ignore_errors=True)
    for each in path.glob("*checkpoint"):
        each.unlink()
    write_topic(path, "orders", partitions, records)
    for number in range(partitions):
        write_topic_id(OsFileSystem(), f"{path}/orders-{number}/partition.metadata", topic_id)


def at(offsets, topic_id):
    return {**position(offsets), f"orders#{format_id(topic_id)}": {}}


def all_rows(count):
    return [(number, offset) for number in range(2) for offset in range(count)]


@pytest.mark.parametrize("records", [2, 5, 9])
@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_topic_made_anew_ends_the_query_whatever_its_length(tmp_path, records, is_restarted):
    make(tmp_path, OLD, 5)
    reader = open_stream(tmp_path, startingOffsets="earliest")
    stream = Stream(reader)
    assert stream.next() == all_rows(5)
    assert stream.at == at([5, 5], OLD)
    make(tmp_path, NEW, records)
    again = open_stream(tmp_path) if is_restarted else reader
    again._watch._poller.forget()

    with pytest.raises(TopicRemadeError, match=r"'orders' was deleted and made anew.*beginning"):
        again.latestOffset(stream.at, NO_LIMIT)


@pytest.mark.parametrize("records", [0, 2, 5, 9])
def test_or_the_new_topic_is_read_from_its_beginning(tmp_path, records, caplog):
    make(tmp_path, OLD, 5)
    make(tmp_path, NEW, records)
    reader = open_stream(tmp_path, failOnDataLoss="false")
    stream = Stream(reader, start=at([5, 5], OLD))

    with caplog.at_level(logging.WARNING):
        found = stream.next()

    assert found == all_rows(records)
    assert stream.at == at([records, records], NEW)
    assert stream.next() is None
    assert len([each for each in caplog.messages if "made anew" in each]) == 1
    write_topic(tmp_path, "orders", 2, 1)
    reader._watch._poller.forget()
    assert stream.next() == [(0, records), (1, records)]


def test_a_batch_that_was_written_down_of_the_old_topic_reads_nothing_of_the_new(tmp_path):
    make(tmp_path, NEW, 9)
    start, end = at([2, 2], OLD), at([5, 5], OLD)

    with pytest.raises(DataLostError, match=r"offsets 2 to 4 .*made anew"):
        rows(open_stream(tmp_path), start, end)
    assert rows(open_stream(tmp_path, failOnDataLoss="false"), start, end) == []


def test_a_batch_over_the_change_is_read_again_as_it_was_written_down(tmp_path):
    make(tmp_path, NEW, 9)

    found = rows(open_stream(tmp_path), at([5, 5], OLD), at([3, 3], NEW))

    assert found == all_rows(3)


def test_a_position_without_ids_goes_on_and_has_them_from_then_on(tmp_path):
    make(tmp_path, NEW, 5)
    reader = open_stream(tmp_path)

    assert reader.latestOffset(position([5, 5]), NO_LIMIT) == position([5, 5])
    assert reader.latestOffset(position([4, 5]), NO_LIMIT) == at([5, 5], NEW)


names = st.from_regex(r"\A[a-zA-Z0-9._-]{1,9}\Z")


@given(
    st.dictionaries(st.builds(TopicPartition, names, st.integers(0, 30)), st.integers(0, 2**40)),
    st.uuids(),
)
def test_ids_in_a_position_are_none_of_its_offsets(offsets, topic_id):
    ids = {each.topic: format_id(topic_id) for each in offsets}
    told = offsets_to_json(offsets, ids)

    assert offsets_from_json(told) == offsets
    assert topic_ids_from_json(told) == ids
    # As an option, and as Spark's Kafka source reads them: pairs of a topic's partitions.
    assert parse_partition_numbers("startingOffsets", json.dumps(told)) == offsets
    assert topic_ids_from_json(offsets_to_json(offsets)) == {}
