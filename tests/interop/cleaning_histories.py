"""The histories whose cleaning is compared, by the rule that each is about."""

from collections.abc import Mapping, Sequence

from histories import (
    DAY_MS,
    START_MS,
    Age,
    End,
    Gap,
    History,
    OldPut,
    Put,
    Roll,
    Round,
    Step,
    Stored,
)

from stratalog.records import Codec, Record

LATER_MS = START_MS + 1_000  # the delete.retention.ms of all of them: the first horizon
V2_CODECS = tuple(Codec)
OLD_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


def record(key: int | None, value: int | None, at_ms: int = 0) -> Record:
    """A record of few bytes; a ``value`` of None is a tombstone."""
    return Record(
        None if key is None else b"key %d" % key,
        None if value is None else b"value %d " % value * 5,
        timestamp_ms=START_MS + at_ms,
    )


def rows(
    batches: int, *, records: int = 3, keys: int = 12, codec: Codec = Codec.NONE, stride: int = 7
) -> list[Step]:
    """Batches that write some keys again and again, in an order that mixes them."""
    return [
        Put(
            [record((at * stride + each) % keys, at, at * 10 + each) for each in range(records)],
            codec,
        )
        for at in range(batches)
    ]


def tombstones() -> list[Step]:
    steps = rows(12)
    steps += [Put([record(key, None, 200 + key) for key in (1, 2)]) for _ in range(2)]
    steps += [Put([record(3, None, 300), record(4, 9, 301), record(5, None, 302)])]
    return [
        *steps,
        Roll(),
        Put([record(4, 10, 400), record(5, 11, 400)]),
        Roll(),
        Put([record(1, 1)]),
    ]


def null_keys() -> list[Step]:
    steps: list[Step] = []
    for at in range(8):
        steps.append(Put([record(at % 3, at), record(None, at), record(None, None)]))
        steps.append(Put([record(None, at), record(None, at)]))
    return [*steps, Roll(), Put([record(0, 1)])]


def transactions() -> list[Step]:
    """Two producers at once, one committing and one aborting, and plain records between."""
    steps: list[Step] = []
    for at in range(6):
        committer, aborter = 10 + at % 2, 20 + at % 3
        steps += [
            Put([record(1, at), record(2 + at, at)], producer=committer, transactional=True),
            Put([record(1, at), record(50 + at, at)], producer=aborter, transactional=True),
            Put([record(1, 100 + at)]),
            Put([record(90, None)], producer=committer, transactional=True),
            End(aborter, commit=False, timestamp_ms=START_MS + at),
            Put([record(3, at)]),
            End(committer, commit=True, timestamp_ms=START_MS + at),
        ]
    steps += [Put([record(key, 999)]) for key in (1, 2, 3, 4, 5, 6, 7, 90)]
    return [*steps, Roll(), Put([record(0, 1)])]


def idempotent(codec: Codec = Codec.NONE) -> list[Step]:
    """The last batch of a producer that is still known stays, if only as a header."""
    steps: list[Step] = [
        Put([record(key, at) for key in range(3)], codec, producer=producer)
        for at in range(4)
        for producer in (7, 8, 9)
    ]
    steps.append(End(30, commit=True))
    steps += [Put([record(key, 99) for key in range(3)], codec)]
    return [*steps, Roll(), Put([record(0, 1)])]


def open_transaction() -> list[Step]:
    steps = rows(10)
    steps += [Put([record(1, 1)], producer=5, transactional=True), Roll()]
    return [*steps, *rows(10), Roll(), *rows(2)]


def headers() -> list[Step]:
    notes = (("a", b"1"), ("a", None), ("ü", b""), ("", b"\x00" * 200))
    made = [record(key % 4, key)._replace(headers=notes[: key % 5]) for key in range(30)]
    return [*(Put(made[at : at + 3]) for at in range(0, 30, 3)), Roll(), Put([record(1, 1)])]


def odd_timestamps() -> list[Step]:
    """None at all, falling ones, and ones far ahead."""
    times = (-1, -1 - START_MS + 5, 10**12, 0, -(10**12), 3)
    steps: list[Step] = []
    for at in range(12):
        made = [record(key, at, times[(at + key) % len(times)]) for key in range(4)]
        none = [each._replace(timestamp_ms=-1) for each in made]
        steps += [Put(made), Put(none), Put([made[0], none[1], made[2]])]
        steps += [Put([none[0], made[1], record(30 + at, None, times[at % 6])])]
    return [*steps, Roll(), Put([record(1, 1)])]


def old_formats(*, last_is_kept: bool = True) -> list[Step]:
    steps: list[Step] = []
    for at, (magic, codec) in enumerate((m, c) for m in (0, 1) for c in OLD_CODECS):
        messages = [
            (b"key %d" % (at % 3), b"value %d" % at * 9, START_MS + at * 5 + n) for n in (0, 1)
        ]
        messages += [(b"own %d" % at, b"kept", START_MS + at), (None, b"no key", START_MS)]
        messages += [(b"gone %d" % at, None, START_MS + 99)]
        steps += [OldPut(messages, magic, codec), OldPut(messages[:2], magic, codec)]
        if magic == 1:
            steps.append(OldPut(messages, magic, codec, log_append_time_ms=START_MS + 500 + at))
        steps.append(Put([record(at % 3, at)]))
    if last_is_kept:
        steps.append(OldPut([(b"last", b"value", START_MS)], 1))
    return [*steps, Age(START_MS - DAY_MS), Roll(), Put([record(1, 1)])]


def gaps() -> list[Step]:
    """What earlier cleanings leave: offsets that nobody has, batches that end early or are bare."""
    steps: list[Step] = []
    for at in range(10):
        kept = [record(at % 4, at), record(20 + at, at), record(30, None)]
        steps += [
            Stored(kept, offset_deltas=(1, 4, 6), last_offset_delta=9),
            Stored([], last_offset_delta=3),
            Stored(kept, delete_horizon_ms=LATER_MS + at % 3, codec=Codec(at % 5)),
            Gap(at * 3),
        ]
    return [*steps, Roll(), Gap(100), Put([record(1, 1)])]


def lagging() -> list[Step]:
    steps: list[Step] = []
    for at in range(6):
        steps += [Put([record(key, at, at * 1_000) for key in range(4)]), Roll()]
    return [*steps, Put([record(0, 9, 9_000)])]


def large() -> list[Step]:
    """Batches larger than what the cleaners read at once, beside small ones."""
    steps: list[Step] = []
    for at in range(4):
        big = Record(b"big", bytes(range(256)) * 1_500, timestamp_ms=START_MS + at)
        steps += [Put([big, record(1, at)]), *rows(5)]
        steps += [Put([big, record(2, at)], Codec.ZSTD), Put([record(40 + at, at)])]
    return [*steps, Roll(), Put([record(1, 1)])]


# Something new to clean, that supersedes nothing.
MORE: Sequence[Step] = (Put([record(1_000, 1)]), Roll(), Put([record(1_001, 1)]))


def rounds(times_ms: Sequence[int], map_bytes: int = 1 << 20) -> tuple[Round, ...]:
    """Cleanings at these times, something new before each but the first."""
    return tuple(
        Round(now_ms=now_ms, map_bytes=map_bytes, steps=MORE if at else ())
        for at, now_ms in enumerate(times_ms)
    )


AGAIN = rounds((START_MS, START_MS + 999, LATER_MS, LATER_MS + 1_000, LATER_MS + 5_000))
EXPIRED = rounds((START_MS, START_MS + 2 * DAY_MS, START_MS + 3 * DAY_MS, START_MS + 4 * DAY_MS))
FORGETFUL = tuple(Round(now_ms=each.now_ms, forgets=True) for each in AGAIN)
# 24 bytes a slot, of which 0.9 are used: rounds end where the map is full, also inside a batch.
TINY_MAP = tuple(Round(now_ms=START_MS + at * 300, map_bytes=24 * 8) for at in range(12))
WHOLE = {"internal.segment.bytes": "1000000"}
DENSE = {"index.interval.bytes": "1"}
LOG_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}

HISTORIES: Mapping[str, History] = {
    "values": History(rows(60), AGAIN[:2]),
    **{
        f"values-{codec.name.lower()}": History(
            rows(60, records=5, keys=40, codec=codec), (*AGAIN[:2], Round(forgets=True))
        )
        for codec in V2_CODECS
    },
    "one-group": History(rows(60), AGAIN[:2], cleaning_configs=WHOLE),
    "nothing-superseded": History(rows(200, records=1, keys=10_000), AGAIN[:2]),
    "everything-superseded": History(
        [*rows(20, keys=3, stride=3), Roll(), *rows(3, keys=3), Roll()], AGAIN[:2]
    ),
    "tombstones": History(tombstones(), AGAIN),
    "tombstones-forgotten": History(tombstones(), FORGETFUL),
    "tombstones-in-one-segment": History(tombstones(), AGAIN, WHOLE),
    "tombstones-kept-forever": History(
        tombstones(), AGAIN[:2], cleaning_configs={"delete.retention.ms": str(2**63 - 1)}
    ),
    "tombstones-kept-never": History(
        tombstones(), AGAIN[:3], cleaning_configs={"delete.retention.ms": "0"}
    ),
    "null-keys": History(null_keys(), AGAIN[:2]),
    "transactions": History(transactions(), AGAIN),
    "transactions-forgotten": History(transactions(), FORGETFUL),
    "transactions-in-one-segment": History(transactions(), AGAIN, WHOLE),
    "transactions-of-expired-producers": History(transactions(), EXPIRED),
    "idempotent": History(idempotent(), AGAIN[:3]),
    "idempotent-zstd": History(idempotent(Codec.ZSTD), AGAIN[:3]),
    "idempotent-expired": History(idempotent(), EXPIRED),
    "open-transaction": History(open_transaction(), AGAIN[:2]),
    "high-watermark": History(rows(60), (Round(high_watermark=50), Round(high_watermark=120))),
    "log-start-in-a-transaction": History(
        transactions(), (Round(log_start_offset=5), *AGAIN[1:3]), WHOLE
    ),
    "log-start-behind-aborts": History(transactions(), (Round(log_start_offset=23), *AGAIN[1:3])),
    "headers": History(headers(), AGAIN[:2]),
    "odd-timestamps": History(odd_timestamps(), AGAIN),
    "log-append-time": History([*rows(20), *tombstones()], AGAIN, LOG_APPEND_TIME),
    "log-append-time-lz4": History(
        [*rows(20, codec=Codec.LZ4), *tombstones()], AGAIN, LOG_APPEND_TIME
    ),
    "old-formats": History(old_formats(), AGAIN),
    "old-formats-forgotten": History(old_formats(), FORGETFUL),
    "old-formats-in-one-segment": History(old_formats(), AGAIN, WHOLE),
    "gaps": History(gaps(), AGAIN),
    "tiny-map": History(rows(40, records=5, keys=31), TINY_MAP),
    "tiny-map-zstd": History(rows(40, records=5, keys=31, codec=Codec.ZSTD), TINY_MAP),
    "tiny-map-tombstones": History(tombstones(), TINY_MAP),
    "tiny-map-transactions": History(transactions(), TINY_MAP),
    "tiny-map-old-formats": History(old_formats(), TINY_MAP),
    "min-lag": History(
        lagging(),
        tuple(Round(now_ms=START_MS + at * 1_500) for at in range(5)),
        cleaning_configs={"min.compaction.lag.ms": "1000"},
    ),
    "max-lag": History(
        lagging(),
        tuple(Round(now_ms=START_MS + at * 1_500, steps=lagging()) for at in range(3)),
        cleaning_configs={"max.compaction.lag.ms": "2000"},
    ),
    "large": History(large(), AGAIN[:2], {"internal.segment.bytes": "500000"}),
    "dense-indexes": History(rows(200, keys=300), AGAIN[:2], DENSE, WHOLE),
    "small-indexes": History(rows(200), AGAIN[:2], DENSE, WHOLE | {"segment.index.bytes": "240"}),
}
