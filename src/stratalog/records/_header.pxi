# The header of a batch of any format, and the functions that read one or many.
#
# Layouts (big-endian; the CRC of v2 covers [21, end), that of v0 and v1 [16, end)):
#
#   v2     0 baseOffset i64    8 batchLength i32    12 partitionLeaderEpoch i32   16 magic i8
#         17 crc u32          21 attributes i16     23 lastOffsetDelta i32
#         27 baseTimestamp i64    35 maxTimestamp i64    43 producerId i64
#         51 producerEpoch i16    53 baseSequence i32    57 recordsCount i32    61 records
#   v0/v1  0 offset i64        8 size i32           12 crc u32                    16 magic i8
#         17 attributes i8    18 timestamp i64 (v1 only)    then key and value, each i32 length

# --- the header of a batch ---------------------------------------------------------------------


cdef struct Header:
    int64_t position
    int64_t size_bytes              # the whole batch, the first 12 bytes included
    int64_t base_offset
    int64_t last_offset
    int64_t base_timestamp_ms
    int64_t max_timestamp_ms
    int64_t producer_id
    uint32_t crc
    int32_t partition_leader_epoch
    int32_t base_sequence
    int32_t record_count
    int16_t attributes
    int16_t producer_epoch
    int8_t magic


cdef inline int parse_legacy_header(const uint8_t *p, Py_ssize_t available, int32_t size,
                                    Header *h) noexcept nogil:
    cdef bint compressed
    h.crc = load_u32(p + 12)
    h.attributes = p[17]
    compressed = (h.attributes & CODEC_MASK) != 0
    h.last_offset = h.base_offset
    if compressed:
        h.base_offset = -1
    h.record_count = -1 if compressed else 1
    h.partition_leader_epoch = -1
    h.producer_id = -1
    h.producer_epoch = -1
    h.base_sequence = -1
    h.base_timestamp_ms = -1
    if h.magic == 1:
        if size < V1_SIZE_MIN:
            return FAULT_SIZE_MIN
        if available < V1_HEADER_BYTES:
            return MORE_BYTES
        h.base_timestamp_ms = load_i64(p + 18)
    h.max_timestamp_ms = h.base_timestamp_ms
    if h.last_offset == INT64_MAX:
        return FAULT_OFFSET_RANGE
    return FAULT_NONE


cdef inline int parse_header(const uint8_t *p, Py_ssize_t available, int64_t position,
                             Header *h) noexcept nogil:
    """Read the header at `p`, of which `available` bytes are there: FAULT_NONE, MORE_BYTES or a
    fault. The batch itself may run past `available`; that is for the caller to check."""
    cdef int32_t size, delta
    h.position = position
    h.base_offset = -1
    if available < LEGACY_HEADER_BYTES:
        return MORE_BYTES
    h.base_offset = load_i64(p)
    size = load_i32(p + 8)
    h.size_bytes = <int64_t> size + LOG_OVERHEAD_BYTES
    if size < LEGACY_SIZE_MIN:
        return FAULT_SIZE_MIN
    if size > INT32_MAX - LOG_OVERHEAD_BYTES:
        return FAULT_SIZE_MAX
    h.magic = <int8_t> p[16]
    if h.magic == 0 or h.magic == 1:
        return parse_legacy_header(p, available, size, h)
    if h.magic != 2:
        return FAULT_MAGIC
    if size < V2_SIZE_MIN:
        return FAULT_SIZE_MIN
    if available < V2_HEADER_BYTES:
        return MORE_BYTES
    h.partition_leader_epoch = load_i32(p + 12)
    h.crc = load_u32(p + 17)
    h.attributes = load_i16(p + 21)
    delta = load_i32(p + 23)
    h.base_timestamp_ms = load_i64(p + 27)
    h.max_timestamp_ms = load_i64(p + 35)
    h.producer_id = load_i64(p + 43)
    h.producer_epoch = load_i16(p + 51)
    h.base_sequence = load_i32(p + 53)
    h.record_count = load_i32(p + 57)
    if delta < 0:
        return FAULT_LAST_OFFSET_DELTA
    if h.record_count < 0:
        return FAULT_RECORD_COUNT
    # Strictly below the largest value, so that the offset after the batch exists too.
    if h.base_offset >= INT64_MAX - delta:
        return FAULT_OFFSET_RANGE
    h.last_offset = h.base_offset + delta
    return FAULT_NONE


cdef inline uint32_t batch_crc(const uint8_t *p, const Header *h) noexcept nogil:
    """The CRC that the batch at `p`, which must be there wholly, should carry."""
    if h.magic == 2:
        return crc_extend(CRC_CASTAGNOLI, 0, p + 21, <size_t> (h.size_bytes - 21))
    return crc_extend(CRC_IEEE, 0, p + 16, <size_t> (h.size_bytes - 16))


# --- Python's view of a header -----------------------------------------------------------------


@cython.final
@cython.freelist(64)
cdef class BatchHeader:
    """The header of one batch of any format, as a value. Cheap to make: no copy of the bytes."""

    cdef readonly int64_t position
    cdef readonly int64_t size_bytes
    cdef readonly int64_t base_offset
    cdef readonly int64_t last_offset
    cdef readonly int64_t base_timestamp_ms
    cdef readonly int64_t max_timestamp_ms
    cdef readonly int64_t producer_id
    cdef readonly unsigned int crc
    cdef readonly int partition_leader_epoch
    cdef readonly int base_sequence
    cdef readonly int record_count
    cdef readonly short attributes
    cdef readonly short producer_epoch
    cdef readonly signed char magic

    def __init__(self):
        raise TypeError("a BatchHeader is read from bytes: see read_header")

    @property
    def next_offset(self):
        return self.last_offset + 1

    @property
    def last_offset_delta(self):
        """How far the last offset is from the first; -1 if the first is unknown (a compressed
        message of magic 0 or 1)."""
        return self.last_offset - self.base_offset if self.base_offset != -1 else -1

    @property
    def last_sequence(self):
        """The sequence of the last record, continuing at 0 after 2147483647; -1 for none."""
        cdef int64_t last
        if self.base_sequence == -1 or self.magic < 2:
            return -1
        last = <int64_t> self.base_sequence + (self.last_offset - self.base_offset)
        return last if last <= INT32_MAX else last - INT32_MAX - 1

    @property
    def codec_id(self):
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self):
        return self.magic > 0 and (self.attributes & TIMESTAMP_TYPE_BIT) != 0

    @property
    def is_transactional(self):
        return self.magic == 2 and (self.attributes & TRANSACTIONAL_BIT) != 0

    @property
    def is_control(self):
        return self.magic == 2 and (self.attributes & CONTROL_BIT) != 0

    @property
    def has_producer_id(self):
        return self.producer_id >= 0

    @property
    def delete_horizon_ms(self):
        if self.magic == 2 and self.attributes & DELETE_HORIZON_BIT:
            return self.base_timestamp_ms
        return None

    def __repr__(self):
        return (
            f"BatchHeader(position={self.position}, size_bytes={self.size_bytes}, "
            f"magic={self.magic}, base_offset={self.base_offset}, "
            f"last_offset={self.last_offset}, record_count={self.record_count}, "
            f"leader_epoch={self.partition_leader_epoch}, attributes={self.attributes:#06x}, "
            f"max_timestamp_ms={self.max_timestamp_ms}, producer_id={self.producer_id}, "
            f"producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence})"
        )


cdef BatchHeader make_header(const Header *h):
    cdef BatchHeader header = BatchHeader.__new__(BatchHeader)
    header.position = h.position
    header.size_bytes = h.size_bytes
    header.base_offset = h.base_offset
    header.last_offset = h.last_offset
    header.base_timestamp_ms = h.base_timestamp_ms
    header.max_timestamp_ms = h.max_timestamp_ms
    header.producer_id = h.producer_id
    header.crc = h.crc
    header.partition_leader_epoch = h.partition_leader_epoch
    header.base_sequence = h.base_sequence
    header.record_count = h.record_count
    header.attributes = h.attributes
    header.producer_epoch = h.producer_epoch
    header.magic = h.magic
    return header


def read_header(buffer, Py_ssize_t at=0, int64_t position=0):
    cdef Py_buffer view
    cdef Header h
    cdef int fault
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if at < 0 or at > view.len:
            raise ValueError(f"byte {at} is outside a buffer of {view.len} bytes")
        fault = parse_header(<const uint8_t *> view.buf + at, view.len - at, position, &h)
    finally:
        PyBuffer_Release(&view)
    if fault == FAULT_NONE:
        return make_header(&h)
    if fault == MORE_BYTES:
        return None
    raise corrupt(fault, position, h.base_offset)


def read_headers(buffer, int64_t position=0, bint check_crc=True):
    cdef Py_buffer view
    cdef Header h
    cdef Py_ssize_t at = 0
    cdef const uint8_t *data
    cdef int fault
    cdef list headers = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    data = <const uint8_t *> view.buf
    try:
        while True:
            fault = parse_header(data + at, view.len - at, position + at, &h)
            if fault == FAULT_NONE:
                if h.size_bytes > view.len - at:
                    return headers
                if check_crc and batch_crc(data + at, &h) != h.crc:
                    fault = FAULT_CRC
            if fault == MORE_BYTES:
                return headers
            if fault:
                raise corrupt(fault, position + at, h.base_offset)
            headers.append(make_header(&h))
            at += <Py_ssize_t> h.size_bytes
    finally:
        PyBuffer_Release(&view)


def find_batch(buffer, int64_t position, int64_t target_offset, int64_t limit):
    cdef Py_buffer view
    cdef Header h
    cdef int64_t at = 0
    cdef int fault = FAULT_NONE
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        while at <= view.len and position + at < limit:
            fault = parse_header(
                <const uint8_t *> view.buf + at, view.len - <Py_ssize_t> at, position + at, &h
            )
            if fault or h.last_offset >= target_offset:
                break
            at += h.size_bytes
        else:
            return position + at
    finally:
        PyBuffer_Release(&view)
    if fault == FAULT_NONE:
        return make_header(&h)
    if fault == MORE_BYTES:
        return position + at
    raise corrupt(fault, position + at, h.base_offset)


def check_crc(buffer, Py_ssize_t at=0, Py_ssize_t size=-1):
    cdef Py_buffer view
    cdef Header h
    cdef const uint8_t *data
    cdef uint32_t crc
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if at < 0 or at > view.len:
            raise ValueError(f"byte {at} is outside a buffer of {view.len} bytes")
        data = <const uint8_t *> view.buf + at
        if parse_header(data, view.len - at, 0, &h) != FAULT_NONE:
            return False
        if h.size_bytes > view.len - at or (size >= 0 and h.size_bytes != size):
            return False
        with nogil:
            crc = batch_crc(data, &h)
        return crc == h.crc
    finally:
        PyBuffer_Release(&view)


def crc32c(buffer, uint32_t crc=0):
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        return crc_extend(CRC_CASTAGNOLI, crc, <const uint8_t *> view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)
