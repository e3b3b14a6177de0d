"""``stratalog spark verify | export | load``: whole jobs on Spark from the command line.

Each command parses, starts Spark, calls the function of ``stratalog.spark.jobs`` that has its
name, and prints the result: a summary as a table, or all of it as JSON.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.directories import DirsArgument, NamedDirsOption, directories_of
from stratalog.cli.failures import UsageError, failures_are_no_findings
from stratalog.cli.options import LogDirOption, NeededTopicsOption, TopicOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    plural,
    write_error,
    write_line,
    write_table,
)
from stratalog.cli.spark_checks import check_files, check_topics
from stratalog.cli.spark_session import (
    ConfOption,
    MasterOption,
    PackagesOption,
    ShipOption,
    SourceOption,
    SparkChoice,
    run_job,
)
from stratalog.cli.values import pairs, repeatable_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stratalog.spark.jobs.exporting import ExportResult
    from stratalog.spark.jobs.loading import LoadResult
    from stratalog.spark.jobs.progress import Progress
    from stratalog.spark.jobs.verifying import VerifyResult

FINDINGS_SHOWN_MAX = 1000


def verify(
    directories: DirsArgument = None,
    log_dir: NamedDirsOption = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Somebody may be writing, though no lock says so from here."),
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    ship: ShipOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check a fleet of log directories, by all cores of a cluster.

    Every CRC, record, index, snapshot and checkpoint. Exit code 1 if anything is wrong, 3 if
    nothing could be checked.

    \b
    Examples:
      stratalog spark verify data
      stratalog spark verify /mnt/kafka1 /mnt/kafka2 --master spark://host:7077 --ship
    """

    places = directories_of(directories, log_dir)

    def job(spark: "SparkSession", progress: "Progress | None") -> "VerifyResult":
        from stratalog.spark.jobs.verifying import verify as run

        return run(spark, *places, is_live=live or None, progress=progress)

    choice = SparkChoice.of(master, conf, ship)
    with failures_are_no_findings():
        result = run_job(choice, "verify", places, job, _write_verified, output)
    if not result.is_clean:
        raise typer.Exit(1)


def _write_verified(result: "VerifyResult") -> None:
    for finding in result.findings[:FINDINGS_SHOWN_MAX]:
        write_line(finding_line(finding))
    if len(result.findings) > FINDINGS_SHOWN_MAX:
        left = len(result.findings) - FINDINGS_SHOWN_MAX
        write_error(f"{plural(left, 'finding')} more are not shown; -o json prints all.")
    write_table(result.columns, result.rows())
    speed = f"{result.size_bytes / max(result.seconds, 1e-9) / 1e6:.0f} MB/s"
    trouble = f"{plural(result.errors, 'error')}, {plural(result.warnings, 'warning')}"
    write_line(
        f"{plural(result.size_bytes, 'byte')} read at {speed}: "
        + (result.verdict if result.is_clean else trouble)
    )


def finding_line(finding: dict[str, Any]) -> str:
    """As ``stratalog log verify`` prints one."""
    where = "" if finding["position"] is None else f" at position {finding['position']}"
    which = "" if finding["offset"] is None else f" (offset {finding['offset']})"
    path = finding["file"]
    place = path if path.startswith("/") else f"{finding['directory']}/{path}"
    return f"{finding['severity']}: {place}{where}{which}: {finding['message']}"


def export(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A path, or a table's name.")],
    log_dir: LogDirOption,
    topic: NeededTopicsOption,
    format_name: Annotated[
        str, typer.Option("--format", help="parquet, delta, iceberg, or any that Spark writes.")
    ] = "parquet",
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="EXPR",
            help="date, a column, or an expression with a name; may be repeated. Default: date.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="EXPR", help="A column to write, in Spark's SQL; may be repeated."
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Which records to write.")
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            help="once: until it has caught up; continuous: until it is stopped; batch: one "
            "moment, without a checkpoint.",
        ),
    ] = "once",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="PATH", help="Default: a place in the target."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", help="How often a continuous export writes. Default: 1 minute."),
    ] = None,
    compression: Annotated[
        str | None, typer.Option("--compression", help="The codec of the target's files.")
    ] = None,
    option: SourceOption = None,
    write_option: Annotated[
        list[str] | None,
        typer.Option("--write-option", metavar="NAME=VALUE", help="An option of the target."),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    packages: PackagesOption = None,
    ship: ShipOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write topics to a lake, each record exactly once.

    As Parquet, partitioned by date, unless told otherwise. Run again, it writes what is new.

    \b
    Examples:
      stratalog spark export lake/orders --log-dir data --topic orders
      stratalog spark export lake/orders --log-dir data --topic orders --where 'partition = 0'
      stratalog spark export lake/orders --log-dir data --topic orders --mode continuous
    """
    how: dict[str, Any] = {
        "format": format_name,
        "partition_by": partition_by or "date",
        "columns": column or None,
        "where": where,
        "mode": mode,
        "checkpoint": checkpoint,
        "every": every,
        "compression": compression,
        "options": pairs(option, "--option"),
        "write_options": pairs(write_option, "--write-option"),
    }

    def job(spark: "SparkSession", progress: "Progress | None") -> "ExportResult":
        from stratalog.spark.jobs.exporting import export as run

        return run(spark, log_dir, topic, target, progress=progress, **how)

    def check() -> None:
        from stratalog.spark.jobs.exporting import check_export

        check_export(log_dir, topic, target, **how)
        check_topics(log_dir, topic)

    choice = SparkChoice.of(master, conf, ship, packages)
    run_job(choice, "export", [log_dir], job, _write_exported, output, check=check)


def _write_exported(result: "ExportResult") -> None:
    write_table(result.columns, result.rows())
    write_line(
        f"{plural(result.rows_written, 'row')} in {plural(result.batches, 'batch')} written to "
        f"{result.target} in {result.seconds:.1f} s"
    )


def load(
    log_dir: LogDirOption,
    topic: TopicOption,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="What Spark is to read; or --table."),
    ] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="csv, json, parquet, or any that Spark reads.")
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="A table of Spark's catalog, instead of paths.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="DDL", help="The schema of the source.")
    ] = None,
    option: SourceOption = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="EXPR", help="The key, in Spark's SQL.")
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="EXPR", help="The value; else the whole row as JSON."),
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="EXPR", help="The record's time.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=EXPR", help="A header; may be repeated."),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="EXPR", help="The partition; else by the key."),
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Which rows to load.")
    ] = None,
    app_id: Annotated[
        str | None,
        typer.Option("--app-id", help="With --app-version: no version is loaded twice."),
    ] = None,
    app_version: Annotated[
        int | None, typer.Option("--app-version", min=0, help="The version of this load.")
    ] = None,
    write_option: Annotated[
        list[str] | None,
        typer.Option(
            "--write-option", metavar="NAME=VALUE", help="An option of the sink: compression=zstd."
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    packages: PackagesOption = None,
    ship: ShipOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write anything that Spark reads to a topic: all rows, or none.

    In one commit, into a directory whose broker may run meanwhile. The topic must be there.

    \b
    Examples:
      stratalog spark load orders.json --format json --log-dir data --topic orders
      stratalog spark load orders.parquet --log-dir data --topic orders --key id --timestamp made_at
    """
    if (app_id is None) != (app_version is None):
        raise UsageError("--app-id and --app-version say something only together.")
    if not paths and table is None and format_name is None:
        raise UsageError("Name what to load: paths, or --table, or a --format with its options.")
    how: dict[str, Any] = {
        "key": key,
        "value": value,
        "timestamp": timestamp,
        "headers": repeatable_pairs(header, "--header") or None,
        "partition": partition,
        "where": where,
        "app": None if app_id is None else (app_id, app_version),
        "options": pairs(write_option, "--write-option"),
    }
    source: dict[str, Any] = {
        "format": format_name,
        "options": pairs(option, "--option"),
        "schema": schema,
        "table": table,
    }

    def job(spark: "SparkSession", progress: "Progress | None") -> "LoadResult":
        from stratalog.spark.jobs.load_rows import LoadSource
        from stratalog.spark.jobs.loading import load as run
        from stratalog.spark.jobs.places import absolute

        places = [absolute(path) for path in paths or ()]
        return run(
            spark, LoadSource(paths=places, **source), log_dir, topic, progress=progress, **how
        )

    choice = SparkChoice.of(master, conf, ship, packages)

    def check() -> None:
        from stratalog.spark.jobs.loading import check_load

        check_load(log_dir, topic, app=how["app"], options=how["options"])
        check_files(paths or (), format_name, choice.configs)

    run_job(choice, "load", [log_dir], job, _write_loaded, output, check=check)


def _write_loaded(result: "LoadResult") -> None:
    write_table(result.columns, result.rows())
    write_line(
        f"{result.status}: {plural(result.record_count, 'record')} in {result.topic}, "
        f"{result.seconds:.1f} s"
    )
