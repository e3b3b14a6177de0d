# What the cleaner has to know of producers and transactions while it walks over batches.
#
# Batches of aborted transactions go at once. Their marker, and that of a committed one, goes only
# when no data batch of the transaction was met any more; until then it is kept, and of an aborted
# one the entry in the transaction index as well. The last batch of a producer that is still known
# is kept, if need be without records, because it has the last sequence number.
#
# One table by producer id holds all of this, so that a batch costs one lookup and no GIL.

cdef enum:
    CONTROL_ABORT = 0
    CONTROL_COMMIT = 1
    CONTROL_OTHER = 2
    CONTROL_EMPTY = 3               # the record was cleaned away before

cdef struct AbortedEntry:
    int64_t producer_id
    int64_t first_offset
    int64_t last_offset
    int64_t last_stable_offset

cdef struct ProducerEntry:
    int64_t producer_id
    int64_t last_data_offset        # -1: it has none
    int16_t epoch
    bint is_used
    bint is_active                  # the log's producer state knows it
    bint committing                 # a data batch outside aborted transactions was met
    bint aborting                   # within an aborted transaction ...
    bint aborting_seen              # ... of which a data batch was met
    AbortedEntry aborted


@cython.final
cdef class CleanedTransactions:
    """Transactions and producers as a walk over a log's batches meets them, in offset order."""

    cdef ProducerEntry *entries
    cdef uint64_t places            # a power of two
    cdef uint64_t used
    cdef AbortedEntry *pending      # by first offset; those before `reached` have begun
    cdef Py_ssize_t pending_count
    cdef Py_ssize_t reached
    cdef Scratch kept
    cdef uint64_t sip_key[2]        # producers choose their ids: where they lie is not for them

    def __cinit__(self, producers=()):
        cdef ProducerEntry *entry
        siphash_key(os.urandom(16), self.sip_key)
        self.places = 64
        self.entries = <ProducerEntry *> calloc(self.places, sizeof(ProducerEntry))
        if self.entries == NULL:
            raise MemoryError
        for producer_id, epoch, last_data_offset in producers:
            entry = self.entry_of(producer_id)
            if entry == NULL:
                raise MemoryError
            entry.is_active = True
            entry.epoch = epoch
            entry.last_data_offset = last_data_offset

    def __dealloc__(self):
        free(self.entries)
        free(self.pending)
        scratch_free(&self.kept)

    def add_aborted(self, transactions):
        """Aborted transactions, as tuples in the order of the transaction index's fields."""
        cdef AbortedEntry *entries
        cdef Py_ssize_t i
        cdef list waiting = [self.pending[i] for i in range(self.reached, self.pending_count)]
        cdef list merged = [
            (each["producer_id"], each["first_offset"], each["last_offset"],
             each["last_stable_offset"])
            for each in waiting
        ]
        for producer_id, first_offset, last_offset, last_stable_offset in transactions:
            merged.append((producer_id, first_offset, last_offset, last_stable_offset))
        merged.sort(key=first_offset_of)
        entries = <AbortedEntry *> malloc(max(len(merged), 1) * sizeof(AbortedEntry))
        if entries == NULL:
            raise MemoryError
        try:
            for i in range(len(merged)):
                entries[i].producer_id, entries[i].first_offset = merged[i][0], merged[i][1]
                entries[i].last_offset, entries[i].last_stable_offset = merged[i][2], merged[i][3]
        except BaseException:
            free(entries)
            raise
        free(self.pending)
        self.pending = entries
        self.pending_count = len(merged)
        self.reached = 0

    def take_kept(self):
        """The aborted transactions whose markers were kept since this was last asked."""
        cdef AbortedEntry *kept = <AbortedEntry *> self.kept.data
        cdef Py_ssize_t count = self.kept.used // <Py_ssize_t> sizeof(AbortedEntry)
        cdef Py_ssize_t i
        cdef list taken = [
            (kept[i].producer_id, kept[i].first_offset, kept[i].last_offset,
             kept[i].last_stable_offset)
            for i in range(count)
        ]
        self.kept.used = 0
        return taken

    cdef ProducerEntry *place_of(self, int64_t producer_id) noexcept nogil:
        cdef Hash128 hash = siphash_of(self.sip_key, <const uint8_t *> &producer_id, 8)
        cdef uint64_t place = scale_hash(hash.low, self.places)
        while self.entries[place].is_used and self.entries[place].producer_id != producer_id:
            place = (place + 1) & (self.places - 1)
        return &self.entries[place]

    cdef ProducerEntry *entry_of(self, int64_t producer_id) noexcept nogil:
        """The producer's entry, made if need be; NULL when there is no memory."""
        cdef ProducerEntry *entry = self.place_of(producer_id)
        if entry.is_used:
            return entry
        if 2 * self.used >= self.places:
            if not self.grow():
                return NULL
            entry = self.place_of(producer_id)
        self.used += 1
        entry.is_used = True
        entry.producer_id = producer_id
        entry.last_data_offset = -1
        return entry

    cdef bint grow(self) noexcept nogil:
        cdef ProducerEntry *before = self.entries
        cdef uint64_t count = self.places
        cdef uint64_t i
        cdef ProducerEntry *entries = <ProducerEntry *> calloc(2 * count, sizeof(ProducerEntry))
        if entries == NULL:
            return False
        self.entries = entries
        self.places = 2 * count
        for i in range(count):
            if before[i].is_used:
                self.place_of(before[i].producer_id)[0] = before[i]
        free(before)
        return True

    cdef int reach(self, int64_t offset) except -1 nogil:
        """Aborted transactions that begin up to `offset` are under way from now on."""
        cdef AbortedEntry *aborted
        cdef ProducerEntry *entry
        while self.reached < self.pending_count:
            aborted = &self.pending[self.reached]
            if aborted.first_offset > offset:
                return 0
            self.reached += 1
            entry = self.entry_of(aborted.producer_id)
            if entry == NULL:
                raise MemoryError
            # One that reaches over several segments is told of more than once.
            if not entry.aborting:
                entry.aborting = True
                entry.aborting_seen = False
                entry.aborted = aborted[0]
        return 0

    cdef int meet_data(self, const Header *h) except -1 nogil:
        """Count a data batch; whether its transaction was aborted."""
        cdef ProducerEntry *entry
        self.reach(h.last_offset)
        if h.magic < 2 or not h.attributes & TRANSACTIONAL_BIT:
            return 0
        entry = self.entry_of(h.producer_id)
        if entry == NULL:
            raise MemoryError
        if entry.aborting:
            entry.aborting_seen = True
            return 1
        entry.committing = True
        return 0

    cdef int meet_control(self, const Header *h, int kind) except -1 nogil:
        """Count a marker; whether nothing of its transaction was met, so that it may go."""
        cdef ProducerEntry *entry
        cdef uint8_t *room
        self.reach(h.last_offset)
        if kind == CONTROL_EMPTY:
            return 1
        if kind == CONTROL_OTHER:
            return 0
        entry = self.entry_of(h.producer_id)
        if entry == NULL:
            raise MemoryError
        if kind == CONTROL_COMMIT:
            if entry.committing:
                entry.committing = False
                return 0
            return 1
        if not entry.aborting:
            return 1
        entry.aborting = False
        if not entry.aborting_seen:
            return 1
        room = scratch_room(&self.kept, sizeof(AbortedEntry))
        if room == NULL:
            raise MemoryError
        memcpy(room, &entry.aborted, sizeof(AbortedEntry))
        return 0

    cdef bint is_last_of_producer(self, const Header *h) noexcept nogil:
        """Whether the batch has to stay, because it is what is known of an active producer."""
        cdef ProducerEntry *entry
        if h.producer_id < 0:
            return False
        entry = self.place_of(h.producer_id)
        if not entry.is_used or not entry.is_active:
            return False
        if entry.last_data_offset >= 0:
            return h.last_offset == entry.last_data_offset
        return (h.attributes & CONTROL_BIT) != 0 and h.producer_epoch == entry.epoch


def first_offset_of(transaction):
    return transaction[1]


cdef int control_kind(const uint8_t *data, Py_ssize_t size, const Header *h,
                      int *kind) noexcept nogil:
    """What the first record of a control batch says; a fault if its key says nothing."""
    cdef RecordView record
    cdef Py_ssize_t at = 0
    cdef int16_t type
    cdef int fault
    kind[0] = CONTROL_EMPTY
    if h.record_count == 0:
        return FAULT_NONE
    fault = parse_record(data, size, &at, &record)
    if fault:
        return fault
    if record.key_size < 4 or load_i16(data + record.key_at) < 0:
        return FAULT_CONTROL_KEY
    type = load_i16(data + record.key_at + 2)
    kind[0] = type if type == CONTROL_ABORT or type == CONTROL_COMMIT else CONTROL_OTHER
    return FAULT_NONE
