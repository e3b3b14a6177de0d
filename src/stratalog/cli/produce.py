"""``stratalog produce``: lines to records, as kafka-console-producer does.

A record that could not be written is counted and told, and the command ends with exit code 1:
silence means that the broker has acknowledged every line.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

import typer

from stratalog.cli.client import (
    DEFAULT_BOOTSTRAP_SERVER,
    BootstrapOption,
    Connection,
    client_error,
    command_config_option,
    command_property_option,
    connection,
    read_properties,
    told,
)
from stratalog.cli.client_names import NameArgument, OneTopicOption, one_name
from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.interrupts import interrupts_stay
from stratalog.cli.optional_values import OptionalValues
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    is_watched,
    plural,
    write_error,
    write_json,
)
from stratalog.cli.produce_lines import Headers, LineReader
from stratalog.cli.progress import bytes_bar
from stratalog.cli.values import pairs, repeatable_pairs

if TYPE_CHECKING:
    from confluent_kafka import Producer

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# The library's second name of a setting; the later of the two would count.
_ALIASES = {
    "acks": "request.required.acks",
    "compression.type": "compression.codec",
    "linger.ms": "queue.buffering.max.ms",
    "retries": "message.send.max.retries",
}
_ERRORS_TOLD = 5
_COUNTED_BYTES = 1 << 16


class ProduceCommand(OptionalValues):
    defaults: ClassVar[Mapping[str, str]] = {"--compression-codec": "gzip"}


def produce(
    name: NameArgument = None,
    topic: OneTopicOption = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="Read lines from here, not stdin.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Write to this partition only.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", help="Lines are key, this separator, value."),
    ] = None,
    headers: Annotated[
        bool, typer.Option("--headers", help="Lines begin with headers: n:v,n:v and a tab.")
    ] = False,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header for every record."),
    ] = None,
    reader_property: Annotated[
        list[str] | None,
        typer.Option(
            "--reader-property",
            "--property",
            metavar="NAME=VALUE",
            help="How lines are read: parse.key, key.separator, parse.headers, headers.delimiter, "
            "headers.separator, headers.key.separator, ignore.error, null.marker.",
        ),
    ] = None,
    reader_config: Annotated[
        str | None,
        typer.Option("--reader-config", metavar="FILE", help="A file of such properties."),
    ] = None,
    compression_codec: Annotated[
        str,
        typer.Option("--compression-codec", help="none, gzip (if no value), snappy, lz4, zstd."),
    ] = "none",
    acks: Annotated[
        str | None,
        typer.Option("--request-required-acks", "--acks", help="0, 1, -1 or all: the default."),
    ] = None,
    sync: Annotated[bool, typer.Option("--sync", help="Send one record at a time.")] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size", "--max-partition-memory-bytes", min=1, help="Bytes of a batch."
        ),
    ] = None,
    linger_ms: Annotated[
        int | None, typer.Option("--timeout", min=0, help="How long a batch waits to fill, in ms.")
    ] = None,
    retries: Annotated[
        int | None,
        typer.Option("--message-send-max-retries", min=0, help="How often to try again."),
    ] = None,
    retry_backoff_ms: Annotated[
        int | None, typer.Option("--retry-backoff-ms", min=1, help="The pause before that, in ms.")
    ] = None,
    request_timeout_ms: Annotated[
        int | None, typer.Option("--request-timeout-ms", min=1, help="How long acks may take.")
    ] = None,
    max_memory_bytes: Annotated[
        int | None, typer.Option("--max-memory-bytes", min=1024, help="What may wait to be sent.")
    ] = None,
    metadata_expiry_ms: Annotated[
        int | None,
        typer.Option("--metadata-expiry-ms", min=1, help="How often leaders are asked for."),
    ] = None,
    socket_buffer_size: Annotated[
        int | None, typer.Option("--socket-buffer-size", min=1, help="Bytes of the socket.")
    ] = None,
    command_property: Annotated[
        list[str] | None, command_property_option("--producer-property")
    ] = None,
    command_config: Annotated[str | None, command_config_option("--producer.config")] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write lines to a topic, each as a record.

    Reads standard input, or --file, until its end. Silence and exit code 0 mean that the broker has
    acknowledged every record.

    \b
    Examples:
      echo 'hello' | stratalog produce orders
      stratalog produce orders --file orders.txt --key-separator :
      stratalog produce orders --headers --compression-codec zstd
    """
    chosen = one_name(name, topic)
    if compression_codec not in _CODECS:
        raise UsageError(f"--compression-codec is one of {', '.join(_CODECS)}.")
    reader = _reader(reader_config, reader_property, key_separator, headers=headers)
    fixed = tuple(
        (each, value.encode("utf-8", "surrogateescape"))
        for each, value in repeatable_pairs(header, "--header")
    )
    wanted = connection(bootstrap_server, command_config, command_property)
    wanted, settings = _settings(
        wanted,
        {
            "acks": acks,
            "compression.type": None if compression_codec == "none" else compression_codec,
            "linger.ms": linger_ms,
            "batch.size": batch_size,
            "retries": retries,
            "retry.backoff.ms": retry_backoff_ms,
            "request.timeout.ms": request_timeout_ms,
            "metadata.max.age.ms": metadata_expiry_ms,
            "socket.send.buffer.bytes": socket_buffer_size,
            "queue.buffering.max.kbytes": None
            if max_memory_bytes is None
            else max_memory_bytes // 1024,
        },
    )
    with _lines(file) as lines, _watched(lines, file) as watched:
        producer = wanted.producer(settings)
        sending = _Sending(producer, chosen, partition, fixed, is_sync=sync)
        try:
            with interrupts_stay() as look_up:
                for key, value, own in reader.records(watched):
                    sending.send(key, value, own)
                    look_up()
        except KeyboardInterrupt:
            pass
        finally:
            # Also when a line is wrong: those before it were given to be written.
            sending.finish()
    _tell(sending, output)


class _Sending:
    """Counts what was acknowledged and what was not."""

    def __init__(
        self,
        producer: "Producer",
        topic: str,
        partition: int | None,
        headers: Headers,
        *,
        is_sync: bool,
    ) -> None:
        self.topic = topic
        self.written = 0
        self.errors: dict[str, int] = {}
        self._producer = producer
        self._headers = headers
        self._is_sync = is_sync
        self._where = {} if partition is None else {"partition": partition}

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def send(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        from confluent_kafka import KafkaException

        every: list[tuple[str, str | bytes | None]] = [*self._headers, *headers]
        while True:
            try:
                self._producer.produce(
                    self.topic,
                    value,
                    key,
                    on_delivery=self._delivered,
                    headers=every or None,
                    **self._where,  # type: ignore[arg-type]
                )
            except BufferError:
                # As much waits as may wait: until something is acknowledged, or given up.
                self._producer.poll(1)
                continue
            except KafkaException as error:
                # The client itself would not take the record, for its size or its partition.
                self._count(error.args[0])
            break
        self._producer.poll(0)
        if self._is_sync:
            self._producer.flush()

    def finish(self) -> None:
        with told("Writing records"):
            # Bounded by message.timeout.ms of every record that still waits.
            self._producer.flush()

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is None:
            self.written += 1
        else:
            self._count(error)

    def _count(self, error: Any) -> None:
        reason = str(client_error(f"Writing to topic {self.topic}", error))
        self.errors[reason] = self.errors.get(reason, 0) + 1


def _tell(sending: _Sending, output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        summary = {"topic": sending.topic, "written": sending.written, "failed": sending.failed}
        write_json({**summary, "errors": sending.errors})
    else:
        for reason, count in list(sending.errors.items())[:_ERRORS_TOLD]:
            write_error(f"{reason} ({plural(count, 'record')})")
        if sending.failed:
            total = sending.written + sending.failed
            write_error(f"{sending.failed} of {plural(total, 'record')} were not written.")
    if sending.failed:
        raise typer.Exit(1)


def _settings(wanted: Connection, flags: Mapping[str, Any]) -> tuple[Connection, dict[str, Any]]:
    """The connection and the settings of its producer: what a flag says goes before what was set
    as a property of the client, as in Kafka's tool, and that before what is set here."""
    given = {name: value for name, value in flags.items() if value is not None}
    overruled = {*given, *(_ALIASES[name] for name in given if name in _ALIASES)}
    kept = {name: value for name, value in wanted.settings.items() if name not in overruled}

    def chosen(name: str) -> Any:
        return given.get(name, kept.get(name, kept.get(_ALIASES[name])))

    is_all = chosen("acks") in (None, "-1", "all")
    settings: dict[str, Any] = {
        "compression.type": "none",
        "client.id": "console-producer",
        # Kafka's own clients never write a record twice, nor out of order, unless told to.
        "enable.idempotence": is_all and str(chosen("retries")) != "0",
        # The same key goes to the same partition as from Kafka's own clients.
        "partitioner": "murmur2_random",
        # A person waits: half a minute, not the five of the library.
        "message.timeout.ms": 30_000,
        "topic.metadata.propagation.max.ms": 5_000,
        **given,
    }
    return replace(wanted, settings=kept), settings


def _reader(
    path: str | None, properties: list[str] | None, key_separator: str | None, *, headers: bool
) -> LineReader:
    found = read_properties(path, "--reader-config")
    found |= pairs(properties or (), "--reader-property")
    if key_separator is not None:
        found |= {"parse.key": "true", "key.separator": key_separator}
    if headers:
        found["parse.headers"] = "true"
    return LineReader.from_properties(found)


@contextlib.contextmanager
def _lines(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        if is_watched() and sys.stdin.isatty():
            write_error("Each line is a record; end with Ctrl-D.")
        yield sys.stdin.buffer
        return
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("rb"))
        except OSError as error:
            raise CommandError(f"--file {path}: {error.strerror}.") from error
        yield file


@contextlib.contextmanager
def _watched(lines: Iterable[bytes], path: str | None) -> Iterator[Iterable[bytes]]:
    """Of a file, how much has been read, if a person is watching."""
    if path is None or not is_watched():
        yield lines
        return
    with bytes_bar("writing", lambda: Path(path).stat().st_size) as progress:
        yield _counted(lines, progress)


def _counted(lines: Iterable[bytes], progress: Callable[[int], None]) -> Iterator[bytes]:
    read_bytes = 0
    for line in lines:
        read_bytes += len(line)
        if read_bytes >= _COUNTED_BYTES:
            progress(read_bytes)
            read_bytes = 0
        yield line
    progress(read_bytes)
