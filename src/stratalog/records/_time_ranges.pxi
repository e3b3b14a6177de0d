# The smallest and largest timestamps of runs of batches, and which runs a span of time meets.
#
# A header tells the largest timestamp of its batch, nothing tells the smallest: deltas may be
# negative, so that only the records know. A timestamp here is the one that readers see.

cdef enum:
    TIME_COLUMN_BYTES = 8
    GROUP_RANGES = 128              # so many wait for each other: some 2 MiB of log


cdef struct TimeRange:
    int64_t position
    int64_t min_ms
    int64_t max_ms


cdef inline void clear_range(TimeRange *r, int64_t position) noexcept nogil:
    """A range without records: its minimum is above its maximum, so that it meets nothing."""
    r.position = position
    r.min_ms = INT64_MAX
    r.max_ms = INT64_MIN


cdef inline void widen_range(TimeRange *r, int64_t min_ms, int64_t max_ms) noexcept nogil:
    if min_ms < r.min_ms:
        r.min_ms = min_ms
    if max_ms > r.max_ms:
        r.max_ms = max_ms


cdef int add_range(Scratch *ranges, const TimeRange *r) except -1 nogil:
    cdef uint8_t *room = scratch_room(ranges, sizeof(TimeRange))
    if room == NULL:
        raise MemoryError
    memcpy(room, r, sizeof(TimeRange))
    return 0


cdef tuple range_columns(const Scratch *ranges):
    """Positions, smallest and largest timestamps, each as bytes of signed 64-bit numbers."""
    cdef const TimeRange *done = <const TimeRange *> ranges.data
    cdef Py_ssize_t count = ranges.used // <Py_ssize_t> sizeof(TimeRange)
    cdef bytearray positions = bytearray(count * TIME_COLUMN_BYTES)
    cdef bytearray minima = bytearray(count * TIME_COLUMN_BYTES)
    cdef bytearray maxima = bytearray(count * TIME_COLUMN_BYTES)
    cdef int64_t *position = <int64_t *> PyByteArray_AS_STRING(positions)
    cdef int64_t *minimum = <int64_t *> PyByteArray_AS_STRING(minima)
    cdef int64_t *maximum = <int64_t *> PyByteArray_AS_STRING(maxima)
    cdef Py_ssize_t i
    for i in range(count):
        position[i] = done[i].position
        minimum[i] = done[i].min_ms
        maximum[i] = done[i].max_ms
    return positions, minima, maxima


cdef class TimeRangeGather:
    """The time ranges of batches that are being appended; whoever inherits writes them."""

    cdef readonly int64_t range_bytes
    cdef readonly int64_t end
    cdef readonly int64_t last_position
    cdef readonly int64_t last_offset
    cdef readonly unsigned int last_crc
    cdef TimeRange current
    cdef Scratch ranges

    def __dealloc__(self):
        scratch_free(&self.ranges)

    @property
    def waiting(self):
        return self.ranges.used // <Py_ssize_t> sizeof(TimeRange)

    @property
    def gathered_end(self):
        return self.current.position

    def restart(self, int64_t position, int64_t range_bytes):
        self.range_bytes = range_bytes
        self.end = position
        self.ranges.used = 0
        self.last_position = self.last_offset = -1
        self.last_crc = 0
        clear_range(&self.current, position)

    def add(self, int64_t end, batches, int64_t min_ms):
        cdef BatchHeader batch = None
        for batch in batches:
            widen_range(&self.current, min_ms, batch.max_timestamp_ms)
        if batch is None:
            raise ValueError("no batch was appended")
        if min_ms == INT64_MIN:
            self.current.max_ms = INT64_MAX
        self.end = end
        self.last_position = end - batch.size_bytes
        self.last_offset = batch.last_offset
        self.last_crc = batch.crc
        if end - self.current.position < self.range_bytes:
            return False
        self.end_range()
        return self.ranges.used >= GROUP_RANGES * <Py_ssize_t> sizeof(TimeRange)

    def end_range(self):
        if self.end > self.current.position:
            add_range(&self.ranges, &self.current)
            clear_range(&self.current, self.end)

    def columns(self):
        return range_columns(&self.ranges)

    def forget(self):
        self.ranges.used = 0


@cython.final
cdef class TimeRangeScan(BatchWalk):
    """The time ranges of a segment's batches, fed from its start."""

    cdef readonly int64_t range_bytes
    cdef readonly int64_t covered_bytes
    cdef readonly int64_t last_position
    cdef readonly int64_t last_offset
    cdef readonly unsigned int last_crc
    cdef bint check_crc
    cdef TimeRange current
    cdef Scratch ranges

    def __cinit__(self, int64_t range_bytes, bint check_crc=True):
        if range_bytes <= 0:
            raise ValueError(f"ranges of {range_bytes} bytes")
        self.range_bytes = range_bytes
        self.check_crc = check_crc
        self.last_position = -1
        clear_range(&self.current, 0)

    def __dealloc__(self):
        scratch_free(&self.ranges)

    def feed(self, buffer, int64_t position):
        if position != self.covered_bytes:
            raise ValueError(f"byte {position} does not follow {self.covered_bytes}")
        return self.walk(buffer, position)

    def finish(self):
        if self.covered_bytes > self.current.position:
            add_range(&self.ranges, &self.current)
            clear_range(&self.current, self.covered_bytes)
        return range_columns(&self.ranges)

    cdef bint is_trusted(self, const Header *h) noexcept nogil:
        return not self.check_crc

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        if h.position - self.current.position >= self.range_bytes:
            add_range(&self.ranges, &self.current)
            clear_range(&self.current, h.position)
        if h.magic == 2 and h.attributes & TIMESTAMP_TYPE_BIT:
            if h.record_count > 0:
                widen_range(&self.current, h.max_timestamp_ms, h.max_timestamp_ms)
            return WALK_SKIP
        return WALK_READ

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        widen_range(&self.current, r.timestamp_ms, r.timestamp_ms)
        return 0

    cdef int end_batch(self, const Header *h) except -1 nogil:
        self.last_position = h.position
        self.last_offset = h.last_offset
        self.last_crc = h.crc
        self.covered_bytes = h.position + h.size_bytes
        return 0


cdef int64_t records_min_ms(const uint8_t *p, const Header *h, int64_t min_ms) noexcept nogil:
    """The smallest timestamp of an uncompressed batch's records, if it is below `min_ms`;
    INT64_MIN if it is unknown."""
    cdef RecordView record
    cdef Py_ssize_t at = V2_HEADER_BYTES
    cdef int64_t timestamp_ms
    cdef int32_t i
    for i in range(h.record_count):
        if parse_record(p, <Py_ssize_t> h.size_bytes, &at, &record):
            return INT64_MIN
        timestamp_ms = record_timestamp(h, &record)
        # A header that tells too little cannot be asked for the largest.
        if timestamp_ms > h.max_timestamp_ms:
            return INT64_MIN
        if timestamp_ms < min_ms:
            min_ms = timestamp_ms
    return min_ms


cdef int64_t batch_min_ms(const uint8_t *p, const Header *h, int64_t min_ms) noexcept nogil:
    """The smallest timestamp of a batch, if it is below `min_ms`; INT64_MIN if it is unknown."""
    if h.magic < 2:
        # Inside a compressed message there may be any.
        if h.attributes & CODEC_MASK:
            return INT64_MIN
        return min(min_ms, h.max_timestamp_ms)
    if h.record_count == 0:
        return min_ms
    if h.attributes & TIMESTAMP_TYPE_BIT:
        return min(min_ms, h.max_timestamp_ms)
    if h.attributes & CODEC_MASK:
        return INT64_MIN
    return records_min_ms(p, h, min_ms)


def min_timestamp(buffer):
    cdef Py_buffer view
    cdef Header h
    cdef Py_ssize_t at = 0
    cdef const uint8_t *data
    cdef int64_t min_ms = INT64_MAX
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *> view.buf
        with nogil:
            while at < view.len and min_ms != INT64_MIN:
                if (parse_header(data + at, view.len - at, at, &h) != FAULT_NONE
                        or h.size_bytes > view.len - at):
                    min_ms = INT64_MIN
                    break
                min_ms = batch_min_ms(data + at, &h, min_ms)
                at += <Py_ssize_t> h.size_bytes
    finally:
        PyBuffer_Release(&view)
    return min_ms


cdef list overlapping(const int64_t *position, const int64_t *minimum, const int64_t *maximum,
                      Py_ssize_t count, int64_t covered, int64_t min_ms, int64_t max_ms,
                      int64_t start, int64_t end):
    cdef list found = []
    cdef int64_t begin = -1         # of the run that is being gathered; -1: none
    cdef int64_t until = -1
    cdef int64_t low, high
    cdef Py_ssize_t i
    for i in range(count + 1):
        low = max(position[i] if i < count else covered, start)
        high = end
        if i < count:
            high = min(position[i + 1] if i + 1 < count else covered, end)
            if minimum[i] > max_ms or maximum[i] < min_ms:
                continue
        if low >= high:
            continue
        if begin >= 0 and low == until:
            until = high
            continue
        if begin >= 0:
            found.append((begin, until))
        begin, until = low, high
    if begin >= 0:
        found.append((begin, until))
    return found


def overlapping_ranges(positions, minima, maxima, int64_t covered, int64_t min_ms, int64_t max_ms,
                       int64_t start, int64_t end):
    cdef Py_buffer position, minimum, maximum
    PyObject_GetBuffer(positions, &position, PyBUF_SIMPLE)
    PyObject_GetBuffer(minima, &minimum, PyBUF_SIMPLE)
    PyObject_GetBuffer(maxima, &maximum, PyBUF_SIMPLE)
    try:
        if position.len != minimum.len or position.len != maximum.len:
            raise ValueError("columns of different lengths")
        return overlapping(
            <const int64_t *> position.buf, <const int64_t *> minimum.buf,
            <const int64_t *> maximum.buf, position.len // TIME_COLUMN_BYTES, covered, min_ms,
            max_ms, start, end,
        )
    finally:
        PyBuffer_Release(&position)
        PyBuffer_Release(&minimum)
        PyBuffer_Release(&maximum)
