"""Records as Arrow columns."""

import subprocess
import sys
from collections.abc import Sequence

import pyarrow as pa
import pytest
from batch_strategies import BATCHES, RECORDS, changed, lay_out, resealed
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CorruptBatchError, RecordTooLargeError, UnsupportedCompressionError
from stratalog.records import (
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.records._kernels import COLUMN_NAMES, ColumnDecoder, encode_records
from stratalog.records.columns import (
    KAFKA_COLUMNS,
    arrow_schema,
    decode_columns,
    decode_records,
    iterate_columns,
)

CODECS = st.sampled_from(Codec)
ALL = tuple(COLUMN_NAMES)


def rows_of(batch: pa.RecordBatch) -> list[dict[str, object]]:
    batch.validate(full=True)
    return batch.to_pylist()


def expected_row(header: BatchHeader, index: int, record: Record) -> dict[str, object]:
    sequence = header.base_sequence
    return {
        "offset": header.base_offset + index,
        "timestamp_ms": header.max_timestamp_ms
        if header.is_log_append_time
        else record.timestamp_ms,
        "timestamp_type": int(header.is_log_append_time),
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "sequence": -1 if sequence < 0 else (sequence + index) % 2**31,
        "is_control": header.is_control,
        "is_transactional": header.is_transactional,
        "codec": header.codec_id,
        "batch_position": header.position,
        "batch_base_offset": header.base_offset,
    }


@st.composite
def batch_runs(draw: st.DrawFn) -> tuple[bytes, list[dict[str, object]]]:
    """Batches of every kind at file position 1000, and the rows that they are."""
    run = b""
    record_lists = draw(st.lists(st.lists(RECORDS, min_size=1, max_size=5), max_size=5))
    offset = draw(st.integers(0, 2**50))
    for records in record_lists:
        run += build_batch(
            records,
            base_offset=offset,
            codec=draw(CODECS),
            timestamp_type=draw(st.sampled_from(TimestampType)),
            log_append_time_ms=draw(st.integers(0, 2**40)),
            producer_id=draw(st.integers(-1, 2**60)),
            producer_epoch=draw(st.integers(-1, 2**15 - 1)),
            base_sequence=draw(st.sampled_from([-1, 0, 2**31 - 2])),
            transactional=draw(st.booleans()),
            control=draw(st.booleans()),
            leader_epoch=draw(st.integers(-1, 2**31 - 1)),
        )
        offset += len(records) + draw(st.integers(0, 3))
    headers = read_headers(run, 1000)
    rows = [
        expected_row(header, index, record)
        for header, records in zip(headers, record_lists, strict=True)
        for index, record in enumerate(records)
    ]
    return run, rows


@given(batch_runs())
def test_columns_are_what_the_records_say(run: tuple[bytes, list[dict[str, object]]]) -> None:
    data, rows = run
    batch = decode_columns(data, columns=ALL, position=1000, include_control=True)

    assert rows_of(batch) == rows
    assert batch.schema == arrow_schema(ALL)


@given(batch_runs(), st.lists(st.sampled_from(ALL), unique=True, min_size=1, max_size=6))
def test_any_choice_of_columns_is_those_columns_of_all(
    run: tuple[bytes, list[dict[str, object]]], columns: list[str]
) -> None:
    data, rows = run
    batch = decode_columns(data, columns=columns, position=1000, include_control=True)

    assert batch.schema.names == columns
    assert rows_of(batch) == [{name: row[name] for name in columns} for row in rows]


@given(batch_runs(), st.integers(0, 6), st.integers(0, 6))
def test_only_offsets_in_the_half_open_range_are_returned(
    run: tuple[bytes, list[dict[str, object]]], skip: int, take: int
) -> None:
    data, rows = run
    start = (rows[0]["offset"] if rows else 0) + skip
    batch = decode_columns(
        data, columns=["offset"], start_offset=start, end_offset=start + take, include_control=True
    )

    wanted = [row["offset"] for row in rows if start <= row["offset"] < start + take]
    assert batch["offset"].to_pylist() == wanted


@pytest.mark.parametrize("codec", Codec)
def test_a_range_of_offsets_may_begin_and_end_inside_a_batch(codec: Codec) -> None:
    batch = build_batch([Record(b"key", b"value")] * 5, base_offset=10, codec=codec)
    decoded = decode_columns(batch, columns=["offset"], start_offset=11, end_offset=13)

    assert decoded["offset"].to_pylist() == [11, 12]


@given(batch_runs(), st.integers(1, 600))
def test_pieces_are_the_whole_in_order(
    run: tuple[bytes, list[dict[str, object]]], target_bytes: int
) -> None:
    data, rows = run
    pieces = iterate_columns(
        data, columns=ALL, position=1000, include_control=True, target_bytes=target_bytes
    )

    assert [row for piece in pieces for row in rows_of(piece)] == rows


@given(batch_runs())
def test_control_records_are_left_out_unless_asked_for(
    run: tuple[bytes, list[dict[str, object]]],
) -> None:
    data, rows = run

    assert rows_of(decode_columns(data, columns=ALL, position=1000)) == [
        row for row in rows if not row["is_control"]
    ]


@given(BATCHES, st.integers(1, 200))
def test_a_batch_that_is_cut_is_left_out(batch: bytes, cut: int) -> None:
    whole = decode_columns(batch, include_control=True)

    assert decode_columns(batch + batch[:-cut], include_control=True).equals(whole)


def test_key_and_value_are_binary_and_may_be_null() -> None:
    batch = decode_columns(build_batch([Record(None, b""), Record(b"", None)]))

    assert (batch["key"].to_pylist(), batch["value"].to_pylist()) == ([None, b""], [b"", None])
    assert batch.schema.field("key").type == pa.binary()
    assert not batch.schema.field("offset").nullable


def test_nothing_is_an_empty_batch_with_the_same_schema() -> None:
    batch = decode_columns(b"", columns=ALL)

    assert batch.num_rows == 0
    assert batch.schema == arrow_schema(ALL)
    batch.validate(full=True)
    assert list(iterate_columns(b"")) == []


def test_a_batch_emptied_by_compaction_yields_no_rows() -> None:
    bare = build_batch([], base_offset=5, last_offset_delta=4)
    full = build_batch([Record(b"key", b"value")], base_offset=10)

    assert decode_columns(bare + full, columns=["offset"])["offset"].to_pylist() == [10]


def test_compacted_batches_keep_their_offsets_and_sequences() -> None:
    batch = build_batch(
        [Record(b"a", b""), Record(b"b", b"")],
        base_offset=100,
        offset_deltas=[3, 8],
        last_offset_delta=9,
        producer_id=1,
        producer_epoch=0,
        base_sequence=2**31 - 5,
    )
    decoded = decode_columns(batch, columns=["offset", "sequence"])

    assert decoded.to_pydict() == {"offset": [103, 108], "sequence": [2**31 - 2, 3]}


def test_a_delete_horizon_is_the_base_of_timestamps_all_the_same() -> None:
    batch = build_batch([Record(b"key", b"", (), 40)], delete_horizon_ms=1_000)

    assert decode_columns(batch)["timestamp_ms"].to_pylist() == [40]


def test_records_of_aborted_transactions_are_left_out() -> None:
    def send(offset: int, producer_id: int, transactional: bool = True) -> bytes:
        return build_batch(
            [Record(b"key", b"value")],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=transactional,
        )

    marker = build_end_transaction_marker(
        commit=False,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=5,
        base_offset=13,
    )
    run = (
        send(9, 1)
        + send(10, 1)
        + send(11, 2)
        + send(12, 1, transactional=False)
        + marker
        + send(14, 1)
        + send(15, 3)
    )

    def offsets(aborted: Sequence[tuple[int, int, int]] | None, **options: bool) -> list[int]:
        batch = decode_columns(run, columns=["offset"], aborted=aborted, **options)
        return batch["offset"].to_pylist()

    assert offsets(None) == [9, 10, 11, 12, 14, 15]
    assert offsets([(1, 10, 13)]) == [9, 11, 12, 14, 15]
    assert offsets([(3, 15, 20), (1, 10, 13), (1, 0, 9)]) == [11, 12, 14]
    assert offsets([(1, 10, 13)], include_control=True) == [9, 11, 12, 13, 14, 15]


def test_header_keys_that_are_not_utf8_are_decoded_with_replacement() -> None:
    batch = bytearray(build_batch([Record(b"", b"", [("ab", b"1")]), Record(b"", b"")]))
    at = batch.index(b"ab")
    decoded = decode_columns(resealed(bytes(batch), at, "B", 0xFF))

    assert decoded["headers"].to_pylist()[0] == [{"key": "\ufffdb", "value": b"1"}]


# --- damage ---


@pytest.mark.parametrize("codec", Codec)
def test_damage_is_reported_with_its_place(codec: Codec) -> None:
    good = build_batch([Record(b"key", b"value")], codec=codec)
    bad = changed(build_batch([Record(b"key", b"other")], base_offset=1, codec=codec), 65, "B", 255)

    with pytest.raises(CorruptBatchError) as damage:
        decode_columns(good + bad, position=700)
    assert (damage.value.position, damage.value.base_offset) == (700 + len(good), 1)


def test_the_crc_is_not_computed_when_it_is_not_to_be_checked() -> None:
    batch = changed(build_batch([Record(b"key", b"value")]), 17, ">I", 1)

    with pytest.raises(CorruptBatchError, match="CRC"):
        decode_columns(batch)
    assert decode_columns(batch, check_crc=False).num_rows == 1


@given(
    st.lists(RECORDS, min_size=2, max_size=5),
    st.lists(RECORDS, min_size=1, max_size=3),
    st.sampled_from([-1, 1]),
)
def test_a_bad_batch_leaves_nothing_behind_in_the_decoder(
    records: list[Record], after: list[Record], miscounted: int
) -> None:
    records = [*records, Record(b"key", bytes(20))]
    good = build_batch(records)
    bad = resealed(build_batch(records, base_offset=10), 57, ">i", len(records) + miscounted)
    more = build_batch(after, base_offset=20)
    decoder = ColumnDecoder(2 ** len(ALL) - 1, start_offset=0, end_offset=2**62)

    assert decoder.add(good) == len(good)
    with pytest.raises(CorruptBatchError, match=r"remain|end before"):
        decoder.add(bad)
    assert decoder.add(more) == len(more)
    expected = ColumnDecoder(2 ** len(ALL) - 1, start_offset=0, end_offset=2**62)
    expected.add(good)
    expected.add(more)
    assert taken(decoder) == taken(expected)


def taken(decoder: ColumnDecoder) -> object:
    def plain(memory: object) -> object:
        if isinstance(memory, tuple):
            return tuple(map(plain, memory))
        return memory if isinstance(memory, int) else bytes(memory).rstrip(b"\0")

    rows, columns = decoder.take()
    return rows, {name: plain(memory) for name, memory in columns.items()}


def test_more_records_than_the_limit_are_refused() -> None:
    run = b"".join(lay_out([([Record(b"key", bytes(500))], 0, 0)] * 4))
    bomb = build_batch([Record(b"key", bytes(2**22))], codec=Codec.ZSTD)

    assert decode_columns(run, limit_bytes=len(run)).num_rows == 4
    for data in (run, bomb):
        with pytest.raises(RecordTooLargeError):
            decode_columns(data, limit_bytes=1_000)
    with pytest.raises(RecordTooLargeError):
        list(iterate_columns(bomb, limit_bytes=1_000))


def test_a_record_count_that_cannot_be_is_not_believed() -> None:
    batch = resealed(build_batch([Record(b"key", b"value")]), 57, ">i", 2**31 - 1)

    with pytest.raises(CorruptBatchError, match="end before"):
        decode_columns(batch)


@given(BATCHES, st.data())
def test_any_damage_behind_a_right_crc_is_an_error_of_ours_or_a_valid_batch(
    batch: bytes, draw: st.DataObject
) -> None:
    at = draw.draw(st.integers(21, len(batch) - 1))
    batch = resealed(batch, at, "B", draw.draw(st.integers(0, 255)))

    try:
        decoded = decode_columns(batch, columns=ALL, limit_bytes=10_000, include_control=True)
    except (CorruptBatchError, RecordTooLargeError):
        return
    except UnsupportedCompressionError:
        assert batch[22] & 7 > 4
        return
    decoded.validate(full=True)


def test_a_column_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="offsets"):
        decode_columns(b"", columns=["offsets"])
    with pytest.raises(ValueError, match="no columns"):
        decode_columns(b"", columns=[])


# --- the rest ---


@given(st.lists(RECORDS, max_size=5), CODECS)
def test_records_can_be_had_as_python_objects(records: list[Record], codec: Codec) -> None:
    decoded = decode_records(build_batch(records, codec=codec, control=True, base_offset=3))

    assert [record.offset for record in decoded] == [3 + i for i in range(len(records))]
    assert [(r.key, r.value, r.headers, r.timestamp_ms) for r in decoded] == [
        (r.key, r.value, tuple(r.headers), r.timestamp_ms) for r in records
    ]


def test_memory_stays_after_the_decoder_is_gone() -> None:
    body = encode_records([b"key"] * 900, [b"value" * 40] * 900, [()] * 900, [5] * 900, 5)
    batch = decode_columns(build_batch([Record(b"key", b"value" * 40, (), 5)] * 900))

    assert len(body) > 180_000
    assert batch["value"].to_pylist() == [b"value" * 40] * 900
    assert set(KAFKA_COLUMNS) == set(batch.schema.names)


def test_importing_records_does_not_import_pyarrow() -> None:
    script = "import sys, stratalog.records; print('pyarrow' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert result.stdout.strip() == "False"


# --- what a scan asks of a decoder ----------------------------------------------------------------


def offsets_kept(data: bytes, **options: object) -> list[int]:
    decoder = ColumnDecoder(1, start_offset=0, end_offset=2**63 - 1, **options)
    decoder.add(data)
    _, memories = decoder.take()
    return list(memoryview(memories["offset"][0]).cast("q"))


@given(
    st.lists(st.none() | st.binary(max_size=2), min_size=1, max_size=40),
    st.sets(st.binary(max_size=2), max_size=40),
)
def test_rows_with_a_wanted_key_are_kept_however_many_keys_there_are(
    keys: list[bytes | None], wanted: set[bytes]
) -> None:
    data = build_batch([Record(key, b"value") for key in keys])

    expected = [offset for offset, key in enumerate(keys) if key in wanted]
    assert offsets_kept(data, keys=wanted) == expected


@given(
    st.lists(st.integers(-1, 6), min_size=1, max_size=10),
    st.none() | st.integers(-1, 6),
    st.none() | st.integers(-1, 6),
)
def test_rows_between_two_timestamps_are_kept_ends_included(
    times: list[int], oldest: int | None, newest: int | None
) -> None:
    data = build_batch([Record(None, b"value", timestamp_ms=time) for time in times])

    expected = [
        offset
        for offset, time in enumerate(times)
        if (oldest is None or time >= oldest) and (newest is None or time <= newest)
    ]
    assert offsets_kept(data, min_timestamp_ms=oldest, max_timestamp_ms=newest) == expected


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=30))
def test_batches_of_aborted_transactions_are_left_out_however_many_a_producer_has(
    transactions: list[tuple[int, bool]],
) -> None:
    """Each takes ten offsets, of which its one batch begins at the fifth."""
    data = b"".join(
        build_batch(
            [Record(None, b"value")],
            base_offset=10 * place + 5,
            producer_id=producer_id,
            transactional=True,
        )
        for place, (producer_id, _) in enumerate(transactions)
    )
    aborted = [
        (producer_id, 10 * place + 3, 10 * place + 9)
        for place, (producer_id, is_aborted) in enumerate(transactions)
        if is_aborted
    ]
    kept = [10 * place + 5 for place, (_, is_aborted) in enumerate(transactions) if not is_aborted]

    assert offsets_kept(data, aborted=aborted) == kept


def test_a_decoder_says_when_it_has_to_know_what_was_aborted() -> None:
    plain = build_batch([Record(None, b"value")])
    open_ended = build_batch(
        [Record(None, b"value")], base_offset=1, producer_id=7, transactional=True
    )
    decoder = ColumnDecoder(1, start_offset=0, end_offset=9, aborted=None)
    at = decoder.add(plain + open_ended)

    assert (at, decoder.is_undecided, decoder.rows) == (len(plain), True, 1)
    decoder.decide([(7, 1, 5)])
    assert decoder.add(plain + open_ended, at) == len(plain + open_ended)
    assert (decoder.is_undecided, decoder.rows) == (False, 1)


def test_a_decoder_is_full_with_the_rows_aimed_at() -> None:
    data = b"".join(build_batch([Record(None, None)] * 3, base_offset=3 * n) for n in range(4))
    decoder = ColumnDecoder(1, start_offset=0, end_offset=99, target_rows=5)
    at = decoder.add(data)

    assert (decoder.full, decoder.rows) == (True, 6)
    decoder.take()
    assert decoder.add(data, at) == len(data)
    assert (decoder.full, decoder.rows) == (False, 6)


def test_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="start_offsett"):
        decode_columns(b"", start_offsett=5)  # type: ignore[call-arg]
