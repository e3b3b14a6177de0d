"""How figures of several sides become rows: ours beside Apache Kafka's, in both durabilities.

Ours acknowledges as Apache Kafka does, from the page cache, where the two are held against each
other (``log.flush.on.ack=false``). Our default waits for the disk first: a row of its own, beside
the same Apache Kafka, and without a bar.
"""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.measurement import KAFKA, NO_BAR, Bar, Better, Measurement, measured
from benchmarks.peers import kafka_note

OURS, SYNCED = "stratalog", "stratalog, flush on ack"

Figures = Mapping[str, Sequence[float]]  # of each side, by its name


def compared(
    id: str,  # noqa: A002 - as in the file
    what: str,
    figures: Figures,
    unit: str,
    better: Better,
    bar: Bar = NO_BAR,
    *,
    is_headline: bool = False,
    with_flush: bool = True,
) -> Iterator[Measurement]:
    theirs = figures.get(KAFKA.name)
    yield measured(
        id,
        what,
        unit,
        figures[OURS],
        better=better,
        theirs=theirs,
        peer=KAFKA,
        bar=bar,
        note=kafka_note(),
        is_headline=is_headline,
    )
    if with_flush and SYNCED in figures:
        yield measured(
            f"{id}.flush",
            f"{what}, each acknowledgement on disk",
            unit,
            figures[SYNCED],
            better=better,
            theirs=theirs,
            peer=KAFKA,
            note=kafka_note("our default; Apache Kafka acknowledges from the page cache"),
        )
