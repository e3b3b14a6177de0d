# What became of transactions: committed or aborted, by the markers behind their batches.
#
# A batch of a transaction shares the fate of the next marker of its producer. So the log itself
# tells, and no index has to be believed. Only headers are looked at, and markers, whose CRC is
# checked here because their batches may lie behind what the reader checks.


cdef int marker_type(const uint8_t *body, Py_ssize_t size, const Header *h) noexcept nogil:
    """The type of a control batch's record; -1 if it has none that can be read."""
    cdef RecordView record
    cdef Py_ssize_t at = 0
    if h.record_count == 0 or parse_record(body, size, &at, &record) or record.key_size < 4:
        return -1
    return load_i16(body + record.key_at + 2)


@cython.final
cdef class FateWalk:
    """Follows batches in the order of the log, and tells which transactions were aborted."""

    cdef dict first_offsets         # by producer id, of the transactions that are not decided
    cdef readonly list aborted
    cdef readonly int64_t next_offset
    cdef readonly bint is_ahead

    def __init__(self):
        self.first_offsets = {}
        self.aborted = []

    @property
    def undecided(self):
        return self.first_offsets

    def look_ahead(self):
        """From here on only markers count: transactions that begin now are nobody's concern."""
        self.is_ahead = True

    @property
    def is_decided(self):
        return not self.first_offsets

    def take_aborted(self, aborted):
        """What an index says: (producer id, first offset, last offset) of each. Those that began
        after what is undecided of a producer are later ones of it."""
        for producer_id, first_offset, last_offset in aborted:
            seen = self.first_offsets.get(producer_id)
            if seen is not None and first_offset <= seen <= last_offset:
                del self.first_offsets[producer_id]
                self.aborted.append((producer_id, seen, last_offset))

    def feed(self, buffer, int64_t position, int64_t end_position):
        """Walk what is in `buffer`, whose byte 0 is byte `position` of a file, up to
        `end_position`; returns where the next header begins, perhaps far behind the buffer. If it
        lies inside, more of it is needed than is there."""
        cdef Py_buffer view
        cdef Header h
        cdef int64_t at = 0
        cdef const uint8_t *data
        cdef int fault
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            data = <const uint8_t *> view.buf
            while position + at < end_position and at < view.len:
                if self.is_ahead and not self.first_offsets:
                    break
                fault = parse_header(data + at, view.len - <Py_ssize_t> at, position + at, &h)
                if fault == MORE_BYTES:
                    break
                if fault:
                    raise corrupt(fault, position + at, h.base_offset)
                # The same offsets may be met again, in the file that compaction made of this one.
                if (h.magic == 2 and h.attributes & TRANSACTIONAL_BIT
                        and h.base_offset >= self.next_offset):
                    if h.attributes & CONTROL_BIT:
                        if h.size_bytes > view.len - at:
                            break
                        self.take_marker(data + at, &h)
                    elif not self.is_ahead and h.producer_id not in self.first_offsets:
                        self.first_offsets[h.producer_id] = h.base_offset
                self.next_offset = max(self.next_offset, h.last_offset + 1)
                at += h.size_bytes
        finally:
            PyBuffer_Release(&view)
        return position + at

    cdef int take_marker(self, const uint8_t *batch, const Header *h) except -1:
        cdef int kind
        cdef Py_ssize_t size = <Py_ssize_t> h.size_bytes
        if h.producer_id not in self.first_offsets:
            return 0
        if batch_crc(batch, h) != h.crc:
            raise corrupt(FAULT_CRC, h.position, h.base_offset)
        if h.attributes & CODEC_MASK:
            kind = compressed_marker_type(batch, size)
        else:
            kind = marker_type(batch + V2_HEADER_BYTES, size - V2_HEADER_BYTES, h)
        if kind == 0 or kind == 1:
            first_offset = self.first_offsets.pop(h.producer_id)
            if kind == 0:
                self.aborted.append((h.producer_id, first_offset, h.base_offset))
        return 0


cdef int compressed_marker_type(const uint8_t *batch, Py_ssize_t size) except? -2:
    # Nobody compresses a marker, but nothing forbids it. That module imports this one.
    from stratalog.records.control import read_control_batch
    try:
        record = read_control_batch(PyMemoryView_FromMemory(<char *> batch, size, PyBUF_READ))
    except (CorruptBatchError, UnsupportedCompressionError, RecordTooLargeError):
        return -1
    return -1 if record is None else int(record.type)
