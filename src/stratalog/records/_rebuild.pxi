# Records encoded anew, as one v2 batch, where a codec or a format has to change.
#
# As Kafka does it: attributes of records become 0, offset deltas count from 0, timestamps count
# from the first record's, lengths take their shortest form; keys, values and headers stay.

cdef struct Encoder:
    uint8_t *place
    int64_t base_timestamp_ms
    int64_t min_timestamp_ms
    int64_t max_timestamp_ms
    int32_t count


cdef inline uint8_t *write_sized(uint8_t *p, const uint8_t *field, int32_t size) noexcept nogil:
    if size < 0:
        return write_varint(p, -1)
    p = write_varint(p, size)
    memcpy(p, field, <size_t> size)
    return p + size


cdef inline int32_t sized_bytes(int32_t size) noexcept nogil:
    return 1 if size < 0 else varint_size(size) + size


cdef int32_t copy_record_headers(const uint8_t *data, Py_ssize_t at, Py_ssize_t end,
                                 int32_t header_count, uint8_t *p) noexcept nogil:
    """Write headers that parse_record accepted in their shortest form; p NULL only counts."""
    cdef int32_t i, part, size = 0
    cdef int32_t total = 0
    for i in range(header_count):
        for part in range(2):
            read_varint(data, end, &at, &size)
            total += sized_bytes(size)
            if p != NULL:
                p = write_sized(p, data + at, size)
            if size > 0:
                at += size
    return total


cdef void encode_one(Encoder *encoder, const uint8_t *data, const RecordView *r,
                     int64_t timestamp_ms) noexcept nogil:
    """Add a record: attributes 0, the next offset delta, its own key, value and headers."""
    cdef uint8_t *p = encoder.place
    cdef int64_t delta
    cdef int32_t body, headers
    if encoder.count == 0:
        encoder.base_timestamp_ms = timestamp_ms
        encoder.min_timestamp_ms = INT64_MAX
        encoder.max_timestamp_ms = -1
    delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> encoder.base_timestamp_ms)
    headers = copy_record_headers(data, r.headers_at, r.end_at, r.header_count, NULL)
    body = (1 + varlong_size(delta) + varint_size(encoder.count) + sized_bytes(r.key_size)
            + sized_bytes(r.value_size) + varint_size(r.header_count) + headers)
    p = write_varint(p, body)
    p[0] = 0
    p = write_varlong(p + 1, delta)
    p = write_varint(p, encoder.count)
    p = write_sized(p, data + r.key_at, r.key_size)
    p = write_sized(p, data + r.value_at, r.value_size)
    p = write_varint(p, r.header_count)
    copy_record_headers(data, r.headers_at, r.end_at, r.header_count, p)
    encoder.place = p + headers
    encoder.count += 1
    if timestamp_ms > encoder.max_timestamp_ms:
        encoder.max_timestamp_ms = timestamp_ms
    if timestamp_ms < encoder.min_timestamp_ms:
        encoder.min_timestamp_ms = timestamp_ms


cdef inline int judge_rebuilt(const Policy *policy, bint is_log_append_time, int32_t key_size,
                              int64_t timestamp_ms) noexcept nogil:
    cdef int verdict = judge(policy, is_log_append_time, key_size, timestamp_ms)
    if verdict == ACCEPTED and timestamp_ms < -1:
        return REJECTED_NEGATIVE_TIMESTAMP
    return verdict


cdef int encode_batch(Encoder *encoder, const uint8_t *data, Py_ssize_t size, const Header *h,
                      const Policy *policy, list rejected, bint *is_timestamp) except -1:
    cdef RecordView record
    cdef Py_ssize_t at = 0
    cdef int64_t timestamp_ms
    cdef int32_t i
    cdef int fault, verdict
    cdef bint is_log_append_time = (h.attributes & TIMESTAMP_TYPE_BIT) != 0
    for i in range(h.record_count):
        fault = parse_record(data, size, &at, &record)
        if fault:
            raise InvalidRecordError(fault_reason(fault))
        timestamp_ms = record_timestamp(h, &record)
        verdict = judge_rebuilt(policy, is_log_append_time, record.key_size, timestamp_ms)
        if verdict:
            is_timestamp[0] = is_timestamp[0] or is_timestamp_verdict(verdict)
            rejected.append(RejectedRecord(i, rejection(verdict, timestamp_ms, policy)))
        elif not rejected:
            encode_one(encoder, data, &record, timestamp_ms)
    if at != size:
        raise InvalidRecordError(fault_reason(FAULT_RECORDS_REMAINING))
    return 0


cdef int encode_message(Encoder *encoder, const uint8_t *data, const MessageView *m,
                        int8_t outer_magic, const Policy *policy, list rejected,
                        bint *is_timestamp) except -1:
    cdef RecordView record
    cdef int verdict
    if m.magic != outer_magic:
        verdict = REJECTED_MAGIC
    else:
        verdict = judge_rebuilt(
            policy, message_timestamp_type(m) == 1, m.key_size, m.timestamp_ms
        )
    if verdict:
        is_timestamp[0] = is_timestamp[0] or is_timestamp_verdict(verdict)
        index = encoder.count + len(rejected)
        rejected.append(RejectedRecord(index, rejection(verdict, m.timestamp_ms, policy)))
    elif not rejected:
        record.key_at = m.key_at
        record.key_size = m.key_size
        record.value_at = m.value_at
        record.value_size = m.value_size
        record.header_count = 0
        record.headers_at = record.end_at = 0
        encode_one(encoder, data, &record, m.timestamp_ms)
    return 0


cdef int encode_wrapped(Encoder *encoder, const uint8_t *data, Py_ssize_t size,
                        const MessageView *wrapper, const Policy *policy, list rejected,
                        bint *is_timestamp) except -1:
    cdef MessageView m
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t count, i
    cdef int64_t base
    cdef int fault
    fault = measure_messages(data, size, wrapper, True, &count, &base)
    if fault == FAULT_CRC or fault == FAULT_SIZE_MIN:
        raise corrupt(fault)
    if fault:
        raise InvalidRecordError(fault_reason(fault))
    for i in range(count):
        parse_message(data, size, &at, False, &m)
        adopt_wrapper(wrapper, base, &m)
        encode_message(encoder, data, &m, wrapper.magic, policy, rejected, is_timestamp)
    return 0


cdef ProducedBatches finish_rebuilt(bytearray out, const Encoder *encoder, const Header *first,
                                    int codec_id, level, const Policy *policy):
    """Put the encoded records, compressed if asked for, behind a header of their own."""
    cdef ProducedBatches produced = ProducedBatches.__new__(ProducedBatches)
    cdef Header h
    cdef uint8_t *p = <uint8_t *> PyByteArray_AS_STRING(out)
    cdef Py_ssize_t size = encoder.place - p
    PyByteArray_Resize(out, size)
    if codec_id:
        from stratalog.records.compression import Codec, compress
        packed = compress(Codec(codec_id), memoryview(out)[V2_HEADER_BYTES:], level)
        out = bytearray(V2_HEADER_BYTES)
        out += packed
        size = PyByteArray_GET_SIZE(out)
    if size > policy.max_message_bytes:
        raise RecordTooLargeError("the rebuilt batch", size, policy.max_message_bytes)
    if policy.first_offset > INT64_MAX - encoder.count:
        raise corrupt(FAULT_OFFSET_RANGE)
    p = <uint8_t *> PyByteArray_AS_STRING(out)
    store_i64(p, policy.first_offset)
    store_i32(p + 8, <int32_t> (size - LOG_OVERHEAD_BYTES))
    store_i32(p + 12, policy.leader_epoch)
    p[16] = 2
    store_i16(p + 21, <int16_t> (
        codec_id | (TIMESTAMP_TYPE_BIT if policy.log_append_time else 0)
        | (first.attributes & TRANSACTIONAL_BIT if first.magic == 2 else 0)
    ))
    store_i32(p + 23, encoder.count - 1)
    store_i64(p + 27, encoder.base_timestamp_ms)
    store_i64(p + 35, policy.now_ms if policy.log_append_time else encoder.max_timestamp_ms)
    store_i64(p + 43, first.producer_id)
    store_i16(p + 51, first.producer_epoch)
    store_i32(p + 53, first.base_sequence)
    store_i32(p + 57, encoder.count)
    store_i32(p + 17, <int32_t> crc_extend(CRC_CASTAGNOLI, 0, p + 21, <size_t> (size - 21)))
    parse_header(p, size, 0, &h)
    produced.header = make_header(&h)
    produced.headers = (produced.header,)
    produced.buffers = [out]
    produced.size_bytes = size
    produced.min_timestamp_ms = (policy.now_ms if policy.log_append_time
                                 else encoder.min_timestamp_ms)
    produced.max_timestamp_ms = h.max_timestamp_ms
    produced.log_append_time_ms = policy.now_ms if policy.log_append_time else -1
    produced.rebuilt = True
    return produced


cdef bytearray room_for(Encoder *encoder, Py_ssize_t source_bytes, Py_ssize_t count):
    cdef Py_ssize_t most_bytes = V2_HEADER_BYTES + source_bytes + RECORD_OVERHEAD_MAX * count
    cdef bytearray out
    if most_bytes > INT32_MAX:
        raise RecordTooLargeError("the rebuilt batch", most_bytes, INT32_MAX)
    out = PyByteArray_FromStringAndSize(NULL, most_bytes)
    encoder.place = <uint8_t *> PyByteArray_AS_STRING(out) + V2_HEADER_BYTES
    encoder.count = 0
    return out


cdef ProducedBatches rebuild_batch(body, Header *h, int codec_id, level, const Policy *policy):
    """One v2 batch in another codec; `body` are its records, decompressed."""
    cdef Py_buffer view
    cdef Encoder encoder
    cdef bytearray out
    cdef bint is_timestamp = False
    cdef list rejected = []
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        # A record has at least seven bytes: the count is not believed beyond that.
        out = room_for(&encoder, view.len, min(<Py_ssize_t> h.record_count, view.len // 7))
        encode_batch(&encoder, <const uint8_t *> view.buf, view.len, h, policy, rejected,
                     &is_timestamp)
    finally:
        PyBuffer_Release(&view)
    if rejected:
        raise refusal(rejected, is_timestamp)
    return finish_rebuilt(out, &encoder, h, codec_id, level, policy)


cdef ProducedBatches rebuild_messages(const uint8_t *data, Py_ssize_t size, const Header *first,
                                      Py_ssize_t batch_count, level, const Policy *policy):
    """All messages of a set of magic 0 or 1, or those of one compressed message, as v2."""
    cdef Py_buffer view
    cdef Encoder encoder
    cdef MessageView m
    cdef bytearray out
    cdef Py_ssize_t at = 0
    cdef bint is_timestamp = False
    cdef int fault
    cdef int codec_id = 0
    cdef list rejected = []
    out = room_for(&encoder, size, batch_count)
    while True:
        fault = parse_message(data, size, &at, False, &m)
        if fault == MORE_BYTES:
            break
        if fault == FAULT_MAGIC or (fault == FAULT_NONE and m.magic != first.magic):
            raise InvalidRecordError("the batches of a request must have the same magic")
        if fault:
            raise InvalidRecordError(fault_reason(fault))
        if m.attributes & CODEC_MASK:
            if batch_count != 1:
                raise InvalidRecordError("a compressed request must have exactly one batch")
            codec_id = m.attributes & CODEC_MASK
            inner = decompress_message(data, &m, policy.max_decompressed_bytes)
            PyObject_GetBuffer(inner, &view, PyBUF_SIMPLE)
            try:
                # A message has at least 26 bytes, more than a record's fields can add.
                out = room_for(&encoder, view.len, view.len // 26)
                encode_wrapped(&encoder, <const uint8_t *> view.buf, view.len, &m, policy,
                               rejected, &is_timestamp)
            finally:
                PyBuffer_Release(&view)
        else:
            encode_message(&encoder, data, &m, <int8_t> first.magic, policy, rejected,
                           &is_timestamp)
    if rejected:
        raise refusal(rejected, is_timestamp)
    if policy.codec_id >= 0:
        codec_id = policy.codec_id
    return finish_rebuilt(out, &encoder, first, codec_id, level, policy)
