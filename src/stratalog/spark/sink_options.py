"""The options of writing with ``format("stratalog")``: read, checked, told in a sentence if wrong.

``topic`` means what it means to Spark's Kafka sink, and names are found in any case. A log
directory (``path``) is written directly; ``kafka.bootstrap.servers`` is for brokers whose files are
not within reach, and has the settings of its producer beside it, as ``kafka.`` options.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stratalog.errors import ConfigError, TopicNameError
from stratalog.records.compression import LEVEL_BOUNDS, Codec
from stratalog.records.encoding import BATCH_BYTES
from stratalog.scans.errors import ScanOptionError
from stratalog.spark.given import GivenOptions, parse_path
from stratalog.storage.commits.manifest import TEXT_CHARACTERS_MAX
from stratalog.storage.layout import validate_topic_name

BATCH_BYTES_MIN = 1 << 10
BATCH_BYTES_MAX = 1 << 30
STAGING_SECONDS = 900
COMMIT_SECONDS = 600

SINK_OPTIONS = (
    "path",
    "topic",
    "kafka.bootstrap.servers",
    # Ours.
    "txnAppId",
    "txnVersion",
    "compression",
    "batchBytes",
    "stagingSeconds",
    "commitSeconds",
    "brokerConfig",
)

# What stratalog.spark.jobs.load hands to the sink; no promise to anybody else.
RESULT_OPTION = "stratalog.result"

# Of Spark, or of its Kafka sink, and without a meaning here: taken and left alone.
_WITHOUT_MEANING = (
    "includeHeaders",
    "checkpointLocation",
    "queryName",
    "mergeSchema",
    "producer.retries",
)

# Levels that librdkafka takes; below 0 it means its own.
_WIRE_LEVEL_MAX = 12

_REFUSED = {
    "kafka.key.serializer": "keys are written as the bytes that they are; cast the column key",
    "kafka.value.serializer": "values are written as the bytes that they are; cast the column",
    "kafka.interceptor.classes": "there is no Java producer here that could be intercepted",
    "paths": "one log directory is written at a time",
}
_REFUSED_OVER_THE_WIRE = {
    "kafka.transactional.id": "rows are produced at least once, outside of any transaction",
    "kafka.default.topic.config": "give its settings as kafka. options of their own",
    "kafka.compression.codec": "give it as compression, or as kafka.compression.type",
}
_FOR_A_DIRECTORY = ("stagingSeconds", "commitSeconds", "brokerConfig")
# Settings that are no text but functions and objects, which no option can be.
_CALLABLE = ("_cb", "on_delivery", "logger")
_ACKS = ("kafka.acks", "kafka.request.required.acks")
# No other writing of them: librdkafka reads 00, -0 or 0x0 as 0.
_ACKS_THAT_TELL = ("all", "-1", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What was asked for. Exactly one of ``path`` and ``bootstrap_servers`` is not empty.
    ``result_file`` is where the driver wants to read what a batch's commit came to."""

    path: str = ""
    bootstrap_servers: str = ""
    topic: str | None = None
    app_id: str | None = None
    app_version: int = 0
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_bytes: int = BATCH_BYTES
    staging_seconds: int = STAGING_SECONDS
    commit_seconds: int = COMMIT_SECONDS
    result_file: str = ""
    # The server.properties of the broker whose directory it is, for when it does not run.
    broker_config_file: str = ""
    kafka: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_direct(self) -> bool:
        return not self.bootstrap_servers

    @classmethod
    def parse(cls, options: Mapping[str, str], *, is_streaming: bool) -> "SinkOptions":
        given = GivenOptions(options)
        for name, instead in _REFUSED.items():
            if (text := given.text(name)) is not None:
                raise ScanOptionError(name, text, f"it is not supported: {instead}")
        given.check_spelling((*SINK_OPTIONS, *_WITHOUT_MEANING))
        path, bootstrap_servers = _parse_target(given)
        app_id, app_version = _parse_app(given, is_streaming=is_streaming)
        if app_id is not None and not path:
            raise ScanOptionError(
                "txnAppId",
                app_id,
                "over the wire rows come at least once; it needs a log directory",
            )
        codec, level = _parse_compression(given)
        if bootstrap_servers:
            _check_producer(given, level)
        return cls(
            path=path,
            bootstrap_servers=bootstrap_servers,
            topic=_parse_topic(given),
            app_id=app_id,
            app_version=app_version,
            codec=codec,
            level=level,
            batch_bytes=_parse_batch_bytes(given),
            staging_seconds=_seconds(given, "stagingSeconds", STAGING_SECONDS, at_least=30),
            commit_seconds=_seconds(given, "commitSeconds", COMMIT_SECONDS, at_least=1),
            result_file=given.text(RESULT_OPTION) or "",
            broker_config_file=given.text("brokerConfig") or "",
            kafka=_producer_settings(given),
        )


def _producer_settings(given: GivenOptions) -> dict[str, str]:
    size = (
        {} if given.text("batchBytes") is None else {"batch.size": str(_parse_batch_bytes(given))}
    )
    return size | given.kafka()


def _check_producer(given: GivenOptions, level: int | None) -> None:
    """What would fail late and badly, or lose rows without a word."""
    for name, instead in _REFUSED_OVER_THE_WIRE.items():
        if (text := given.text(name)) is not None:
            raise ScanOptionError(name, text, f"it is not supported: {instead}")
    for name in _FOR_A_DIRECTORY:
        if (text := given.text(name)) is not None:
            raise ScanOptionError(
                name, text, "it is for a log directory that is written directly, not for brokers"
            )
    for name, text in given.kafka().items():
        if name.endswith(_CALLABLE):
            raise ScanOptionError(
                f"kafka.{name}", text, "it is not supported: an option is a text, and no function"
            )
    for name in _ACKS:
        text = given.text(name)
        if text is not None and text.strip().lower() not in _ACKS_THAT_TELL:
            raise ScanOptionError(
                name,
                text,
                "expected all, -1 or 1: rows are written at least once, and with 0 "
                "nobody would say that they are",
            )
    if level is not None and not 0 <= level <= _WIRE_LEVEL_MAX:
        raise ScanOptionError(
            _compression_option(given),
            str(level),
            f"levels over the wire are 0 to {_WIRE_LEVEL_MAX}",
        )


def _parse_target(given: GivenOptions) -> tuple[str, str]:
    path = given.text("path")
    servers = (given.text("kafka.bootstrap.servers") or "").strip()
    if path is None and servers.startswith(("/", "./", "file:")):
        path, servers = servers, ""  # a query moved over from format kafka, its address changed
    if path is not None and servers:
        raise ScanOptionError(
            "kafka.bootstrap.servers",
            servers,
            f"the log directory {path} is named too; give one of them: directly into the files, "
            "or over the wire",
        )
    if path is not None:
        return parse_path(path, "write"), ""
    if not servers:
        raise ScanOptionError(
            "path",
            "",
            "name the log directory to write, as in save('/var/lib/kafka'), or give "
            "kafka.bootstrap.servers to write over the wire",
        )
    return "", servers


def _parse_topic(given: GivenOptions) -> str | None:
    text = given.text("topic")
    if text is None:
        return None
    try:
        validate_topic_name(text.strip())
    except TopicNameError as error:
        raise ScanOptionError("topic", text, str(error)) from error
    return text.strip()


def _parse_app(given: GivenOptions, *, is_streaming: bool) -> tuple[str | None, int]:
    name, version = given.text("txnAppId"), given.count("txnVersion", at_least=0)
    if name is None and version is None:
        return None, 0
    if is_streaming:
        raise ScanOptionError(
            "txnAppId",
            name or "",
            "a streaming query is known by its own id and batches; leave txnAppId and txnVersion "
            "to batch writes and foreachBatch",
        )
    if name is None or version is None:
        missing, told = ("txnAppId", version) if name is None else ("txnVersion", name)
        raise ScanOptionError(missing, "", f"it is missing, and {told} alone says nothing")
    if not name.strip() or len(name) > TEXT_CHARACTERS_MAX:
        raise ScanOptionError(
            "txnAppId", name, f"expected a name of at most {TEXT_CHARACTERS_MAX} characters"
        )
    return name, version


def _parse_compression(given: GivenOptions) -> tuple[Codec, int | None]:
    """``zstd``, or ``zstd:7``; a producer's own setting is obeyed if ours is not given."""
    option = _compression_option(given)
    text = given.text(option)
    if text is None:
        return Codec.NONE, None
    name, _, level_text = text.strip().lower().partition(":")
    try:
        codec = Codec.from_name(name)
    except ConfigError as error:
        raise ScanOptionError(option, text, error.rule) from None
    if not level_text:
        return codec, None
    low, high = LEVEL_BOUNDS.get(codec, (0, -1))
    try:
        level = int(level_text)
    except ValueError:
        level = low - 1
    if not low <= level <= high:
        rule = f"levels of {name} are {low} to {high}" if high >= low else f"{name} has no levels"
        raise ScanOptionError(option, text, rule)
    return codec, level


def _compression_option(given: GivenOptions) -> str:
    return "compression" if given.text("compression") is not None else "kafka.compression.type"


def _parse_batch_bytes(given: GivenOptions) -> int:
    size = given.size_bytes("batchBytes")
    if size is None:
        return BATCH_BYTES
    if not BATCH_BYTES_MIN <= size <= BATCH_BYTES_MAX:
        raise ScanOptionError(
            "batchBytes", str(size), f"expected {BATCH_BYTES_MIN} to {BATCH_BYTES_MAX}"
        )
    return size


def _seconds(given: GivenOptions, name: str, default: int, *, at_least: int) -> int:
    told = given.count(name, at_least=at_least, at_most=7 * 86_400)
    return default if told is None else told
