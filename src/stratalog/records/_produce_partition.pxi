# Which partition a row goes to: Kafka's own default partitioner.
#
# A key goes by murmur2, for all time and every client; rows without one stay with a partition
# chosen at random until they are enough for a batch. Chance comes from a seed, so that who does
# the work again gets the same batches.

cdef enum:
    MURMUR2_SEED = 0x9747B28C
    MURMUR2_FACTOR = 0x5BD1E995


cdef inline uint32_t murmur2_of(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t hash = <uint32_t> MURMUR2_SEED ^ <uint32_t> size
    cdef uint32_t word
    while size >= 4:
        word = load_le_u32(data) * <uint32_t> MURMUR2_FACTOR
        word ^= word >> 24
        hash = (hash * <uint32_t> MURMUR2_FACTOR) ^ (word * <uint32_t> MURMUR2_FACTOR)
        data += 4
        size -= 4
    if size:
        if size == 3:
            hash ^= <uint32_t> data[2] << 16
        if size >= 2:
            hash ^= <uint32_t> data[1] << 8
        hash = (hash ^ data[0]) * <uint32_t> MURMUR2_FACTOR
    hash = (hash ^ (hash >> 13)) * <uint32_t> MURMUR2_FACTOR
    return hash ^ (hash >> 15)


def murmur2(key):
    cdef Py_buffer view
    PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
    try:
        return <int32_t> murmur2_of(<const uint8_t *> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


@cython.final
cdef class RowPartitioner:
    """Partitions of rows; where rows without a key go follows from the seed and all rows before."""

    cdef int32_t partitions
    cdef int64_t run_bytes
    cdef int64_t run_left           # bytes that still go to the partition of this run
    cdef uint64_t state
    cdef int32_t current
    cdef int64_t rows_before

    def __cinit__(self, int32_t partitions, *, uint64_t seed, int64_t run_bytes):
        if partitions < 1 or run_bytes < 1:
            raise ValueError(f"{partitions} partitions, runs of {run_bytes} bytes")
        self.partitions = partitions
        self.run_bytes = run_bytes
        self.state = seed

    def assign(self, RowColumn keys, RowColumn values not None, RowColumn given):
        """A partition for each row, as memory of int32: the one that `given` names, or that of the
        key, or that of the run."""
        cdef Scratch found = Scratch(NULL, 0, 0)
        cdef Py_ssize_t index = 0
        cdef int fault
        require(keys, True)
        require(values, True)
        require(given, False)
        for column in (keys, given):
            if column is not None and (<RowColumn> column).rows != values.rows:
                raise ValueError(f"columns of {column.rows} and {values.rows} rows")
        if scratch_room(&found, max(4 * values.rows, <Py_ssize_t> 4)) == NULL:
            raise MemoryError
        found.used = 4 * values.rows
        with nogil:
            fault = self.assign_rows(keys, values, given, <int32_t *> found.data, &index)
        if fault:
            scratch_free(&found)
            raise InvalidRowError(self.rows_before + index, *ROW_FAULTS[fault])
        self.rows_before += values.rows
        return take_memory(&found)

    cdef int assign_rows(self, RowColumn keys, RowColumn values, RowColumn given,
                         int32_t *found, Py_ssize_t *index) noexcept nogil:
        cdef Field key, value
        cdef int64_t partition
        cdef Py_ssize_t i
        key.size = -1
        for i in range(values.rows):
            index[0] = i
            if given is not None and not is_null(given, i):
                partition = number_of(given, i)
                if not 0 <= partition < self.partitions:
                    return ROW_PARTITION
                found[i] = <int32_t> partition
                continue
            if keys is not None and not read_field(keys, i, &key):
                return ROW_BROKEN_KEY
            if key.size >= 0:
                found[i] = <int32_t> (
                    (murmur2_of(key.data, key.size) & 0x7FFFFFFF) % <uint32_t> self.partitions
                )
                continue
            if not read_field(values, i, &value):
                return ROW_BROKEN_VALUE
            found[i] = self.sticky(value.size)
        return ROW_TAKEN

    cdef int32_t sticky(self, Py_ssize_t value_size) noexcept nogil:
        """Records that have no key move on together, when they are enough for a batch."""
        if self.run_left <= 0:
            self.run_left = self.run_bytes
            self.current = <int32_t> (self.chance() % <uint64_t> self.partitions)
        # About what a record takes beside its value: length, deltas, and no key.
        self.run_left -= max(value_size, <Py_ssize_t> 0) + 8
        return self.current

    cdef uint64_t chance(self) noexcept nogil:
        """SplitMix64: every seed is a good one."""
        cdef uint64_t bits
        self.state += <uint64_t> 0x9E3779B97F4A7C15
        bits = self.state
        bits = (bits ^ (bits >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
        bits = (bits ^ (bits >> 27)) * <uint64_t> 0x94D049BB133111EB
        return bits ^ (bits >> 31)
