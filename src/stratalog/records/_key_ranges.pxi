# Keys too many for one map: which records are superseded, found out a range of hashes at a time.
#
# A map that is restricted to a range learns of the dirty part's records while it is built. What is
# left are the records that were not put: those below the dirty part, and those of transactions.
# They are looked up in a second walk. Where even ranges are too many, hashes and offsets are sorted
# elsewhere, and the runs of equal hashes tell the same: offsets, again to be sorted by where they
# belong and then marked there.

@cython.final
cdef class SupersededScan(BatchWalk):
    """Marks the records that a map supersedes and that its builder was not told of."""

    cdef readonly OffsetMap map
    cdef readonly int64_t first_dirty_offset
    cdef readonly int64_t transactional_batches
    cdef ExpectedKey ahead[LOOK_AHEAD]
    cdef uint32_t found_count
    cdef uint32_t taken_count

    def __cinit__(self, OffsetMap offset_map not None, int64_t first_dirty_offset):
        self.map = offset_map
        self.first_dirty_offset = max(first_dirty_offset, 0)

    def feed(self, buffer, int64_t position):
        return self.walk(buffer, position)

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef bint is_transactional
        self.follow(h)
        is_transactional = h.magic == 2 and h.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)
        self.transactional_batches += is_transactional
        if h.magic == 2 and h.attributes & CONTROL_BIT:
            return WALK_SKIP
        if h.magic == 2 and h.base_offset >= self.first_dirty_offset and not is_transactional:
            return WALK_SKIP
        return WALK_READ

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        cdef ExpectedKey *key
        cdef Hash128 hash
        if r.key_size < 0 or r.value_size < 0:
            self.map.mark_special(r.offset)
        if r.key_size < 0:
            return 0
        hash = self.map.hash_of(contents + r.key_at, r.key_size)
        if not self.map.is_in_range(&hash):
            return 0
        if self.taken_count - self.found_count == LOOK_AHEAD:
            self.find_next()
        key = &self.ahead[self.taken_count % LOOK_AHEAD]
        self.taken_count += 1
        key.hash = hash
        key.offset = r.offset
        self.map.expect(&key.hash)
        return 0

    cdef int end_run(self) except -1 nogil:
        while self.found_count != self.taken_count:
            self.find_next()
        return 0

    cdef void find_next(self) noexcept nogil:
        cdef ExpectedKey *key = &self.ahead[self.found_count % LOOK_AHEAD]
        self.found_count += 1
        if key.offset < self.map.find(key.hash):
            self.map.mark(self.map.superseded, key.offset)


@cython.final
cdef class KeyHashes(BatchWalk):
    """The hashes and offsets of keyed records, as columns to be sorted by somebody else.

    The third column is twice the offset, plus one where the map of a cleaning would be told of
    the record: it is in the dirty part, and of no transaction that was aborted.
    """

    cdef readonly OffsetMap map
    cdef readonly CleanedTransactions transactions
    cdef readonly int64_t first_dirty_offset
    cdef readonly int64_t transactional_batches
    cdef bint is_told
    cdef Scratch lows
    cdef Scratch highs
    cdef Scratch places

    def __cinit__(self, OffsetMap offset_map not None, CleanedTransactions transactions not None,
                  int64_t first_dirty_offset):
        self.map = offset_map
        self.transactions = transactions
        self.first_dirty_offset = max(first_dirty_offset, 0)

    def __dealloc__(self):
        scratch_free(&self.lows)
        scratch_free(&self.highs)
        scratch_free(&self.places)

    def feed(self, buffer, int64_t position):
        return self.walk(buffer, position)

    @property
    def rows(self):
        return self.lows.used >> 3

    def take(self):
        """The three columns since this was last asked, as 64-bit numbers."""
        columns = (
            (<char *> self.lows.data)[:self.lows.used],
            (<char *> self.highs.data)[:self.highs.used],
            (<char *> self.places.data)[:self.places.used],
        )
        self.lows.used = self.highs.used = self.places.used = 0
        return columns

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        cdef int kind = CONTROL_OTHER
        cdef int fault
        self.follow(h)
        if h.magic == 2 and h.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
            self.transactional_batches += 1
        # As the map's builder, which sees nothing of what lies below the dirty part.
        self.is_told = h.last_offset >= self.first_dirty_offset
        if h.magic == 2 and h.attributes & CONTROL_BIT:
            if not h.attributes & CODEC_MASK:
                fault = control_kind(p + V2_HEADER_BYTES,
                                     <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES, h, &kind)
                if fault:
                    return self.refuse(fault, h)
            self.transactions.meet_control(h, kind)
            return WALK_SKIP
        if self.transactions.meet_data(h):
            self.is_told = False
        return WALK_READ

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        cdef Hash128 hash
        cdef int64_t place
        if r.key_size < 0 or r.value_size < 0:
            self.map.mark_special(r.offset)
        if r.key_size < 0:
            return 0
        hash = self.map.hash_of(contents + r.key_at, r.key_size)
        place = <int64_t> (<uint64_t> r.offset << 1) | (self.is_told and r.offset >= self.first_dirty_offset)
        if (append_i64(&self.lows, <int64_t> hash.low)
                and append_i64(&self.highs, <int64_t> hash.high)
                and append_i64(&self.places, place)):
            return 0
        raise MemoryError


cdef inline bint append_i64(Scratch *column, int64_t value) noexcept nogil:
    cdef uint8_t *room = scratch_room(column, 8)
    if room == NULL:
        return False
    memcpy(room, &value, 8)
    return True


@cython.final
cdef class SupersededRuns:
    """The superseded ones of what ``KeyHashes`` gave, sorted by hash and then from the last place
    to the first."""

    cdef Hash128 hash
    cdef bint is_begun
    cdef bint is_superseding
    cdef Scratch offsets

    def __dealloc__(self):
        scratch_free(&self.offsets)

    def feed(self, lows, highs, places):
        """The offsets of those rows that are superseded, as 64-bit numbers."""
        cdef LentBytes low = LentBytes(lows, PyBUF_SIMPLE)
        cdef LentBytes high = LentBytes(highs, PyBUF_SIMPLE)
        cdef LentBytes place = LentBytes(places, PyBUF_SIMPLE)
        cdef Py_ssize_t rows = low.view.len >> 3
        if not low.view.len == high.view.len == place.view.len == rows << 3:
            raise ValueError("columns of different lengths")
        self.offsets.used = 0
        with nogil:
            self.take(<const uint8_t *> low.view.buf, <const uint8_t *> high.view.buf,
                      <const uint8_t *> place.view.buf, rows)
        return (<char *> self.offsets.data)[:self.offsets.used]

    cdef int take(self, const uint8_t *lows, const uint8_t *highs, const uint8_t *places,
                  Py_ssize_t rows) except -1 nogil:
        cdef Hash128 hash
        cdef int64_t place
        cdef Py_ssize_t i
        for i in range(rows):
            memcpy(&hash.low, lows + 8 * i, 8)
            memcpy(&hash.high, highs + 8 * i, 8)
            memcpy(&place, places + 8 * i, 8)
            if not self.is_begun or hash.low != self.hash.low or hash.high != self.hash.high:
                self.is_begun = True
                self.is_superseding = False
                self.hash = hash
            if not self.is_superseding:
                self.is_superseding = place & 1
            elif not append_i64(&self.offsets, place >> 1):
                raise MemoryError
        return 0


def mark_offsets(offsets, bits, int64_t first_offset, int64_t end_offset):
    """Set the bits of these 64-bit numbers; those that lie elsewhere are passed over."""
    cdef LentBytes lent = LentBytes(offsets, PyBUF_SIMPLE)
    cdef LentBytes target = LentBytes(bits, PyBUF_WRITABLE)
    cdef uint8_t *marked = <uint8_t *> target.view.buf
    cdef const uint8_t *places = <const uint8_t *> lent.view.buf
    cdef Py_ssize_t rows = lent.view.len >> 3
    cdef Py_ssize_t i
    cdef int64_t offset
    cdef uint64_t place
    if first_offset < 0 or end_offset < first_offset:
        raise ValueError(f"offsets from {first_offset} to {end_offset}")
    if target.view.len < ((end_offset - first_offset) >> 3) + (((end_offset - first_offset) & 7) != 0):
        raise ValueError(f"{target.view.len} bytes for {end_offset - first_offset} offsets")
    with nogil:
        for i in range(rows):
            memcpy(&offset, places + 8 * i, 8)
            if first_offset <= offset < end_offset:
                place = <uint64_t> (offset - first_offset)
                marked[place >> 3] |= <uint8_t> (1 << (place & 7))
