# Find the next valid batch after damage, trying every byte.
#
# What decides is the CRC, and damaged or hostile bytes can hold a plausible header at every byte,
# each claiming megabytes. So the CRCs of the first candidates are taken directly, and once that
# has cost as much as reading the buffer a few times, the rest come from the CRCs of prefixes,
# kept every 4 KiB: each then costs at most two partial intervals and a shift, however large the
# batch claims to be. The search is exact and takes time linear in the buffer; it never gives up,
# because what it does not find may be cut off.

cdef enum:
    PREFIX_INTERVAL_BYTES = 4096
    DIRECT_CRC_FACTOR = 4


cdef struct Prefixes:
    const uint8_t *data
    Py_ssize_t size
    uint32_t *crcs                  # of data[: i * PREFIX_INTERVAL_BYTES]
    int kind


cdef bint make_prefixes(Prefixes *prefixes) noexcept nogil:
    cdef Py_ssize_t count = prefixes.size // PREFIX_INTERVAL_BYTES + 1
    cdef Py_ssize_t i
    prefixes.crcs = <uint32_t *> malloc(<size_t> count * sizeof(uint32_t))
    if prefixes.crcs == NULL:
        return False
    prefixes.crcs[0] = 0
    for i in range(1, count):
        prefixes.crcs[i] = crc_extend(
            prefixes.kind, prefixes.crcs[i - 1],
            prefixes.data + (i - 1) * PREFIX_INTERVAL_BYTES, PREFIX_INTERVAL_BYTES,
        )
    return True


cdef uint32_t prefix_crc(const Prefixes *prefixes, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i = end // PREFIX_INTERVAL_BYTES
    return crc_extend(
        prefixes.kind, prefixes.crcs[i], prefixes.data + i * PREFIX_INTERVAL_BYTES,
        <size_t> (end - i * PREFIX_INTERVAL_BYTES),
    )


cdef int crc_matches(Prefixes *prefixes, Py_ssize_t at, const Header *h,
                     int64_t *direct_bytes) noexcept nogil:
    """1 if the batch at `at` carries the CRC of its contents, 0 if not, -1 without memory."""
    cdef Py_ssize_t start = at + (21 if h.magic == 2 else 16)
    cdef Py_ssize_t end = at + <Py_ssize_t> h.size_bytes
    if h.size_bytes <= direct_bytes[0]:
        direct_bytes[0] -= h.size_bytes
        return batch_crc(prefixes.data + at, h) == h.crc
    direct_bytes[0] = 0
    if prefixes.crcs == NULL and not make_prefixes(prefixes):
        return -1
    return h.crc == crc_of_suffix(
        prefixes.kind, prefix_crc(prefixes, start), prefix_crc(prefixes, end),
        <uint64_t> (end - start),
    )


cdef inline bint looks_like_batch(const uint8_t *p, Py_ssize_t available, int64_t offset_min,
                                  int64_t offset_max, Header *h) noexcept nogil:
    cdef uint32_t size
    cdef int64_t offset
    if p[16] > 2:
        return False
    size = load_u32(p + 8)
    if size < LEGACY_SIZE_MIN or size > available - LOG_OVERHEAD_BYTES:
        return False
    offset = load_i64(p)
    if offset < offset_min or offset > offset_max:
        return False
    return parse_header(p, available, 0, h) == FAULT_NONE


cdef Py_ssize_t search_batch(const uint8_t *data, Py_ssize_t size, Py_ssize_t start,
                             int64_t offset_min, int64_t offset_max) noexcept nogil:
    cdef Prefixes castagnoli = Prefixes(data, size, NULL, CRC_CASTAGNOLI)
    cdef Prefixes ieee = Prefixes(data, size, NULL, CRC_IEEE)
    cdef int64_t direct_bytes = DIRECT_CRC_FACTOR * <int64_t> size
    cdef Py_ssize_t at = start
    cdef Py_ssize_t found = -1
    cdef Header h
    cdef int matches = 0
    while found == -1 and at <= size - LOG_OVERHEAD_BYTES - LEGACY_SIZE_MIN:
        if looks_like_batch(data + at, size - at, offset_min, offset_max, &h):
            matches = crc_matches(
                &castagnoli if h.magic == 2 else &ieee, at, &h, &direct_bytes
            )
            if matches == -1:
                found = -2
            elif matches:
                found = at
        at += 1
    free(castagnoli.crcs)
    free(ieee.crcs)
    return found


def find_valid_batch(buffer, Py_ssize_t start, int64_t position, int64_t min_base_offset,
                     int64_t max_base_offset):
    cdef Py_buffer view
    cdef Py_ssize_t found, size
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if start < 0 or position < 0:
            raise ValueError(f"a search from byte {start} of a buffer at position {position}")
        # No batch of a segment ends beyond the largest position that an index can hold.
        size = <Py_ssize_t> max(<int64_t> 0, min(<int64_t> view.len, INT32_MAX - position))
        with nogil:
            found = search_batch(
                <const uint8_t *> view.buf, size, start, min_base_offset, max_base_offset
            )
    finally:
        PyBuffer_Release(&view)
    if found == -2:
        raise MemoryError
    return found
