"""``stratalog spark stats``: what is in topics, how it came in, and what could be saved."""

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.options import LogDirOption, TopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
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

    from stratalog.spark.jobs.progress import Progress
    from stratalog.spark.jobs.stats_result import StatsResult, TopicStats

_RATES_SHOWN_MAX = 60
_KEY_CHARACTERS_MAX = 60


def stats(
    log_dir: LogDirOption,
    topic: TopicsOption = None,
    bucket: Annotated[str, typer.Option("--bucket", help="Rates by minute, hour or day.")] = "day",
    exact: Annotated[
        bool, typer.Option("--exact", help="Count all keys, of large topics too.")
    ] = False,
    propose: Annotated[
        list[str] | None,
        typer.Option(
            "--propose",
            metavar="NAME=VALUE",
            help="A retention config to try: retention.ms, retention.bytes or cleanup.policy.",
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    ship: ShipOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Count what is in topics, and what could be saved.

    Sizes, rates, keys, tombstones, compressibility; what compaction and retention would remove.

    \b
    Examples:
      stratalog spark stats --log-dir data --topic orders
      stratalog spark stats --log-dir data --topic orders --propose retention.ms=86400000
    """
    proposed = pairs(propose, "--propose")

    def job(spark: "SparkSession", progress: "Progress | None") -> "StatsResult":
        from stratalog.spark.jobs.statistics import stats as run

        return run(
            spark,
            log_dir,
            topic or None,
            bucket=bucket,
            exact=exact,
            proposed=proposed,
            progress=progress,
        )

    def check() -> None:
        from stratalog.spark.jobs.statistics import check_stats

        check_stats(bucket, proposed)
        check_topics(log_dir, topic or ())

    choice = SparkChoice.of(master, conf, ship)
    run_job(choice, "stats", [log_dir], job, _write, output, check=check)


def _write(result: "StatsResult") -> None:
    write_table(result.columns, result.rows())
    if len(result.topics) == 1:
        _write_topic(result.topics[0])


def _write_topic(topic: "TopicStats") -> None:
    if topic.codec_ratios:
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in topic.codec_ratios.items())
        write_line(f"\nA sample in batches of each codec, against none: {ratios}")
    for what, saving in (("Retention", topic.retention), ("As proposed, it", topic.proposed)):
        if saving is not None:
            told = ", ".join(f"{name}={value}" for name, value in saving.configs.items())
            write_line(
                f"{what} would remove {saving.size_bytes} bytes in {saving.segments} segments now "
                f"({told or 'all configs are defaults'})."
            )
    if topic.keys.hottest:
        write_line()
        write_table(
            ("hottest keys", "partition", "records", "share"),
            [
                (_shown(each.key), each.partition, each.records, f"{100 * each.share:.1f} %")
                for each in topic.keys.hottest
            ],
        )
    _write_rates(topic)


def _write_rates(topic: "TopicStats") -> None:
    from stratalog.spark.jobs.stats_result import moment

    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for each in topic.buckets:
        counts = (each.records, each.key_bytes + each.value_bytes, each.tombstones)
        sums[each.start_ms] = [a + b for a, b in zip(sums[each.start_ms], counts, strict=True)]
    newest = sorted(sums.items())[-_RATES_SHOWN_MAX:]
    if not newest:
        return
    write_line()
    write_table(
        ("from", "records", "bytes", "tombstones", "records a second"),
        [
            (moment(start_ms), *counts, f"{counts[0] / (topic.bucket_ms / 1000):.1f}")
            for start_ms, counts in newest
        ],
    )
    if len(sums) > len(newest):
        write_line(f"The newest {len(newest)} of {len(sums)}; -o json has all.")


def _shown(key: bytes) -> str:
    text = key.decode(errors="backslashreplace")
    return text if len(text) <= _KEY_CHARACTERS_MAX else f"{text[:_KEY_CHARACTERS_MAX]}…"
