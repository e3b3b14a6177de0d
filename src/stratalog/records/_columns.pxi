# Records to columns: what a scan returns, with no Python object per record.
#
# Columns grow as batches are added and are handed over without a copy. All that follows from a
# batch's bytes runs with the GIL released; only compressed batches and messages of magic 0 and 1
# come back to Python, to be decompressed.

include "_table.pxi"

cdef enum:
    RUN_STOPPED = -1                # end of the buffer, of the offsets, or enough rows
    RUN_NEEDS_PYTHON = -2           # the batch at `at` has to be decompressed first


# --- runs of batches ---------------------------------------------------------------------------


cdef bint is_aborted(const Table *table, const Header *h) noexcept nogil:
    """Whether the batch belongs to a transaction that was aborted."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = table.aborted_count
    cdef Py_ssize_t middle
    if not h.attributes & TRANSACTIONAL_BIT:
        return False
    while low < high:
        middle = (low + high) >> 1
        if table.aborted[middle].producer_id < h.producer_id:
            low = middle + 1
        else:
            high = middle
    while low < table.aborted_count and table.aborted[low].producer_id == h.producer_id:
        if table.aborted[low].first_offset <= h.base_offset <= table.aborted[low].last_offset:
            return True
        low += 1
    return False


cdef inline bint is_wanted(const Table *table, const Header *h) noexcept nogil:
    if h.last_offset < table.start_offset:
        return False
    if h.magic == 2:
        if h.attributes & CONTROL_BIT and not table.include_control:
            return False
        if table.aborted_count and not h.attributes & CONTROL_BIT and is_aborted(table, h):
            return False
    return True


cdef inline bint is_full(Table *table, int64_t more) noexcept nogil:
    """Whether a batch of `more` bytes would be too many; the first one always fits."""
    if table.decoded_bytes == 0:
        return False
    table.full = table.decoded_bytes + more > table.target_bytes
    return table.full


cdef int add_run(Table *table, const uint8_t *data, Py_ssize_t size, int64_t position,
                 Py_ssize_t *at, Header *h) noexcept nogil:
    """Add batches from *at on until there is a reason to stop: RUN_* or a fault in `h`."""
    cdef int fault
    cdef Py_ssize_t body_size
    while True:
        fault = parse_header(data + at[0], size - at[0], position + at[0], h)
        if fault == MORE_BYTES:
            return RUN_STOPPED
        if fault:
            return fault
        if h.size_bytes > size - at[0] or h.base_offset >= table.end_offset:
            return RUN_STOPPED
        if is_wanted(table, h):
            if is_full(table, h.size_bytes):
                return RUN_STOPPED
            if table.check_crc and batch_crc(data + at[0], h) != h.crc:
                return FAULT_CRC
            if h.magic < 2 or h.attributes & CODEC_MASK:
                return RUN_NEEDS_PYTHON
            body_size = <Py_ssize_t> (h.size_bytes - V2_HEADER_BYTES)
            fault = add_records(table, data + at[0] + V2_HEADER_BYTES, body_size, h)
            if fault:
                return fault
        at[0] += <Py_ssize_t> h.size_bytes


@cython.final
cdef class Memory:
    """Memory that a column was built in; freed when the last view of it goes."""

    cdef uint8_t *data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, True, flags)


cdef extern from "Python.h":
    int PyBuffer_FillInfo(Py_buffer *, object, void *, Py_ssize_t, int, int) except -1


cdef Memory take_memory(Scratch *scratch):
    """Hand the memory over, without what was reserved and not used; the scratch starts anew."""
    cdef Memory memory = Memory.__new__(Memory)
    cdef uint8_t *data = NULL
    if scratch.used:
        data = <uint8_t *> realloc(scratch.data, <size_t> scratch.used)
    # Never NULL, which Arrow takes for no buffer at all; shrinking does not fail in practice.
    if data == NULL:
        data = scratch.data if scratch.data != NULL else <uint8_t *> malloc(8)
    memory.data = data
    memory.size = scratch.used
    scratch.data = NULL
    scratch.used = scratch.capacity = 0
    return memory


cdef object column_fault(int fault, const Header *h):
    if fault == FAULT_MEMORY:
        return MemoryError(f"no room for the columns of a batch at position {h.position}")
    return corrupt(fault, h.position, h.base_offset)


@cython.final
cdef class ColumnDecoder:
    """Takes bytes of a log and gives the wanted columns of their records, some batches at a time.

    One decoder is for one thread."""

    cdef Table table

    def __cinit__(self, uint32_t wanted, *, int64_t start_offset, int64_t end_offset,
                  bint check_crc=True, bint include_control=False,
                  int64_t target_bytes=INT32_MAX, aborted=()):
        cdef Py_ssize_t i
        memset(&self.table, 0, sizeof(Table))
        self.table.wanted = wanted
        self.table.start_offset = start_offset
        self.table.end_offset = end_offset
        self.table.check_crc = check_crc
        self.table.include_control = include_control
        # Below 2 GiB, so that Arrow's four-byte offsets suffice.
        self.table.target_bytes = min(target_bytes, <int64_t> INT32_MAX)
        ranges = sorted(aborted)
        self.table.aborted = <AbortedRange *> malloc(
            sizeof(AbortedRange) * <size_t> max(len(ranges), 1)
        )
        if self.table.aborted == NULL:
            raise MemoryError
        for i in range(len(ranges)):
            producer_id, first_offset, last_offset = ranges[i]
            self.table.aborted[i].producer_id = producer_id
            self.table.aborted[i].first_offset = first_offset
            self.table.aborted[i].last_offset = last_offset
        self.table.aborted_count = len(ranges)

    def __dealloc__(self):
        cdef int column, which
        for column in range(COLUMN_COUNT):
            scratch_free(&self.table.fixed[column])
        scratch_free(&self.table.list_offsets)
        for which in range(4):
            scratch_free(&binary_of(&self.table, which).offsets)
            scratch_free(&binary_of(&self.table, which).data)
            scratch_free(&binary_of(&self.table, which).valid)
        free(self.table.aborted)

    @property
    def rows(self):
        return self.table.rows

    @property
    def full(self):
        return self.table.full

    def add(self, buffer, Py_ssize_t at=0, int64_t position=0, int64_t limit_bytes=INT32_MAX):
        """Add whole batches from byte `at` of `buffer` on, whose file position is `position` for
        byte 0; returns where it stopped, at a batch that was not added: because it is cut, or
        beyond the range of offsets, or because there are rows enough to take."""
        cdef Py_buffer view
        cdef Header h
        cdef int outcome
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if at < 0 or at > view.len:
                raise ValueError(f"byte {at} is outside a buffer of {view.len} bytes")
            self.begin()
            self.table.full = False
            self.table.expected_bytes = view.len - at if self.table.rows == 0 else 0
            limit_bytes = min(limit_bytes, <int64_t> INT32_MAX)
            while True:
                with nogil:
                    outcome = add_run(&self.table, <const uint8_t *> view.buf, view.len,
                                      position, &at, &h)
                if outcome == RUN_STOPPED:
                    return at
                if outcome != RUN_NEEDS_PYTHON:
                    raise column_fault(outcome, &h)
                if not self.add_decompressed(<const uint8_t *> view.buf + at, &h, limit_bytes):
                    return at
                at += <Py_ssize_t> h.size_bytes
        finally:
            PyBuffer_Release(&view)

    cdef int begin(self) except -1:
        """Arrow's offsets begin with a zero."""
        cdef Scratch *offsets
        cdef int which
        for which in range(5):
            if which < 4:
                offsets = &binary_of(&self.table, which).offsets
            else:
                offsets = &self.table.list_offsets
            if offsets.used == 0:
                if not ensure(offsets, 4):
                    raise MemoryError
                add_i32(offsets, 0)
        return 0

    cdef bint add_decompressed(self, const uint8_t *batch, Header *h,
                               int64_t limit_bytes) except -1:
        """Add the batch at `batch`; False if its records would be too many for now."""
        cdef Py_buffer view
        cdef MessageView m
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t size = <Py_ssize_t> h.size_bytes
        cdef int fault = FAULT_NONE
        if h.magic == 2:
            body = PyMemoryView_FromMemory(
                <char *> (batch + V2_HEADER_BYTES), size - V2_HEADER_BYTES, PyBUF_READ
            )
            body = codec_decompress()(h.attributes & CODEC_MASK, body, limit_bytes=limit_bytes)
        else:
            fault = parse_message(batch, size, &at, False, &m)
            if fault:
                raise column_fault(fault, h)
            if not m.attributes & CODEC_MASK:
                self.table.decoded_bytes += size
                fault = add_message(&self.table, batch, &m, h)
                if fault:
                    raise column_fault(fault, h)
                return True
            body = decompress_message(batch, &m, limit_bytes)
        PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
        try:
            if is_full(&self.table, view.len):
                return False
            with nogil:
                if h.magic == 2:
                    fault = add_records(&self.table, <const uint8_t *> view.buf, view.len, h)
                else:
                    fault = add_wrapped(&self.table, <const uint8_t *> view.buf, view.len, &m, h)
        finally:
            PyBuffer_Release(&view)
        if fault:
            raise column_fault(fault, h)
        return True

    def take(self):
        """The rows so far, as (count, {column: memories}); the decoder is empty afterwards.

        One width: (values,). key, value: (null count, valid bits, offsets, data). headers:
        (header count, list offsets, those of the keys, those of the values)."""
        cdef int column
        cdef dict columns = {}
        self.begin()
        for column in range(COLUMN_COUNT):
            if not wants(&self.table, column):
                continue
            name = COLUMN_NAMES[column]
            if column == COLUMN_KEY:
                columns[name] = self.take_binary(0)
            elif column == COLUMN_VALUE:
                columns[name] = self.take_binary(1)
            elif column == COLUMN_HEADERS:
                columns[name] = (
                    self.table.header_rows, take_memory(&self.table.list_offsets),
                    self.take_binary(2), self.take_binary(3),
                )
            else:
                columns[name] = (take_memory(&self.table.fixed[column]),)
        rows = self.table.rows
        self.table.rows = self.table.header_rows = self.table.decoded_bytes = 0
        return rows, columns

    cdef tuple take_binary(self, int which):
        cdef Binary *binary = binary_of(&self.table, which)
        null_count = binary.null_count
        binary.null_count = 0
        return (null_count, take_memory(&binary.valid), take_memory(&binary.offsets),
                take_memory(&binary.data))
