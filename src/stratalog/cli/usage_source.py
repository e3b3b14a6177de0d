"""The log directories of brokers that are asked, and what takes their disk.

Kafka's protocol tells paths and the sizes of segments. A path on this host is looked at; of any
other the rest is not known, which the value says.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratalog.cli.client import BrokerUnreachableError, ClientError, Connection
from stratalog.cli.client_wire import Wire
from stratalog.cli.failures import CommandError, UsageError
from stratalog.errors import StratalogError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.storage.layout import LOCK_FILE
from stratalog.storage.readonly import lock_owner
from stratalog.storage.usage import Amount, Owner, Usage, UsageKind, UsageRow

if TYPE_CHECKING:
    from stratalog.protocol.messages.describe_log_dirs import DescribeLogDirsResult

_METADATA_VERSION, _LOG_DIRS_VERSION = 9, 4
_ONLY_SEGMENTS = (
    "The broker is on another host: only its segments are known here, and neither indexes nor what "
    "waits for deletion, is leased, staged or kept aside. Ask on its host, with the directory."
)


def ask_brokers(connection: Connection, look_at: Callable[[str], Usage]) -> list[Usage]:
    """The usage of every log directory of every broker of the cluster."""
    if not connection.is_plain:
        raise UsageError("Log directories are asked for in the clear only; name a directory.")
    with connection.open_wire() as wire:
        brokers = _brokers(wire)
    found = []
    for host, port in brokers:
        try:
            with Wire.open(host, port) as wire:
                found += [
                    usage_of(each, look_at, is_local=wire.is_local) for each in _log_dirs(wire)
                ]
        except OSError as error:
            raise BrokerUnreachableError(f"{host}:{port}", error.strerror or str(error)) from error
    if not found:
        raise CommandError("The brokers tell of no log directory: they do not let you see any.")
    return found


def _brokers(wire: Wire) -> list[tuple[str, int]]:
    from stratalog.protocol.messages.metadata import MetadataRequest

    request = MetadataRequest(topics=(), allow_auto_topic_creation=False)
    answer: Any = wire.ask(ApiKey.METADATA, _METADATA_VERSION, request)
    return [(broker.host, broker.port) for broker in answer.brokers]


def _log_dirs(wire: Wire) -> "Iterable[DescribeLogDirsResult]":
    from stratalog.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    request = DescribeLogDirsRequest(topics=None)
    answer: Any = wire.ask(ApiKey.DESCRIBE_LOG_DIRS, _LOG_DIRS_VERSION, request)
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise ClientError("Describing log directories", code.name, "the broker refused")
    found: Iterable[DescribeLogDirsResult] = answer.results
    return found


def usage_of(
    told: "DescribeLogDirsResult", look_at: Callable[[str], Usage], *, is_local: bool
) -> Usage:
    """The usage of one directory, as far as it can be known on this host."""
    note: str | None = _ONLY_SEGMENTS
    if is_local and Path(told.log_dir).is_dir():
        lock = f"{told.log_dir}/{LOCK_FILE}"
        try:
            # Another container may have a directory of the same name, which its broker would own.
            if lock_owner(lock) is not None:
                return look_at(told.log_dir)
        except (StratalogError, OSError) as error:
            note = f"{_ONLY_SEGMENTS} Here it cannot be looked at: {error}"
    if told.error_code:
        note = f"The broker says that this directory is offline ({ErrorCode(told.error_code).name})"
    sums: dict[str, Amount] = defaultdict(Amount)
    for topic in told.topics:
        for each in topic.partitions:
            size_bytes = each.partition_size
            sums[topic.name] = sums[topic.name].plus(Amount(1, size_bytes, size_bytes))
    rows = tuple(UsageRow(name, UsageKind.LOG, sums[name]) for name in sorted(sums))
    free_bytes = None if told.usable_bytes < 0 else told.usable_bytes
    return Usage(told.log_dir, Owner.UNKNOWN, free_bytes, rows, note=note)
