"""Batches that were checked before their log saw them are stored exactly as others are."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import START_MS, new_log

from stratalog.errors import CorruptBatchError
from stratalog.records import Codec, Record, build_batch, validate_produced
from stratalog.storage.appending import ValidatedRecords
from stratalog.storage.log import Log

CONFIGS: list[dict[str, Any]] = [
    {},
    {"message_timestamp_type": "LogAppendTime"},
    {"compression_type": "zstd"},
    {"compression_type": "uncompressed"},
]


def bytes_of(log: Log) -> list[bytes]:
    return [segment.slice(0, segment.size_bytes).read() for segment in log.segments]


def ahead(log: Log, records: bytes) -> ValidatedRecords:
    rules = log.produce_rules
    produced = validate_produced(records, rules, first_offset=0, leader_epoch=-1, now_ms=START_MS)
    return ValidatedRecords(records, rules, produced)


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD]),
    config=st.sampled_from(CONFIGS),
    epoch=st.integers(0, 3),
)
def test_it_makes_no_difference_where_a_batch_was_checked(
    counts: list[int], codec: Codec, config: dict[str, Any], epoch: int
) -> None:
    at_once, checked_ahead = new_log(**config), new_log(**config)
    batches = [
        build_batch(
            [Record(b"k", b"v" * 50, (), START_MS + each) for each in range(count)], codec=codec
        )
        for count in counts
    ]
    prepared = [ahead(checked_ahead, batch) for batch in batches]

    answers = [at_once.append_as_leader(batch, leader_epoch=epoch) for batch in batches]

    assert [checked_ahead.append_as_leader(one, leader_epoch=epoch) for one in prepared] == answers
    assert bytes_of(checked_ahead) == bytes_of(at_once)
    assert checked_ahead.log_end_offset == sum(counts)


def test_a_batch_is_checked_again_if_the_rules_have_changed_meanwhile() -> None:
    log = new_log()
    prepared = ahead(log, build_batch([Record(None, b"v", (), START_MS)]))

    log.configure(new_log(message_timestamp_type="LogAppendTime").config)

    assert log.append_as_leader(prepared).log_append_time_ms == START_MS


def test_offsets_beyond_the_last_there_is_are_refused() -> None:
    log = new_log()
    prepared = ahead(log, build_batch([Record(None, b"v", (), START_MS)]))

    prepared.produced.move(2**63 - 1, 0)

    with pytest.raises(CorruptBatchError):
        prepared.produced.move(1, 0)
