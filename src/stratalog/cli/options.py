"""Options and arguments that several commands take: one name, one help, one meaning."""

from typing import Annotated

import typer

from stratalog.cli.completion import complete_topic

LogDirOption = Annotated[
    str, typer.Option("--log-dir", metavar="DIR", help="The log directory that holds the topics.")
]
# Where some topic has to be named, and where it only narrows.
NeededTopicsOption = Annotated[
    list[str],
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="A topic; may be repeated.",
        autocompletion=complete_topic,
    ),
]
TopicOption = Annotated[
    str,
    typer.Option("--topic", metavar="TOPIC", help="The topic.", autocompletion=complete_topic),
]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Only this topic; may be repeated. Without it, all topics.",
        autocompletion=complete_topic,
    ),
]
JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", min=0, metavar="N", help="Threads.", show_default="one for each core"
    ),
]
