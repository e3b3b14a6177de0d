"""The ``stratalog`` command: ``stratalog NOUN VERB``, and the one place that turns errors to exits.

Each verb lives in a file of its own and imports what it needs when it runs, so that ``--help``
and completion stay quick.
"""

import os
import sys
from collections.abc import Sequence

import typer

from stratalog.cli.cleaner import explain as cleaner_explain
from stratalog.cli.cleaner import run as cleaner_run
from stratalog.cli.dump import VersionOption, dump
from stratalog.cli.find import find
from stratalog.cli.output import write_error
from stratalog.cli.repair import repair
from stratalog.cli.retention import explain as retention_explain
from stratalog.cli.retention import run as retention_run
from stratalog.cli.segments import segments
from stratalog.cli.verify import verify
from stratalog.errors import StratalogError

FAILURE = 1

app = typer.Typer(
    name="stratalog",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
log_app = typer.Typer(
    name="log", help="Look at, check and repair the files of a log.", no_args_is_help=True
)
log_app.command("dump")(dump)
log_app.command("find")(find)
log_app.command("repair")(repair)
log_app.command("segments")(segments)
log_app.command("verify")(verify)
app.add_typer(log_app)
retention_app = typer.Typer(
    name="retention", help="When old segments go, and letting them go.", no_args_is_help=True
)
retention_app.command("explain")(retention_explain)
retention_app.command("run")(retention_run)
app.add_typer(retention_app)
cleaner_app = typer.Typer(
    name="cleaner", help="What compaction does with a log, and doing it.", no_args_is_help=True
)
cleaner_app.command("explain")(cleaner_explain)
cleaner_app.command("run")(cleaner_run)
app.add_typer(cleaner_app)


@app.callback()
def options(version: VersionOption = False) -> None:
    """Apache Kafka's log storage, to look at, check and repair."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code. Never a traceback for what we foresaw."""
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except StratalogError as error:
        sys.stdout.flush()
        write_error(str(error))
        return FAILURE
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILURE
    return 0


def main() -> None:
    sys.exit(run())
