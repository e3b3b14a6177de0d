"""How keys and values are shown: by the decoders of Kafka's dump tool that need no Java class."""

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

from stratalog.cli.dump_batches import DumpedRecord, DumpError
from stratalog.cli.dump_json import to_json
from stratalog.cli.dump_state_schemas import (
    REMOTE_LOG_RECORDS,
    REMOTE_PARTITION_DELETE,
    REMOTE_SEGMENT,
    REMOTE_SEGMENT_SNAPSHOT,
    SHARE_KEYS,
    SHARE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
)
from stratalog.cli.java import boolean
from stratalog.coordinator.record_schemas import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_SUBSCRIPTION,
    GROUP_KEYS,
    GROUP_METADATA_TYPE,
    GROUP_VALUES,
)
from stratalog.errors import CorruptBatchError
from stratalog.metadata.record_schemas import METADATA_RECORDS, QUORUM_RECORDS
from stratalog.records.control import ControlType, parse_control_record
from stratalog.records.messages import TOO_SHORT, Message, decode_framed, decode_message

Schemas = dict[int, Message]


class Contents(NamedTuple):
    """Key and value as they are printed; ``None`` where nothing is."""

    key: str | None
    value: str | None


Decoder = Callable[[DumpedRecord], Contents]


# --- decoders by class name --------------------------------------------------------------------


def _string(data: bytes) -> str:
    return data.decode(errors="replace")


def _integer(data: bytes) -> str:
    return _number(data, 4)


def _long(data: bytes) -> str:
    return _number(data, 8)


def _number(data: bytes, size: int) -> str:
    if len(data) < size:
        raise DumpError(f"A number of {size} bytes was asked for and {data.hex()!r} is shorter.")
    return str(int.from_bytes(data[:size], "big", signed=True))


_CLASSES = {"StringDecoder": _string, "IntegerDecoder": _integer, "LongDecoder": _long}
_PACKAGES = ("org.apache.kafka.tools.api.", "kafka.serializer.")

STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"


def class_decoder(key_class: str, value_class: str) -> Decoder:
    key, value = _decoder_class(key_class), _decoder_class(value_class)

    def decode(record: DumpedRecord) -> Contents:
        return Contents(
            None if record.key is None else key(record.key),
            None if record.value is None else value(record.value),
        )

    return decode


def _decoder_class(name: str) -> Callable[[bytes], str]:
    short = name
    for package in _PACKAGES:
        short = short.removeprefix(package)
    if short not in _CLASSES:
        known = ", ".join(sorted(_CLASSES))
        raise DumpError(f"There is no decoder {name!r} here: use one of {known}.")
    return _CLASSES[short]


# --- records of internal topics ------------------------------------------------------------------


def offsets_decoder(record: DumpedRecord) -> Contents:
    """Records of ``__consumer_offsets``."""
    return _coordinator_record(record, GROUP_KEYS, GROUP_VALUES)


def transaction_decoder(record: DumpedRecord) -> Contents:
    """Records of ``__transaction_state``."""
    return _coordinator_record(record, TRANSACTION_KEYS, TRANSACTION_VALUES)


def share_group_decoder(record: DumpedRecord) -> Contents:
    """Records of ``__share_group_state``."""
    return _coordinator_record(record, SHARE_KEYS, SHARE_VALUES)


def _coordinator_record(record: DumpedRecord, keys: Schemas, values: Schemas) -> Contents:
    if record.key is None:
        raise DumpError(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        kind = _version(record.key, "key")
        if kind not in keys:
            return Contents(
                f"Unknown record type {kind} at offset {record.offset}, skipping.", None
            )
        data = _coordinator_message(keys[kind], record.key, "key", 0, named_version=kind)
        key = to_json({"type": str(kind), "data": data})
        if record.value is None:
            return Contents(key, "<DELETE>")
        version = _version(record.value, "value")
        if not 0 <= version <= values[kind].last_version:
            raise CorruptBatchError(f"Found an unknown record version {version} for {kind} type")
        data = _coordinator_message(
            values[kind], record.value, "value", version, named_version=version
        )
        if values is GROUP_VALUES and kind == GROUP_METADATA_TYPE:
            _show_consumer_protocol(data)
        return Contents(key, to_json({"version": str(version), "data": data}))
    except CorruptBatchError as error:
        return Contents(f"Error at offset {record.offset}, skipping. {error.reason}", None)


def _coordinator_message(
    message: Message, data: bytes, name: str, version: int, *, named_version: int
) -> dict[str, Any]:
    """A message after its version; Kafka calls the type of a key a version when it complains."""
    try:
        return decode_message(message, data, 2, version)
    except CorruptBatchError as error:
        # Where the bytes end inside a number, Kafka's error has no message.
        reason = "null" if error.reason == TOO_SHORT else error.reason
        raise CorruptBatchError(
            f"Could not read record with version {named_version} from {name}'s buffer "
            f"due to: {reason}."
        ) from error


def _version(data: bytes, name: str) -> int:
    if len(data) < 2:
        raise CorruptBatchError(f"Could not read version from {name}'s buffer.")
    return int.from_bytes(data[:2], "big", signed=True)


def _show_consumer_protocol(group: dict[str, Any]) -> None:
    """Subscriptions and assignments of consumers are messages of their own."""
    if group["protocolType"] != "consumer":
        return
    for member in group["members"]:
        for name, message in (
            ("subscription", CONSUMER_SUBSCRIPTION),
            ("assignment", CONSUMER_ASSIGNMENT),
        ):
            data = base64.b64decode(member[name])
            try:
                version = _version(data, name)
                member[name] = decode_message(message, data, 2, version)
            except CorruptBatchError:
                continue  # some other protocol's bytes: shown as they are


def cluster_metadata_decoder(record: DumpedRecord) -> Contents:
    """Records of ``__cluster_metadata``: they have no keys."""
    try:
        kind, version, data = decode_framed(METADATA_RECORDS, record.value)
    except CorruptBatchError as error:
        return Contents(None, f"Error at {record.offset}, skipping. {error.reason}")
    name, _ = METADATA_RECORDS[kind]
    return Contents(None, to_json({"type": name, "version": version, "data": data}))


# --- what is said about segments in remote storage -----------------------------------------------

_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)
# In which order Kafka prints the fields of each kind, which is not that of the bytes.
_SEGMENT_ORDER = [
    "remoteLogSegmentId",
    "startOffset",
    "endOffset",
    "brokerId",
    "maxTimestampMs",
    "eventTimestampMs",
    "segmentLeaderEpochs",
    "segmentSizeInBytes",
    "customMetadata",
    "state",
    "txnIdxEmpty",
]
_UPDATE_ORDER = ["remoteLogSegmentId", "customMetadata", "state", "eventTimestampMs", "brokerId"]
_DELETE_ORDER = ["topicPartition", "state", "eventTimestampMs", "brokerId"]
_SNAPSHOT_ORDER = [
    "segmentId",
    "startOffset",
    "endOffset",
    "maxTimestampMs",
    "segmentLeaderEpochs",
    "segmentSizeInBytes",
    "customMetadata",
    "state",
    "txnIdxEmpty",
]
_REMOTE_ORDERS = (_SEGMENT_ORDER, _UPDATE_ORDER, _DELETE_ORDER, _SNAPSHOT_ORDER)
_NO_VALUE = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.internal.Record.value()" is null'
)


def remote_log_metadata_decoder(record: DumpedRecord) -> Contents:
    """Records of ``__remote_log_metadata``: shown as Java objects print themselves."""
    try:
        if record.value is None:
            raise CorruptBatchError(_NO_VALUE)
        kind, _, data = decode_framed(REMOTE_LOG_RECORDS, record.value)
        shown = _remote_values(kind, data)
    except CorruptBatchError as error:
        return Contents(None, f"Error at offset {record.offset}, skipping. {error.reason}")
    fields = ", ".join(f"{name}={shown[name]}" for name in _REMOTE_ORDERS[kind])
    return Contents(None, f"{REMOTE_LOG_RECORDS[kind][0]}{{{fields}}}")


def _remote_values(kind: int, data: dict[str, Any]) -> dict[str, Any]:
    if kind == REMOTE_SEGMENT:
        _check_offsets(data["startOffset"], data["endOffset"])
        _check_epochs(data)
    states = _PARTITION_STATES if kind == REMOTE_PARTITION_DELETE else _SEGMENT_STATES
    if not 0 <= data["state"] < len(states):
        no_state = "null" if kind == REMOTE_PARTITION_DELETE else "state can not be null"
        raise CorruptBatchError(no_state)
    shown = {**data, "state": states[data["state"]]}
    if kind == REMOTE_PARTITION_DELETE:
        return {**shown, "topicPartition": _topic_id_partition(data)}
    custom = data["customMetadata"]
    size = None if custom is None else len(base64.b64decode(custom))
    shown["customMetadata"] = (
        "Optional.empty" if size is None else f"Optional[CustomMetadata{{{size} bytes}}]"
    )
    if kind in (REMOTE_SEGMENT, REMOTE_SEGMENT_SNAPSHOT):
        _check_epochs(data)
        epochs = {epoch["leaderEpoch"]: epoch["offset"] for epoch in data["segmentLeaderEpochs"]}
        shown["segmentLeaderEpochs"] = (
            "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}"
        )
        shown["txnIdxEmpty"] = boolean(data.get("txnIdxEmpty", False))
    if kind != REMOTE_SEGMENT_SNAPSHOT:
        segment_id = data["remoteLogSegmentId"]
        shown["remoteLogSegmentId"] = (
            f"RemoteLogSegmentId{{topicIdPartition={_topic_id_partition(segment_id)}, "
            f"id={segment_id['id']}}}"
        )
    return shown


def _check_offsets(start_offset: int, end_offset: int) -> None:
    if start_offset < 0:
        raise CorruptBatchError(
            f"Unexpected start offset = {start_offset}. "
            "StartOffset for a remote segment cannot be negative"
        )
    if end_offset < start_offset:
        raise CorruptBatchError(
            f"Unexpected end offset = {end_offset}. EndOffset for a remote segment cannot be "
            f"less than startOffset = {start_offset}"
        )


def _check_epochs(data: dict[str, Any]) -> None:
    if not data["segmentLeaderEpochs"]:
        raise CorruptBatchError("segmentLeaderEpochs can not be null or empty")


def _topic_id_partition(data: dict[str, Any]) -> str:
    partition = data["topicIdPartition"]
    return f"{partition['id']}:{partition['name']}-{partition['partition']}"


# --- control records -----------------------------------------------------------------------------


def control_text(record: DumpedRecord) -> str:
    """What a control record says, as Kafka's dump appends it to the record's line."""
    control = parse_control_record(record.key, record.value)
    if control.type.ends_transaction:
        return f" endTxnMarker: {control.type.name} coordinatorEpoch: {control.coordinator_epoch}"
    if control.type in QUORUM_RECORDS and record.value is not None:
        name, message = QUORUM_RECORDS[control.type]
        version = min(max(_version(record.value, "value"), 0), message.last_version)
        return f" {name}{to_json(decode_message(message, record.value, 0, version))}"
    type_id = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return f" controlType: {ControlType.UNKNOWN.name}({type_id})"
