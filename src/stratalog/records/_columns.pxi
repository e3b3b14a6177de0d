# Records to columns: what a scan returns, with no Python object per record.
#
# Columns grow as batches are added and are handed over without a copy. All that follows from a
# batch's bytes runs with the GIL released; only compressed batches come back to Python, to be
# decompressed.

include "_table.pxi"

cdef enum:
    RUN_STOPPED = -1                # end of the buffer, of the offsets, or enough rows
    RUN_NEEDS_PYTHON = -2           # the batch at `at` has to be decompressed first
    RUN_NEEDS_FATES = -3            # it is transactional, and nobody has said what was aborted


# --- runs of batches ---------------------------------------------------------------------------


cdef bint is_aborted(const Table *table, const Header *h) noexcept nogil:
    """Whether the batch belongs to a transaction that was aborted: the last one of its producer
    that began at or before it, if that had not ended by then."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = table.aborted_count
    cdef Py_ssize_t middle
    cdef const AbortedRange *aborted
    if not h.attributes & TRANSACTIONAL_BIT:
        return False
    while low < high:
        middle = (low + high) >> 1
        aborted = &table.aborted[middle]
        if aborted.producer_id < h.producer_id or (
                aborted.producer_id == h.producer_id and aborted.first_offset <= h.base_offset):
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return False
    aborted = &table.aborted[low - 1]
    return aborted.producer_id == h.producer_id and h.base_offset <= aborted.last_offset


cdef inline bint is_in_range(const Table *table, const Header *h) noexcept nogil:
    return h.last_offset >= table.start_offset and h.base_offset < table.end_offset


cdef inline bint is_wanted(const Table *table, const Header *h) noexcept nogil:
    """Whether a batch in the range can have rows; its CRC is right, so what it says counts."""
    if h.magic == 2 and not table.gaps.is_on:
        if h.attributes & CONTROL_BIT:
            if not table.include_control:
                return False
        elif table.aborted_count and is_aborted(table, h):
            return False
    return not table.filter.is_set or may_keep_batch(&table.filter, h)


cdef inline bint is_full(Table *table, int64_t more) noexcept nogil:
    """Whether a batch of `more` bytes would be too many; the first one always fits."""
    if table.gaps.is_on:
        table.full = table.gaps.count >= table.target_rows
        return table.full
    if table.decoded_bytes == 0:
        return False
    table.full = (table.decoded_bytes + more > table.target_bytes
                  or table.rows >= table.target_rows)
    return table.full


cdef inline int order_fault(const Table *table, const Header *h) noexcept nogil:
    """Offsets only grow within a segment. Base offset and size lie outside the CRC: a batch that
    lost its place would be taken for one of other offsets."""
    cdef int64_t first_offset = h.base_offset if h.base_offset >= 0 else h.last_offset
    if table.next_offset < 0:
        return FAULT_NONE
    if first_offset < table.next_offset:
        return FAULT_ORDER
    if h.last_offset > table.highest_offset:
        return FAULT_OVERFLOW
    return FAULT_NONE


cdef inline void pass_batch(Table *table, const Header *h, Py_ssize_t *at) noexcept nogil:
    if table.next_offset >= 0:
        table.next_offset = h.last_offset + 1
    table.batches += 1
    at[0] += <Py_ssize_t> h.size_bytes


cdef inline bint is_undecided(const Table *table, const Header *h) noexcept nogil:
    return (table.needs_fates and h.magic == 2 and h.attributes & TRANSACTIONAL_BIT
            and not h.attributes & CONTROL_BIT)


cdef int add_uncompressed(Table *table, const uint8_t *batch, const Header *h) noexcept nogil:
    cdef MessageView m
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t body_size = <Py_ssize_t> (h.size_bytes - V2_HEADER_BYTES)
    cdef int64_t rows = table.rows
    cdef int fault
    if h.magic == 2:
        return add_body(table, batch + V2_HEADER_BYTES, body_size, h)
    fault = parse_message(batch, <Py_ssize_t> h.size_bytes, &at, False, &m)
    if fault == FAULT_NONE:
        fault = add_message(table, batch, &m, h)
    if table.rows > rows:
        table.decoded_bytes += h.size_bytes
    return fault


cdef int add_body(Table *table, const uint8_t *body, Py_ssize_t size,
                  const Header *h) noexcept nogil:
    """Add the records of a v2 batch, or what they leave out."""
    cdef int reason = GAP_NONE
    if not table.gaps.is_on:
        return add_records(table, body, size, h)
    if h.attributes & CONTROL_BIT:
        reason = GAP_CONTROL
    elif is_aborted(table, h):
        reason = GAP_ABORTED
    return note_records(table, body, size, h, reason)


cdef int add_run(Table *table, const uint8_t *data, Py_ssize_t size, int64_t position,
                 Py_ssize_t *at, Header *h) noexcept nogil:
    """Add batches from *at on until there is a reason to stop: RUN_* or a fault in `h`."""
    cdef int fault
    while True:
        fault = parse_header(data + at[0], size - at[0], position + at[0], h)
        if fault == MORE_BYTES:
            return RUN_STOPPED
        if fault == FAULT_NONE:
            fault = order_fault(table, h)
        if fault:
            return fault
        # A segment is read to the planned end, whatever a batch says of its offsets.
        if h.base_offset >= table.end_offset and table.next_offset < 0:
            return RUN_STOPPED
        if h.size_bytes > size - at[0]:
            return RUN_STOPPED
        if is_in_range(table, h):
            if table.check_crc and batch_crc(data + at[0], h) != h.crc:
                return FAULT_CRC
            if is_undecided(table, h):
                return RUN_NEEDS_FATES
            if is_wanted(table, h):
                if is_full(table, h.size_bytes):
                    return RUN_STOPPED
                if h.attributes & CODEC_MASK:
                    return RUN_NEEDS_PYTHON
                fault = add_uncompressed(table, data + at[0], h)
                if fault:
                    return fault
        pass_batch(table, h, at)


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
    cdef readonly Py_ssize_t stopped_at

    def __cinit__(self, uint32_t wanted, *, int64_t start_offset, int64_t end_offset,
                  bint check_crc=True, bint include_control=False,
                  int64_t target_bytes=INT32_MAX, int64_t target_rows=INT32_MAX, aborted=(),
                  int64_t segment_base_offset=-1, bint in_microseconds=False, bint gaps=False,
                  min_timestamp_ms=None, max_timestamp_ms=None, keys=None):
        memset(&self.table, 0, sizeof(Table))
        self.table.wanted = wanted
        self.table.start_offset = start_offset
        self.table.end_offset = end_offset
        self.table.check_crc = check_crc
        self.table.include_control = include_control
        self.table.in_microseconds = in_microseconds
        # Below 2 GiB, so that Arrow's four-byte offsets suffice.
        self.table.target_bytes = min(target_bytes, <int64_t> INT32_MAX)
        self.table.target_rows = target_rows
        self.table.next_offset = segment_base_offset
        self.table.highest_offset = INT64_MAX
        if 0 <= segment_base_offset <= INT64_MAX - INT32_MAX:
            self.table.highest_offset = segment_base_offset + INT32_MAX
        self.table.gaps.is_on = gaps
        self.table.gaps.next_offset = start_offset
        self.table.gaps.reason = GAP_NONE
        self.table.filter.min_timestamp_ms = -INT64_MAX - 1
        self.table.filter.max_timestamp_ms = INT64_MAX
        if min_timestamp_ms is not None:
            self.table.filter.min_timestamp_ms = min_timestamp_ms
            self.table.filter.is_set = True
        if max_timestamp_ms is not None:
            self.table.filter.max_timestamp_ms = max_timestamp_ms
            self.table.filter.is_set = True
        if keys is not None:
            set_keys(&self.table.filter, keys)
        self.table.needs_fates = aborted is None
        self.set_aborted(aborted or ())

    cdef int set_aborted(self, aborted) except -1:
        cdef Py_ssize_t i
        ranges = sorted(aborted)
        free(self.table.aborted)
        self.table.aborted_count = 0
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
        return 0

    def decide(self, aborted):
        """Say which transactions were aborted: (producer id, first offset, last offset) of each.
        What is not among them counts as committed from now on."""
        self.set_aborted(aborted)
        self.table.needs_fates = False
        self.table.undecided = False

    def __dealloc__(self):
        cdef int column, which
        for column in range(COLUMN_COUNT):
            scratch_free(&self.table.fixed[column])
        scratch_free(&self.table.list_offsets)
        for which in range(4):
            scratch_free(&binary_of(&self.table, which).offsets)
            scratch_free(&binary_of(&self.table, which).data)
            scratch_free(&binary_of(&self.table, which).valid)
        scratch_free(&self.table.list_valid)
        free(self.table.aborted)
        free_filter(&self.table.filter)
        free_gaps(&self.table.gaps)

    @property
    def rows(self):
        return self.table.rows

    @property
    def batches(self):
        """How many were passed, whether they had rows or not."""
        return self.table.batches

    @property
    def next_offset(self):
        """What a batch has to begin with at least; -1 if any will do."""
        return self.table.next_offset

    @property
    def is_undecided(self):
        """Whether add() stopped at a transactional batch because decide() was not called yet."""
        return self.table.undecided

    @property
    def full(self):
        return self.table.full

    def add(self, buffer, Py_ssize_t at=0, int64_t position=0, int64_t limit_bytes=INT32_MAX,
            int64_t expected_bytes=-1):
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
            self.table.undecided = False
            if expected_bytes < 0:
                expected_bytes = view.len - at
            self.table.expected_bytes = expected_bytes if self.table.rows == 0 else 0
            limit_bytes = min(limit_bytes, <int64_t> INT32_MAX)
            while True:
                with nogil:
                    outcome = add_run(&self.table, <const uint8_t *> view.buf, view.len,
                                      position, &at, &h)
                if outcome == RUN_STOPPED:
                    return at
                if outcome == RUN_NEEDS_FATES:
                    self.table.undecided = True
                    return at
                if outcome != RUN_NEEDS_PYTHON:
                    raise column_fault(outcome, &h)
                if not self.add_decompressed(<const uint8_t *> view.buf + at, &h, limit_bytes):
                    return at
                pass_batch(&self.table, &h, &at)
        finally:
            self.stopped_at = at
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
            body = decompress_message(batch, &m, limit_bytes)
        PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
        try:
            if is_full(&self.table, view.len):
                return False
            with nogil:
                if h.magic == 2:
                    fault = add_body(&self.table, <const uint8_t *> view.buf, view.len, h)
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
        (header count, records without any, valid bits, list offsets, those of the keys, those of
        the values)."""
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
                    self.table.header_rows, self.table.list_null_count,
                    take_memory(&self.table.list_valid), take_memory(&self.table.list_offsets),
                    self.take_binary(2), self.take_binary(3),
                )
                self.table.list_null_count = 0
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

    # --- gaps ---------------------------------------------------------------------------------

    def note_damage(self):
        """Bytes are passed over here: what is missing before the next batch was in them."""
        self.table.gaps.missing = GAP_DAMAGED

    def skip_batch(self, int64_t base_offset, int64_t next_offset):
        """A batch cannot be read: all of its offsets are lost. `base_offset` is -1 if unknown."""
        if not ensure_gaps(&self.table.gaps, 2):
            raise MemoryError
        if base_offset >= 0:
            note_until(&self.table.gaps, min(base_offset, self.table.end_offset),
                       self.table.gaps.missing)
        note_until(&self.table.gaps, min(next_offset, self.table.end_offset), GAP_DAMAGED)
        self.table.gaps.missing = GAP_COMPACTED
        if self.table.next_offset >= 0:
            self.table.next_offset = max(self.table.next_offset, next_offset)

    def finish_gaps(self):
        """There are no more batches: what is left of the range is missing."""
        if not ensure_gaps(&self.table.gaps, 1):
            raise MemoryError
        note_until(&self.table.gaps, self.table.end_offset, self.table.gaps.missing)
        end_gap(&self.table.gaps)

    def take_gaps(self):
        """(count, start offsets, end offsets, reasons) so far, without the one that may grow."""
        count = self.table.gaps.count
        self.table.gaps.count = 0
        return (count, take_memory(&self.table.gaps.starts), take_memory(&self.table.gaps.ends),
                take_memory(&self.table.gaps.reasons))
