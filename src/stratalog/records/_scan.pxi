# Walk the batches of a segment: check them and rebuild its indexes.
#
# A scan takes the bytes of a segment's file in any number of pieces and works on all batches of a
# piece with the GIL released; only compressed batches whose records are to be checked need it, to
# be decompressed. Recovery and verification are both this scan.

cdef enum:
    RELATIVE_OFFSET_MAX = 0x7FFFFFFF


cdef inline int message_fault(const uint8_t *p, const Header *h, MessageView *m) noexcept nogil:
    cdef Py_ssize_t at = 0
    return parse_message(p, <Py_ssize_t> h.size_bytes, &at, False, m)


cdef int contents_fault(const uint8_t *data, Py_ssize_t size, const Header *h,
                        const MessageView *wrapper, bint *is_sound) noexcept nogil:
    """Whether `data`, out of a compressed batch, is exactly the records that its header says."""
    cdef Py_ssize_t count
    cdef int64_t base
    if h.magic == 2:
        return walk_records(data, size, h, is_sound)
    return measure_messages(data, size, wrapper, False, &count, &base)


# What is found only behind a right CRC and offsets that follow: the batch is what was appended.
CONTENTS_FAULTS = frozenset((
    FAULT_VARINT, FAULT_RECORD_LENGTH, FAULT_HEADER_COUNT, FAULT_HEADER_KEY,
    FAULT_RECORDS_PREMATURE, FAULT_RECORDS_REMAINING, FAULT_LEGACY_LENGTHS, FAULT_LEGACY_NESTED,
    FAULT_LEGACY_EMPTY, FAULT_LEGACY_RELATIVE, FAULT_CONTENTS, FAULT_CODEC,
))


@cython.final
cdef class SegmentScan:
    """Checks the batches of one segment in order and rebuilds its indexes from them.

    Feed it the bytes of the file from ``position`` on, in pieces of any size, until the file
    ends or ``fault`` says why the batch at ``position`` is not valid. An index entry is due at a
    batch that begins more than ``index_interval_bytes`` after the last one that got an entry (or
    after the start of the file): what appending counts and what recovery computes is the same.
    Not for several threads at a time.
    """

    cdef readonly int64_t base_offset
    cdef readonly int64_t index_interval_bytes
    cdef readonly int64_t position
    cdef readonly int64_t next_offset
    cdef readonly int64_t last_position
    cdef readonly int64_t offset_before_last
    cdef readonly int64_t wanted_bytes
    cdef readonly int64_t max_timestamp_ms
    cdef readonly int64_t offset_of_max_timestamp
    cdef readonly int64_t first_timestamp_ms
    cdef readonly int64_t batch_count
    cdef readonly int64_t record_count
    cdef readonly int64_t unopened_count
    cdef readonly int64_t misnumbered_count     # batches with records whose offsets are not theirs
    cdef readonly int64_t misnumbered_position  # of the first of them
    cdef readonly int64_t decompressed_max_bytes
    cdef readonly int last_leader_epoch
    cdef readonly int codec_mask
    cdef readonly int magic_mask
    cdef readonly bytearray offset_entries
    cdef readonly bytearray time_entries
    cdef bint check_records
    cdef bint all_headers
    cdef bint no_headers
    cdef bint check_crc
    cdef int64_t indexed_position
    cdef int64_t indexed_timestamp_ms
    cdef int fault_code
    cdef Header fault_header
    cdef str contents_reason
    cdef Scratch new_offset_entries
    cdef Scratch new_time_entries
    cdef Scratch new_headers

    def __init__(self, int64_t base_offset, int64_t index_interval_bytes, bint check_records=True,
                 bint all_headers=False, int64_t decompressed_max_bytes=1 << 28,
                 bint no_headers=False, bint check_crc=True):
        if base_offset < 0:
            raise ValueError(f"a segment with base offset {base_offset}")
        self.base_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self.check_records = check_records
        self.all_headers = all_headers
        self.no_headers = no_headers
        self.check_crc = check_crc
        self.decompressed_max_bytes = decompressed_max_bytes
        self.next_offset = base_offset
        self.last_position = -1
        self.offset_before_last = base_offset
        self.misnumbered_position = -1
        self.max_timestamp_ms = -1
        self.offset_of_max_timestamp = -1
        self.first_timestamp_ms = -1
        self.indexed_timestamp_ms = -1
        self.last_leader_epoch = -1
        self.offset_entries = bytearray()
        self.time_entries = bytearray()

    def __dealloc__(self):
        scratch_free(&self.new_offset_entries)
        scratch_free(&self.new_time_entries)
        scratch_free(&self.new_headers)

    @property
    def overflow(self):
        return self.fault_code == FAULT_OVERFLOW

    @property
    def fault(self):
        cdef int64_t offset
        if self.fault_code == FAULT_NONE:
            return None
        offset = self.fault_header.base_offset
        if offset == -1:
            offset = self.fault_header.last_offset
        if self.fault_code == FAULT_ORDER:
            return f"offset {offset} where at least {self.next_offset} is expected"
        if self.fault_code == FAULT_OVERFLOW:
            return (
                f"last offset {self.fault_header.last_offset} is too far from the segment's base "
                f"offset {self.base_offset}"
            )
        if self.fault_code == FAULT_CONTENTS and self.contents_reason is not None:
            return self.contents_reason
        return fault_reason(self.fault_code)

    def feed(self, buffer):
        cdef Py_buffer view
        if self.fault_code != FAULT_NONE:
            return []
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                self.run(<const uint8_t *> view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
            move_scratch(&self.new_offset_entries, self.offset_entries)
            move_scratch(&self.new_time_entries, self.time_entries)
        return self.take_headers()

    def start(self, int64_t position, int64_t next_offset, int64_t indexed_position,
              int64_t max_timestamp_ms, int64_t offset_of_max_timestamp,
              int64_t indexed_timestamp_ms):
        self.position = position
        self.next_offset = next_offset
        self.indexed_position = indexed_position
        self.max_timestamp_ms = max_timestamp_ms
        self.offset_of_max_timestamp = offset_of_max_timestamp
        self.indexed_timestamp_ms = indexed_timestamp_ms

    @property
    def is_order_fault(self):
        return self.fault_code == FAULT_ORDER

    @property
    def is_contents_fault(self):
        return self.fault_code in CONTENTS_FAULTS

    def accept(self):
        if self.fault_code not in CONTENTS_FAULTS:
            raise ValueError("only a batch whose CRC and offsets are right can be accepted")
        self.fault_code = FAULT_NONE
        self.contents_reason = None
        self.take(&self.fault_header)

    def resume(self, int64_t position, int64_t next_offset):
        self.position = position
        self.next_offset = next_offset
        self.last_position = -1
        self.fault_code = FAULT_NONE
        self.contents_reason = None

    def finish(self):
        self.maybe_add_time_entry()
        move_scratch(&self.new_time_entries, self.time_entries)

    cdef list take_headers(self):
        cdef Header *headers = <Header *> self.new_headers.data
        cdef Py_ssize_t count = self.new_headers.used // <Py_ssize_t> sizeof(Header)
        cdef Py_ssize_t i
        cdef list taken = [make_header(&headers[i]) for i in range(count)]
        self.new_headers.used = 0
        return taken

    cdef int run(self, const uint8_t *data, Py_ssize_t size) except -1 nogil:
        cdef Py_ssize_t at = 0
        cdef Header h
        cdef int fault
        self.wanted_bytes = 0
        while True:
            fault = parse_header(data + at, size - at, self.position, &h)
            if fault == MORE_BYTES:
                return 0
            if fault == FAULT_NONE and h.size_bytes > size - at:
                self.wanted_bytes = h.size_bytes
                return 0
            if fault == FAULT_NONE:
                fault = self.batch_fault(data + at, &h)
            if fault == FAULT_NONE:
                fault = self.take(&h)
            if fault:
                self.fault_code = fault
                self.fault_header = h
                return 0
            at += <Py_ssize_t> h.size_bytes

    cdef int batch_fault(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef int64_t first_offset = h.last_offset if h.base_offset == -1 else h.base_offset
        cdef int codec_id = h.attributes & CODEC_MASK
        cdef int fault
        cdef MessageView message
        cdef bint is_sound
        if self.check_crc and batch_crc(p, h) != h.crc:
            return FAULT_CRC
        if first_offset < self.next_offset:
            return FAULT_ORDER
        if h.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return FAULT_OVERFLOW
        if self.position + h.size_bytes > INT32_MAX:
            return FAULT_SEGMENT_SIZE
        if not self.check_records:
            return FAULT_NONE
        if codec_id:
            return self.compressed_fault(p, h, codec_id)
        if h.magic == 2:
            fault = walk_records(
                p + V2_HEADER_BYTES, <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES, h, &is_sound
            )
            if not fault and not is_sound:
                self.note_misnumbered(h)
            return fault
        return message_fault(p, h, &message)

    cdef void note_misnumbered(self, const Header *h) noexcept nogil:
        if self.misnumbered_count == 0:
            self.misnumbered_position = h.position
        self.misnumbered_count += 1

    cdef int compressed_fault(self, const uint8_t *p, const Header *h,
                              int codec_id) except -1 with gil:
        cdef MessageView wrapper
        cdef Py_ssize_t at = V2_HEADER_BYTES
        cdef Py_ssize_t size = <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES
        cdef Py_buffer view
        cdef bint is_sound = True
        cdef int fault
        if h.magic == 2 and h.record_count == 0:
            return FAULT_NONE
        if h.magic < 2:
            fault = message_fault(p, h, &wrapper)
            if fault:
                return fault
            at, size = wrapper.value_at, max(wrapper.value_size, 0)
        try:
            contents = codec_decompress()(
                codec_id, PyMemoryView_FromMemory(<char *> p + at, size, PyBUF_READ),
                limit_bytes=self.decompressed_max_bytes, magic=h.magic,
            )
        except RecordTooLargeError:
            # Its CRC is right, and no rule says how large a batch may become: it is not damaged.
            self.unopened_count += 1
            return FAULT_NONE
        except (CorruptBatchError, UnsupportedCompressionError) as error:
            self.contents_reason = getattr(error, "reason", None) or str(error)
            return FAULT_CONTENTS
        PyObject_GetBuffer(contents, &view, PyBUF_SIMPLE)
        with nogil:
            fault = contents_fault(<const uint8_t *> view.buf, view.len, h, &wrapper, &is_sound)
        PyBuffer_Release(&view)
        if not fault and not is_sound:
            self.note_misnumbered(h)
        return fault

    cdef int take(self, const Header *h) except -1 nogil:
        """Count a valid batch, and move behind it."""
        cdef uint8_t *room
        if h.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = h.max_timestamp_ms
            self.offset_of_max_timestamp = h.last_offset
        if self.position - self.indexed_position > self.index_interval_bytes:
            room = scratch_room(&self.new_offset_entries, OFFSET_ENTRY_BYTES)
            if room == NULL:
                raise MemoryError
            store_i32(room, <int32_t> (h.last_offset - self.base_offset))
            store_i32(room + 4, <int32_t> self.position)
            self.maybe_add_time_entry()
            self.indexed_position = self.position
        if self.batch_count == 0:
            self.first_timestamp_ms = h.max_timestamp_ms
        if not self.no_headers and (
            self.all_headers
            or h.producer_id >= 0
            or h.partition_leader_epoch != self.last_leader_epoch
            or (h.magic == 2 and h.attributes & CONTROL_BIT)
        ):
            room = scratch_room(&self.new_headers, sizeof(Header))
            if room == NULL:
                raise MemoryError
            memcpy(room, h, sizeof(Header))
        self.last_leader_epoch = h.partition_leader_epoch
        self.codec_mask |= 1 << (h.attributes & CODEC_MASK)
        self.magic_mask |= 1 << h.magic
        self.batch_count += 1
        self.record_count += max(h.record_count, 0)
        self.last_position = self.position
        self.offset_before_last = self.next_offset
        self.position += h.size_bytes
        self.next_offset = h.last_offset + 1
        return FAULT_NONE

    cdef int maybe_add_time_entry(self) except -1 nogil:
        """A time entry, unless the last one already has that timestamp."""
        cdef uint8_t *room
        if self.max_timestamp_ms <= self.indexed_timestamp_ms:
            return 0
        room = scratch_room(&self.new_time_entries, TIME_ENTRY_BYTES)
        if room == NULL:
            raise MemoryError
        store_i64(room, self.max_timestamp_ms)
        store_i32(room + 8, <int32_t> (self.offset_of_max_timestamp - self.base_offset))
        self.indexed_timestamp_ms = self.max_timestamp_ms
        return 0


cdef int move_scratch(Scratch *scratch, bytearray target) except -1:
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(target)
    if scratch.used:
        PyByteArray_Resize(target, size + scratch.used)
        memcpy(PyByteArray_AS_STRING(target) + size, scratch.data, <size_t> scratch.used)
        scratch.used = 0
    return 0
