"""All commands of ``stratalog``: NOUN VERB, or a verb alone where a broker is meant.

Each verb lives in a file of its own and imports what it needs when it runs, so that ``--help``
and completion stay quick. For the same reason help is plain text, which needs no rich.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from stratalog.cli.backup import backup, restore
from stratalog.cli.cleaner import explain as cleaner_explain
from stratalog.cli.cleaner import run as cleaner_run
from stratalog.cli.config import alter as config_alter
from stratalog.cli.config import describe as config_describe
from stratalog.cli.consume import consume
from stratalog.cli.demo import demo
from stratalog.cli.dump import VersionOption, dump
from stratalog.cli.failures import USAGE, CommandError, UsageError, run_command
from stratalog.cli.find import find
from stratalog.cli.group import ListCommand, list_groups, reset_offsets
from stratalog.cli.group import delete as group_delete
from stratalog.cli.group import describe as group_describe
from stratalog.cli.lease import list_leases
from stratalog.cli.lease import release as lease_release
from stratalog.cli.pipeline import init as pipeline_init
from stratalog.cli.produce import ProduceCommand, produce
from stratalog.cli.readable_help import ReadableCommand
from stratalog.cli.repair import repair
from stratalog.cli.retention import explain as retention_explain
from stratalog.cli.retention import run as retention_run
from stratalog.cli.scan import explain as scan_explain
from stratalog.cli.segments import segments
from stratalog.cli.spark import package as spark_package
from stratalog.cli.spark import sql as spark_sql
from stratalog.cli.spark_compact import compact as spark_compact
from stratalog.cli.spark_jobs import export as spark_export
from stratalog.cli.spark_jobs import load as spark_load
from stratalog.cli.spark_jobs import verify as spark_verify
from stratalog.cli.spark_stats import stats as spark_stats
from stratalog.cli.topic import alter as topic_alter
from stratalog.cli.topic import create as topic_create
from stratalog.cli.topic import delete as topic_delete
from stratalog.cli.topic import describe as topic_describe
from stratalog.cli.topic import list_topics
from stratalog.cli.topic_adopt import adopt as topic_adopt
from stratalog.cli.usage import usage
from stratalog.cli.verify import verify

# What typer raises for a command line that it does not understand. It has no public name.
_NotUnderstood: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="stratalog",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _add_group(name: str, what: str, verbs: dict[str, Callable[..., None]]) -> None:
    group = typer.Typer(name=name, help=what, no_args_is_help=True, rich_markup_mode=None)
    for verb, command in verbs.items():
        group.command(verb, cls=_CLASSES.get(command, ReadableCommand))(command)
    app.add_typer(group)


_CLASSES: dict[Callable[..., None], Any] = {list_groups: ListCommand}
app.command("demo", cls=ReadableCommand)(demo)
app.command("produce", cls=ProduceCommand)(produce)
app.command("consume", cls=ReadableCommand)(consume)
_add_group(
    "topic",
    "Topics of a broker: create, look at, alter, delete.",
    {
        "create": topic_create,
        "list": list_topics,
        "describe": topic_describe,
        "alter": topic_alter,
        "delete": topic_delete,
        "adopt": topic_adopt,
    },
)
_add_group(
    "group",
    "Consumer groups: what they have read, and resetting it.",
    {
        "list": list_groups,
        "describe": group_describe,
        "reset-offsets": reset_offsets,
        "delete": group_delete,
    },
)
_add_group(
    "config",
    "Configs of topics and brokers.",
    {"describe": config_describe, "alter": config_alter},
)
_add_group(
    "log",
    "Look at, check, repair and back up the files of a log.",
    {
        "segments": segments,
        "usage": usage,
        "find": find,
        "dump": dump,
        "verify": verify,
        "repair": repair,
        "backup": backup,
        "restore": restore,
    },
)
_add_group(
    "retention",
    "When old segments go, and letting them go.",
    {"explain": retention_explain, "run": retention_run},
)
_add_group(
    "cleaner",
    "What compaction does with a log, and doing it.",
    {"explain": cleaner_explain, "run": cleaner_run},
)
_add_group(
    "scan",
    "Reading topics from their files, without a broker.",
    {"explain": scan_explain},
)
_add_group(
    "lease",
    "What readers of a log directory's files hold, and ending it.",
    {"list": list_leases, "release": lease_release},
)
_add_group(
    "spark",
    "Query, load, export, check and compact topics on Spark.",
    {
        "sql": spark_sql,
        "load": spark_load,
        "export": spark_export,
        "compact": spark_compact,
        "verify": spark_verify,
        "stats": spark_stats,
        "package": spark_package,
    },
)
_add_group(
    "pipeline",
    "Declared pipelines of Spark from topics to topics and files.",
    {"init": pipeline_init},
)


@app.callback()
def options(version: VersionOption = False) -> None:
    """Kafka's log: a broker, everyday commands for any broker, and tools for a log's files.

    \b
    Examples:
      stratalog serve --log-dir data
      stratalog topic create orders --partitions 3
      stratalog log verify data
      stratalog --install-completion        words completed by bash, zsh, fish or PowerShell
    """


class ServeCommand(TyperCommand):
    """Reads no options itself; a shell is told those that the command has."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from stratalog.cli.serve import option_names

        item: Any = vars(typer.core)["CompletionItem"]
        return [item(name) for name in option_names() if incomplete and name.startswith(incomplete)]


@app.command(
    "serve",
    cls=ServeCommand,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def serve(context: typer.Context) -> None:
    """Run a broker that Kafka clients talk to."""
    from stratalog.cli.serve import main

    raise typer.Exit(main(context.args))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    return run_command(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int | None:
    words = None if arguments is None else list(arguments)
    if sys.stdout is None or sys.stderr is None:
        raise CommandError("There is nowhere to write to: standard output or error is closed.")
    try:
        # What it returns is the code of an exit, and None for a command that came to its end.
        code: int | None = app(args=words, prog_name="stratalog", standalone_mode=False)
    except _NotUnderstood as error:
        return _tell(error, sys.argv[1:] if words is None else words)
    return code


def _tell(error: Any, words: Sequence[str]) -> int:
    if error.format_message().startswith("Usage: "):
        # A noun without a verb: what follows is its help.
        error.show()
        return USAGE
    asked = _asked(words) if error.ctx is None else error.ctx.command_path
    raise UsageError(f"{_sentence(error)} See '{asked} --help'.") from None


def _sentence(error: Any) -> str:
    """What typer says, ended once: a sentence, or a question which of several was meant."""
    said = error.format_message()
    if meant := getattr(error, "possibilities", None):
        said = f"{error.message}. Did you mean {' or '.join(map(repr, sorted(meant)))}?"
    # The words of the library that typer has values checked by.
    what = " ".join(said.replace(": Value error, ", ": ").split())
    return what if what.endswith((".", "?", "!")) else f"{what}."


def _asked(words: Sequence[str]) -> str:
    """The command that ``words`` begin with: not every error knows in which it happened."""
    command: Any = typer.main.get_command(app)
    path = ["stratalog"]
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path.append(word)
    return " ".join(path)
