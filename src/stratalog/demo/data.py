"""A shop's two weeks, made up: the orders of its customers, and what the customers changed.

Whole columns are made at once, with Arrow, and a seed gives the same ones each time: whatever the
demo says about them can be counted again from here. Times are of events, not of sending: they
follow the hours of a day, and a few records come late, as they do from telephones on trains.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy
import pyarrow
import pyarrow.compute as pc

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SPAN_DAYS = 14
LATE_SHARE = 0.02
LATE_MS_MAX = 30 * 60_000
# Of a hundred customers, so many have asked to be forgotten by the end.
FORGOTTEN_PERCENT = 3

FIRST_NAMES = (
    "Ada", "Alan", "Ana", "Anders", "Barbara", "Chiara", "Dennis", "Edsger", "Elif", "Farah",
    "Frances", "Grace", "Hedy", "Ines", "Jean", "Joao", "Karen", "Ken", "Leslie", "Lin", "Maja",
    "Marta", "Mei", "Mikkel", "Noor", "Olga", "Priya", "Radia", "Sofia", "Tomas", "Yara", "Zuzana",
)  # fmt: skip
LAST_NAMES = (
    "Almeida", "Berg", "Costa", "Demir", "Eriksen", "Fischer", "Garcia", "Hansen", "Ivanova",
    "Jansen", "Kaya", "Kowalski", "Larsen", "Lopez", "Moreau", "Nguyen", "Novak", "Okafor",
    "Pereira", "Petrov", "Rossi", "Santos", "Silva", "Singh", "Svensson", "Tanaka", "Virtanen",
    "Wagner", "Weber", "Zhang",
)  # fmt: skip
CITIES = (
    "Aarhus", "Antwerp", "Bergen", "Bologna", "Brno", "Gdansk", "Ghent", "Graz", "Leipzig",
    "Lisbon", "Lyon", "Malmo", "Porto", "Seville", "Tampere", "Utrecht",
)  # fmt: skip
PRODUCTS = (
    ("oat milk 1 l", 219), ("rye bread", 389), ("espresso beans 1 kg", 1890), ("olive oil", 1249),
    ("green tea", 545), ("dark chocolate", 329), ("basmati rice 5 kg", 1599), ("tomatoes", 279),
    ("goat cheese", 649), ("wild honey", 899), ("almonds", 729), ("lentils", 199),
    ("sea salt", 149), ("mustard", 259), ("apple juice", 319), ("pasta", 169),
)  # fmt: skip
CHANNELS = (b"web", b"app", b"store", b"phone")
TIERS = ("basic", "silver", "gold")

Column: TypeAlias = "pyarrow.Array[Any]"
Numbers: TypeAlias = "numpy.ndarray[Any, Any]"
# Key, value, time and headers: what a client is called with.
Row = tuple[bytes, bytes | None, int, list[tuple[str, str | bytes | None]]]


@dataclass(frozen=True, slots=True)
class Records:
    """Columns of one topic, in the order of sending; ``values`` are null where a key is deleted."""

    topic: str
    keys: Column
    values: Column
    timestamps_ms: Numbers
    channels: Numbers
    traces: Column

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self, start: int, end: int) -> Iterator[Row]:
        part = slice(start, end)
        channels = [CHANNELS[number] for number in self.channels[part].tolist()]
        traces: list[Any] = self.traces[part].to_pylist()
        keys: list[Any] = self.keys[part].to_pylist()
        headers: list[list[tuple[str, str | bytes | None]]] = [
            [("channel", channel), ("trace-id", trace)]
            for channel, trace in zip(channels, traces, strict=True)
        ]
        times = self.timestamps_ms[part].tolist()
        return zip(keys, self.values[part].to_pylist(), times, headers, strict=True)

    def count_between(self, start_ms: int, end_ms: int) -> int:
        """Records with a time of at least ``start_ms`` and before ``end_ms``."""
        times = self.timestamps_ms
        return int(numpy.count_nonzero((times >= start_ms) & (times < end_ms)))

    def key_count(self) -> int:
        return len(self.keys.unique())

    def last_values(self) -> dict[bytes, bytes]:
        """What is left of it when each key has its last value, and the deleted ones are gone."""
        keys: list[Any] = self.keys.to_pylist()
        last = dict(zip(keys, self.values.to_pylist(), strict=True))
        return {key: value for key, value in last.items() if value is not None}


def make_orders(
    count: int,
    customers: int,
    *,
    end_ms: int,
    seed: int,
    first_id: int = 0,
    days: int = SPAN_DAYS,
) -> Records:
    """Orders of the ``days`` up to ``end_ms``, by customer."""
    chance = numpy.random.default_rng((seed, 1, first_id))
    times = _event_times(chance, count, end_ms, days)
    # A few customers order often, most of them seldom.
    who = (customers * chance.random(count) ** 2).astype(numpy.int64)
    names, prices = zip(*PRODUCTS, strict=True)
    product = chance.integers(0, len(PRODUCTS), count)
    quantity = chance.integers(1, 7, count)
    cents = numpy.asarray(prices)[product] * quantity
    ids = numpy.arange(first_id, first_id + count)
    keys = _customer_keys(who)
    values = _join(
        '{"order":', _text(ids), ',"customer":"', keys, '","product":"', _pick(names, product),
        '","quantity":', _text(quantity), ',"amount":', _euros(cents),
        ',"currency":"EUR","city":"', _pick(CITIES, chance.integers(0, len(CITIES), count)),
        '","placed_at":"', _iso(times), '"}',
    )  # fmt: skip
    return _records("orders", chance, keys, values, times)


def make_customers(count: int, customers: int, *, end_ms: int, seed: int) -> Records:
    """Changes of customers' data: every one at least once, and in the end some are deleted."""
    assert count >= customers
    chance = numpy.random.default_rng((seed, 2))
    times = _event_times(chance, count, end_ms, SPAN_DAYS)
    who = numpy.concatenate(
        [chance.permutation(customers), chance.integers(0, customers, count - customers)]
    )
    first, last = who % len(FIRST_NAMES), who // len(FIRST_NAMES) % len(LAST_NAMES)
    given, family = _pick(FIRST_NAMES, first), _pick(LAST_NAMES, last)
    keys = _customer_keys(who)
    values = _join(
        '{"customer":"', keys, '","name":"', given, " ", family, '","email":"',
        pc.utf8_lower(given), ".", pc.utf8_lower(family), _text(who), '@example.org","city":"',
        _pick(CITIES, chance.integers(0, len(CITIES), count)), '","tier":"',
        _pick(TIERS, chance.integers(0, len(TIERS), count)), '","changed_at":"', _iso(times), '"}',
    )  # fmt: skip
    # A tombstone is the last that is said of a customer who asked to be forgotten.
    is_last = numpy.zeros(count, dtype=bool)
    is_last[count - 1 - numpy.unique(who[::-1], return_index=True)[1]] = True
    is_forgotten = is_last & (who % 100 < FORGOTTEN_PERCENT)
    values = pc.if_else(pyarrow.array(is_forgotten), pyarrow.scalar(None, values.type), values)
    return _records("customers", chance, keys, values, times)


def _records(
    topic: str,
    chance: numpy.random.Generator,
    keys: Column,
    values: Column,
    times: Numbers,
) -> Records:
    count = len(keys)
    channels = chance.integers(0, len(CHANNELS), count)
    traces = pyarrow.FixedSizeBinaryArray.from_buffers(
        pyarrow.binary(8), count, [None, pyarrow.py_buffer(chance.bytes(8 * count))]
    )
    binary = pyarrow.binary()
    return Records(topic, keys.cast(binary), values.cast(binary), times, channels, traces)


# --- times --------------------------------------------------------------------------------------


def _event_times(chance: numpy.random.Generator, count: int, end_ms: int, days: int) -> Numbers:
    """Milliseconds in the order of sending: nearly sorted, since some are late."""
    hours = days * 24
    # Quiet at night, two peaks by day: how much of a day's trade falls into each of its hours.
    shape = numpy.array(
        [1, 1, 1, 1, 1, 2, 4, 7, 9, 9, 10, 12, 13, 11, 9, 9, 10, 13, 15, 14, 10, 7, 4, 2]
    )
    start_ms = end_ms - hours * HOUR_MS
    first_hour = start_ms // HOUR_MS % 24
    weights = numpy.roll(numpy.tile(shape, days), -first_hour)
    reached = numpy.concatenate([[0], numpy.cumsum(weights) / weights.sum()])
    offsets = numpy.interp(numpy.sort(chance.random(count)), reached, numpy.arange(hours + 1))
    times = start_ms + (offsets * HOUR_MS).astype(numpy.int64)
    late = chance.random(count) < LATE_SHARE
    times[late] -= chance.integers(0, LATE_MS_MAX, int(late.sum()))
    return numpy.clip(times, start_ms, end_ms - 1)


def busiest_hour(records: Records) -> tuple[int, int]:
    """The whole hour with the most records, as [start, end) in milliseconds."""
    hours, counts = numpy.unique(records.timestamps_ms // HOUR_MS, return_counts=True)
    start_ms = int(hours[counts.argmax()]) * HOUR_MS
    return start_ms, start_ms + HOUR_MS


def minute_text(timestamp_ms: int) -> str:
    return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M}"


# --- columns of text ----------------------------------------------------------------------------


def _customer_keys(numbers: Numbers) -> Column:
    return _join("c-", pc.utf8_lpad(_text(numbers), width=6, padding="0"))


def _text(numbers: Numbers) -> Column:
    text: Column = pyarrow.array(numbers).cast(pyarrow.string())
    return text


def _euros(cents: Numbers) -> Column:
    return _join(_text(cents // 100), ".", pc.utf8_lpad(_text(cents % 100), width=2, padding="0"))


def _pick(words: tuple[str, ...], numbers: Numbers) -> Column:
    places: Column = pyarrow.array(numbers)
    picked: Column = pc.take(pyarrow.array(words), places)
    return picked


def _iso(times: Numbers) -> Column:
    moments = pyarrow.array(times).cast(pyarrow.timestamp("ms"))
    return _join(moments.cast(pyarrow.string()), "Z")


def _join(*parts: "Column | str") -> Column:
    # The stubs know of no scalars among the columns.
    join: Any = pc.binary_join_element_wise
    joined: Column = join(*parts, "")
    return joined
