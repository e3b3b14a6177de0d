"""How keys and values are shown: by the decoders of Kafka's dump tool that need no Java class."""

import base64
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from stratalog.cli.dump_batches import DumpedRecord, DumpError
from stratalog.cli.dump_schemas import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_SUBSCRIPTION,
    GROUP_KEYS,
    GROUP_METADATA_TYPE,
    GROUP_VALUES,
    QUORUM_RECORDS,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Message,
    decode_message,
)
from stratalog.errors import CorruptBatchError
from stratalog.records.control import ControlType, parse_control_record

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


def _coordinator_record(record: DumpedRecord, keys: Schemas, values: Schemas) -> Contents:
    if record.key is None:
        raise DumpError(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        kind = _version(record.key)
        if kind not in keys:
            return Contents(
                f"Unknown record type {kind} at offset {record.offset}, skipping.", None
            )
        data = decode_message(keys[kind], record.key, 2, 0)
        key = _json({"type": str(kind), "data": data})
        if record.value is None:
            return Contents(key, "<DELETE>")
        version = _version(record.value)
        if not 0 <= version <= values[kind].last_version:
            raise CorruptBatchError(f"version {version} is not known")
        data = decode_message(values[kind], record.value, 2, version)
        if values is GROUP_VALUES and kind == GROUP_METADATA_TYPE:
            _show_consumer_protocol(data)
        return Contents(key, _json({"version": str(version), "data": data}))
    except (CorruptBatchError, UnicodeDecodeError) as error:
        reason = error.reason
        return Contents(f"Error at offset {record.offset}, skipping. {reason}", None)


def _version(data: bytes) -> int:
    if len(data) < 2:
        raise CorruptBatchError("there are fewer bytes than a version has")
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
                version = _version(data)
                if 0 <= version <= message.last_version:
                    member[name] = decode_message(message, data, 2, version)
            except (CorruptBatchError, UnicodeDecodeError):
                continue  # some other protocol's bytes: shown as they are


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- control records -----------------------------------------------------------------------------


def control_text(record: DumpedRecord) -> str:
    """What a control record says, as Kafka's dump appends it to the record's line."""
    control = parse_control_record(record.key, record.value)
    if control.type.ends_transaction:
        return f" endTxnMarker: {control.type.name} coordinatorEpoch: {control.coordinator_epoch}"
    if control.type in QUORUM_RECORDS and record.value is not None:
        name, message = QUORUM_RECORDS[control.type]
        version = min(max(_version(record.value), 0), message.last_version)
        return f" {name}{_json(decode_message(message, record.value, 0, version))}"
    type_id = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return f" controlType: {ControlType.UNKNOWN.name}({type_id})"
