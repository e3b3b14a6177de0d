"""Which directory a command is about: one grammar for all that look at files.

``--log-dir DIR`` names a log directory everywhere. Where a command takes nothing else, the
directory may be its argument as well, and may be one topic-partition in a log directory. Of
commands for one partition, ``--topic`` and ``--partition`` say which of the log directory's.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from stratalog.cli.completion import complete_topic
from stratalog.cli.failures import UsageError

DirArgument = Annotated[
    str | None,
    typer.Argument(metavar="DIR", help="A log directory, or one topic-partition in it."),
]
DirsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="DIR", help="Log directories, or topic-partitions in them."),
]
PartitionDirArgument = Annotated[
    str | None,
    typer.Argument(metavar="DIR", help="One topic-partition, as data/orders-0."),
]
NamedDirOption = Annotated[
    str | None,
    typer.Option("--log-dir", metavar="DIR", help="The directory, if it is not the argument."),
]
NamedDirsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--log-dir", metavar="DIR", help="A directory that is not an argument; may be repeated."
    ),
]
PartitionTopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="With --log-dir: the topic of the partition.",
        autocompletion=complete_topic,
    ),
]
OnePartitionOption = Annotated[
    int | None,
    typer.Option(
        "--partition",
        metavar="N",
        min=0,
        help="With --log-dir: its number.",
        show_default=False,
    ),
]


def directory_of(argument: str | None, log_dir: str | None) -> str:
    """The one that was named, in one of both ways."""
    if argument is not None and log_dir is not None:
        raise UsageError("Name the directory once: as the argument, or with --log-dir.")
    if argument is None and log_dir is None:
        raise UsageError("Which directory? Give DIR, or --log-dir DIR.")
    return str(log_dir if argument is None else argument)


def directories_of(arguments: Sequence[str] | None, log_dirs: Sequence[str] | None) -> list[str]:
    """All that were named, in both ways."""
    found = [*(arguments or ()), *(log_dirs or ())]
    if not found:
        raise UsageError("Which directories? Give DIR, or --log-dir DIR, once or more.")
    return found


def partition_of(
    argument: str | None, log_dir: str | None, topic: str | None, partition: int | None
) -> str:
    """The directory of one partition."""
    if argument is not None and (log_dir, topic, partition) == (None, None, None):
        return argument
    if argument is not None or log_dir is None or (topic is None) != (partition is None):
        raise UsageError(
            "Which partition? Give its directory, as data/orders-0, or all of --log-dir, --topic "
            "and --partition."
        )
    return log_dir if topic is None else f"{log_dir}/{topic}-{partition}"
