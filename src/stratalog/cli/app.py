"""All commands of ``stratalog``: NOUN VERB, or a verb alone where a broker is meant.

Each verb lives in a file of its own and imports what it needs when it runs, so that ``--help``
and completion stay quick.
"""

from collections.abc import Sequence

import typer

from stratalog.cli.backup import backup, restore
from stratalog.cli.cleaner import explain as cleaner_explain
from stratalog.cli.cleaner import run as cleaner_run
from stratalog.cli.config import alter as config_alter
from stratalog.cli.config import describe as config_describe
from stratalog.cli.consume import consume
from stratalog.cli.dump import VersionOption, dump
from stratalog.cli.find import find
from stratalog.cli.group import ListCommand, list_groups, reset_offsets
from stratalog.cli.group import delete as group_delete
from stratalog.cli.group import describe as group_describe
from stratalog.cli.lease import list_leases
from stratalog.cli.lease import release as lease_release
from stratalog.cli.main import run_command
from stratalog.cli.pipeline import init as pipeline_init
from stratalog.cli.produce import ProduceCommand, produce
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
from stratalog.cli.verify import verify

app = typer.Typer(
    name="stratalog",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
log_app = typer.Typer(
    name="log", help="Look at, check, repair and back up the files of a log.", no_args_is_help=True
)
log_app.command("backup")(backup)
log_app.command("dump")(dump)
log_app.command("find")(find)
log_app.command("repair")(repair)
log_app.command("restore")(restore)
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
scan_app = typer.Typer(
    name="scan", help="Reading topics from their files, without a broker.", no_args_is_help=True
)
scan_app.command("explain")(scan_explain)
app.add_typer(scan_app)
lease_app = typer.Typer(
    name="lease",
    help="What readers of a log directory's files hold, and ending it.",
    no_args_is_help=True,
)
lease_app.command("list")(list_leases)
lease_app.command("release")(lease_release)
app.add_typer(lease_app)
topic_app = typer.Typer(
    name="topic", help="Topics of a broker: create, look at, alter, delete.", no_args_is_help=True
)
topic_app.command("create")(topic_create)
topic_app.command("list")(list_topics)
topic_app.command("describe")(topic_describe)
topic_app.command("alter")(topic_alter)
topic_app.command("delete")(topic_delete)
topic_app.command("adopt")(topic_adopt)
app.add_typer(topic_app)
app.command("produce", cls=ProduceCommand)(produce)
app.command("consume")(consume)
group_app = typer.Typer(
    name="group",
    help="Consumer groups: what they have read, and resetting it.",
    no_args_is_help=True,
)
group_app.command("list", cls=ListCommand)(list_groups)
group_app.command("describe")(group_describe)
group_app.command("reset-offsets")(reset_offsets)
group_app.command("delete")(group_delete)
app.add_typer(group_app)
spark_app = typer.Typer(
    name="spark", help="Ask a log directory through Spark.", no_args_is_help=True
)
spark_app.command("sql")(spark_sql)
spark_app.command("package")(spark_package)
spark_app.command("verify")(spark_verify)
spark_app.command("compact")(spark_compact)
spark_app.command("export")(spark_export)
spark_app.command("load")(spark_load)
spark_app.command("stats")(spark_stats)
app.add_typer(spark_app)
pipeline_app = typer.Typer(
    name="pipeline",
    help="Declared pipelines of Spark from topics to topics and files.",
    no_args_is_help=True,
)
pipeline_app.command("init")(pipeline_init)
app.add_typer(pipeline_app)
config_app = typer.Typer(name="config", help="Configs of topics and brokers.", no_args_is_help=True)
config_app.command("describe")(config_describe)
config_app.command("alter")(config_alter)
app.add_typer(config_app)


@app.callback()
def options(version: VersionOption = False) -> None:
    """Kafka's log: a broker, everyday commands for any broker, and tools for a log's files."""


@app.command(
    "serve",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def serve(context: typer.Context) -> None:
    """Run a broker that Kafka clients talk to, until it is told to stop."""
    from stratalog.cli.serve import main

    raise typer.Exit(main(context.args))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    return run_command(
        lambda: app(args=None if arguments is None else list(arguments), standalone_mode=True)
    )
