"""The decoders of ``stratalog log dump``: what they print is Kafka's, whatever bytes they get.

That every type and version is read as Apache Kafka reads it is seen in the ``every-type-*`` of
``golden`` and, at length, in the interop tests.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_harness import stratalog
from hypothesis import given
from hypothesis import strategies as st

from stratalog import __version__
from stratalog.cli import dump_decoders as decoders
from stratalog.cli.dump_batches import DumpedRecord
from stratalog.cli.dump_json import java_double, to_json
from stratalog.cli.dump_state_schemas import REMOTE_LOG_RECORDS, SHARE_KEYS, SHARE_VALUES
from stratalog.coordinator.record_schemas import GROUP_KEYS, GROUP_VALUES
from stratalog.metadata.record_schemas import METADATA_RECORDS
from stratalog.records.messages import Array, Message

LOG = Path(__file__).parent / "golden" / "dirs" / "every-type-offsets-0" / f"{0:020}.log"
COORDINATOR = (decoders.offsets_decoder, decoders.share_group_decoder, decoders.transaction_decoder)
FRAMED = (decoders.cluster_metadata_decoder, decoders.remote_log_metadata_decoder)

few_bytes = st.binary(max_size=60)
types = st.integers(-2, 30).map(lambda number: number.to_bytes(2, "big", signed=True))
versions = st.integers(-1, 5).map(lambda number: number.to_bytes(2, "big", signed=True))


def record(key: bytes | None, value: bytes | None) -> DumpedRecord:
    return DumpedRecord(offset=7, timestamp_ms=0, key=key, value=value)


@pytest.mark.parametrize("decoder", COORDINATOR)
@given(kind=types, version=versions, key=few_bytes, value=few_bytes)
def test_any_bytes_of_a_coordinator_have_a_key_to_show(
    decoder: decoders.Decoder, kind: bytes, version: bytes, key: bytes, value: bytes
) -> None:
    contents = decoder(record(kind + key, version + value))

    assert contents.key is not None
    if contents.value is None:
        assert "at offset 7, skipping." in contents.key
    else:
        assert json.loads(contents.key)["type"] == str(int.from_bytes(kind, "big"))
        assert json.loads(contents.value)["version"] == str(int.from_bytes(version, "big"))


@pytest.mark.parametrize("decoder", FRAMED)
@given(kind=st.integers(0, 30), version=st.integers(0, 5), fields=few_bytes)
def test_any_framed_bytes_have_a_value_to_show(
    decoder: decoders.Decoder, kind: int, version: int, fields: bytes
) -> None:
    contents = decoder(record(None, bytes([1, kind, version]) + fields))

    assert contents.key is None
    assert contents.value is not None
    assert contents.value.startswith(("Error at", '{"type":"', "Remote"))


@pytest.mark.parametrize("decoder", [*COORDINATOR, *FRAMED])
@given(key=few_bytes, value=st.none() | few_bytes)
def test_any_other_bytes_are_answered_too(
    decoder: decoders.Decoder, key: bytes, value: bytes | None
) -> None:
    assert any(decoder(record(key, value)))


def test_a_count_of_tagged_fields_is_not_believed() -> None:
    no_op = bytes([1, 20, 0]) + b"\xff\xff\xff\xff\x07"

    contents = decoders.cluster_metadata_decoder(record(None, no_op))

    assert contents.value == "Error at 7, skipping. Failed to deserialize record with type 20"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(json_values)
def test_json_says_what_the_value_says(value: Any) -> None:
    assert json.loads(to_json(value)) == _with_words_for_infinity(value)


def _with_words_for_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_words_for_infinity(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_words_for_infinity(each) for each in value]
    return java_double(value) if value in (float("inf"), float("-inf")) else value


def test_json_escapes_in_capitals_and_only_what_it_must() -> None:
    assert to_json('\x1f\n"\\/\x7fé') == '"\\u001F\\n\\"\\\\/\x7fé"'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_printed_exactly(value: float) -> None:
    assert float(java_double(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123456789.125, "-1.23456789125E8"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_is_printed_as_java_prints_it(value: float, text: str) -> None:
    assert java_double(value) == text


def _messages() -> list[Message]:
    framed = (*METADATA_RECORDS.values(), *REMOTE_LOG_RECORDS.values())
    return [*GROUP_VALUES.values(), *SHARE_VALUES.values(), *(message for _, message in framed)]


def test_every_type_of_a_coordinator_has_a_key_and_a_value() -> None:
    assert GROUP_KEYS.keys() == GROUP_VALUES.keys()
    assert SHARE_KEYS.keys() == SHARE_VALUES.keys()


def test_no_field_name_or_tag_of_a_struct_is_taken_twice() -> None:
    waiting = _messages()
    for message in waiting:  # grows as structs inside are found
        names = [field.name for field in message.fields]
        tags = [field.tag for field in message.fields if field.tag is not None]
        assert len(set(names)) == len(names)
        assert sorted(tags) == list(range(len(tags)))
        for field in message.fields:
            kind = field.kind.item if isinstance(field.kind, Array) else field.kind
            if isinstance(kind, Message):
                waiting.append(kind)


def test_of_several_decoders_the_first_in_kafkas_order_counts() -> None:
    both = stratalog("log", "dump", "--cluster-metadata-decoder", "--offsets-decoder", str(LOG))

    assert both.stdout == stratalog("log", "dump", "--offsets-decoder", str(LOG)).stdout


@pytest.mark.parametrize("command", [(), ("log", "dump")])
def test_the_version_can_be_asked_for(command: tuple[str, ...]) -> None:
    done = stratalog(*command, "--version")

    assert (done.exit_code, done.stdout) == (0, f"stratalog {__version__}\n")


# Bytes that only follow from one rule each, and what Apache Kafka 4.3.1 prints for them.
MEMBER_KEY = b"\x00\x05\x00\x01g\x00\x01m"
STREAMS_KEY = b"\x00\x11\x00\x01g"
STREAMS_VALUE = bytes(2 + 4 + 8)
PARTITION_CHANGE = b"\x01\x05\x02" + bytes(4 + 16)
SNAPSHOT_HEAD = b"\x01\x03\x00" + bytes(16 + 8 + 8 + 4 + 8 + 8)
EPOCHS = b"\x03" + bytes([0, 0, 0, 2, *bytes(7), 3, 0]) + bytes([0, 0, 0, 1, *bytes(7), 5, 0])
SEGMENT_ID = b"\x02t" + bytes(16 + 4) + b"\x00" + bytes(16) + b"\x00"
OFFSETS = {name: number.to_bytes(8, "big", signed=True) for name, number in (("-1", -1), ("5", 5))}


@pytest.mark.parametrize(
    ("decoder", "key", "value", "text"),
    [
        (  # a tagged struct that is null is not the default
            decoders.offsets_decoder,
            MEMBER_KEY,
            b"\x00\x00" + b"\x00\x00\x01\x01\x01\x00" + bytes(4) + b"\x00" + b"\x01\x00\x01\x00",
            '"serverAssignor":null,"classicMemberMetadata":null}}',
        ),
        (  # an array that is null by default is another than one that is empty by default
            decoders.offsets_decoder,
            STREAMS_KEY,
            STREAMS_VALUE + b"\x01\x01\x01\x00",
            '{"epoch":0,"metadataHash":0,"lastAssignmentConfigs":null}}',
        ),
        (
            decoders.offsets_decoder,
            STREAMS_KEY,
            STREAMS_VALUE + b"\x01\x01\x01\x01",
            '{"epoch":0,"metadataHash":0}}',
        ),
        (
            decoders.cluster_metadata_decoder,
            None,
            PARTITION_CHANGE + b"\x01\x00\x01\x01",
            '"topicId":"AAAAAAAAAAAAAAAAAAAAAA","isr":[]}}',
        ),
        (  # no leader is a change, the default is none
            decoders.cluster_metadata_decoder,
            None,
            PARTITION_CHANGE + b"\x01\x01\x04\xff\xff\xff\xff",
            '"leader":-1}}',
        ),
        (
            decoders.cluster_metadata_decoder,
            None,
            PARTITION_CHANGE + b"\x01\x01\x04\xff\xff\xff\xfe",
            '"topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}',
        ),
        (  # a tag of a later version
            decoders.cluster_metadata_decoder,
            None,
            b"\x01\x11\x00" + bytes(4 + 8) + b"\x01\x01\x01\x01",
            "Failed to deserialize record with type 17",
        ),
        (
            decoders.offsets_decoder,
            b"\x00\x0a\x00\x01g\x00\x01m",
            b"\x00\x00\x81\x80\x02" + bytes(0x8000),
            "due to: string field rackId had invalid length 32768.",
        ),
        (  # epochs rise, whatever their order in the bytes
            decoders.remote_log_metadata_decoder,
            None,
            SNAPSHOT_HEAD + EPOCHS + bytes(4) + b"\x03ab\x01\x01\x00\x01\x01",
            "segmentLeaderEpochs={1=5, 2=3}, segmentSizeInBytes=0, "
            "customMetadata=Optional[CustomMetadata{2 bytes}], state=COPY_SEGMENT_FINISHED, "
            "txnIdxEmpty=true}",
        ),
        (
            decoders.remote_log_metadata_decoder,
            None,
            b"\x01\x00\x00" + SEGMENT_ID + OFFSETS["-1"] + bytes(28) + EPOCHS + bytes(7),
            "Unexpected start offset = -1. StartOffset for a remote segment cannot be negative",
        ),
        (
            decoders.remote_log_metadata_decoder,
            None,
            b"\x01\x00\x00" + SEGMENT_ID + OFFSETS["5"] + bytes(28) + EPOCHS + bytes(7),
            "Unexpected end offset = 0. EndOffset for a remote segment cannot be less than "
            "startOffset = 5",
        ),
        (
            decoders.remote_log_metadata_decoder,
            None,
            b"\x01\x00\x00" + SEGMENT_ID + bytes(36) + b"\x01" + bytes(7),
            "segmentLeaderEpochs can not be null or empty",
        ),
    ],
)
def test_a_record_is_shown_as_kafka_shows_it(
    decoder: decoders.Decoder, key: bytes | None, value: bytes, text: str
) -> None:
    contents = decoder(record(key, value))

    assert (contents.value or contents.key or "").endswith(text)
