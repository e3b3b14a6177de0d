"""The options of ``format("stratalog")``: read, checked, and told in one sentence when wrong.

Names, defaults and rules are those of Spark's Kafka source, so that a query written for it works
with the format's name and the address changed; names are case-insensitive. What that source
ignores is ignored here too, but for a name that is nearly one of ours: a misspelt option that does
nothing is the dearest kind.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from stratalog.scans import leasing
from stratalog.scans.errors import ScanOptionError
from stratalog.scans.selection import Selection, SubscribePattern
from stratalog.scans.slices import ReadMode, ScanIsolation
from stratalog.scans.where import Where
from stratalog.spark.choosing import AssignAsSpark, SubscribeAsSpark
from stratalog.spark.given import GivenOptions, parse_path
from stratalog.spark.offsets import (
    LATEST_OFFSET,
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    check_limits,
    parse_limit,
)
from stratalog.spark.predicates import read_where

_log = logging.getLogger(__name__)

MAX_TRIGGER_DELAY_MS = 15 * 60_000
LEASE_SECONDS = leasing.SECONDS

STRATEGIES = ("subscribe", "subscribePattern", "assign")

KNOWN_OPTIONS = (
    "path",
    *STRATEGIES,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "includeHeaders",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafka.isolation.level",
    "kafka.group.id",
    "kafka.bootstrap.servers",
    # Ours.
    "maxBytesPerPartition",
    "maxBytesPerTrigger",
    "maxLateness",
    "key",
    "includeMetadata",
    "gaps",
    "mode",
    "pushdown",
    "leaseSeconds",
)

# Of Spark's source, and of no meaning without a consumer: taken and left alone.
_WITHOUT_MEANING = (
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "topic",
    "paths",
    "mergeSchema",
)

_REFUSED = {
    "kafka.auto.offset.reset": "say where to begin with startingOffsets instead",
    "kafka.key.deserializer": "keys are returned as bytes; cast the column key",
    "kafka.value.deserializer": "values are returned as bytes; cast the column value",
    "kafka.enable.auto.commit": "a query keeps its own offsets and commits none",
    "kafka.interceptor.classes": "there is no consumer here that could be intercepted",
}

# What stratalog.spark.scan and snapshot hand to the source; no promise to anybody else.
WHERE_OPTION = "stratalog.where"
LEASES_OPTION = "stratalog.leases"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What was asked for. ``None`` is "not said"."""

    path: str
    selection: Selection
    starting: OffsetLimit
    ending: OffsetLimit
    isolation: ScanIsolation = ScanIsolation.READ_UNCOMMITTED
    mode: ReadMode = ReadMode.FAIL_FAST
    fail_on_data_loss: bool = True
    include_headers: bool = False
    include_metadata: bool = False
    gaps: bool = False
    pushdown: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_bytes_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_TRIGGER_DELAY_MS
    max_bytes_per_trigger: int | None = None
    max_lateness_ms: int | None = None
    keys: frozenset[bytes] | None = None
    group_id: str | None = None
    bootstrap_servers: str | None = None
    kafka: Mapping[str, str] = field(default_factory=dict)
    where: Where | None = None
    lease_seconds: int = LEASE_SECONDS
    lease_ids: tuple[str, ...] = ()

    @property
    def is_start_moving(self) -> bool:
        """Whether resolving the start again, later, may give another answer."""
        if isinstance(self.starting, SpecificOffsets):
            return LATEST_OFFSET in self.starting.offsets.values()
        if isinstance(self.starting, SpecificTimestamps | GlobalTimestamp):
            return self.starting.no_match is NoMatch.LATEST
        return isinstance(self.starting, Latest)

    @classmethod
    def parse(cls, options: Mapping[str, str], *, is_streaming: bool) -> "SourceOptions":
        return _parse(GivenOptions(options), is_streaming=is_streaming)

    @classmethod
    def parse_any(cls, options: Mapping[str, str]) -> "SourceOptions":
        """What batches and streams have in common, where it is not known which is meant."""
        return _parse(GivenOptions(options), is_streaming=None)


def _parse(given: GivenOptions, *, is_streaming: bool | None) -> SourceOptions:
    _check_refused(given, is_streaming=is_streaming)
    given.check_spelling((*KNOWN_OPTIONS, *_WITHOUT_MEANING))
    selection = _parse_selection(given)
    no_match = _parse_no_match(given)
    default_start: OffsetLimit = Latest() if is_streaming else Earliest()
    starting = parse_limit(given.values, "starting", default=default_start, no_match=no_match)
    ending = parse_limit(given.values, "ending", default=Latest(), no_match=no_match)
    if is_streaming is False:
        check_limits(starting, ending)
    min_per_trigger = given.count("minOffsetsPerTrigger")
    max_per_trigger = given.count("maxOffsetsPerTrigger")
    if min_per_trigger and max_per_trigger and min_per_trigger > max_per_trigger:
        raise ScanOptionError(
            "minOffsetsPerTrigger",
            str(min_per_trigger),
            f"it is above maxOffsetsPerTrigger, {max_per_trigger}",
        )
    key = given.text("key")
    return SourceOptions(
        path=_parse_path(given),
        selection=selection,
        starting=starting,
        ending=ending,
        isolation=_parse_isolation(given),
        mode=_parse_mode(given),
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        include_metadata=given.flag("includeMetadata", False),
        gaps=_parse_gaps(given, is_streaming=is_streaming),
        pushdown=given.flag("pushdown", False),
        min_partitions=given.count("minPartitions", at_most=2**31 - 1),
        max_records_per_partition=given.count("maxRecordsPerPartition"),
        max_bytes_per_partition=given.size_bytes("maxBytesPerPartition"),
        max_offsets_per_trigger=max_per_trigger,
        min_offsets_per_trigger=min_per_trigger,
        max_trigger_delay_ms=_or(given.duration_ms("maxTriggerDelay"), MAX_TRIGGER_DELAY_MS),
        max_bytes_per_trigger=given.size_bytes("maxBytesPerTrigger"),
        max_lateness_ms=given.duration_ms("maxLateness"),
        keys=None if key is None else frozenset([key.encode()]),
        group_id=given.text("kafka.group.id"),
        bootstrap_servers=given.text("kafka.bootstrap.servers"),
        kafka=given.kafka(),
        where=_parse_where(given),
        lease_seconds=_or(given.count("leaseSeconds", at_least=0, at_most=86_400), LEASE_SECONDS),
        lease_ids=tuple(json.loads(given.text(LEASES_OPTION) or "[]")),
    )


def _or(number: int | None, default: int) -> int:
    return default if number is None else number


def _check_refused(given: GivenOptions, *, is_streaming: bool | None) -> None:
    for name, instead in _REFUSED.items():
        if (text := given.text(name)) is not None:
            raise ScanOptionError(name, text, f"it is not supported: {instead}")
    if is_streaming:
        for name in ("endingOffsets", "endingOffsetsByTimestamp"):
            if (text := given.text(name)) is not None:
                raise ScanOptionError(name, text, "a streaming query has no end")
        if given.text("endingTimestamp") is not None:
            # Spark's source lets this one pass, and so does every query that was written for it.
            _log.warning("endingTimestamp is ignored: a streaming query has no end")


def _parse_path(given: GivenOptions) -> str:
    path = given.text("path")
    if path is None and given.text("paths") is not None:
        raise ScanOptionError("path", str(given.text("paths")), "one log directory is read a load")
    if path is None:
        # A query moved over from format kafka may have had only its address changed.
        address = (given.text("kafka.bootstrap.servers") or "").strip()
        if not address.startswith(("/", "./", "file:")):
            raise ScanOptionError(
                "path",
                "",
                "name the log directory to read, as in load('/var/lib/kafka'); files are read, "
                "and no broker is connected to",
            )
        path = address
    return parse_path(path)


def _parse_selection(given: GivenOptions) -> Selection:
    chosen = [name for name in STRATEGIES if given.text(name) is not None]
    if len(chosen) != 1:
        told = " and ".join(chosen)
        raise ScanOptionError(
            "subscribe",
            told,
            f"give exactly one of {', '.join(STRATEGIES)}: they say which topics are read",
        )
    name = chosen[0]
    text = given.text(name) or ""
    if name == "assign":
        return _parse_assign(text)
    if name == "subscribePattern":
        if not text.strip():
            raise ScanOptionError(name, text, "the pattern is empty")
        return SubscribePattern(text.strip())
    topics = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    if not topics:
        raise ScanOptionError(name, text, "it names no topic")
    return SubscribeAsSpark(topics)


def _parse_assign(text: str) -> AssignAsSpark:
    try:
        found = json.loads(text)
        chosen = {topic: _partitions(partitions) for topic, partitions in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        chosen = {}
    if not any(chosen.values()):
        raise ScanOptionError("assign", text, 'expected JSON such as {"orders": [0, 1]}')
    return AssignAsSpark(chosen)


def _partitions(found: object) -> tuple[int, ...]:
    if not isinstance(found, list):
        raise TypeError(found)
    for each in found:
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < 2**31:
            raise ValueError(each)
    return tuple(sorted(set(found)))


def _parse_no_match(given: GivenOptions) -> NoMatch:
    name = "startingOffsetsByTimestampStrategy"
    text = given.text(name)
    if text is None:
        return NoMatch.ERROR
    try:
        return NoMatch(text.strip().lower())
    except ValueError:
        raise ScanOptionError(name, text, "expected error or latest") from None


def _parse_isolation(given: GivenOptions) -> ScanIsolation:
    name = "kafka.isolation.level"
    text = given.text(name)
    if text is None:
        return ScanIsolation.READ_UNCOMMITTED
    try:
        return ScanIsolation(text.strip().lower())
    except ValueError:
        raise ScanOptionError(name, text, "expected read_uncommitted or read_committed") from None


def _parse_mode(given: GivenOptions) -> ReadMode:
    text = given.text("mode")
    if text is None:
        return ReadMode.FAIL_FAST
    try:
        return ReadMode(text.strip().lower())
    except ValueError:
        raise ScanOptionError("mode", text, "expected failfast or permissive") from None


def _parse_gaps(given: GivenOptions, *, is_streaming: bool | None) -> bool:
    gaps = given.flag("gaps", False)
    if gaps and is_streaming:
        raise ScanOptionError("gaps", "true", "the holes of a log are read by batch queries only")
    return gaps


def _parse_where(given: GivenOptions) -> Where | None:
    text = given.text(WHERE_OPTION)
    return None if text is None else read_where(text)
