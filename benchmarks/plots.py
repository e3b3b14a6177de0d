"""Which plots there are, and from which rows and series each is made.

A plot whose figures are missing is left out; a peer that is missing leaves its line out.
"""

from collections.abc import Mapping, Sequence

from benchmarks.broker_figures import OURS, SYNCED
from benchmarks.measurement import CONNECTOR, KAFKA, PARQUET, Series
from benchmarks.results import Results
from benchmarks.svg import (
    BarPanel,
    Bars,
    Line,
    LinePanel,
    Panel,
    Plot,
    even,
    fine_powers,
    powers,
    tail,
)

COLOURS = {
    OURS: 0,
    KAFKA.name: 1,
    CONNECTOR.name: 1,
    SYNCED: 2,
    PARQUET.name: 3,
}


def all_plots(results: Results) -> list[Plot]:
    made = (
        throughput(results),
        latency(results),
        starting(results),
        cleaning(results),
        recovery(results),
        spark(results),
        growth(results),
    )
    return [plot for plot in made if plot is not None]


def throughput(results: Results) -> Plot | None:
    panels = [
        panel
        for word in ("produce", "consume")
        if (panel := by_size(word, results.plotted(f"{word}-by-size"))) is not None
    ]
    caption = (
        "MB/s by record size, 256 KB batches, one connection, a client that costs next to nothing"
    )
    return Plot("throughput", "Throughput by record size", caption, panels) if panels else None


def by_size(word: str, series: Sequence[Series]) -> LinePanel | None:
    if not series:
        return None
    sizes = powers("bytes of a record", xs(series))
    return LinePanel(word, sizes, even("MB/s (more is better)", highs(series)), lines(series))


def latency(results: Results) -> Plot | None:
    series = results.plotted("latency")
    if not series:
        return None
    panel = LinePanel(
        "acknowledged after, by share of the requests",
        tail("share of the requests"),
        fine_powers("µs (less is better)", [*lows(series), *highs(series)]),
        lines(series),
    )
    quantiles = {"latency.p50": "p50", "latency.p99": "p99"}
    bars = rows_panel(results, "median and tail", quantiles, with_flush=True)
    caption = "one connection, one record of 100 bytes a request, acks=all, one request at a time"
    panels: list[Panel] = [panel] if bars is None else [panel, bars]
    return Plot("latency", "Latency of producing one record at a time", caption, panels)


def starting(results: Results) -> Plot | None:
    directories = {"start.empty": "empty directory", "start.topic": "a directory with a topic"}
    memory = {"start.memory": "idle, after one record", "memory.loaded": "after gigabytes"}
    made = (
        rows_panel(results, "start to the first acknowledged record", directories),
        rows_panel(results, "resident memory", memory),
    )
    panels = [panel for panel in made if panel is not None]
    caption = "seconds from starting the process to the first acknowledged record; memory after it"
    return Plot("start", "Start-up and memory", caption, panels) if panels else None


def cleaning(results: Results) -> Plot | None:
    logs = {
        "cleaning.random": "100-byte records, nearly all superseded",
        "cleaning.distinct": "100-byte records, none superseded",
        "cleaning.wide": "1 KB records, none superseded",
    }
    made = (
        rows_panel(results, "one thread each", logs),
        spark_cleaning(results),
    )
    panels = [panel for panel in made if panel is not None]
    caption = "compaction of logs in the page cache, beside Apache Kafka's own cleaner and on Spark"
    return Plot("cleaning", "Compaction", caption, panels) if panels else None


def spark_cleaning(results: Results) -> BarPanel | None:
    logs = {
        "spark-compact.random": "nearly all superseded",
        "spark-compact.distinct": "20 M distinct keys",
    }
    groups = []
    for id_, label in logs.items():
        row = results.row(id_)
        if row is not None and row.theirs is not None:
            bars = [("on Spark", 0, row.ours), ("local cleaner", 2, row.theirs)]
            groups.append(Bars(label, row.unit, row.better, bars))
    return BarPanel("on Spark, beside our own cleaner", groups) if groups else None


def recovery(results: Results) -> Plot | None:
    series = results.plotted("recovery")
    if not series:
        return None
    panel = LinePanel(
        "seconds until it is open again",
        even("GB of log after an unclean stop", xs(series)),
        even("s (less is better)", highs(series)),
        lines(series),
    )
    rates = {"recovery.rate": "recovery, indexes rebuilt", "verify.rate": "verify"}
    bars = rows_panel(results, "one core, files in the page cache", rates)
    caption = "every CRC and record checked and both indexes rebuilt, from page cache, one thread"
    panels: list[Panel] = [panel] if bars is None else [panel, bars]
    return Plot("recovery", "Recovery", caption, panels)


def spark(results: Results) -> Plot | None:
    scan = results.row("spark-scan.connector")
    parquet = results.row("spark-scan.parquet")
    panels = []
    if scan is not None:
        bars = [(OURS, 0, scan.ours)]
        if scan.theirs is not None:
            bars.append(("Kafka connector", 1, scan.theirs))
        if parquet is not None and parquet.theirs is not None:
            bars.append(("Parquet", 3, parquet.theirs))
        groups = [Bars("full scan, 7 columns", scan.unit, scan.better, bars)]
        keys = results.row("spark-scan.keys")
        if keys is not None:
            groups.append(Bars("keys only", keys.unit, keys.better, [(OURS, 0, keys.ours)]))
        panels.append(BarPanel("scan", groups))
    rows = {"spark-load.default": "defaults of both", "spark-load.tuned": "both tuned"}
    loads = rows_panel(results, "load", rows)
    panels += [loads] if loads is not None else []
    caption = "on two cores, warm: reading the files of a broker, and loading rows into it"
    return Plot("spark", "Spark scan and load", caption, panels) if panels else None


def growth(results: Results) -> Plot | None:
    panels = []
    for word in ("produce", "consume"):
        series = results.plotted(f"{word}-growth")
        if series:
            partitions = powers("partitions, half as many connections", xs(series))
            cost = even("broker CPU-s a GB (less is better)", highs(series))
            panels.append(LinePanel(word, partitions, cost, lines(series)))
    caption = "broker CPU of a GB as partitions and connections grow, 16 KB batches"
    return Plot("growth", "Growth with partitions", caption, panels) if panels else None


# --- parts --------------------------------------------------------------------------------------


def rows_panel(
    results: Results, title: str, labels: Mapping[str, str], *, with_flush: bool = False
) -> BarPanel | None:
    """Ours and the peer's of each row, by its id, and ours with each acknowledgement on disk."""
    groups = []
    for id_, label in labels.items():
        row = results.row(id_)
        if row is None:
            continue
        bars = [(OURS, 0, row.ours)]
        flushed = results.row(f"{id_}.flush") if with_flush else None
        if flushed is not None:
            bars.append(("flush on ack", 2, flushed.ours))
        if row.theirs is not None and row.peer is not None:
            name = "Kafka connector" if row.peer == CONNECTOR else row.peer.name
            bars.append((name, COLOURS.get(row.peer.name, 3), row.theirs))
        groups.append(Bars(label, row.unit, row.better, bars))
    return BarPanel(title, groups) if groups else None


def lines(series: Sequence[Series]) -> list[Line]:
    return [Line(each.name, COLOURS.get(each.name, 3), each.points) for each in series]


def xs(series: Sequence[Series]) -> list[float]:
    return [point[0] for each in series for point in each.points]


def highs(series: Sequence[Series]) -> list[float]:
    """What an axis has to reach to hold every spread."""
    return [max(point[1:]) for each in series for point in each.points]


def lows(series: Sequence[Series]) -> list[float]:
    return [min(point[1:]) for each in series for point in each.points]
