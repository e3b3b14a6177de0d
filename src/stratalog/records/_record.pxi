# One record of a v2 batch, and whether a run of bytes is exactly so many records.
#
#   length varint | attributes i8 | timestampDelta varlong | offsetDelta varint
#   keyLength varint, key | valueLength varint, value       (a negative length is null)
#   headersCount varint | per header: keyLength varint, key, valueLength varint, value


cdef struct RecordView:
    Py_ssize_t body_at              # places are bytes of the buffer that was parsed
    Py_ssize_t end_at
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_size                # below 0 is null
    int32_t value_size
    int32_t header_count
    Py_ssize_t key_at
    Py_ssize_t value_at
    Py_ssize_t headers_at


cdef inline int skip_record_headers(const uint8_t *data, Py_ssize_t end, Py_ssize_t *at,
                                    int32_t header_count) noexcept nogil:
    cdef int32_t i, size
    for i in range(header_count):
        if not read_varint(data, end, at, &size):
            return FAULT_VARINT
        if size < 0:
            return FAULT_HEADER_KEY
        if size > end - at[0]:
            return FAULT_RECORD_LENGTH
        at[0] += size
        if not read_varint(data, end, at, &size):
            return FAULT_VARINT
        if size > 0:
            if size > end - at[0]:
                return FAULT_RECORD_LENGTH
            at[0] += size
    return FAULT_NONE


cdef inline int parse_record(const uint8_t *data, Py_ssize_t end, Py_ssize_t *at,
                             RecordView *r) noexcept nogil:
    """Read the record at *at, all of its headers too, and move *at behind it; or a fault."""
    cdef Py_ssize_t i = at[0]
    cdef int32_t length
    cdef int fault
    if i >= end:
        return FAULT_RECORDS_PREMATURE
    if not read_varint(data, end, &i, &length):
        return FAULT_VARINT
    if length < 0:
        return FAULT_RECORD_LENGTH
    if length > end - i:
        return FAULT_RECORDS_PREMATURE
    r.body_at = i
    end = i + length
    r.end_at = end
    i += 1                          # the attributes byte, which nothing uses
    if not read_varlong(data, end, &i, &r.timestamp_delta):
        return FAULT_VARINT
    if not read_varint(data, end, &i, &r.offset_delta):
        return FAULT_VARINT
    if not read_varint(data, end, &i, &r.key_size):
        return FAULT_VARINT
    r.key_at = i
    if r.key_size > 0:
        if r.key_size > end - i:
            return FAULT_RECORD_LENGTH
        i += r.key_size
    if not read_varint(data, end, &i, &r.value_size):
        return FAULT_VARINT
    r.value_at = i
    if r.value_size > 0:
        if r.value_size > end - i:
            return FAULT_RECORD_LENGTH
        i += r.value_size
    if not read_varint(data, end, &i, &r.header_count):
        return FAULT_VARINT
    r.headers_at = i
    if r.header_count:
        if r.header_count < 0 or r.header_count > end - i:
            return FAULT_HEADER_COUNT
        fault = skip_record_headers(data, end, &i, r.header_count)
        if fault:
            return fault
    if i != end:
        return FAULT_RECORD_LENGTH
    at[0] = i
    return FAULT_NONE


cdef inline int32_t settled_delta(const Header *h, int32_t i, int32_t delta,
                                  int32_t last) noexcept nogil:
    """The offset delta of record `i`, where the one before it has `last`.

    It is the record's own if it follows, and leaves an offset of the batch to each record behind
    it; else the next one. Kafka looks at the offset deltas of compressed batches only, so that its
    logs can hold others with -1, the same twice, or an offset that is another batch's. Counted so,
    each record has an offset of its own within its batch, and in any sound batch the one it says.
    """
    if last < delta <= h.last_offset - h.base_offset - (h.record_count - 1 - i):
        return delta
    return last + 1


cdef int walk_records(const uint8_t *data, Py_ssize_t size, const Header *h,
                      bint *is_sound) noexcept nogil:
    """Whether `data` holds exactly as many records as the header says, and in `is_sound` whether
    each has the offset that it says. As Kafka iterates: a batch of no records is not looked into.
    """
    cdef Py_ssize_t at = 0
    cdef RecordView record
    cdef int32_t count = h.record_count
    cdef int32_t last = -1
    cdef int32_t i
    cdef int fault
    is_sound[0] = True
    for i in range(count):
        fault = parse_record(data, size, &at, &record)
        if fault:
            return fault
        last = settled_delta(h, i, record.offset_delta, last)
        if last != record.offset_delta:
            is_sound[0] = False
    if count > 0 and at != size:
        return FAULT_RECORDS_REMAINING
    return FAULT_NONE


def first_record(body, int32_t record_count):
    cdef Py_buffer view
    cdef Py_ssize_t at = 0
    cdef RecordView r
    cdef const uint8_t *data
    cdef int fault
    if record_count <= 0:
        return None
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *> view.buf
        fault = parse_record(data, view.len, &at, &r)
        if fault:
            raise corrupt(fault)
        return (
            None if r.key_size < 0 else data[r.key_at:r.key_at + r.key_size],
            None if r.value_size < 0 else data[r.value_at:r.value_at + r.value_size],
        )
    finally:
        PyBuffer_Release(&view)
