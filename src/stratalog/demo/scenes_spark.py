"""Scenes with Spark on the log's files: a query that prunes, a stream, compaction, a bulk load."""

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import stratalog.spark
from stratalog.demo.clients import read_from
from stratalog.demo.data import busiest_hour, minute_text
from stratalog.demo.screen import Update, rate_text, size_text
from stratalog.demo.stage import CUSTOMERS, DELIVERIES, ORDERS, TOPICS, Outcome, Stage, wait_until
from stratalog.spark.jobs import compact, export, load
from stratalog.spark.jobs.progress import Progress, TaskCounts, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_ORDER = "order long, product string, quantity int, amount double"
_SHOWN_PRODUCTS = 3
# Of an hour out of two weeks nobody needs so much, not even of few and small segments.
_READ_SHARE_MAX = 0.5


def _tasks(update: Update) -> Progress:
    def tell(counts: TaskCounts) -> None:
        update(counts.done, counts.known or None)

    return tell


def query_an_hour(stage: Stage) -> Outcome:
    from pyspark.sql.functions import count
    from pyspark.sql.functions import sum as sum_of

    spark = stage.spark
    start_ms, end_ms = busiest_hour(stage.orders)
    start, end = minute_text(start_ms), minute_text(end_ms)
    where = f"timestamp >= '{start}:00' AND timestamp < '{end}:00'"
    began = time.monotonic()
    rows = stratalog.spark.scan(spark, stage.log_dir, topic=ORDERS, where=where, columns=["value"])
    sold: DataFrame = (
        rows.selectExpr(f"from_json(cast(value AS string), '{_ORDER}') AS o")
        .selectExpr("o.product", "o.amount")
        .groupBy("product")
        .agg(count("*").alias("orders"), sum_of("amount").alias("euros"))
        .orderBy("euros", ascending=False)
    )
    with stage.screen.progress("tasks of the query") as update, told(spark, _tasks(update)):
        found: list[Row] = sold.collect()
    seconds = time.monotonic() - began
    orders = sum(row["orders"] for row in found)
    stage.check("orders of one hour", stage.orders.count_between(start_ms, end_ms), orders)
    stage.screen.say(f"SELECT … WHERE {where}", "dim")
    stage.screen.table(
        ("product", "orders", "euros"),
        [
            (row["product"], f"{row['orders']:,}", f"{row['euros']:,.2f}")
            for row in found[:_SHOWN_PRODUCTS]
        ],
        right="12",
    )
    read, total = _read_bytes(stage, rows=orders), stage.size_bytes(ORDERS)
    stage.check("bytes read for that hour", int(total * _READ_SHARE_MAX), read, is_bound=True)
    stage.screen.say(
        f"{orders:,} orders of that hour. Spark's tasks read {size_text(read)} of the "
        f"{size_text(total)} of all orders: {100 * (total - read) / total:.1f} % was skipped, by "
        "the time ranges beside the segments."
    )
    of = f"{size_text(total - read)} of {size_text(total)}"
    return Outcome(f"{orders:,} orders of one hour; {of} skipped", f"{seconds:.1f} s")


def _read_bytes(stage: Stage, *, rows: int) -> int:
    """What the tasks of the session's first query have read, by their own count."""
    told = [stratalog.spark.reads(stage.spark)]

    def have_all_told() -> bool:
        if told[-1].rows < rows:
            told.append(stratalog.spark.reads(stage.spark))
        return told[-1].rows >= rows

    wait_until(have_all_told, "the tasks' word of what they have read")
    return told[-1].bytes_read


def land_in_parquet(stage: Stage) -> Outcome:
    spark, target = stage.spark, stage.folder.parquet
    with stage.screen.progress("tasks of the stream") as update:
        result = export(spark, stage.log_dir, ORDERS, target, progress=_tasks(update))
        landed = spark.read.parquet(str(target)).count()
    files = list(target.glob("date=*/*.parquet"))
    stage.check("orders landed in Parquet", stage.books[ORDERS], landed)
    size = sum(each.stat().st_size for each in files)
    stage.screen.say(
        f"{landed:,} rows in {len(files)} files, {size_text(size)}, by date, with a checkpoint: "
        "run again, it goes on where it stopped."
    )
    return Outcome(
        f"{landed:,} rows into {len(files)} files", rate_text(landed, result.seconds, "rows")
    )


def compact_customers(stage: Stage) -> Outcome:
    bytes_before = stage.size_bytes(CUSTOMERS)
    with stage.screen.progress("tasks of the compaction") as update:
        result = compact(stage.spark, stage.log_dir, CUSTOMERS, force=True, progress=_tasks(update))
    read = sum(each.stats.messages_read for each in result.done)
    kept = sum(each.stats.messages_kept for each in result.done)
    before = stage.books[CUSTOMERS]
    stage.books[CUSTOMERS] -= read - kept
    bytes_after = stage.size_bytes(CUSTOMERS)
    truth = stage.customers.last_values()
    last: dict[bytes | None, bytes | None] = {}
    below: Counter[bytes | None] = Counter()
    active = stage.active_offsets(CUSTOMERS)
    for chunk in read_from(stage.broker.address, CUSTOMERS, [0] * TOPICS[CUSTOMERS]):
        last.update((each.key(), each.value()) for each in chunk)
        below.update(
            each.key() for each in chunk if (each.offset() or 0) < active[each.partition() or 0]
        )
    keys = stage.customers.key_count()
    stage.check("keys of customers before and after", keys, len(last))
    stage.check("keys twice below the active segments", 0, below.total() - len(below))
    right = sum(last.get(key) == value for key, value in truth.items())
    stage.check("customers whose last value is the last produced", len(truth), right)
    forgotten = sum(value is None for value in last.values())
    stage.check("customers deleted", stage.customers.values.null_count, forgotten)
    stage.screen.table(
        ("", "records", "keys", "bytes"),
        [
            ("before", f"{before:,}", f"{keys:,}", f"{bytes_before:,}"),
            ("after", f"{stage.books[CUSTOMERS]:,}", f"{len(last):,}", f"{bytes_after:,}"),
        ],
        right="123",
    )
    stage.screen.say(
        "The active segment of each log is left alone, as Kafka leaves it. A client reads the last "
        f"value of {right:,} customers, and that {forgotten:,} are deleted."
    )
    return Outcome(
        f"{before:,} records to {stage.books[CUSTOMERS]:,}, {size_text(bytes_before)} to "
        f"{size_text(bytes_after)}",
        rate_text(read, result.seconds, "records"),
    )


def load_in_bulk(stage: Stage) -> Outcome:
    rows = stage.spark.range(stage.sizes.deliveries).selectExpr(
        "id",
        "concat('d-', lpad(id, 8, '0')) AS delivery",
        f"timestamp_millis({stage.end_ms} - 60000 * (id % 20160)) AS at",
        "element_at(array('left at the door', 'handed over', 'at the neighbours', 'missed'), "
        "1 + cast(pmod(hash(id), 4) AS int)) AS state",
    )
    with stage.screen.progress("tasks of the load") as update:
        result = load(
            stage.spark,
            rows,
            stage.log_dir,
            DELIVERIES,
            key="delivery",
            value="to_json(struct(id AS order, state, at))",
            timestamp="at",
            app=("demo", 1),
            progress=_tasks(update),
        )
    stage.books[DELIVERIES] += result.record_count
    stage.check("deliveries loaded", stage.sizes.deliveries, result.record_count)
    wait_until(lambda: bool(_applied(stage)), "the broker's word of the commit")
    stage.screen.say(
        f"{result.record_count:,} rows became part of {len(result.partitions)} partitions, all of "
        f"them or none: the broker took over {size_text(_applied(stage)[-1]['size_bytes'])} of "
        f"staged segments in {_applied(stage)[-1]['seconds']:.2f} s, and went on serving."
    )
    return Outcome(
        f"{result.record_count:,} rows in one commit",
        rate_text(result.record_count, result.seconds, "rows"),
    )


def _applied(stage: Stage) -> list[dict[str, Any]]:
    return stage.broker.events("commit_applied")
