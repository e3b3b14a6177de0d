"""Streams of both sides, run to their end: what each batch held, and what the checkpoint says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from same_rows_cases import NEVER_MS, Options, offsets_of, second_ms
from same_rows_data import TRIMMED_START
from same_rows_sides import Rows, Side, by_partition, said

STREAM_SECONDS = 300
_FROM_START = {"startingOffsets": "earliest"}
_COMMITTED = {"kafka.isolation.level": "read_committed", **_FROM_START}

STREAMS: dict[str, Options] = {
    "all at once": {"subscribe": "plain", "includeHeaders": "true", **_FROM_START},
    "from the end on": {"subscribe": "plain"},
    "at most twenty": {"subscribe": "plain", "maxOffsetsPerTrigger": "20", **_FROM_START},
    "shares of many": {
        "subscribe": "plain,timed,trimmed,codecs",
        "maxOffsetsPerTrigger": "90",
        **_FROM_START,
    },
    "fewer than there are partitions": {
        "subscribePattern": "dotted.*|trimmed",
        "maxOffsetsPerTrigger": "2",
        "startingOffsets": json.dumps({t: {"0": 36} for t in ("dotted.a", "dotted.b", "trimmed")}),
    },
    "at least ten, at most fifty": {
        "subscribe": "dotted.a,codecs",
        "minOffsetsPerTrigger": "10",
        "maxOffsetsPerTrigger": "50",
        **_FROM_START,
    },
    "at least more than there are": {
        "subscribe": "timed",
        "minOffsetsPerTrigger": "1000",
        **_FROM_START,
    },
    "from offsets": {
        "subscribe": "plain",
        "startingOffsets": offsets_of("plain", 50, 3, -2),
    },
    "from the end of one": {
        "subscribe": "plain",
        "startingOffsets": offsets_of("plain", 50, -1, 0),
    },
    "from a time": {"subscribe": "timed", "startingTimestamp": second_ms(31)},
    "from a time that never came, or the end": {
        "subscribe": "timed",
        "startingTimestamp": str(NEVER_MS),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "from times of partitions": {
        "subscribe": "timed",
        "startingOffsetsByTimestamp": offsets_of("timed", int(second_ms(20)), int(second_ms(41))),
        "maxOffsetsPerTrigger": "11",
    },
    "committed": {"subscribe": "txn", "maxOffsetsPerTrigger": "7", **_COMMITTED},
    "compacted": {"subscribe": "compacted", "maxOffsetsPerTrigger": "9", **_FROM_START},
    "old formats": {"assign": '{"old":[0]}', "maxOffsetsPerTrigger": "60", **_FROM_START},
    "an end that nobody asked about": {
        "subscribe": "timed",
        "endingTimestamp": second_ms(9),
        **_FROM_START,
    },
    "what is left of more": {
        "subscribe": "trimmed",
        "startingOffsets": offsets_of("trimmed", TRIMMED_START - 10),
        "failOnDataLoss": "false",
    },
}
REFUSED_STREAMS: dict[str, Options] = {
    "nothing chosen": {},
    "a missing topic": {"subscribe": "missing", **_FROM_START},
    "to the end": {"subscribe": "plain", "endingOffsets": "latest"},
    "to times": {
        "subscribe": "timed",
        "endingOffsetsByTimestamp": offsets_of("timed", 1, 1),
    },
    "less at the most than at the least": {
        "subscribe": "plain",
        "minOffsetsPerTrigger": "3",
        "maxOffsetsPerTrigger": "2",
    },
    "a time that never came": {"subscribe": "timed", "startingTimestamp": str(NEVER_MS)},
    "partitions left out": {"subscribe": "plain", "startingOffsets": offsets_of("plain", 1)},
    "records that are lost": {
        "subscribe": "trimmed",
        "startingOffsets": offsets_of("trimmed", TRIMMED_START - 10),
    },
}


@dataclass(slots=True)
class Streamed:
    """The rows of each batch, and the offsets that it ended with, as the checkpoint has them."""

    batches: list[Rows] = field(default_factory=list)
    offsets: list[dict[str, dict[str, int]]] = field(default_factory=list)
    schema: Any = None
    refusal: str | None = None


def run_stream(
    side: Side, options: Mapping[str, str], checkpoint: Path, *, stays: bool = False
) -> Streamed:
    """All that is available now, batch by batch; or, of one that ``stays``, until it waits."""
    streamed = Streamed()
    trigger = {"processingTime": "0 seconds"} if stays else {"availableNow": True}

    def keep(frame: Any, _batch_id: int) -> None:
        streamed.batches.append(by_partition(frame.toArrow().to_pylist()))

    try:
        frame = side.stream(options)
        streamed.schema = frame.schema
        writer = frame.writeStream.foreachBatch(keep).trigger(**trigger)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        if stays:
            query.processAllAvailable()
            query.stop()
        has_ended = query.awaitTermination(STREAM_SECONDS)
    except Exception as error:  # noqa: BLE001 - the JVM's come as many types
        return Streamed(refusal=said(error))
    assert has_ended, f"still running after {STREAM_SECONDS} s"
    streamed.offsets = checkpointed(checkpoint)
    return streamed


def checkpointed(checkpoint: Path) -> list[dict[str, dict[str, int]]]:
    """What Spark wrote down before each batch: the source's offsets are the last line. Topics
    without partitions are the ids of topics, which only our source writes."""
    directory = checkpoint / "offsets"
    names = sorted(int(file.name) for file in directory.glob("[0-9]*"))
    positions = (json.loads((directory / str(name)).read_text().splitlines()[-1]) for name in names)
    return [{topic: found for topic, found in each.items() if found} for each in positions]
