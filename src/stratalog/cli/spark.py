"""``stratalog spark``: ask a log directory with SQL, and pack this package for a cluster.

Each topic is a view of its own name. Spark is started when everything that can be said without it
has been looked at: it takes seconds. Master and settings are passed on as they are.
"""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.completion import complete_topic
from stratalog.cli.failures import CommandError
from stratalog.cli.options import LogDirOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    write_error,
    write_json,
    write_line,
    write_table,
)
from stratalog.cli.progress import tasks_bar
from stratalog.cli.spark_checks import check_source, check_topics, topics_in
from stratalog.cli.spark_session import (
    ConfOption,
    MasterOption,
    ShipOption,
    SourceOption,
    SparkChoice,
    check_before,
    spark_for,
)
from stratalog.cli.values import pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE_ROWS_MAX = 1000
_SHOWN_CHARACTERS = 200


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SQL; topics are its tables.")],
    log_dir: LogDirOption,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="A topic to make a view of; else those the query names.",
            autocompletion=complete_topic,
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    option: SourceOption = None,
    ship: ShipOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Run one SQL query over the topics of a log directory.

    Each topic is a table of its own name.

    \b
    Examples:
      stratalog spark sql 'SELECT partition, count(*) FROM orders GROUP BY 1' --log-dir data
      stratalog spark sql 'SELECT max(offset) FROM `web.clicks`' --log-dir data -o json
    """
    # Spark's processes may have another working directory than this one.
    place = str(Path(log_dir).absolute())
    choice = SparkChoice.of(master, conf, ship)
    options = pairs(option, "--option")
    topics = list(topic or ())

    def check() -> None:
        check_topics(place, topics)
        check_source(place, topics or topics_in(place), options)

    check_before(choice, [place], check)
    topics = topics or topics_named(query, place)
    with spark_for(choice, "sql") as spark:
        for name in topics:
            reader = spark.read.format("stratalog").options(**options)
            reader.option("subscribe", name).load(place).createOrReplaceTempView(f"`{name}`")
        _write_rows(spark, spark.sql(query), output)


def package(
    archive: Annotated[str, typer.Argument(metavar="FILE", help="The archive to write: *.zip.")],
) -> None:
    """Pack this package for the workers of a cluster.

    Prints the options that spark-submit needs for it.

    \b
    Example:
      stratalog spark package stratalog.zip
    """
    from stratalog.spark.shipping import package_archive, shipping_configs

    configs = shipping_configs(package_archive(archive))
    path = "spark.executorEnv.PYTHONPATH"
    write_line(f"--archives {configs['spark.archives']} --conf {path}={configs[path]}")


def topics_named(query: str, log_dir: str) -> list[str]:
    """Topics of the directory whose name stands in the query: too many do no harm."""
    known = topics_in(log_dir)
    found = [name for name in known if name.lower() in query.lower()]
    if not found:
        raise CommandError(
            f"The query names no topic of {log_dir}. It holds: {', '.join(known) or 'none'}."
        )
    return found


def _write_rows(spark: "SparkSession", frame: "DataFrame", output: OutputFormat) -> None:
    from stratalog.spark.jobs.progress import told

    columns = frame.columns
    if output is OutputFormat.JSON:
        for row in frame.toLocalIterator():
            write_json({name: plain(cell) for name, cell in zip(columns, row, strict=True)})
        return
    with tasks_bar("sql") as progress, told(spark, progress):
        rows = frame.limit(TABLE_ROWS_MAX + 1).collect()
    write_table(columns, [[_shown(cell) for cell in row] for row in rows[:TABLE_ROWS_MAX]])
    if len(rows) > TABLE_ROWS_MAX:
        write_error(f"Only the first {TABLE_ROWS_MAX} rows are shown; -o json prints all.")


def plain(cell: Any) -> Any:
    """A cell as JSON has it. Bytes are text if they can be, times are in UTC."""
    if cell is None or isinstance(cell, bool | int | float | str):
        return cell
    if isinstance(cell, bytes | bytearray):
        return bytes(cell).decode(errors="backslashreplace")
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat(timespec="milliseconds")
    if isinstance(cell, date):
        return cell.isoformat()
    if hasattr(cell, "asDict"):
        return {name: plain(each) for name, each in cell.asDict().items()}
    if isinstance(cell, dict):
        return {str(plain(name)): plain(each) for name, each in cell.items()}
    if isinstance(cell, list | tuple):
        return [plain(each) for each in cell]
    return str(cell)


def _shown(cell: Any) -> Any:
    text = plain(cell)
    if isinstance(text, str) and len(text) > _SHOWN_CHARACTERS:
        return f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
    return text
