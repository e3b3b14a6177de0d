"""Which topics a command is for: by name, or by Kafka's regular expressions.

A name given as an argument means that topic and no other. ``--topic`` is what it is in Kafka's own
tools: a regular expression over whole names, in which a comma means "or". So ``--topic a.b`` is
also for ``aXb``; whoever deletes should know.
"""

import re
from collections.abc import Iterable
from typing import Annotated

import typer

from stratalog.cli.completion import complete_topic
from stratalog.cli.failures import CommandError, UsageError

NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC", help="A topic, by its exact name.", autocompletion=complete_topic
    ),
]
OneTopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="The topic, if it is not given as an argument.",
        autocompletion=complete_topic,
    ),
]
TopicRegexOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="REGEX",
        help="Topics, by a regular expression over names.",
        autocompletion=complete_topic,
    ),
]
ExcludeInternalOption = Annotated[
    bool, typer.Option("--exclude-internal", help="Leave out Kafka's internal topics.")
]
IfExistsOption = Annotated[
    bool, typer.Option("--if-exists", help="Do nothing if there is no such topic.")
]


def choose_topics(
    names: Iterable[str], *, name: str | None, regex: str | None, exclude_internal: bool = False
) -> list[str]:
    """Those of ``names`` that are meant, in order; all if nothing is said."""
    from stratalog.metadata.names import is_internal

    if name is not None and regex is not None:
        raise UsageError("Give the topic as an argument or with --topic, not both.")
    chosen = sorted(names)
    if name is not None:
        chosen = [each for each in chosen if each == name]
    elif regex is not None:
        pattern = topic_pattern(regex)
        chosen = [each for each in chosen if pattern.fullmatch(each)]
    if exclude_internal:
        chosen = [each for each in chosen if not is_internal(each)]
    return chosen


def topic_pattern(raw: str, option: str = "--topic") -> re.Pattern[str]:
    """Kafka's reading of a list of topics: quotes off, blanks out, commas for "or"."""
    text = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {raw} is not a regular expression: {error}.") from error


def one_name(name: str | None, option: str | None) -> str:
    """The one topic of a command that takes no regular expression."""
    if name is not None and option is not None:
        raise UsageError("Give the topic as an argument or with --topic, not both.")
    chosen = name if name is not None else option
    if not chosen:
        raise UsageError("Which topic? Give it as an argument or with --topic.")
    return chosen


def ensure_found(found: list[str], name: str | None, regex: str | None, *, if_exists: bool) -> None:
    """Raise if somebody named a topic and there is none."""
    wanted = name if name is not None else regex
    if not found and wanted and not if_exists:
        raise CommandError(f"Topic '{wanted}' does not exist.")
