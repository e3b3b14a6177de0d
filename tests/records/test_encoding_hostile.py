"""Arrow arrays that contradict themselves are refused before a byte outside them is read."""

import struct
from typing import Any

import pytest

from stratalog.errors import InvalidRowError
from stratalog.records._kernels import RowColumn, RowEncoder, RowPartitioner

NUMBERS = RowColumn(1, 0, 4, None, None, bytes(4))
BINARY = RowColumn(1, 0, 4, None, bytes(8), b"")
BARE = RowColumn(1, 0, 4, None, None, None)
LONGER = RowColumn(2, 0, 4, None, bytes(12), b"")


def column(offsets: list[int], width: int = 4, data: bytes = b"abc") -> RowColumn:
    packed = struct.pack(f"={len(offsets)}{'i' if width == 4 else 'q'}", *offsets)
    return RowColumn(len(offsets) - 1, 0, width, None, packed, data)


def encoder() -> RowEncoder:
    return RowEncoder(1, batch_bytes=100, memory_bytes=1000)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("offsets", [[3, 0], [-1, 1], [0, 4], [0, 2**31 - 1], [-(2**31), 3]])
def test_bytes_outside_their_array_are_never_read(offsets: list[int], width: int) -> None:
    broken = column(offsets, width)

    for key, value, field in ((broken, BINARY, "key"), (None, broken, "value")):
        with pytest.raises(InvalidRowError, match="contradicts itself") as refused:
            encoder().add(NUMBERS, key, value, None, None, now_ms=1)
        assert refused.value.field == field


@pytest.mark.parametrize("offsets", [[3, 0], [-1, 1], [0, 4], [0, 2**31 - 1]])
def test_keys_and_values_outside_their_array_are_never_partitioned_by(offsets: list[int]) -> None:
    for keys, values in ((column(offsets), BINARY), (None, column(offsets))):
        with pytest.raises(InvalidRowError, match="contradicts itself"):
            RowPartitioner(3, seed=1, run_bytes=9).assign(keys, values, None)


@pytest.mark.parametrize("offsets", [[0, 2], [-1, 1], [1, 0], [2**31 - 1, 2**31 - 1]])
def test_headers_outside_their_array_are_never_read(offsets: list[int]) -> None:
    headers = (column(offsets), BARE, BINARY, BINARY)

    with pytest.raises(InvalidRowError, match="contradicts itself"):
        encoder().add(NUMBERS, None, BINARY, None, headers, now_ms=1)


@pytest.mark.parametrize("broken", [(column([0, 4]), BINARY), (BINARY, column([0, 4]))])
def test_bytes_of_headers_outside_their_array_are_never_read(broken: Any) -> None:
    headers = (column([0, 1]), BARE, *broken)

    with pytest.raises(InvalidRowError, match="contradicts itself") as refused:
        encoder().add(NUMBERS, None, BINARY, None, headers, now_ms=1)

    assert refused.value.field == "headers"


@pytest.mark.parametrize(
    "arguments",
    [
        (9, 0, 4, b"\xff", bytes(40), b""),
        (8, 1, 4, b"\xff", bytes(40), b""),
        (9, 0, 4, None, bytes(39), b""),
        (9, 0, 8, None, None, bytes(71)),
        (-1, 0, 4, None, bytes(40), b""),
        (1, -1, 4, None, bytes(40), b""),
        (2**62, 2**62, 4, None, bytes(40), b""),
        (1, 0, 3, None, bytes(40), b""),
    ],
)
def test_a_column_whose_buffers_are_too_short_for_it_is_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"bytes|rows|width"):
        RowColumn(*arguments)


@pytest.mark.parametrize(
    "columns",
    [
        (BINARY, None, BINARY, None, None),
        (BARE, None, BINARY, None, None),
        (NUMBERS, NUMBERS, BINARY, None, None),
        (NUMBERS, None, NUMBERS, None, None),
        (NUMBERS, None, BINARY, BINARY, None),
        (NUMBERS, None, BINARY, None, (NUMBERS, BARE, BINARY, BINARY)),
        (NUMBERS, None, BINARY, None, (BINARY, BARE, NUMBERS, BINARY)),
        (NUMBERS, None, BINARY, None, (BINARY, LONGER, BINARY, LONGER)),
        (NUMBERS, None, BINARY, None, (LONGER, BARE, BINARY, BINARY)),
        (NUMBERS, LONGER, BINARY, None, None),
        (NUMBERS, None, LONGER, None, None),
    ],
)
def test_columns_of_the_wrong_kind_or_length_are_refused(columns: Any) -> None:
    with pytest.raises(ValueError, match=r"Arrow|columns"):
        encoder().add(*columns, now_ms=1)


def test_a_column_of_headers_that_is_missing_is_refused() -> None:
    for which in range(4):
        headers: list[RowColumn | None] = [BINARY, BARE, BINARY, BINARY]
        headers[which] = None
        with pytest.raises((ValueError, TypeError)):
            encoder().add(NUMBERS, None, BINARY, None, tuple(headers), now_ms=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("partitions", [0, -1])
def test_there_are_no_fewer_than_one_partition(partitions: int) -> None:
    with pytest.raises(ValueError, match="partitions"):
        RowEncoder(partitions, batch_bytes=1, memory_bytes=1)
    with pytest.raises(ValueError, match="partitions"):
        RowPartitioner(partitions, seed=1, run_bytes=1)
