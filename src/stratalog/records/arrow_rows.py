"""Arrow arrays as the kernels of a load read them: in place, and of whatever width they have.

Bytes and text are read from binary, string, and their large forms as they are; what lies in memory
in another way (views, dictionaries, fixed sizes, other numbers) is cast by Arrow first. A slice is
read where it is. An array of a type that cannot become what it should is an
``InvalidColumnError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stratalog.errors import InvalidColumnError
from stratalog.records._kernels import RowColumn

if TYPE_CHECKING:
    import pyarrow


def binary_column(array: pyarrow.Array[Any], field: str) -> RowColumn:
    """Of bytes or text, which is taken as UTF-8."""
    import pyarrow as pa

    kind = array.type
    if not _has_offsets(kind):
        array = _cast(array, pa.large_binary(), field)
    valid, offsets, data = array.buffers()
    return RowColumn(len(array), array.offset, _width(array.type), valid, offsets, data)


def partition_column(array: pyarrow.Array[Any]) -> RowColumn:
    import pyarrow as pa

    if array.type not in (pa.int32(), pa.int64()):
        array = _cast(array, pa.int64(), "partition")
    valid, values = array.buffers()
    return RowColumn(len(array), array.offset, array.type.bit_width // 8, valid, None, values)


def timestamp_column(array: pyarrow.Array[Any]) -> tuple[RowColumn, int]:
    """The column, and its ticks in a millisecond. A plain number counts milliseconds."""
    import pyarrow as pa

    ticks = {"ms": 1, "us": 1_000, "ns": 1_000_000}
    if pa.types.is_timestamp(array.type) and array.type.unit in ticks:
        ticks_a_ms = ticks[array.type.unit]
    else:
        ticks_a_ms = 1
        is_time = pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)
        if is_time:
            array = _cast(array, pa.timestamp("ms"), "timestamp")
        elif array.type != pa.int64():
            array = _cast(array, pa.int64(), "timestamp")
    valid, values = array.buffers()
    return RowColumn(len(array), array.offset, 8, valid, None, values), ticks_a_ms


def header_columns(
    array: pyarrow.Array[Any],
) -> tuple[RowColumn, RowColumn, RowColumn, RowColumn]:
    """Of lists of (key, value): the lists, what is in them, and its keys and values."""
    import pyarrow as pa

    if not _is_list_of_pairs(array.type, pa):
        pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
        array = _cast(array, pa.list_(pair), "headers")
    valid, offsets = array.buffers()[:2]
    width = 8 if pa.types.is_large_list(array.type) else 4
    lists: Any = array
    pairs = lists.values  # all that the lists of this array, sliced or not, point into
    return (
        RowColumn(len(array), array.offset, width, valid, offsets, None),
        RowColumn(len(pairs), pairs.offset, 4, pairs.buffers()[0], None, None),
        binary_column(pairs.field(0), "headers"),
        binary_column(pairs.field(1), "headers"),
    )


def _is_list_of_pairs(kind: Any, pa: Any) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    element = kind.value_type
    return (
        pa.types.is_struct(element)
        and element.num_fields == 2
        and [element.field(0).name, element.field(1).name] == ["key", "value"]
    )


def _has_offsets(kind: pyarrow.DataType) -> bool:
    import pyarrow.types as types

    return any(
        matches(kind)
        for matches in (
            types.is_binary,
            types.is_string,
            types.is_large_binary,
            types.is_large_string,
        )
    )


def _width(kind: pyarrow.DataType) -> int:
    import pyarrow.types as types

    return 8 if types.is_large_binary(kind) or types.is_large_string(kind) else 4


def _cast(array: pyarrow.Array[Any], kind: pyarrow.DataType, field: str) -> Any:
    import pyarrow as pa

    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidColumnError(field, str(array.type), str(kind)) from error
