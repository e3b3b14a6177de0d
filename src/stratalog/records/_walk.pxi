# Walk over the records of whole batches, of any format and codec, with the GIL released.
#
# What is done with them is for whoever inherits: the offset map is built, records are filtered,
# keys are counted. CRCs are checked first: damage must not be taken for records, nor be given a
# new CRC by a rewrite. Only compressed batches take the GIL, to be decompressed.

cdef enum:
    WALK_READ = 0                   # look at the batch's records
    WALK_SKIP = 1                   # its header is all that counts
    WALK_STOP = 2

cdef struct KeyedRecord:
    int64_t offset
    int64_t timestamp_ms
    Py_ssize_t key_at               # places are bytes of the batch's (decompressed) contents
    Py_ssize_t value_at
    Py_ssize_t headers_at
    Py_ssize_t end_at
    int32_t key_size                # below 0 is null
    int32_t value_size
    int32_t header_count


cdef class BatchWalk:
    cdef readonly int64_t wanted_bytes
    cdef readonly int64_t position
    cdef int64_t decompressed_max_bytes
    cdef int64_t next_offset        # batches follow each other from here on
    cdef int64_t first_offset       # below it the batch has none, even if it does not say so
    cdef bint is_stopped
    cdef bint is_walking

    def __cinit__(self):
        self.decompressed_max_bytes = 1 << 28

    cdef bint is_trusted(self, const Header *h) noexcept nogil:
        """Whether the CRC need not be checked (again)."""
        return False

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        """What to do with the batch at `p`."""
        return WALK_READ

    cdef int begin_contents(self, const uint8_t *contents) except -1 nogil:
        """The batch's records follow; they lie in `contents` until end_batch."""
        return 0

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        return 0

    cdef int end_batch(self, const Header *h) except -1 nogil:
        return 0

    cdef int end_run(self) except -1 nogil:
        """The buffer that was fed is about to go."""
        return 0

    cdef int follow(self, const Header *h) except -1 nogil:
        """No CRC covers the offset of a batch: one that is wrong is seen by the order."""
        if (h.base_offset if h.magic == 2 else h.last_offset) < self.next_offset:
            return self.refuse(FAULT_ORDER, h)
        self.first_offset = self.next_offset
        self.next_offset = h.last_offset + 1
        return 0

    cdef Py_ssize_t walk(self, buffer, int64_t position) except -1:
        """Take all whole batches of `buffer`, which lies at `position` of its file; returns their
        size. Where not even one is there, `wanted_bytes` says how much is needed."""
        cdef Py_buffer view
        cdef Py_ssize_t consumed
        if self.is_walking:
            raise RuntimeError("another thread is feeding this object")
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        self.is_walking = True
        try:
            with nogil:
                consumed = self.run(<const uint8_t *> view.buf, view.len, position)
                self.end_run()
        finally:
            self.is_walking = False
            PyBuffer_Release(&view)
        return consumed

    cdef Py_ssize_t run(self, const uint8_t *data, Py_ssize_t size,
                        int64_t position) except -1 nogil:
        cdef Py_ssize_t at = 0
        cdef Header h
        cdef int fault
        self.wanted_bytes = 0
        self.position = position
        while not self.is_stopped:
            h.last_offset = -1
            fault = parse_header(data + at, size - at, position + at, &h)
            if fault == MORE_BYTES:
                self.wanted_bytes = header_bytes(data + at, size - at)
                break
            if fault == FAULT_NONE and h.size_bytes > size - at:
                self.wanted_bytes = h.size_bytes
                break
            if fault == FAULT_NONE and not self.is_trusted(&h):
                if batch_crc(data + at, &h) != h.crc:
                    fault = FAULT_CRC
            if fault:
                return self.refuse(fault, &h)
            self.position = position + at
            self.take_batch(data + at, &h)
            at += <Py_ssize_t> h.size_bytes
        self.position = position + at
        return at

    cdef int refuse(self, int fault, const Header *h) except -1 with gil:
        raise corrupt(fault, h.position, h.base_offset if h.base_offset >= 0 else h.last_offset)

    cdef int take_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef int action = self.begin_batch(p, h)
        if action == WALK_STOP:
            self.is_stopped = True
            return 0
        # As Kafka iterates: a batch of no records is not looked into.
        if action == WALK_READ and not (h.magic == 2 and h.record_count == 0):
            if h.attributes & CODEC_MASK:
                return self.take_compressed(p, h)
            self.begin_contents(p)
            if h.magic == 2:
                self.take_records(p, V2_HEADER_BYTES, <Py_ssize_t> h.size_bytes, h)
            else:
                self.take_message(p, h)
        return self.end_batch(h)

    cdef int take_compressed(self, const uint8_t *p, const Header *h) except -1 with gil:
        cdef MessageView wrapper
        cdef Py_buffer view
        contents = self.decompressed(p, h, &wrapper)
        PyObject_GetBuffer(contents, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                self.begin_contents(<const uint8_t *> view.buf)
                if h.magic == 2:
                    self.take_records(<const uint8_t *> view.buf, 0, view.len, h)
                else:
                    self.take_messages(<const uint8_t *> view.buf, view.len, h, &wrapper)
                self.end_batch(h)
                self.end_run()
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef object decompressed(self, const uint8_t *p, const Header *h, MessageView *wrapper):
        cdef Py_ssize_t at = V2_HEADER_BYTES
        cdef Py_ssize_t size = <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES
        cdef int fault
        if h.magic < 2:
            fault = message_fault(p, h, wrapper)
            if fault:
                self.refuse(fault, h)
            at, size = wrapper.value_at, max(wrapper.value_size, 0)
        try:
            return codec_decompress()(
                h.attributes & CODEC_MASK,
                PyMemoryView_FromMemory(<char *> p + at, size, PyBUF_READ),
                limit_bytes=self.decompressed_max_bytes,
                magic=h.magic,
            )
        except (CorruptBatchError, UnsupportedCompressionError, RecordTooLargeError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise CorruptBatchError(
                reason, position=h.position,
                base_offset=h.base_offset if h.base_offset >= 0 else h.last_offset,
            ) from error

    cdef int take_records(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end,
                          const Header *h) except -1 nogil:
        cdef RecordView view
        cdef KeyedRecord record
        cdef int32_t i
        cdef int32_t last_delta = -1
        cdef int fault
        # Offsets outside the batch would be taken for those of others.
        if h.record_count - 1 > h.last_offset - h.base_offset:
            return self.refuse(FAULT_RECORD_ORDER, h)
        for i in range(h.record_count):
            fault = parse_record(data, end, &at, &view)
            if fault:
                return self.refuse(fault, h)
            last_delta = settled_delta(h, i, view.offset_delta, last_delta)
            record.offset = h.base_offset + last_delta
            record.timestamp_ms = record_timestamp(h, &view)
            record.key_at, record.key_size = view.key_at, view.key_size
            record.value_at, record.value_size = view.value_at, view.value_size
            record.headers_at, record.end_at = view.headers_at, view.end_at
            record.header_count = view.header_count
            self.take_record(data, &record)
            if self.is_stopped:
                return 0
        if h.record_count > 0 and at != end:
            return self.refuse(FAULT_RECORDS_REMAINING, h)
        return 0

    cdef int take_message(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef MessageView m
        cdef KeyedRecord record
        cdef int fault = message_fault(p, h, &m)
        if fault:
            return self.refuse(fault, h)
        message_record(&m, &record)
        return self.take_record(p, &record)

    cdef int take_messages(self, const uint8_t *data, Py_ssize_t size, const Header *h,
                           const MessageView *wrapper) except -1 nogil:
        cdef MessageView m
        cdef KeyedRecord record
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t count, i
        cdef int64_t base
        cdef int64_t last = self.first_offset - 1
        cdef int fault = measure_messages(data, size, wrapper, False, &count, &base)
        if fault:
            return self.refuse(fault, h)
        for i in range(count):
            fault = parse_message(data, size, &at, False, &m)
            if fault:
                return self.refuse(fault, h)
            adopt_wrapper(wrapper, base, &m)
            if m.offset < 0 or m.offset > h.last_offset:
                return self.refuse(FAULT_RECORD_OFFSET, h)
            if m.offset <= last:
                return self.refuse(FAULT_RECORD_ORDER, h)
            last = m.offset
            message_record(&m, &record)
            self.take_record(data, &record)
            if self.is_stopped:
                return 0
        return 0


cdef int header_bytes(const uint8_t *p, Py_ssize_t available) noexcept nogil:
    """How much of the batch at `p` is needed to go on, where its header is not all there."""
    if available == 0:
        return 0
    if available < LEGACY_HEADER_BYTES:
        return LEGACY_HEADER_BYTES
    return V1_HEADER_BYTES if p[16] == 1 else V2_HEADER_BYTES


cdef inline void message_record(const MessageView *m, KeyedRecord *record) noexcept nogil:
    record.offset = m.offset
    record.timestamp_ms = m.timestamp_ms
    record.key_at, record.key_size = m.key_at, m.key_size
    record.value_at, record.value_size = m.value_at, m.value_size
    record.header_count = 0
    record.headers_at = record.end_at = 0
