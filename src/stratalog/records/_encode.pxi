# Write headers and records.
#
# A leader gives a batch its offsets by replacing the header alone: base offset and leader epoch
# lie outside the CRC, and where the timestamp type or the maximum timestamp changes, the CRC is
# taken over the new header and the old body, so the body is never copied.


cdef bytearray stamped(const uint8_t *data, Py_ssize_t size, int64_t base_offset,
                       int32_t leader_epoch):
    """A copy of the first `size` bytes of a batch, its header at least, as a leader stores them."""
    cdef bytearray copy = PyByteArray_FromStringAndSize(<const char *> data, size)
    cdef uint8_t *p = <uint8_t *> PyByteArray_AS_STRING(copy)
    store_i64(p, base_offset)
    store_i32(p + 12, leader_epoch)
    return copy


cdef bytearray stamp_timestamp(buffer, int64_t base_offset, int32_t leader_epoch,
                               int64_t max_timestamp_ms, bint log_append_time):
    cdef Py_buffer view
    cdef Header h
    cdef bytearray header
    cdef uint8_t *p
    cdef uint32_t crc
    cdef int16_t attributes
    cdef int fault
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        fault = parse_header(<const uint8_t *> view.buf, view.len, 0, &h)
        if fault == FAULT_NONE and h.magic != 2:
            fault = FAULT_MAGIC
        if fault == MORE_BYTES or (fault == FAULT_NONE and h.size_bytes > view.len):
            raise ValueError(f"{view.len} bytes are not a whole batch")
        if fault:
            raise corrupt(fault)
        header = stamped(<const uint8_t *> view.buf, V2_HEADER_BYTES, base_offset, leader_epoch)
        p = <uint8_t *> PyByteArray_AS_STRING(header)
        # Kafka rebuilds the attributes from the bits it knows, so bits 7 to 15 become 0.
        attributes = h.attributes & 0x77
        if log_append_time:
            attributes |= TIMESTAMP_TYPE_BIT
        store_i16(p + 21, attributes)
        store_i64(p + 35, max_timestamp_ms)
        crc = crc_extend(CRC_CASTAGNOLI, 0, p + 21, V2_HEADER_BYTES - 21)
        crc = crc_extend(
            CRC_CASTAGNOLI, crc, <const uint8_t *> view.buf + V2_HEADER_BYTES,
            <size_t> (h.size_bytes - V2_HEADER_BYTES),
        )
        store_i32(p + 17, <int32_t> crc)
        return header
    finally:
        PyBuffer_Release(&view)


def stamp_header(buffer, int64_t base_offset, int32_t partition_leader_epoch):
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if view.len < V2_HEADER_BYTES or (<const uint8_t *> view.buf)[16] != 2:
            raise ValueError(f"{view.len} bytes do not begin with a header of magic 2")
        return stamped(
            <const uint8_t *> view.buf, V2_HEADER_BYTES, base_offset, partition_leader_epoch
        )
    finally:
        PyBuffer_Release(&view)


def stamp_log_append_time(buffer, int64_t base_offset, int32_t partition_leader_epoch,
                          int64_t timestamp_ms):
    return stamp_timestamp(buffer, base_offset, partition_leader_epoch, timestamp_ms, True)


def stamp_create_time(buffer, int64_t base_offset, int32_t partition_leader_epoch,
                      int64_t max_timestamp_ms):
    return stamp_timestamp(buffer, base_offset, partition_leader_epoch, max_timestamp_ms, False)


# --- records -----------------------------------------------------------------------------------


cdef inline int bytes_of(value, const uint8_t **data, Py_ssize_t *size, str what) except -1:
    """Point at the bytes of a key, value or header value; size -1 for None."""
    if value is None:
        size[0] = -1
        return 0
    if not isinstance(value, bytes):
        raise TypeError(f"a record's {what} is bytes or None, not {type(value).__name__}")
    data[0] = <const uint8_t *> PyBytes_AS_STRING(value)
    size[0] = PyBytes_GET_SIZE(value)
    if size[0] > INT32_MAX:
        raise ValueError(f"a record's {what} of {size[0]} bytes")
    return 0


cdef inline uint8_t *write_bytes(uint8_t *p, const uint8_t *data, Py_ssize_t size) noexcept nogil:
    p = write_varint(p, <int32_t> size)
    if size > 0:
        memcpy(p, data, <size_t> size)
        p += size
    return p


cdef bytes encode_record_headers(headers):
    """The count and the headers of one record; the text of a key is UTF-8."""
    cdef Scratch scratch = Scratch(NULL, 0, 0)
    cdef const uint8_t *data = NULL
    cdef Py_ssize_t size
    cdef uint8_t *p
    cdef tuple pairs = tuple(headers)
    try:
        p = scratch_room(&scratch, 5)
        if p == NULL:
            raise MemoryError
        scratch.used = write_varint(p, <int32_t> len(pairs)) - scratch.data
        for key, value in pairs:
            for part, what in (
                (key.encode() if isinstance(key, str) else key, "header key"),
                (value, "header value"),
            ):
                bytes_of(part, &data, &size, what)
                if size < 0 and what == "header key":
                    raise TypeError("a record's header key is text or bytes, not None")
                p = scratch_room(&scratch, 5 + max(size, 0))
                if p == NULL:
                    raise MemoryError
                scratch.used = write_bytes(p, data, size) - scratch.data
        return scratch.data[:scratch.used]
    finally:
        scratch_free(&scratch)


cdef int encode_record(Scratch *scratch, key, value, bytes headers, int64_t timestamp_delta,
                       int32_t offset_delta) except -1:
    cdef const uint8_t *key_data = NULL
    cdef const uint8_t *value_data = NULL
    cdef Py_ssize_t key_size, value_size, length
    cdef Py_ssize_t headers_size = PyBytes_GET_SIZE(headers)
    cdef uint8_t *p
    bytes_of(key, &key_data, &key_size, "key")
    bytes_of(value, &value_data, &value_size, "value")
    length = (
        1 + varlong_size(timestamp_delta) + varint_size(offset_delta)
        + varint_size(<int32_t> key_size) + max(key_size, 0)
        + varint_size(<int32_t> value_size) + max(value_size, 0) + headers_size
    )
    if length > INT32_MAX:
        raise RecordTooLargeError("a record", length, INT32_MAX)
    p = scratch_room(scratch, varint_size(<int32_t> length) + length)
    if p == NULL:
        raise MemoryError
    p = write_varint(p, <int32_t> length)
    p[0] = 0
    p = write_varlong(p + 1, timestamp_delta)
    p = write_varint(p, offset_delta)
    p = write_bytes(p, key_data, key_size)
    p = write_bytes(p, value_data, value_size)
    memcpy(p, PyBytes_AS_STRING(headers), <size_t> headers_size)
    return 0


def encode_records(list keys, list values, list headers, list timestamps, int64_t base_timestamp,
                   list offset_deltas=None):
    cdef Scratch scratch = Scratch(NULL, 0, 0)
    cdef Py_ssize_t count = len(values)
    cdef Py_ssize_t i
    cdef bytes no_headers = b"\x00"
    cdef bytes encoded_headers
    cdef bytearray encoded = bytearray()
    for column in (keys, headers, timestamps, offset_deltas):
        if column is not None and len(column) != count:
            raise ValueError(f"columns of {len(column)} and {count} records")
    if count > INT32_MAX:
        raise ValueError(f"{count} records in a batch")
    try:
        for i in range(count):
            encoded_headers = no_headers
            if headers is not None and headers[i]:
                encoded_headers = encode_record_headers(headers[i])
            encode_record(
                &scratch,
                None if keys is None else keys[i],
                values[i],
                encoded_headers,
                timestamp_delta(timestamps[i], base_timestamp),
                <int32_t> i if offset_deltas is None else offset_deltas[i],
            )
        move_scratch(&scratch, encoded)
    finally:
        scratch_free(&scratch)
    return encoded


cdef inline int64_t timestamp_delta(int64_t timestamp_ms, int64_t base_ms) noexcept nogil:
    """The difference modulo 2**64, as Java computes it: adding the base gives the timestamp."""
    return <int64_t> (<uint64_t> timestamp_ms - <uint64_t> base_ms)


def seal_batch(body, *, int64_t base_offset, int32_t last_offset_delta, int32_t record_count,
               int16_t attributes, int64_t base_timestamp_ms, int64_t max_timestamp_ms,
               int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
               int32_t partition_leader_epoch):
    cdef Py_buffer view
    cdef bytearray batch = bytearray()
    cdef uint8_t *p
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        if view.len > INT32_MAX - V2_HEADER_BYTES:
            raise RecordTooLargeError("a batch", view.len, INT32_MAX - V2_HEADER_BYTES)
        PyByteArray_Resize(batch, V2_HEADER_BYTES + view.len)
        p = <uint8_t *> PyByteArray_AS_STRING(batch)
        memcpy(p + V2_HEADER_BYTES, view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)
    store_i64(p, base_offset)
    store_i32(p + 8, <int32_t> (PyByteArray_GET_SIZE(batch) - LOG_OVERHEAD_BYTES))
    store_i32(p + 12, partition_leader_epoch)
    p[16] = 2
    store_i16(p + 21, attributes)
    store_i32(p + 23, last_offset_delta)
    store_i64(p + 27, base_timestamp_ms)
    store_i64(p + 35, max_timestamp_ms)
    store_i64(p + 43, producer_id)
    store_i16(p + 51, producer_epoch)
    store_i32(p + 53, base_sequence)
    store_i32(p + 57, record_count)
    store_i32(p + 17, <int32_t> crc_extend(
        CRC_CASTAGNOLI, 0, p + 21, <size_t> (PyByteArray_GET_SIZE(batch) - 21)
    ))
    return batch
