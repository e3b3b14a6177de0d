"""``stratalog spark compact``: compaction of any number of keys, by all cores of a cluster."""

from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.failures import refused_as_usage
from stratalog.cli.options import LogDirOption, NeededTopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    plural,
    write_error,
    write_line,
    write_table,
)
from stratalog.cli.spark_checks import check_topics
from stratalog.cli.spark_session import (
    ConfOption,
    MasterOption,
    ShipOption,
    SparkChoice,
    run_job,
)
from stratalog.cli.values import pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stratalog.spark.jobs.compacting import CompactResult
    from stratalog.spark.jobs.progress import Progress


def compact(
    log_dir: LogDirOption,
    topic: NeededTopicsOption,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", metavar="N", help="Only this one; may be repeated."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also logs that are not dirty enough for a cleaner.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "--explain", help="Say what would be done, and why; do nothing."),
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Of an executor; default: spark.executor.memory."
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", help="'one map', slices, ranges or shuffle."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A broker setting, for when none runs; may be repeated.",
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    ship: ShipOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Compact topics on Spark, with any number of keys.

    The bytes are those that the local cleaner would write. Exit code 1 if a partition was left
    out because it is damaged.

    \b
    Examples:
      stratalog spark compact --log-dir data --topic customers --dry-run
      stratalog spark compact --log-dir data --topic customers --force --memory 4g
    """
    from stratalog.config import BrokerConfig
    from stratalog.errors import ConfigError

    config = pairs(settings, "--set")
    with refused_as_usage(ConfigError):
        BrokerConfig.from_properties(config)  # before Spark starts

    def job(spark: "SparkSession", progress: "Progress | None") -> "CompactResult":
        from stratalog.spark.jobs.compacting import compact as run

        return run(
            spark,
            log_dir,
            topic,
            partitions=partition,
            force=force,
            dry_run=dry_run,
            memory=memory,
            strategy=strategy,
            config=config,
            progress=progress,
        )

    def check() -> None:
        from stratalog.spark.jobs.compacting import check_compact

        check_compact(strategy, memory)
        check_topics(log_dir, topic)

    choice = SparkChoice.of(master, conf, ship)
    result = run_job(choice, "compact", [log_dir], job, _write, output, check=check)
    if result.damaged:
        raise typer.Exit(1)


def _write(result: "CompactResult") -> None:
    for left_out in result.left_out:
        write_error(f"{left_out.topic_partition} was left out: {left_out.reason}")
    if not result.chosen:
        write_line("nothing to compact")
        return
    write_table(result.columns, result.rows())
    if result.is_dry:
        for chosen in result.chosen:
            write_line(f"{chosen.round.topic_partition}: {'; '.join(chosen.reasons)}")
        return
    for done in result.done:
        for warning in done.stats.warnings:
            write_error(f"{done.chosen.round.topic_partition}: {warning}")
    write_line(
        f"{plural(result.bytes_before, 'byte')} became {plural(result.bytes_after, 'byte')} in "
        f"{result.seconds:.1f} s"
    )
