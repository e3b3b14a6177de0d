"""Conditions as people write them in Spark's SQL, over the columns of the source.

Numbers and times lie around what ``test_where_rows`` has in its topic; the times are those of the
night in which clocks go back in New York, so that a time there may mean two.
"""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

MIDDLE = datetime(2023, 11, 5, 6, 0, tzinfo=UTC)
SPREAD_MINUTES = 180
OFFSETS = 300
PARTITIONS = 3

operators = st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"])
offsets = st.integers(-2, OFFSETS + 2)
partitions = st.integers(-1, PARTITIONS)
minutes = st.integers(-SPREAD_MINUTES - 10, SPREAD_MINUTES + 10)


def _in(column: str, numbers: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    listed = st.lists(numbers.map(str) | st.just("NULL"), min_size=1, max_size=4)
    return st.builds(
        lambda nots, items: f"{column} {nots}IN ({', '.join(items)})",
        st.sampled_from(["", "NOT "]),
        listed,
    )


def _between(column: str, bounds: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda low, high: f"{column} BETWEEN {low} AND {high}", bounds, bounds)


def _compared(column: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    either = st.tuples(operators, values, st.booleans())
    return either.map(
        lambda each: f"{each[1]} {each[0]} {column}" if each[2] else f"{column} {each[0]} {each[1]}"
    )


def _local(minute: int) -> str:
    return (MIDDLE + timedelta(minutes=minute)).strftime("%Y-%m-%d %H:%M:%S")


def _millis(minute: int) -> int:
    return int((MIDDLE + timedelta(minutes=minute)).timestamp() * 1000)


times = st.one_of(
    minutes.map(lambda minute: f"TIMESTAMP'{_local(minute)}'"),
    minutes.map(lambda minute: f"TIMESTAMP'{_local(minute)}.0005'"),
    minutes.map(lambda minute: f"TIMESTAMP'{_local(minute)}Z'"),
    minutes.map(lambda minute: f"TIMESTAMP'{_local(minute)}+05:30'"),
    minutes.map(lambda minute: f"timestamp_millis({_millis(minute)})"),
    minutes.map(lambda minute: f"'{_local(minute)}'"),
    minutes.map(lambda minute: f"TIMESTAMP_NTZ'{_local(minute)}'"),
    st.sampled_from(["DATE'2023-11-05'", "'2023-11-05'", "NULL"]),
)

numbers = offsets.map(str) | st.sampled_from(["2.5", "'7'", "NULL", "1e2", "CAST(9 AS SMALLINT)"])

simple = st.one_of(
    _compared("offset", numbers),
    _compared("partition", partitions.map(str)),
    _compared("timestamp", times),
    _between("offset", offsets.map(str)),
    _between("timestamp", times),
    _in("offset", offsets),
    _in("partition", partitions),
)

odd = st.sampled_from(
    [
        "topic = 'orders'",
        "topic IN ('orders', 'payments')",
        "topic LIKE 'pay%'",
        "topic <> 'orders'",
        "key = X'6B31'",
        "key = 'k1'",
        "key IS NULL",
        "key <=> NULL",
        "key IN (X'6B31', NULL)",
        "cast(key AS string) = 'k2'",
        "value IS NOT NULL",
        "offset IS NULL",
        "(offset > 20) IS NULL",
        "offset % 2 = 0",
        "offset + 1 > 100",
        "-offset < -50",
        "coalesce(offset, 1) < 40",
        "CASE WHEN partition = 1 THEN offset < 10 ELSE offset > 290 END",
        "to_date(timestamp) = DATE'2023-11-05'",
        "cast(timestamp AS date) < DATE'2023-11-05'",
        "hour(timestamp) = 1",
        "unix_millis(timestamp) % 2 = 0",
        "date_trunc('hour', timestamp) = TIMESTAMP'2023-11-05 01:00:00'",
        "timestamp + INTERVAL 1 HOUR > TIMESTAMP'2023-11-05 06:00:00Z'",
        "timestampType = 0",
        "true",
        "false",
        "NULL",
        "if(offset > 10, NULL, true)",
    ]
)

conditions: st.SearchStrategy[str] = st.recursive(
    simple | odd,
    lambda inner: st.one_of(
        st.builds(lambda left, right: f"({left}) AND ({right})", inner, inner),
        st.builds(lambda left, right: f"({left}) OR ({right})", inner, inner),
        st.builds(lambda one: f"NOT ({one})", inner),
        st.builds(lambda left, right: f"{left} AND {right}", simple, simple),
    ),
    max_leaves=5,
)
