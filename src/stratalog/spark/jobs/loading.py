"""``load``: anything that Spark reads becomes records of a topic.

All rows or none, in one commit, straight into the log's files: the rules are the sink's. With an
application's name and version a load that is run again writes nothing twice; without them it is a
load like the first.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from stratalog.spark.jobs.arguments import check_path
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.load_rows import LoadSource, RecordExpressions
from stratalog.spark.jobs.progress import Progress, told
from stratalog.spark.sink_options import RESULT_OPTION, SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Options of the sink, in lower case, that are arguments here: they would win without a word.
_SAID_OTHERWISE = {
    "topic": "the topic",
    "path": "the log directory",
    "txnappid": "the application of app",
    "txnversion": "the version of app",
}


@dataclass(frozen=True, slots=True)
class LoadResult:
    """``partitions``: (first offset, end offset), the end exclusive, of what was written.

    ``status`` is "committed", "already committed" or "nothing to write".
    """

    topic: str
    log_dir: str
    status: str
    seconds: float
    partitions: dict[int, tuple[int, int]] = field(default_factory=dict)

    columns = ("topic", "partition", "from", "to", "records")

    @property
    def record_count(self) -> int:
        return sum(end - first for first, end in self.partitions.values())

    def rows(self) -> list[tuple[object, ...]]:
        """One for each partition that was written to, under ``columns``."""
        return [
            (self.topic, partition, first, end, end - first)
            for partition, (first, end) in sorted(self.partitions.items())
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "log_dir": self.log_dir,
            "status": self.status,
            "records": self.record_count,
            "seconds": round(self.seconds, 3),
            "partitions": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
        }


def load(
    spark: SparkSession,
    source: DataFrame | LoadSource,
    log_dir: str | os.PathLike[str],
    topic: str,
    *,
    key: str | None = None,
    value: str | None = None,
    timestamp: str | None = None,
    headers: str | Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
    partition: str | None = None,
    where: str | None = None,
    app: tuple[str, int] | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> LoadResult:
    """Write the rows of ``source`` to ``topic``, in one commit; see ``RecordExpressions``.

    ``app`` is an application's name and its version of this load: no version is written twice.
    ``options`` are the sink's. The topic must be there.
    """
    started = time.monotonic()
    place = str(Path(check_path("log_dir", log_dir)).absolute())
    expressions = RecordExpressions(
        key=key,
        value=value,
        timestamp=timestamp,
        headers=headers,
        partition=partition,
        where=where,
    )
    given = _given(topic, app, options)
    # What is wrong with an option is told here, in Python, and before anything is read.
    SinkOptions.parse({**given, "path": place}, is_streaming=False)
    frame = source.read(spark) if isinstance(source, LoadSource) else source
    records = expressions.records(frame)
    with TemporaryDirectory(prefix="stratalog-load-") as aside, told(spark, progress):
        answer = Path(aside, "result.json")
        writer = records.write.format("stratalog").mode("append").options(**given)
        writer.option(RESULT_OPTION, str(answer)).save(place)
        # A server of Spark Connect commits elsewhere, and then nobody tells.
        said: dict[str, Any] = {"status": "committed", "partitions": []}
        if answer.exists():
            said = json.loads(answer.read_text())
    return LoadResult(
        topic,
        place,
        said["status"],
        time.monotonic() - started,
        {number: (first, end) for _, number, first, end in said["partitions"]},
    )


def check_load(
    log_dir: str | os.PathLike[str],
    topic: str,
    *,
    app: tuple[str, int] | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Refuse what Spark would refuse after it has planned for minutes, and needs no Spark."""
    from stratalog.spark.sink_commit import check_sink

    given = {**_given(topic, app, options), "path": str(Path(log_dir).absolute())}
    check_sink(SinkOptions.parse(given, is_streaming=False))


def _given(
    topic: str, app: tuple[str, int] | None, options: Mapping[str, str] | None
) -> dict[str, str]:
    """The sink's options."""
    return {"topic": topic, **_app_options(app), **_checked_options(options or {})}


def _checked_options(options: Mapping[str, str]) -> Mapping[str, str]:
    for name, text in options.items():
        if (instead := _SAID_OTHERWISE.get(name.lower())) is not None:
            raise JobOptionError(f"the option {name}", text, f"say it as {instead}")
    return options


def _app_options(app: tuple[str, int] | None) -> dict[str, str]:
    if app is None:
        return {}
    name, version = app
    if not name or version < 0:
        raise JobOptionError("app", app, "expected a name and a version that is not negative")
    return {"txnAppId": name, "txnVersion": str(version)}
