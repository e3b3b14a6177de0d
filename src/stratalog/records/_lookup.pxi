# Find one record of a batch by its timestamp.


cdef object find_in_records(const uint8_t *data, Py_ssize_t size, const Header *h,
                            int64_t timestamp_ms, int64_t min_offset):
    cdef RecordView r
    cdef Py_ssize_t at = 0
    cdef int64_t found_ms, offset
    cdef int32_t i
    cdef int32_t last_delta = -1
    cdef int fault
    for i in range(h.record_count):
        fault = parse_record(data, size, &at, &r)
        if fault:
            raise corrupt(fault, h.position, h.base_offset)
        last_delta = settled_delta(h, i, r.offset_delta, last_delta)
        offset = h.base_offset + last_delta
        # With LogAppendTime the batch has one timestamp, and the producer's are not looked at.
        found_ms = (h.max_timestamp_ms if h.attributes & TIMESTAMP_TYPE_BIT
                    else h.base_timestamp_ms + r.timestamp_delta)
        if found_ms >= timestamp_ms and offset >= min_offset:
            return offset, found_ms
    return None


cdef object find_in_messages(const uint8_t *data, Py_ssize_t size, const MessageView *wrapper,
                             int64_t timestamp_ms, int64_t min_offset):
    cdef MessageView m
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t count, i
    cdef int64_t base
    cdef int fault = measure_messages(data, size, wrapper, True, &count, &base)
    if fault:
        raise corrupt(fault, -1, wrapper.offset)
    for i in range(count):
        parse_message(data, size, &at, False, &m)
        adopt_wrapper(wrapper, base, &m)
        if m.timestamp_ms >= timestamp_ms and m.offset >= min_offset:
            return m.offset, m.timestamp_ms
    return None


cdef object find_in_legacy(const uint8_t *data, Py_ssize_t size, int64_t timestamp_ms,
                           int64_t min_offset, int64_t limit_bytes):
    cdef MessageView m
    cdef Py_ssize_t at = 0
    cdef Py_buffer inner
    cdef int fault = parse_message(data, size, &at, True, &m)
    if fault:
        raise corrupt(fault)
    if not m.attributes & CODEC_MASK:
        if m.timestamp_ms >= timestamp_ms and m.offset >= min_offset:
            return m.offset, m.timestamp_ms
        return None
    contents = decompress_message(data, &m, limit_bytes)
    PyObject_GetBuffer(contents, &inner, PyBUF_SIMPLE)
    try:
        return find_in_messages(<const uint8_t *> inner.buf, inner.len, &m, timestamp_ms,
                                min_offset)
    finally:
        PyBuffer_Release(&inner)


cdef object find_in_v2(const uint8_t *data, const Header *h, int64_t timestamp_ms,
                       int64_t min_offset, int64_t limit_bytes):
    cdef Py_buffer inner
    cdef Py_ssize_t size = <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES
    if not h.attributes & CODEC_MASK or h.record_count == 0:
        return find_in_records(data + V2_HEADER_BYTES, size, h, timestamp_ms, min_offset)
    contents = codec_decompress()(
        h.attributes & CODEC_MASK,
        PyMemoryView_FromMemory(<char *> (data + V2_HEADER_BYTES), size, PyBUF_READ),
        limit_bytes=limit_bytes,
        magic=2,
    )
    PyObject_GetBuffer(contents, &inner, PyBUF_SIMPLE)
    try:
        return find_in_records(<const uint8_t *> inner.buf, inner.len, h, timestamp_ms,
                               min_offset)
    finally:
        PyBuffer_Release(&inner)


def find_record_by_timestamp(batch, int64_t timestamp_ms, int64_t min_offset,
                             int64_t limit_bytes=1 << 30):
    cdef Py_buffer view
    cdef Header h
    cdef const uint8_t *data
    cdef int fault
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *> view.buf
        fault = parse_header(data, view.len, 0, &h)
        if fault == MORE_BYTES or (fault == FAULT_NONE and h.size_bytes > view.len):
            raise CorruptBatchError("it is not a whole batch")
        if fault:
            raise corrupt(fault)
        if h.magic == 2:
            return find_in_v2(data, &h, timestamp_ms, min_offset, limit_bytes)
        return find_in_legacy(data, view.len, timestamp_ms, min_offset, limit_bytes)
    finally:
        PyBuffer_Release(&view)
