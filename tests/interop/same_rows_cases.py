"""The options of Spark's Kafka source, one by one and together: what is asked, not what is right.

What is right is what the connector answers to the same options. ``REFUSED`` are cases that it must
refuse, so that an answer that nobody could tell from a broken test is not taken for agreement.
"""

import json

from same_rows_data import START_MS, TIMED_RECORDS, TRIMMED_END, TRIMMED_START

Options = dict[str, str]
NEVER_MS = START_MS + 10 * TIMED_RECORDS * 1_000


def offsets_of(topic: str, *offsets: int) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in enumerate(offsets)}})


def _timed(**options: str) -> Options:
    return {"subscribe": "timed", **options}


def _plain(**options: str) -> Options:
    return {"subscribe": "plain", **options}


def second_ms(number: int) -> str:
    return str(START_MS + 1_000 * number)


_EVERY_SECOND = offsets_of("timed", START_MS + 10_000, START_MS + 20_500)
_LATER = offsets_of("timed", START_MS + 40_000, NEVER_MS)
_COMMITTED = {"kafka.isolation.level": "read_committed"}

ANSWERED: dict[str, Options] = {
    # Which partitions
    "a topic": _plain(),
    "two topics, with spaces": {"subscribe": " timed , plain,"},
    "a topic twice": {"subscribe": "plain,plain"},
    "a pattern": {"subscribePattern": "dotted[.].*"},
    "a pattern inside a name": {"subscribePattern": "tted.b"},
    "a pattern for all but one": {"subscribePattern": "^(?!growing).*$"},
    "a pattern for none": {"subscribePattern": "nothing-like-it"},
    "assigned": {"assign": '{"plain":[1],"timed":[0]}'},
    "assigned in disorder and twice": {"assign": ' {"plain":[2,0,0]}'},
    "assigned, and not there": {"assign": '{"plain":[0,7]}'},
    "an empty topic": {"subscribe": "void"},
    "an internal topic": {"subscribe": "__transaction_state"},
    # From where to where
    "words": _plain(startingOffsets=" EARLIEST", endingOffsets="Latest "),
    "offsets": _plain(
        startingOffsets=offsets_of("plain", 5, -2, 0),
        endingOffsets=offsets_of("plain", 20, -1, 0),
    ),
    "from offsets": _plain(startingOffsets=offsets_of("plain", 50, 8, -2)),
    "to offsets": _plain(endingOffsets=offsets_of("plain", 3, 0, -1)),
    "offsets inside batches": {
        "subscribe": "codecs",
        "startingOffsets": offsets_of("codecs", 13),
        "endingOffsets": offsets_of("codecs", 170),
    },
    "names in another case": {
        "SUBSCRIBE": "plain",
        "STARTINGOFFSETS": offsets_of("plain", 9, 1, 0),
    },
    # Times
    "from a time": _timed(startingTimestamp=second_ms(31)),
    "to a time": _timed(endingTimestamp=second_ms(31)),
    "between times": _timed(
        startingTimestamp=str(START_MS + 10_001), endingTimestamp=str(START_MS + 30_999)
    ),
    "to a time that never came": _timed(endingTimestamp=str(NEVER_MS)),
    "from before all": _timed(startingTimestamp="0"),
    "from a time that never came, or the end": _timed(
        startingTimestamp=str(NEVER_MS), startingOffsetsByTimestampStrategy="latest"
    ),
    "from times of partitions": _timed(startingOffsetsByTimestamp=_EVERY_SECOND),
    "to times of partitions": _timed(endingOffsetsByTimestamp=_LATER),
    "between times of partitions": _timed(
        startingOffsetsByTimestamp=_EVERY_SECOND, endingOffsetsByTimestamp=_LATER
    ),
    "from times of partitions, or the end": _timed(
        startingOffsetsByTimestamp=_LATER, startingOffsetsByTimestampStrategy="LATEST"
    ),
    "a time before times of partitions before offsets": _timed(
        startingTimestamp=second_ms(30),
        startingOffsetsByTimestamp=_EVERY_SECOND,
        startingOffsets=offsets_of("timed", 3, 3),
        endingOffsetsByTimestamp=_LATER,
        endingOffsets=offsets_of("timed", 5, 5),
    ),
    "times of partitions and offsets": _timed(
        startingOffsetsByTimestamp=_EVERY_SECOND, endingOffsets=offsets_of("timed", 29, 28)
    ),
    "from a time, clocks jumping": {"subscribe": "jumbled", "startingTimestamp": second_ms(11)},
    "to a time, clocks jumping": {"subscribe": "jumbled", "endingTimestamp": second_ms(15)},
    # Rows
    "headers": _plain(includeHeaders="true"),
    "headers in capitals": _plain(includeHeaders="TRUE"),
    "every codec": {"subscribe": "codecs", "includeHeaders": "true"},
    "append times": {"subscribe": "stamped"},
    "old formats": {"subscribe": "old", "includeHeaders": "true"},
    "inside old formats": {
        "subscribe": "old",
        "startingOffsets": offsets_of("old", 10),
        "endingOffsets": offsets_of("old", 90),
    },
    "compacted": {"subscribe": "compacted", "includeHeaders": "true"},
    "compacted transactions": {"subscribe": "compacted.txn"},
    "compacted transactions, committed": {"subscribe": "compacted.txn", **_COMMITTED},
    "between offsets that compaction took": {
        "subscribe": "compacted",
        "startingOffsets": offsets_of("compacted", 3),
        "endingOffsets": offsets_of("compacted", 26),
    },
    # Transactions
    "uncommitted": {"subscribe": "txn"},
    "committed": {"subscribe": "txn", **_COMMITTED},
    "committed offsets": {
        "subscribe": "txn",
        "startingOffsets": offsets_of("txn", 2, 3),
        "endingOffsets": offsets_of("txn", 12, 18),
        **_COMMITTED,
    },
    "committed, within nothing but an aborted one": {
        "assign": '{"txn":[0]}',
        "startingOffsets": offsets_of("txn", 6),
        "endingOffsets": offsets_of("txn", 9),
        **_COMMITTED,
    },
    "uncommitted by name": {"subscribe": "txn", "kafka.isolation.level": "read_uncommitted"},
    "a mixture": {"subscribe": "mixed"},
    "a mixture, committed": {"subscribe": "mixed", **_COMMITTED},
    **{
        f"a mixture from {start} to {end}": {
            "subscribe": "mixed",
            "startingOffsets": offsets_of("mixed", start, start + 3),
            "endingOffsets": offsets_of("mixed", end, end - 5),
            **_COMMITTED,
        }
        for start, end in ((1, 100), (77, 170), (160, 280))
    },
    # Loss
    "what is left": {"subscribe": "trimmed"},
    "what is left of more": {
        "subscribe": "trimmed",
        "startingOffsets": offsets_of("trimmed", TRIMMED_START - 10),
        "failOnDataLoss": "false",
    },
    "all of it gone": {
        "subscribe": "trimmed",
        "startingOffsets": offsets_of("trimmed", 3),
        "endingOffsets": offsets_of("trimmed", 9),
        "failOnDataLoss": "false",
    },
    "what is there of more": {
        "subscribe": "trimmed",
        "endingOffsets": offsets_of("trimmed", TRIMMED_END + 10),
        "failOnDataLoss": "false",
        "kafkaConsumer.pollTimeoutMs": "500",
    },
    "nothing of it lost": {
        "subscribe": "trimmed",
        "startingOffsets": offsets_of("trimmed", TRIMMED_START),
        "failOnDataLoss": "TRUE",
    },
    # Accepted and of no account
    "options that a batch has no use for": _plain(
        maxOffsetsPerTrigger="3", minOffsetsPerTrigger="2", maxTriggerDelay="1s"
    ),
    "options that nobody knows": _plain(**{"somethingElse": "x", "kafka.client.id": "me"}),
    "a group": _plain(**{"kafka.group.id": "mine", "groupIdPrefix": "not mine"}),
}

# A number of tasks that is asked for.
SPLIT: dict[str, Options] = {
    f"{topics} into {value}": {"subscribe": topics, "minPartitions": value}
    for topics in ("plain", "codecs,timed")
    for value in ("1", "4", "20")
}
SPLIT["at least so many of at most so many"] = _plain(
    minPartitions="9", maxRecordsPerPartition="20"
)
SPLIT["as many as there are of at most so many"] = _plain(
    minPartitions="4", maxRecordsPerPartition="7"
)
SPLIT["transactions"] = {"subscribe": "txn", "minPartitions": "9", **_COMMITTED}
SPLIT["a compacted topic"] = {"subscribe": "compacted", "minPartitions": "6"}

# Ours alone: how the files are read makes no difference to what is in them.
_ALL = {"subscribePattern": "^(?!growing).*$", "includeHeaders": "true"}
OUR_OWN: dict[str, Options] = {
    "tasks of few bytes": {**_ALL, "maxBytesPerPartition": "4000"},
    "tasks of few bytes, committed": {**_ALL, "maxBytesPerPartition": "4000", **_COMMITTED},
    "passing over damage that is not there": {**_ALL, "mode": "permissive"},
    "pushdown": {**_ALL, "pushdown": "true"},
}

REFUSED: dict[str, Options] = {
    "nothing chosen": {},
    "two ways to choose": _plain(subscribePattern="p.*"),
    "no topic": {"subscribe": " , "},
    "no pattern": {"subscribePattern": "  "},
    "a pattern that is none": {"subscribePattern": "(["},
    "assigned by list": {"assign": "[1]"},
    "assigned by no JSON": {"assign": "{plain"},
    "a missing topic": {"subscribe": "plain,missing"},
    "a missing topic, assigned": {"assign": '{"missing":[0]}'},
    "from the end": _plain(startingOffsets="latest"),
    "to the beginning": _plain(endingOffsets="earliest"),
    "from the end of a partition": _plain(startingOffsets=offsets_of("plain", 0, -1, 0)),
    "to the beginning of a partition": _plain(endingOffsets=offsets_of("plain", 0, -2, 0)),
    "partitions left out": _plain(startingOffsets=offsets_of("plain", 0, 0)),
    "partitions too many": _plain(startingOffsets=offsets_of("plain", 0, 0, 0, 0)),
    "another topic's offsets": _plain(endingOffsets=offsets_of("timed", 1, 1)),
    "unlike partitions": _plain(
        startingOffsets=offsets_of("plain", 0, 0, 0),
        endingOffsets=offsets_of("plain", 1, 1),
    ),
    "offsets that are words": _plain(startingOffsets="soon"),
    "offsets that are no JSON": _plain(startingOffsets='{"plain":{"0":}}'),
    "a start after the end": _plain(
        startingOffsets=offsets_of("plain", 9, 0, 0),
        endingOffsets=offsets_of("plain", 8, 1, 0),
    ),
    "a time after the end": _timed(startingTimestamp=second_ms(40), endingTimestamp=second_ms(20)),
    "times after the end": _timed(
        startingOffsetsByTimestamp=_LATER, endingOffsetsByTimestamp=_EVERY_SECOND
    ),
    "a time that never came": _timed(startingTimestamp=str(NEVER_MS)),
    "a time that never came to one": _timed(startingOffsetsByTimestamp=_LATER),
    "a time that is none": _timed(startingTimestamp="noon"),
    "times of too few": _timed(startingOffsetsByTimestamp=offsets_of("timed", START_MS)),
    "a strategy that is none": _timed(
        startingTimestamp="0", startingOffsetsByTimestampStrategy="earliest"
    ),
    "no tasks": _plain(minPartitions="0"),
    "tasks that are no number": _plain(minPartitions="many"),
    "no records": _plain(maxRecordsPerPartition="0"),
    "headers, perhaps": _plain(includeHeaders="perhaps"),
    "loss, perhaps": _plain(failOnDataLoss="perhaps"),
    "an isolation that is none": {"subscribe": "txn", "kafka.isolation.level": "serializable"},
    "a reset": _plain(**{"kafka.auto.offset.reset": "earliest"}),
    "a deserializer of keys": _plain(**{"kafka.key.deserializer": "x"}),
    "a deserializer of values": _plain(**{"kafka.value.deserializer": "x"}),
    "commits by the clock": _plain(**{"kafka.enable.auto.commit": "true"}),
    "interceptors": _plain(**{"kafka.interceptor.classes": "x"}),
    "less at the most than at the least": _plain(
        minOffsetsPerTrigger="3", maxOffsetsPerTrigger="2"
    ),
    "records that are lost": {
        "subscribe": "trimmed",
        "startingOffsets": offsets_of("trimmed", TRIMMED_START - 10),
    },
    "records whose transaction has not ended": {
        "subscribe": "mixed",
        "endingOffsets": offsets_of("mixed", 300, 295),
        "kafkaConsumer.pollTimeoutMs": "500",
        **_COMMITTED,
    },
    "records that are not there yet": {
        "subscribe": "trimmed",
        "endingOffsets": offsets_of("trimmed", TRIMMED_END + 10),
        "kafkaConsumer.pollTimeoutMs": "500",
    },
}

# The connector takes no notice of this option in a batch unless minPartitions is there as well.
AT_MOST: dict[str, Options] = {
    "so many": _plain(maxRecordsPerPartition="1000"),
    "fewer than in a batch": _plain(maxRecordsPerPartition="7"),
    "a few batches": {"subscribe": "codecs,timed", "maxRecordsPerPartition": "29"},
}
