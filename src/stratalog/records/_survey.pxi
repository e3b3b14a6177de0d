# What a cleaning would meet: how many keys, tombstones and markers a log has.
#
# Keys are counted by HyperLogLog, in 16 KiB whatever their number, within about one percent.

from libc.math cimport log as natural_log

cdef enum:
    SURVEY_BITS = 14
    SURVEY_REGISTERS = 1 << 14


@cython.final
cdef class KeySurvey(BatchWalk):
    """Counts what matters to compaction; feed it batches in any order."""

    cdef readonly int64_t batches
    cdef readonly int64_t records
    cdef readonly int64_t control_batches
    cdef readonly int64_t header_only_batches
    cdef readonly int64_t null_keys
    cdef readonly int64_t tombstones
    cdef readonly int64_t tombstones_with_horizon
    cdef readonly int64_t earliest_horizon_ms
    cdef readonly int64_t latest_horizon_ms
    cdef readonly int64_t first_dirty_offset
    cdef uint8_t registers[SURVEY_REGISTERS]
    cdef uint64_t sip_key[2]
    cdef int64_t horizon_ms

    def __cinit__(self, int64_t first_dirty_offset=0):
        """Keys are counted from ``first_dirty_offset`` on."""
        siphash_key(os.urandom(16), self.sip_key)
        self.first_dirty_offset = first_dirty_offset
        self.earliest_horizon_ms = self.latest_horizon_ms = -1

    def feed(self, buffer, int64_t position):
        return self.walk(buffer, position)

    @property
    def estimated_keys(self):
        cdef double total = 0
        cdef double estimate
        cdef int64_t empty = 0
        cdef int i
        for i in range(SURVEY_REGISTERS):
            total += 1.0 / <double> (<uint64_t> 1 << self.registers[i])
            empty += self.registers[i] == 0
        estimate = 0.7213 / (1 + 1.079 / SURVEY_REGISTERS) * SURVEY_REGISTERS * (
            SURVEY_REGISTERS / total)
        if estimate <= 2.5 * SURVEY_REGISTERS and empty:
            estimate = SURVEY_REGISTERS * natural_log(SURVEY_REGISTERS / <double> empty)
        return <int64_t> (estimate + 0.5)

    cdef int begin_batch(self, const uint8_t *p, const Header *h) except -1 nogil:
        self.batches += 1
        self.horizon_ms = h.base_timestamp_ms if has_horizon(h) else -1
        if h.magic == 2 and h.attributes & CONTROL_BIT:
            self.control_batches += 1
            return WALK_SKIP
        if h.record_count == 0:
            self.header_only_batches += 1
            return WALK_SKIP
        return WALK_READ

    cdef int take_record(self, const uint8_t *contents, const KeyedRecord *r) except -1 nogil:
        self.records += 1
        if r.key_size < 0:
            self.null_keys += 1
        elif r.offset >= self.first_dirty_offset:
            self.count_key(siphash_of(self.sip_key, contents + r.key_at, r.key_size))
        if r.value_size < 0:
            self.tombstones += 1
            if self.horizon_ms >= 0:
                self.tombstones_with_horizon += 1
                if self.earliest_horizon_ms < 0 or self.horizon_ms < self.earliest_horizon_ms:
                    self.earliest_horizon_ms = self.horizon_ms
                self.latest_horizon_ms = max(self.latest_horizon_ms, self.horizon_ms)
        return 0

    cdef inline void count_key(self, Hash128 hash) noexcept nogil:
        cdef int place = <int> (hash.low >> (64 - SURVEY_BITS))
        cdef uint8_t rank = 1
        while rank < 63 and not hash.high & 1:
            hash.high >>= 1
            rank += 1
        self.registers[place] = max(self.registers[place], rank)
