# Bytes to numbers and back, CRCs, faults, and memory that grows without the GIL.
#
# What works on bytes is `noexcept nogil`: a fault is a number there, which fault_reason() turns
# into words once, at the edge.

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport (
    INT32_MAX, INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
    uint64_t,
)
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from stratalog.errors import CorruptBatchError, RecordTooLargeError, UnsupportedCompressionError

cdef extern from "_crc.h" nogil:
    enum:
        CRC_CASTAGNOLI
        CRC_IEEE
    void crc_initialize() noexcept
    uint32_t crc_extend(int kind, uint32_t crc, const uint8_t *data, size_t size) noexcept
    uint32_t crc_of_suffix(int kind, uint32_t prefix, uint32_t whole, uint64_t size) noexcept

cdef extern from "Python.h":
    enum:
        PyBUF_READ

crc_initialize()

cdef enum:
    V2_HEADER_BYTES = 61
    LEGACY_HEADER_BYTES = 18        # all that iterating a file needs to see
    V1_HEADER_BYTES = 26
    LOG_OVERHEAD_BYTES = 12         # offset and size, which the size field does not count
    LEGACY_SIZE_MIN = 14
    V1_SIZE_MIN = 22
    V2_SIZE_MIN = 49

cdef enum:
    CODEC_MASK = 0x07
    TIMESTAMP_TYPE_BIT = 0x08
    TRANSACTIONAL_BIT = 0x10
    CONTROL_BIT = 0x20
    DELETE_HORIZON_BIT = 0x40

cdef enum:
    FAULT_NONE = 0
    MORE_BYTES = 1                  # not a fault: the header is not wholly in the buffer
    FAULT_SIZE_MIN
    FAULT_SIZE_MAX
    FAULT_MAGIC
    FAULT_RECORD_COUNT
    FAULT_LAST_OFFSET_DELTA
    FAULT_OFFSET_RANGE
    FAULT_CRC
    FAULT_VARINT
    FAULT_RECORD_LENGTH
    FAULT_HEADER_COUNT
    FAULT_HEADER_KEY
    FAULT_RECORDS_PREMATURE
    FAULT_RECORDS_REMAINING
    FAULT_LEGACY_LENGTHS
    FAULT_LEGACY_NESTED
    FAULT_LEGACY_EMPTY
    FAULT_LEGACY_RELATIVE
    FAULT_ORDER
    FAULT_OVERFLOW
    FAULT_SEGMENT_SIZE
    FAULT_CONTENTS
    FAULT_MEMORY
    FAULT_CODEC
    FAULT_RECORD_ORDER
    FAULT_RECORD_OFFSET
    FAULT_TIMESTAMP
    FAULT_CONTROL_KEY
    FAULT_EMPTY_LEGACY

FAULT_REASONS = {
    FAULT_SIZE_MIN: "its size is smaller than the smallest batch of its format",
    FAULT_SIZE_MAX: "its size is larger than a segment can be",
    FAULT_MAGIC: "its magic is none of 0, 1 and 2",
    FAULT_RECORD_COUNT: "its record count is negative",
    FAULT_LAST_OFFSET_DELTA: "its last offset delta is negative",
    FAULT_OFFSET_RANGE: "its offsets pass the largest offset there is",
    FAULT_CRC: "its CRC does not match its contents",
    FAULT_VARINT: "a number in its records is longer than its type or runs past the end",
    FAULT_RECORD_LENGTH: "a record's length contradicts its fields",
    FAULT_HEADER_COUNT: "a record's header count is negative or larger than the record",
    FAULT_HEADER_KEY: "a record has a header without a key",
    FAULT_RECORDS_PREMATURE: "its records end before its record count is reached",
    FAULT_RECORDS_REMAINING: "bytes remain after its last record",
    FAULT_LEGACY_LENGTHS: "a message's key and value lengths contradict its size",
    FAULT_LEGACY_NESTED: "a compressed message holds another compressed message",
    FAULT_LEGACY_EMPTY: "a compressed message holds no messages",
    FAULT_LEGACY_RELATIVE: "a compressed message's offset is below that of its last inner message",
    FAULT_ORDER: "its offsets do not follow those of the batch before",
    FAULT_OVERFLOW: "its last offset is too far from the segment's base offset",
    FAULT_SEGMENT_SIZE: "it ends beyond the largest position a segment can have",
    FAULT_CONTENTS: "its contents cannot be decompressed",
    FAULT_MEMORY: "there is not enough memory to check it",
    FAULT_CODEC: "its compression codec does not exist",
    FAULT_RECORD_ORDER: "its records' offsets do not grow",
    FAULT_RECORD_OFFSET: "a record's offset lies outside the batch",
    FAULT_TIMESTAMP: "a record's timestamp is negative",
    FAULT_CONTROL_KEY: "its control record has no valid key",
    FAULT_EMPTY_LEGACY: "a batch of magic 0 or 1 would have to be kept without its records",
}


cdef str fault_reason(int fault):
    return FAULT_REASONS.get(fault, "it is not a batch")


cdef object corrupt(int fault, int64_t position=-1, int64_t base_offset=-1):
    """The exception for a fault; the caller raises it."""
    return CorruptBatchError(fault_reason(fault), position=position, base_offset=base_offset)


# --- big-endian loads and stores --------------------------------------------------------------


cdef inline uint16_t load_u16(const uint8_t *p) noexcept nogil:
    return <uint16_t> ((<uint32_t> p[0] << 8) | p[1])


cdef inline uint32_t load_u32(const uint8_t *p) noexcept nogil:
    return ((<uint32_t> p[0] << 24) | (<uint32_t> p[1] << 16)
            | (<uint32_t> p[2] << 8) | <uint32_t> p[3])


cdef inline uint64_t load_u64(const uint8_t *p) noexcept nogil:
    return (<uint64_t> load_u32(p) << 32) | load_u32(p + 4)


cdef inline int16_t load_i16(const uint8_t *p) noexcept nogil:
    return <int16_t> load_u16(p)


cdef inline int32_t load_i32(const uint8_t *p) noexcept nogil:
    return <int32_t> load_u32(p)


cdef inline int64_t load_i64(const uint8_t *p) noexcept nogil:
    return <int64_t> load_u64(p)


cdef inline void store_i16(uint8_t *p, int16_t value) noexcept nogil:
    cdef uint16_t bits = <uint16_t> value
    p[0] = <uint8_t> (bits >> 8)
    p[1] = <uint8_t> bits


cdef inline void store_i32(uint8_t *p, int32_t value) noexcept nogil:
    cdef uint32_t bits = <uint32_t> value
    p[0] = <uint8_t> (bits >> 24)
    p[1] = <uint8_t> (bits >> 16)
    p[2] = <uint8_t> (bits >> 8)
    p[3] = <uint8_t> bits


cdef inline void store_i64(uint8_t *p, int64_t value) noexcept nogil:
    cdef uint64_t bits = <uint64_t> value
    store_i32(p, <int32_t> (bits >> 32))
    store_i32(p + 4, <int32_t> bits)


# --- variable-length numbers: 7 bits a byte, low group first, zigzag ---------------------------
#
# read_*: from *at, never at or past `end`; on success *at moves behind the number and 1 is
# returned, else 0. As Kafka reads them: at most 5 (10) bytes, the excess bits of the last one are
# dropped, and a longer form than needed is accepted.


cdef inline bint read_varint(const uint8_t *data, Py_ssize_t end, Py_ssize_t *at,
                             int32_t *value) noexcept nogil:
    cdef Py_ssize_t i = at[0]
    cdef uint32_t bits, byte
    cdef int shift
    if i >= end:
        return False
    bits = data[i]
    i += 1
    if bits & 0x80:
        bits &= 0x7F
        shift = 7
        while True:
            if i >= end or shift > 28:
                return False
            byte = data[i]
            i += 1
            bits |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
            shift += 7
    at[0] = i
    value[0] = <int32_t> ((bits >> 1) ^ (0 - (bits & 1)))
    return True


cdef inline bint read_varlong(const uint8_t *data, Py_ssize_t end, Py_ssize_t *at,
                              int64_t *value) noexcept nogil:
    cdef Py_ssize_t i = at[0]
    cdef uint64_t bits, byte
    cdef int shift
    if i >= end:
        return False
    bits = data[i]
    i += 1
    if bits & 0x80:
        bits &= 0x7F
        shift = 7
        while True:
            if i >= end or shift > 63:
                return False
            byte = data[i]
            i += 1
            bits |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
            shift += 7
    at[0] = i
    value[0] = <int64_t> ((bits >> 1) ^ (0 - (bits & 1)))
    return True


cdef inline int varint_size(int32_t value) noexcept nogil:
    cdef uint32_t bits = (<uint32_t> value << 1) ^ <uint32_t> (value >> 31)
    cdef int size = 1
    while bits > 0x7F:
        bits >>= 7
        size += 1
    return size


cdef inline int varlong_size(int64_t value) noexcept nogil:
    cdef uint64_t bits = (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)
    cdef int size = 1
    while bits > 0x7F:
        bits >>= 7
        size += 1
    return size


cdef inline uint8_t *write_varint(uint8_t *p, int32_t value) noexcept nogil:
    """Write the shortest form (at most 5 bytes) and return the place behind it."""
    cdef uint32_t bits = (<uint32_t> value << 1) ^ <uint32_t> (value >> 31)
    while bits > 0x7F:
        p[0] = <uint8_t> (bits | 0x80)
        p += 1
        bits >>= 7
    p[0] = <uint8_t> bits
    return p + 1


cdef inline uint8_t *write_varlong(uint8_t *p, int64_t value) noexcept nogil:
    """Write the shortest form (at most 10 bytes) and return the place behind it."""
    cdef uint64_t bits = (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)
    while bits > 0x7F:
        p[0] = <uint8_t> (bits | 0x80)
        p += 1
        bits >>= 7
    p[0] = <uint8_t> bits
    return p + 1


# --- growing scratch memory, usable without the GIL --------------------------------------------


cdef struct Scratch:
    uint8_t *data
    Py_ssize_t used
    Py_ssize_t capacity


cdef inline uint8_t *scratch_room(Scratch *scratch, Py_ssize_t size) noexcept nogil:
    """A place for `size` more bytes, counted as used; NULL when there is no memory."""
    cdef Py_ssize_t capacity
    cdef uint8_t *data
    if scratch.capacity - scratch.used < size:
        capacity = max(2 * scratch.capacity, scratch.used + size, <Py_ssize_t> 1024)
        data = <uint8_t *> realloc(scratch.data, <size_t> capacity)
        if data == NULL:
            return NULL
        scratch.data = data
        scratch.capacity = capacity
    data = scratch.data + scratch.used
    scratch.used += size
    return data


cdef inline void scratch_free(Scratch *scratch) noexcept nogil:
    free(scratch.data)
    scratch.data = NULL
    scratch.used = 0
    scratch.capacity = 0
