# The offset map built from the dirty part of a log: the first of the two walks of a compaction.

cdef enum:
    LOOK_AHEAD = 64                 # records between asking for a slot and probing it

cdef struct ExpectedKey:
    Hash128 hash
    int64_t offset
    int64_t latest_before           # the last offset of the batches before this record's
    int64_t messages_before


@cython.final
cdef class MapBuilder(BatchWalk):
    """Puts the keys of the dirty part of a log into an ``OffsetMap``, until that is full."""

    cdef readonly OffsetMap map
    cdef readonly CleanedTransactions transactions
    cdef readonly int64_t first_dirty_offset
    cdef readonly int64_t messages_read
    cdef readonly int64_t transactional_batches
    cdef int64_t latest
    cdef ExpectedKey ahead[LOOK_AHEAD]
    cdef uint32_t put_count
    cdef uint32_t taken_count

    def __cinit__(self, OffsetMap offset_map not None, CleanedTransactions transactions not None,
                  int64_t first_dirty_offset):
        self.map = offset_map
        self.transactions = transactions
        self.first_dirty_offset = max(first_dirty_offset, 0)
        self.latest = -1

    @property
    def is_full(self):
        return self.is_stopped

    def feed(self, buffer, int64_t position):
        return self.walk(buffer, position)

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef int kind = CONTROL_OTHER
        cdef int fault
        self.follow(h)
        if h.magic == 2 and h.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
            self.transactional_batches += 1
        if h.magic == 2 and h.attributes & CONTROL_BIT:
            if not h.attributes & CODEC_MASK:
                fault = control_kind(p + V2_HEADER_BYTES,
                                     <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES, h, &kind)
                if fault:
                    return self.refuse(fault, h)
            self.transactions.meet_control(h, kind)
            self.messages_read += 1
            return WALK_SKIP
        if self.transactions.meet_data(h):
            self.messages_read += h.record_count
            return WALK_SKIP
        return WALK_SKIP if h.last_offset < self.first_dirty_offset else WALK_READ

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        cdef ExpectedKey *key
        cdef Hash128 hash
        if r.key_size < 0 or r.value_size < 0:
            self.map.mark_special(r.offset)
        if r.key_size >= 0 and r.offset >= self.first_dirty_offset:
            hash = self.map.hash_of(contents + r.key_at, r.key_size)
            if not self.map.is_in_range(&hash):
                self.messages_read += 1
                return 0
            if self.taken_count - self.put_count == LOOK_AHEAD:
                if not self.put_next():
                    return 0
            key = &self.ahead[self.taken_count % LOOK_AHEAD]
            self.taken_count += 1
            key.hash = hash
            key.offset = r.offset
            key.latest_before = self.latest
            key.messages_before = self.messages_read
            self.map.expect(&key.hash)
        self.messages_read += 1
        return 0

    cdef int end_batch(self, const Header *h) except -1 nogil:
        if not self.is_stopped and h.last_offset >= self.first_dirty_offset:
            self.latest = h.last_offset
        return 0

    cdef int end_run(self) except -1 nogil:
        while self.put_count != self.taken_count:
            if not self.put_next():
                return 0
        if not self.is_stopped and self.latest > self.map.latest_offset:
            self.map.latest_offset = self.latest
        return 0

    cdef bint put_next(self) noexcept nogil:
        """Put the key that has waited longest. When the map is full, what came before that key
        is what it covers: perhaps a part of a batch."""
        cdef ExpectedKey *key = &self.ahead[self.put_count % LOOK_AHEAD]
        if self.is_stopped:
            return False
        if not self.map.store(key.hash, key.offset):
            self.map.latest_offset = max(self.map.latest_offset, key.latest_before)
            self.messages_read = key.messages_before
            self.is_stopped = True
            return False
        self.put_count += 1
        return True
