# Compaction: the offset map is built from the dirty part of a log, then its records are filtered.
#
# Both walk over whole batches in offset order. Looking a key up costs a miss of every cache, so a
# record's slot is asked for when the record is read and probed some records later.

include "_hash.pxi"
include "_offset_map.pxi"
include "_transactions.pxi"
include "_walk.pxi"
include "_map_builder.pxi"
include "_key_ranges.pxi"

# --- filtering ---------------------------------------------------------------------------------

cdef enum:
    GROUP_RECORDS = 1024            # so many records wait at most before their batches are written

cdef struct FilteredRecord:
    KeyedRecord record
    Hash128 hash
    Py_ssize_t batch
    bint is_looked_up               # its hash is known; else the map remembers its offset
    bint is_kept

cdef struct FilteredBatch:
    Header h
    const uint8_t *start
    const uint8_t *contents
    Py_ssize_t first_record
    Py_ssize_t record_count
    bint discard                    # of an aborted transaction, or a marker whose time has come
    bint retain_empty               # stays as a header if nothing else does
    bint is_untouched               # the map knows that all of it stays
    bint is_marker_of_nothing       # a marker of a transaction that has no data any more


@cython.final
cdef class RecordFilter(BatchWalk):
    """Keeps of each batch what compaction keeps, in the bytes that Kafka would write.

    ``feed`` takes whole batches; what is kept of them is the filter's own buffer
    (``memoryview(filter)``) until the next call.
    """

    cdef readonly OffsetMap map
    cdef readonly CleanedTransactions transactions
    cdef readonly int64_t now_ms
    cdef readonly int64_t delete_retention_ms
    cdef readonly int64_t upper_bound_offset
    cdef public bint retain_legacy_deletes
    # statistics
    cdef readonly int64_t messages_read
    cdef readonly int64_t messages_kept
    cdef readonly int64_t batches_read
    cdef readonly int64_t batches_kept
    cdef readonly int64_t superseded
    cdef readonly int64_t null_keys
    cdef readonly int64_t tombstones_expired
    cdef readonly int64_t tombstones_kept
    cdef readonly int64_t discarded_batches
    cdef readonly int64_t horizons_set
    cdef readonly int64_t largest_batch_bytes
    cdef Scratch output
    cdef Scratch body
    cdef Scratch batches
    cdef Scratch records
    cdef Py_ssize_t decided
    cdef int exports
    cdef int64_t batches_fed        # by the last call
    cdef bint is_all_untouched
    cdef bint is_verbatim           # all of them stay: what was fed is what is kept
    cdef Py_buffer fed
    cdef Py_ssize_t fed_bytes

    def __cinit__(self, OffsetMap offset_map not None, CleanedTransactions transactions not None, *,
                  int64_t now_ms, int64_t delete_retention_ms, int64_t upper_bound_offset):
        self.map = offset_map
        self.transactions = transactions
        self.now_ms = now_ms
        self.delete_retention_ms = delete_retention_ms
        self.upper_bound_offset = upper_bound_offset
        self.retain_legacy_deletes = True

    def __dealloc__(self):
        scratch_free(&self.output)
        scratch_free(&self.body)
        scratch_free(&self.batches)
        scratch_free(&self.records)
        if self.is_verbatim:
            PyBuffer_Release(&self.fed)

    def __getbuffer__(self, Py_buffer *view, int flags):
        if self.is_walking:
            raise BufferError("another thread is feeding this filter")
        if self.is_verbatim:
            PyBuffer_FillInfo(view, self, self.fed.buf, self.fed_bytes, 1, flags)
        else:
            PyBuffer_FillInfo(view, self, self.output.data, self.output.used, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.exports -= 1

    def feed(self, buffer, int64_t position):
        if self.is_walking:
            raise RuntimeError("another thread is feeding this object")
        if self.exports:
            raise BufferError("what was kept of the last batches is still in use")
        # After an error there are batches left of a buffer that is gone.
        self.batches.used = self.records.used = self.decided = 0
        self.output.used = 0
        self.batches_fed = 0
        self.let_go()
        consumed = self.walk(buffer, position)
        if self.is_all_untouched:
            PyObject_GetBuffer(buffer, &self.fed, PyBUF_SIMPLE)
            self.fed_bytes = consumed
            self.is_verbatim = True
        return consumed

    cdef int let_go(self) except -1:
        self.is_all_untouched = False
        if self.is_verbatim:
            self.is_verbatim = False
            PyBuffer_Release(&self.fed)
        return 0

    cdef FilteredBatch *batch_at(self, Py_ssize_t i) noexcept nogil:
        return &(<FilteredBatch *> self.batches.data)[i]

    cdef FilteredRecord *record_at(self, Py_ssize_t i) noexcept nogil:
        return &(<FilteredRecord *> self.records.data)[i]

    cdef Py_ssize_t pending_records(self) noexcept nogil:
        return self.records.used // <Py_ssize_t> sizeof(FilteredRecord)

    cdef Py_ssize_t pending_batches(self) noexcept nogil:
        return self.batches.used // <Py_ssize_t> sizeof(FilteredBatch)

    # --- reading ---------------------------------------------------------------------------------

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef FilteredBatch *batch
        cdef bint is_control = h.magic == 2 and (h.attributes & CONTROL_BIT) != 0
        cdef bint can_discard
        self.follow(h)
        if self.pending_records() >= GROUP_RECORDS:
            self.write_pending()
        can_discard = self.meet(p, h, is_control)
        batch = <FilteredBatch *> scratch_room(&self.batches, sizeof(FilteredBatch))
        if batch == NULL:
            raise MemoryError
        batch.h = h[0]
        batch.start = p
        batch.contents = p
        batch.first_record = self.pending_records()
        batch.record_count = 0
        batch.discard = can_discard
        if is_control:
            batch.discard = can_discard and has_horizon(h) and h.base_timestamp_ms <= self.now_ms
        batch.is_marker_of_nothing = can_discard and is_control
        batch.retain_empty = (self.transactions.is_last_of_producer(h)
                              or h.last_offset + 1 == self.upper_bound_offset)
        batch.is_untouched = self.is_untouched(h)
        self.batches_read += 1
        self.batches_fed += 1
        if batch.is_untouched:
            self.messages_read += h.record_count
        if batch.discard:
            self.discarded_batches += 1
        return WALK_SKIP if batch.discard or batch.is_untouched else WALK_READ

    cdef bint is_trusted(self, const Header *h) noexcept nogil:
        # Checked when the map was built, and copied as it is: damage since then stays visible.
        return self.is_untouched(h)

    cdef bint is_untouched(self, const Header *h) noexcept nogil:
        """Whether the map's builder read all records of the batch, and all of them stay."""
        if h.magic < 2 or h.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) or h.record_count == 0:
            return False
        return (h.last_offset <= self.map.latest_offset
                and self.map.is_untouched(h.base_offset, h.last_offset))

    cdef int meet(self, const uint8_t *p, const Header *h, bint is_control) except -1 nogil:
        cdef int kind = CONTROL_OTHER
        cdef int fault
        if not is_control:
            return self.transactions.meet_data(h)
        if not h.attributes & CODEC_MASK:
            fault = control_kind(p + V2_HEADER_BYTES,
                                 <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES, h, &kind)
            if fault:
                return self.refuse(fault, h)
        return self.transactions.meet_control(h, kind)

    cdef int begin_contents(self, const uint8_t *contents) except -1 nogil:
        self.batch_at(self.pending_batches() - 1).contents = contents
        return 0

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        cdef FilteredRecord *filtered
        cdef Py_ssize_t batch = self.pending_batches() - 1
        cdef bint is_transactional
        filtered = <FilteredRecord *> scratch_room(&self.records, sizeof(FilteredRecord))
        if filtered == NULL:
            raise MemoryError
        filtered.record = r[0]
        filtered.batch = batch
        filtered.is_kept = True
        self.batch_at(batch).record_count += 1
        self.messages_read += 1
        filtered.is_looked_up = False
        if r.key_size >= 0 and r.offset <= self.map.latest_offset and not self.map.is_decided:
            # Of a transaction's batches the map was perhaps not told.
            is_transactional = self.batch_at(batch).h.attributes & TRANSACTIONAL_BIT
            if is_transactional or not self.map.is_tracked(r.offset):
                filtered.is_looked_up = True
                filtered.hash = self.map.hash_of(contents + r.key_at, r.key_size)
                self.map.expect(&filtered.hash)
        if self.pending_records() - self.decided > LOOK_AHEAD:
            self.decide_next()
        return 0

    cdef int end_run(self) except -1 nogil:
        cdef Py_ssize_t i
        cdef Py_ssize_t count = self.pending_batches()
        if count == self.batches_fed:
            for i in range(count):
                if not self.batch_at(i).is_untouched:
                    return self.write_pending()
            # Nothing is to be changed in all that was fed: it need not even be copied.
            for i in range(count):
                self.keep_untouched(&self.batch_at(i).h)
            self.batches.used = 0
            self.is_all_untouched = count > 0
            return 0
        return self.write_pending()

    # --- deciding --------------------------------------------------------------------------------

    cdef void decide_next(self) noexcept nogil:
        cdef FilteredRecord *filtered = self.record_at(self.decided)
        self.decided += 1
        filtered.is_kept = self.is_kept(filtered)

    cdef bint is_kept(self, const FilteredRecord *filtered) noexcept nogil:
        cdef const KeyedRecord *r = &filtered.record
        cdef const Header *h = &self.batch_at(filtered.batch).h
        cdef bint superseded
        if h.magic == 2 and h.attributes & CONTROL_BIT:
            return True
        if r.offset > self.map.latest_offset:
            return True
        if r.key_size < 0:
            self.null_keys += 1
            return False
        if filtered.is_looked_up:
            superseded = r.offset < self.map.find(filtered.hash)
        else:
            superseded = self.map.is_superseded(r.offset)
        if superseded:
            self.superseded += 1
            return False
        if r.value_size >= 0:
            return True
        if h.magic < 2:
            if self.retain_legacy_deletes:
                return True
        elif not has_horizon(h) or self.now_ms < h.base_timestamp_ms:
            return True
        self.tombstones_expired += 1
        return False

    # --- writing ---------------------------------------------------------------------------------

    cdef int write_pending(self) except -1 nogil:
        cdef Py_ssize_t i
        while self.decided < self.pending_records():
            self.decide_next()
        for i in range(self.pending_batches()):
            self.write_batch(self.batch_at(i))
        self.batches.used = 0
        self.records.used = 0
        self.decided = 0
        return 0

    cdef int write_batch(self, const FilteredBatch *batch) except -1 nogil:
        cdef const Header *h = &batch.h
        cdef const KeyedRecord *r
        cdef Py_ssize_t i
        cdef Py_ssize_t kept = 0
        cdef Py_ssize_t before = self.output.used
        cdef int64_t tombstones = 0
        cdef bint needs_horizon
        cdef bint is_control = h.magic == 2 and (h.attributes & CONTROL_BIT) != 0
        cdef int64_t horizon_ms = -1
        if batch.is_untouched:
            self.write_original(batch)
            self.keep_untouched(h)
            return 0
        for i in range(batch.first_record, batch.first_record + batch.record_count):
            if self.record_at(i).is_kept:
                r = &self.record_at(i).record
                kept += 1
                tombstones += r.value_size < 0
        if kept == 0:
            if not batch.retain_empty:
                return 0
            self.write_empty(batch)
        else:
            needs_horizon = (tombstones or batch.is_marker_of_nothing) and not has_horizon(h)
            if not needs_horizon and kept == batch.record_count and h.magic == 2:
                self.write_original(batch)
            else:
                if needs_horizon:
                    horizon_ms = <int64_t> (<uint64_t> self.now_ms
                                            + <uint64_t> self.delete_retention_ms)
                    self.horizons_set += horizon_ms >= 0
                elif has_horizon(h):
                    horizon_ms = h.base_timestamp_ms
                self.rebuild(batch, horizon_ms)
        if not is_control:
            self.tombstones_kept += tombstones
        self.messages_kept += kept
        self.batches_kept += 1
        self.largest_batch_bytes = max(self.largest_batch_bytes, self.output.used - before)
        return 0

    cdef void keep_untouched(self, const Header *h) noexcept nogil:
        self.messages_kept += h.record_count
        self.batches_kept += 1
        self.largest_batch_bytes = max(self.largest_batch_bytes, h.size_bytes)

    cdef int write_original(self, const FilteredBatch *batch) except -1 nogil:
        cdef uint8_t *room = scratch_room(&self.output, <Py_ssize_t> batch.h.size_bytes)
        if room == NULL:
            raise MemoryError
        memcpy(room, batch.start, <size_t> batch.h.size_bytes)
        return 0

    cdef int write_empty(self, const FilteredBatch *batch) except -1 nogil:
        """The header alone: what is known of the producer, and where the log ends."""
        cdef uint8_t *room
        cdef Header h = batch.h
        if h.magic < 2:
            return self.refuse(FAULT_EMPTY_LEGACY, &h)
        room = scratch_room(&self.output, V2_HEADER_BYTES)
        if room == NULL:
            raise MemoryError
        h.attributes &= TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
        h.base_timestamp_ms = -1
        h.record_count = 0
        write_header(room, &h, V2_HEADER_BYTES)
        return 0

    cdef int rebuild(self, const FilteredBatch *batch, int64_t horizon_ms) except -1 nogil:
        """A batch of the kept records: their offsets and timestamps, and the range of offsets
        that the batch had, do not change."""
        cdef Header h = batch.h
        cdef FilteredRecord *filtered
        cdef const FilteredRecord *last = NULL
        cdef Scratch *target = &self.body if h.attributes & CODEC_MASK else &self.output
        cdef Py_ssize_t start, i
        cdef int16_t known = (CODEC_MASK | TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT)
        self.body.used = 0
        start = target.used
        if scratch_room(target, V2_HEADER_BYTES) == NULL:
            raise MemoryError
        h.record_count = 0
        for i in range(batch.first_record, batch.first_record + batch.record_count):
            filtered = self.record_at(i)
            if not filtered.is_kept:
                continue
            if last == NULL:
                if h.magic < 2:
                    h.base_offset = filtered.record.offset
                h.base_timestamp_ms = filtered.record.timestamp_ms
                if horizon_ms >= 0:
                    h.base_timestamp_ms = horizon_ms
                if not h.attributes & TIMESTAMP_TYPE_BIT or h.magic == 0:
                    h.max_timestamp_ms = -1
            elif filtered.record.offset <= last.record.offset:
                return self.refuse(FAULT_RECORD_ORDER, &batch.h)
            self.encode(target, batch, &h, &filtered.record)
            last = filtered
        if h.magic < 2:
            h.last_offset = last.record.offset
            h.attributes &= CODEC_MASK | (TIMESTAMP_TYPE_BIT if h.magic == 1 else 0)
            h.magic = 2
        h.attributes &= known
        if horizon_ms >= 0:
            h.attributes |= DELETE_HORIZON_BIT
        if h.attributes & CODEC_MASK:
            return self.seal_compressed(&h)
        if target.used - start > INT32_MAX:
            return self.refuse(FAULT_SIZE_MAX, &batch.h)
        write_header(target.data + start, &h, target.used - start)
        return 0

    cdef int encode(self, Scratch *target, const FilteredBatch *batch, Header *h,
                    const KeyedRecord *r) except -1 nogil:
        cdef int64_t timestamp_ms = r.timestamp_ms
        cdef int64_t delta = r.offset - h.base_offset
        cdef const uint8_t *contents = batch.contents
        cdef int32_t headers, body
        cdef int64_t size
        cdef uint8_t *p
        if timestamp_ms < -1:
            return self.refuse(FAULT_TIMESTAMP, &batch.h)
        if delta < 0 or delta > INT32_MAX:
            return self.refuse(FAULT_RECORD_OFFSET, &batch.h)
        headers = copy_record_headers(contents, r.headers_at, r.end_at, r.header_count, NULL)
        size = (1 + varlong_size(timestamp_delta(timestamp_ms, h.base_timestamp_ms))
                + varint_size(<int32_t> delta) + <int64_t> sized_bytes(r.key_size)
                + sized_bytes(r.value_size) + varint_size(r.header_count) + headers)
        if size > INT32_MAX:
            return self.refuse(FAULT_SIZE_MAX, &batch.h)
        body = <int32_t> size
        p = scratch_room(target, varint_size(body) + <Py_ssize_t> body)
        if p == NULL:
            raise MemoryError
        p = write_varint(p, body)
        p[0] = 0
        p = write_varlong(p + 1, timestamp_delta(timestamp_ms, h.base_timestamp_ms))
        p = write_varint(p, <int32_t> delta)
        p = write_sized(p, contents + r.key_at, r.key_size)
        p = write_sized(p, contents + r.value_at, r.value_size)
        p = write_varint(p, r.header_count)
        copy_record_headers(contents, r.headers_at, r.end_at, r.header_count, p)
        h.record_count += 1
        if not (h.attributes & TIMESTAMP_TYPE_BIT and h.magic > 0):
            h.max_timestamp_ms = max(h.max_timestamp_ms, timestamp_ms)
        return 0

    cdef int seal_compressed(self, const Header *h) except -1 with gil:
        cdef uint8_t *room
        cdef Py_buffer view
        records = PyMemoryView_FromMemory(
            <char *> self.body.data + V2_HEADER_BYTES, self.body.used - V2_HEADER_BYTES, PyBUF_READ
        )
        compressed = codec_compress()(h.attributes & CODEC_MASK, records)
        PyObject_GetBuffer(compressed, &view, PyBUF_SIMPLE)
        try:
            if view.len > INT32_MAX - V2_HEADER_BYTES:
                return self.refuse(FAULT_SIZE_MAX, h)
            room = scratch_room(&self.output, V2_HEADER_BYTES + view.len)
            if room == NULL:
                raise MemoryError
            memcpy(room + V2_HEADER_BYTES, view.buf, <size_t> view.len)
            write_header(room, h, V2_HEADER_BYTES + view.len)
        finally:
            PyBuffer_Release(&view)
        return 0


cdef inline bint has_horizon(const Header *h) noexcept nogil:
    return h.magic == 2 and (h.attributes & DELETE_HORIZON_BIT) != 0


cdef void write_header(uint8_t *p, const Header *h, Py_ssize_t size) noexcept nogil:
    """The header of the v2 batch of `size` bytes at `p`, whose records are there already."""
    store_i64(p, h.base_offset)
    store_i32(p + 8, <int32_t> (size - LOG_OVERHEAD_BYTES))
    store_i32(p + 12, h.partition_leader_epoch)
    p[16] = 2
    store_i16(p + 21, h.attributes)
    store_i32(p + 23, <int32_t> (h.last_offset - h.base_offset))
    store_i64(p + 27, h.base_timestamp_ms)
    store_i64(p + 35, h.max_timestamp_ms)
    store_i64(p + 43, h.producer_id)
    store_i16(p + 51, h.producer_epoch)
    store_i32(p + 53, h.base_sequence)
    store_i32(p + 57, h.record_count)
    store_i32(p + 17, <int32_t> crc_extend(CRC_CASTAGNOLI, 0, p + 21, <size_t> (size - 21)))


cdef object _codec_compress = None


cdef object codec_compress():
    # Imported when first needed: that module imports this one.
    global _codec_compress
    if _codec_compress is None:
        from stratalog.records.compression import Codec, compress
        _codec_compress = lambda codec_id, data: compress(Codec(codec_id), data)
    return _codec_compress
