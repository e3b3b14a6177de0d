# What the codecs need and Python has not: xxHash-32, and memory nobody writes zeros into first.

cdef extern from "Python.h":
    object PyByteArray_FromStringAndSize(const char *, Py_ssize_t)

cdef enum:
    XXH_PRIME_1 = 0x9E3779B1
    XXH_PRIME_2 = 0x85EBCA77
    XXH_PRIME_3 = 0xC2B2AE3D
    XXH_PRIME_4 = 0x27D4EB2F
    XXH_PRIME_5 = 0x165667B1


cdef inline uint32_t rotate_left(uint32_t bits, int count) noexcept nogil:
    return (bits << count) | (bits >> (32 - count))


cdef inline uint32_t load_le_u32(const uint8_t *p) noexcept nogil:
    return (<uint32_t> p[0] | (<uint32_t> p[1] << 8)
            | (<uint32_t> p[2] << 16) | (<uint32_t> p[3] << 24))


cdef inline uint32_t xxh_round(uint32_t lane, uint32_t word) noexcept nogil:
    return rotate_left(lane + word * <uint32_t> XXH_PRIME_2, 13) * <uint32_t> XXH_PRIME_1


cdef uint32_t xxh32_of(const uint8_t *p, Py_ssize_t size) noexcept nogil:
    cdef const uint8_t *end = p + size
    cdef uint32_t lanes[4]
    cdef uint32_t bits
    cdef int i
    if size >= 16:
        lanes[0] = <uint32_t> XXH_PRIME_1 + <uint32_t> XXH_PRIME_2
        lanes[1] = <uint32_t> XXH_PRIME_2
        lanes[2] = 0
        lanes[3] = 0 - <uint32_t> XXH_PRIME_1
        while end - p >= 16:
            for i in range(4):
                lanes[i] = xxh_round(lanes[i], load_le_u32(p + 4 * i))
            p += 16
        bits = (rotate_left(lanes[0], 1) + rotate_left(lanes[1], 7)
                + rotate_left(lanes[2], 12) + rotate_left(lanes[3], 18))
    else:
        bits = <uint32_t> XXH_PRIME_5
    bits += <uint32_t> size
    while end - p >= 4:
        bits = rotate_left(bits + load_le_u32(p) * <uint32_t> XXH_PRIME_3, 17)
        bits *= <uint32_t> XXH_PRIME_4
        p += 4
    while p < end:
        bits = rotate_left(bits + p[0] * <uint32_t> XXH_PRIME_5, 11) * <uint32_t> XXH_PRIME_1
        p += 1
    bits = (bits ^ (bits >> 15)) * <uint32_t> XXH_PRIME_2
    bits = (bits ^ (bits >> 13)) * <uint32_t> XXH_PRIME_3
    return bits ^ (bits >> 16)


def xxh32(buffer):
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        return xxh32_of(<const uint8_t *> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def uninitialized(Py_ssize_t size_bytes):
    if size_bytes < 0:
        raise ValueError(f"{size_bytes} bytes")
    return PyByteArray_FromStringAndSize(NULL, size_bytes)
