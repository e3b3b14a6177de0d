"""``stratalog consume``: records to stdout, as kafka-console-consumer does; kcat's offset words.

Without ``--group`` partitions are read as they are, nobody's offsets change, and where reading
begins and ends is known before the first record. With ``--group`` it is a member like any other,
which commits what it has printed.
"""

from typing import Annotated

import typer

from stratalog.cli.client import (
    DEFAULT_BOOTSTRAP_SERVER,
    BootstrapOption,
    command_config_option,
    command_property_option,
    connection,
    read_properties,
)
from stratalog.cli.client_names import NameArgument, OneTopicOption, topic_pattern
from stratalog.cli.completion import complete_group
from stratalog.cli.consume_format import LineFormat, json_line
from stratalog.cli.consume_offsets import Start, parse_offsets
from stratalog.cli.consume_reading import Reading, Wanted
from stratalog.cli.failures import UsageError
from stratalog.cli.output import OutputFormat, OutputOption, plural, write_error
from stratalog.cli.values import pairs

_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")


def consume(
    name: NameArgument = None,
    topic: OneTopicOption = None,
    include: Annotated[
        str | None,
        typer.Option("--include", metavar="REGEX", help="All topics whose names match."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Read this partition only.")
    ] = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(
            "--offset",
            metavar="WHERE",
            help="Where to begin: beginning, end, stored, N, -N (the last N), s@TIMESTAMP; "
            "e@TIMESTAMP is where to end. May be given twice, for both.",
        ),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Begin with the first record there is.")
    ] = False,
    exit_at_end: Annotated[
        bool, typer.Option("--exit", "-e", help="End when all that was there has been read.")
    ] = False,
    max_messages: Annotated[
        int | None, typer.Option("--max-messages", min=0, help="End after so many records.")
    ] = None,
    timeout_ms: Annotated[
        int | None, typer.Option("--timeout-ms", min=0, help="End when nothing came for so long.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Read as a member of a group.",
            autocompletion=complete_group,
        ),
    ] = None,
    isolation_level: Annotated[
        str, typer.Option("--isolation-level", help="read_uncommitted or read_committed.")
    ] = "read_uncommitted",
    formatter_property: Annotated[
        list[str] | None,
        typer.Option(
            "--formatter-property",
            "--property",
            metavar="NAME=VALUE",
            help="How lines look: print.key, print.value, print.headers, print.offset, "
            "print.partition, print.timestamp, print.epoch, key.separator, line.separator, "
            "headers.separator, null.literal, key.deserializer, value.deserializer.",
        ),
    ] = None,
    formatter_config: Annotated[
        str | None,
        typer.Option("--formatter-config", metavar="FILE", help="A file of such properties."),
    ] = None,
    key_deserializer: Annotated[
        str | None, typer.Option("--key-deserializer", help="String, Short, Integer or Long.")
    ] = None,
    value_deserializer: Annotated[
        str | None, typer.Option("--value-deserializer", help="The same, for values.")
    ] = None,
    skip_message_on_error: Annotated[
        bool,
        typer.Option("--skip-message-on-error", help="Go on after a record that has no such form."),
    ] = False,
    command_property: Annotated[
        list[str] | None, command_property_option("--consumer-property")
    ] = None,
    command_config: Annotated[str | None, command_config_option("--consumer.config")] = None,
    bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP_SERVER,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print the records of a topic, one a line.

    Goes on until Ctrl-C, unless -e, --max-messages or --timeout-ms ends it.

    \b
    Examples:
      stratalog consume orders --from-beginning -e
      stratalog consume orders --offset -10 -e --property print.key=true
      stratalog consume orders --offset s@2026-01-31T12:00:00Z -e
      stratalog consume orders --group billing --max-messages 100 -o json
    """
    properties = read_properties(formatter_config, "--formatter-config")
    properties |= pairs(formatter_property or (), "--formatter-property")
    for setting, value in (
        ("key.deserializer", key_deserializer),
        ("value.deserializer", value_deserializer),
    ):
        if value:
            properties[setting] = value
    line_format = LineFormat.from_properties(properties)
    if isolation_level not in _ISOLATION_LEVELS:
        raise UsageError(f"--isolation-level is one of {', '.join(_ISOLATION_LEVELS)}.")
    client = connection(bootstrap_server, command_config, command_property)
    wanted = Wanted(
        topic=_topic(name, topic, include),
        pattern=None if include is None else topic_pattern(include, "--include"),
        partition=partition,
        offsets=parse_offsets(offset or (), from_beginning=from_beginning),
        is_placed=partition is not None or bool(offset),
        group=_group(group, client.settings.get("group.id")),
        isolation_level=isolation_level,
        exits_at_end=exit_at_end,
        max_messages=max_messages,
        timeout_ms=timeout_ms,
        skips_bad=skip_message_on_error,
    )
    if wanted.offsets.start is Start.STORED and wanted.group is None:
        raise UsageError("--offset stored is what a group has committed; say which with --group.")
    reading = Reading(
        client, wanted, json_line if output is OutputFormat.JSON else line_format.line
    )
    reading.run()
    if output is OutputFormat.TABLE:
        write_error(f"Processed a total of {plural(reading.count, 'message')}")


def _group(option: str | None, setting: str | None) -> str | None:
    if option and setting and option != setting:
        raise UsageError(f"Which group? --group says {option}, and the setting group.id {setting}.")
    return option or setting


def _topic(name: str | None, topic: str | None, include: str | None) -> str | None:
    given = [each for each in (name, topic, include) if each]
    if len(given) != 1:
        raise UsageError("Which topic? Give one, as an argument, with --topic or with --include.")
    return name or topic
