# Which records a scan keeps: by timestamp, and by key.
#
# Keys are kept sorted by size and then by their bytes, one after the other in one piece of memory,
# so that a record's key is found by halving, however many there are.

from libc.string cimport memcmp

cdef struct RowFilter:
    bint is_set
    int64_t min_timestamp_ms        # both ends are kept
    int64_t max_timestamp_ms
    bint has_keys
    Py_ssize_t key_count
    Py_ssize_t *key_starts          # one more than there are keys
    uint8_t *key_bytes


cdef int compare_key(const RowFilter *wanted, Py_ssize_t which, const uint8_t *key,
                     Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t start = wanted.key_starts[which]
    cdef Py_ssize_t wanted_size = wanted.key_starts[which + 1] - start
    if wanted_size != size:
        return -1 if wanted_size < size else 1
    if size == 0:
        return 0
    return memcmp(wanted.key_bytes + start, key, <size_t> size)


cdef bint has_key(const RowFilter *wanted, const uint8_t *key, int32_t size) noexcept nogil:
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = wanted.key_count
    cdef Py_ssize_t middle
    cdef int order
    if size < 0:
        return False
    while low < high:
        middle = (low + high) >> 1
        order = compare_key(wanted, middle, key, size)
        if order == 0:
            return True
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return False


cdef inline bint keeps_row(const RowFilter *wanted, const uint8_t *key, int32_t key_size,
                           int64_t timestamp_ms) noexcept nogil:
    if timestamp_ms < wanted.min_timestamp_ms or timestamp_ms > wanted.max_timestamp_ms:
        return False
    return not wanted.has_keys or has_key(wanted, key, key_size)


cdef inline bint may_keep_batch(const RowFilter *wanted, const Header *h) noexcept nogil:
    """Whether a batch can hold a record that is kept. The maximum of a batch of magic 0 or 1 was
    not always checked by those who wrote it, so only that of v2 is believed."""
    return h.magic < 2 or h.max_timestamp_ms >= wanted.min_timestamp_ms


cdef int set_keys(RowFilter *wanted, keys) except -1:
    cdef Py_ssize_t i, total = 0
    cdef bytes key
    ordered = sorted(keys, key=lambda key: (len(key), key))
    for key in ordered:
        total += len(key)
    wanted.key_starts = <Py_ssize_t *> malloc(sizeof(Py_ssize_t) * <size_t> (len(ordered) + 1))
    wanted.key_bytes = <uint8_t *> malloc(<size_t> max(total, 1))
    if wanted.key_starts == NULL or wanted.key_bytes == NULL:
        raise MemoryError
    total = 0
    for i in range(len(ordered)):
        key = ordered[i]
        wanted.key_starts[i] = total
        memcpy(wanted.key_bytes + total, PyBytes_AS_STRING(key), <size_t> PyBytes_GET_SIZE(key))
        total += PyBytes_GET_SIZE(key)
    wanted.key_starts[len(ordered)] = total
    wanted.key_count = len(ordered)
    wanted.has_keys = wanted.is_set = True
    return 0


cdef void free_filter(RowFilter *wanted) noexcept nogil:
    free(wanted.key_starts)
    free(wanted.key_bytes)
