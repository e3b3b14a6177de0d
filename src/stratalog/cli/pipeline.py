"""``stratalog pipeline init``: a project for ``spark-pipelines``, which comes with PySpark.

A topic, a view of SQL, a topic or Parquet files. What is written is meant to be edited; running it
is Spark's business.
"""

import json
import re
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.options import TopicOption
from stratalog.cli.output import OutputFormat, OutputOption, write_json, write_line

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
# What a URI has to escape. Spark then takes the escaped text for the name of a directory, and would
# keep how far a pipeline has come in another one than the project's.
_ESCAPED = re.compile(r"""[\s"#%<>?\[\\\]^`{|}]""")


class SinkKind(StrEnum):
    STRATALOG = "stratalog"
    PARQUET = "parquet"


def init(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The directory to make; it must not be there.")
    ],
    topic: TopicOption,
    log_dir: Annotated[
        str, typer.Option("--log-dir", metavar="DIR", help="The log directory that it is in.")
    ],
    sinks: Annotated[
        list[SinkKind] | None,
        typer.Option(
            "--sink",
            metavar="stratalog|parquet",
            help="Where the rows go; may be repeated. Parquet by default.",
        ),
    ] = None,
    to_topic: Annotated[
        str | None,
        typer.Option(
            "--to-topic",
            metavar="TOPIC",
            help="For --sink stratalog: the topic to write to, in the same log directory. "
            "It must be there when the pipeline runs.",
        ),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write a pipeline of Spark that reads a topic.

    It transforms records with SQL and writes the rows on, to Parquet or to another topic.

    \b
    Examples:
      stratalog pipeline init revenue --topic orders --log-dir data
      stratalog pipeline init revenue --topic orders --log-dir data --sink stratalog --to-topic sums
    """
    place = Path(directory).absolute()
    chosen = list(dict.fromkeys(sinks or [SinkKind.PARQUET]))
    _check(place, topic, to_topic, chosen)
    texts = project_files(
        place, topic=topic, log_dir=str(Path(log_dir).absolute()), sinks=chosen, to_topic=to_topic
    )
    try:
        (place / "transformations").mkdir(parents=True)
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{directory} cannot be written: {error.strerror}.") from error
    if output is OutputFormat.JSON:
        write_json({"directory": str(place), "files": sorted(texts)})
        return
    for name in sorted(texts):
        write_line(f"{directory}/{name}")
    write_line(f"To run it: {_command()} run --spec {shlex.quote(f'{directory}/{SPEC_FILE}')}")


SPEC_FILE = "spark-pipeline.yml"


def _check(place: Path, topic: str, to_topic: str | None, sinks: list[SinkKind]) -> None:
    from stratalog.storage.layout import validate_topic_name

    if place.exists():
        raise CommandError(f"{place} is there already, and nothing is overwritten.")
    if _NAME.fullmatch(place.name) is None:
        raise UsageError(f"{place.name} is no name for a pipeline: letters, digits, '_' and '-'.")
    if found := _ESCAPED.search(str(place.absolute())):
        raise UsageError(
            f"{place.absolute()}: spark-pipelines does not keep its checkpoints in a path with "
            f"{found[0]!r}; choose another place."
        )
    validate_topic_name(topic)
    if (to_topic is not None) != (SinkKind.STRATALOG in sinks):
        raise UsageError("--sink stratalog and --to-topic belong together.")
    if to_topic is not None:
        validate_topic_name(to_topic)
    if to_topic == topic:
        raise UsageError(f"--to-topic {to_topic} is the topic that is read: it would never end.")


def project_files(
    place: Path, *, topic: str, log_dir: str, sinks: list[SinkKind], to_topic: str | None
) -> dict[str, str]:
    """The texts by their paths in ``place``."""
    from stratalog.cli import pipeline_files as files

    given = {
        "name": json.dumps(place.name),
        "command": _command(),
        "storage": json.dumps(f"file://{place / 'storage'}"),
        "log_dir": repr(log_dir),
        "topic": repr(topic),
        "to_topic": repr(to_topic),
        "landing": repr(str(place / "landed")),
    }
    wanted = {
        SPEC_FILE: files.SPEC,
        "transformations/source.py": files.SOURCE,
        "transformations/transform.sql": files.TRANSFORM,
    }
    if SinkKind.STRATALOG in sinks:
        wanted["transformations/to_topic.py"] = files.TO_TOPIC
    if SinkKind.PARQUET in sinks:
        wanted["transformations/to_parquet.py"] = files.TO_PARQUET
    return {name: Template(text).substitute(given) for name, text in wanted.items()}


def _command() -> str:
    """Spark takes the first python3 that it finds, unless it is told: one without this package."""
    return f"PYSPARK_PYTHON={shlex.quote(sys.executable)} spark-pipelines"
