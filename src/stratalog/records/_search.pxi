# Binary search in the offset index and the time index, on any buffer that holds their bytes.
#
#   offset index entry, 8 bytes    relativeOffset i32, position i32
#   time index entry, 12 bytes     timestamp i64, relativeOffset i32
#
# Both searches and appends of a live log happen near the end of an index, so the last 8 KiB are
# searched first: those pages stay in memory while a search that began in the middle would touch
# cold ones. The answer is that of a plain search. A garbled index gives a wrong slot, never a
# read outside the buffer.

cdef enum:
    OFFSET_ENTRY_BYTES = 8
    TIME_ENTRY_BYTES = 12
    WARM_BYTES = 8192

cdef enum:
    BY_OFFSET_INDEX_OFFSET
    BY_OFFSET_INDEX_POSITION
    BY_TIME_INDEX_TIMESTAMP
    BY_TIME_INDEX_OFFSET


cdef inline int64_t entry_key(const uint8_t *data, Py_ssize_t slot, int by) noexcept nogil:
    if by == BY_OFFSET_INDEX_OFFSET:
        return load_i32(data + slot * OFFSET_ENTRY_BYTES)
    if by == BY_OFFSET_INDEX_POSITION:
        return load_i32(data + slot * OFFSET_ENTRY_BYTES + 4)
    if by == BY_TIME_INDEX_TIMESTAMP:
        return load_i64(data + slot * TIME_ENTRY_BYTES)
    return load_i32(data + slot * TIME_ENTRY_BYTES + 8)


cdef Py_ssize_t search_entries(const uint8_t *data, Py_ssize_t entries, int64_t target, int by,
                               bint *exact) noexcept nogil:
    """The slot of the largest entry <= target, or -1; `exact` if a probe met the target itself."""
    cdef Py_ssize_t entry_bytes, low, high, middle, first_warm
    cdef int64_t key
    exact[0] = False
    if entries == 0:
        return -1
    entry_bytes = OFFSET_ENTRY_BYTES if by <= BY_OFFSET_INDEX_POSITION else TIME_ENTRY_BYTES
    first_warm = max(<Py_ssize_t> 0, entries - 1 - WARM_BYTES // entry_bytes)
    if entry_key(data, first_warm, by) < target:
        low, high = first_warm, entries - 1
    elif entry_key(data, 0, by) > target:
        return -1
    else:
        low, high = 0, first_warm
    while low < high:
        middle = (low + high + 1) >> 1
        key = entry_key(data, middle, by)
        if key > target:
            high = middle - 1
        elif key < target:
            low = middle
        else:
            exact[0] = True
            return middle
    return low


cdef Py_ssize_t search_buffer(buffer, Py_ssize_t entries, int64_t target, int by,
                              bint *exact) except -2:
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        check_entries(
            view.len, entries, OFFSET_ENTRY_BYTES if by <= BY_OFFSET_INDEX_POSITION
            else TIME_ENTRY_BYTES
        )
        return search_entries(<const uint8_t *> view.buf, entries, target, by, exact)
    finally:
        PyBuffer_Release(&view)


cdef int check_entries(Py_ssize_t size, Py_ssize_t entries, Py_ssize_t entry_bytes) except -1:
    if entries < 0 or entries > size // entry_bytes:
        raise ValueError(f"{entries} entries of {entry_bytes} bytes in a buffer of {size}")
    return 0


def search_offset_index(buffer, Py_ssize_t entries, int64_t relative_offset):
    cdef bint exact
    return search_buffer(buffer, entries, relative_offset, BY_OFFSET_INDEX_OFFSET, &exact)


def search_time_index(buffer, Py_ssize_t entries, int64_t timestamp_ms):
    cdef bint exact
    return search_buffer(buffer, entries, timestamp_ms, BY_TIME_INDEX_TIMESTAMP, &exact)


def search_time_index_by_offset(buffer, Py_ssize_t entries, int64_t relative_offset):
    cdef bint exact
    return search_buffer(buffer, entries, relative_offset, BY_TIME_INDEX_OFFSET, &exact)


def upper_bound_by_position(buffer, Py_ssize_t entries, int64_t position):
    cdef bint exact
    cdef Py_ssize_t slot
    slot = search_buffer(buffer, entries, position, BY_OFFSET_INDEX_POSITION, &exact)
    if exact:
        return slot
    # The search never probes slot 0 for equality, so a target that is exactly there yields slot
    # 1: Kafka answers the same, and an upper bound may be too wide.
    return slot + 1 if slot + 1 < entries else -1


cdef tuple read_entry(buffer, Py_ssize_t slot, Py_ssize_t entry_bytes):
    cdef Py_buffer view
    cdef const uint8_t *p
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if slot < 0 or slot >= view.len // entry_bytes:
            raise IndexError(f"slot {slot} of an index of {view.len // entry_bytes} entries")
        p = <const uint8_t *> view.buf + slot * entry_bytes
        if entry_bytes == OFFSET_ENTRY_BYTES:
            return load_i32(p), load_i32(p + 4)
        return load_i64(p), load_i32(p + 8)
    finally:
        PyBuffer_Release(&view)


def offset_entry(buffer, Py_ssize_t slot):
    return read_entry(buffer, slot, OFFSET_ENTRY_BYTES)


def time_entry(buffer, Py_ssize_t slot):
    return read_entry(buffer, slot, TIME_ENTRY_BYTES)
