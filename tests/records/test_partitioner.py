"""Which partition a record goes to."""

from collections import Counter
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from other_client import DefaultPartitioner
from other_client import murmur2 as other_murmur2

from stratalog.errors import InvalidRowError
from stratalog.records.partitioner import Partitioner, murmur2, partition_of, partition_rows

KEYS = st.binary(max_size=40)
COUNTS = st.sampled_from((1, 2, 3, 10, 1000, 2**31 - 1))


@pytest.mark.parametrize(
    ("key", "expected", "of_ten"),
    [
        (b"", 275646681, 1),
        (b"21", -973932308, 0),
        (b"abc", 479470107, 7),
        (b"foobar", -790332482, 6),
        (b"a-little-bit-long-string", -985981536, 2),
    ],
)
def test_the_hash_is_that_of_kafka(key: bytes, expected: int, of_ten: int) -> None:
    assert murmur2(key) == expected
    assert partition_of(key, 10) == of_ten


@given(KEYS)
def test_the_hash_is_that_of_another_client(key: bytes) -> None:
    assert murmur2(key) & 0xFFFFFFFF == other_murmur2(key) & 0xFFFFFFFF


@given(st.lists(KEYS, min_size=1, max_size=20), COUNTS)
def test_keys_go_where_another_client_sends_them(keys: list[bytes], partitions: int) -> None:
    found = partition_rows(pa.array(keys, pa.binary()), partitions, 1).to_pylist()

    assert found == [partition_of(key, partitions) for key in keys]
    if partitions <= 1000:
        known = list(range(partitions))
        partition = DefaultPartitioner()
        assert found == [partition(key, known, known) for key in keys]


@given(st.lists(st.none() | KEYS, max_size=20), st.integers(0, 20), st.integers(1, 5))
def test_slices_and_large_arrays_go_where_their_rows_go(
    keys: list[bytes | None], start: int, size: int
) -> None:
    keyed = [key or b"k" for key in keys]
    whole = pa.array(keyed, pa.binary())

    piece = partition_rows(whole.slice(start, size), 7, 1)

    assert piece.to_pylist() == [partition_of(key, 7) for key in keyed[start : start + size]]
    large = partition_rows(whole.cast(pa.large_binary()), 7, 1)
    assert large.equals(partition_rows(whole, 7, 1))


def assigned(partitioner: Partitioner, count: int, value_bytes: int = 92) -> list[int]:
    nothing = pa.nulls(count, pa.binary())
    return partitioner.assign(nothing, pa.array([b"v" * value_bytes] * count)).to_pylist()


def test_rows_without_a_key_stay_until_they_are_enough_for_a_batch() -> None:
    found = assigned(Partitioner(1000, seed=5, run_bytes=10_000), 1000)

    runs = [len(list(rows)) for _, rows in groupby(found)]
    assert runs == [100] * 10


def test_all_partitions_get_their_share_of_rows_without_a_key() -> None:
    counts = Counter(assigned(Partitioner(4, seed=1, run_bytes=100), 8000))

    assert set(counts) == {0, 1, 2, 3}
    assert all(1800 < count < 2200 for count in counts.values())


@given(st.integers(-(2**70), 2**70), st.integers(1, 30))
def test_the_same_seed_gives_the_same_partitions_however_rows_come(seed: int, cut: int) -> None:
    whole = assigned(Partitioner(9, seed=seed, run_bytes=500), 60)
    pieces = Partitioner(9, seed=seed, run_bytes=500)

    found = [each for start in range(0, 60, cut) for each in assigned(pieces, min(cut, 60 - start))]

    assert found == whole


def test_another_seed_gives_other_partitions() -> None:
    assert assigned(Partitioner(100, seed=1), 1) != assigned(Partitioner(100, seed=2), 1)


def test_rows_with_a_key_do_not_end_a_run() -> None:
    keys = pa.array([None, b"key", None, b"key", None])
    values = pa.array([b"v"] * 5)

    found = Partitioner(50, seed=3).assign(keys, values).to_pylist()

    assert found[0] == found[2] == found[4]
    assert found[1] == found[3] == partition_of(b"key", 50)


def test_without_a_column_of_keys_no_row_has_one() -> None:
    values = pa.array([b"v"] * 5)
    nothing = pa.nulls(5, pa.binary())

    without = Partitioner(9, seed=3).assign(None, values)

    assert without.equals(Partitioner(9, seed=3).assign(nothing, values))


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.int8()])
def test_a_partition_that_a_row_names_wins(kind: Any) -> None:
    keys = pa.array([b"key", b"key", None])
    given_partitions = pa.array([None, 4, 0], kind)

    found = Partitioner(5, seed=3).assign(keys, keys, given_partitions).to_pylist()

    assert found == [partition_of(b"key", 5), 4, 0]


@pytest.mark.parametrize("wrong", [-1, 5, 2**31, 2**32])
def test_a_partition_that_the_topic_has_not_is_refused_with_its_row(wrong: int) -> None:
    partitioner = Partitioner(5, seed=3)
    values = pa.array([b"v", b"v"])
    partitioner.assign(None, values)

    with pytest.raises(InvalidRowError) as refused:
        partitioner.assign(None, values, pa.array([4, wrong], pa.int64()))

    assert (refused.value.row, refused.value.field) == (3, "partition")
