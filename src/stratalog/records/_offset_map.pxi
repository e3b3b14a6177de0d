# The offsets that the cleaner remembers: hash of a key -> offset of its last record.
#
# A slot is 24 bytes: 16 of hash, 8 of offset, as in Kafka, so that the same memory holds the same
# number of keys. The key is not kept. Slots are probed one after the other from the one that the
# hash points to, which stays within a cache line or two; what costs is the first one, so whoever
# works through many keys hashes a run of them, asks for their slots, and probes later.
#
# Whoever builds the map learns on the way which of its records are superseded: each put that finds
# an earlier offset says so. One bit an offset remembers it, and another that a record has no value
# or no key, so that filtering the same records again needs neither hash nor slot, and a batch
# without such records need not be looked into at all.
#
# Keys too many for one map are taken by several, each a range of the hashes. What they find out is
# bits in memory of the caller's, over all offsets that are cleaned; put together they decide every
# record, and the filter is given a map that holds nothing but them.

import os

from cpython.buffer cimport PyBUF_WRITABLE

cdef extern from *:
    """
    #include <sys/mman.h>
    static inline void prefetch_for_write(const void *place) {
        __builtin_prefetch(place, 1, 1);
    }
    /* hash * count / 2**64: a slot for each hash, evenly, without a division. */
    static inline uint64_t scale_hash(uint64_t hash, uint64_t count) {
        return (uint64_t) (((unsigned __int128) hash * count) >> 64);
    }
    #ifdef __SANITIZE_ADDRESS__  /* which sees the ends of what malloc gave, not of a mapping */
    #include <stdlib.h>
    static inline void *reserve_zeros(size_t size) { return calloc(size, 1); }
    static inline int forget_pages(void *memory, size_t size) { return -1; }
    static inline void release_zeros(void *memory, size_t size) { free(memory); }
    #else
    static inline void *reserve_zeros(size_t size) {
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return NULL;
    #ifdef MADV_HUGEPAGE
        madvise(memory, size, MADV_HUGEPAGE);  /* random probes: fewer TLB misses */
    #endif
        return memory;
    }
    /* Gives the pages back; they read as zeros when they are next touched. */
    static inline int forget_pages(void *memory, size_t size) {
    #ifdef __linux__
        return madvise(memory, size, MADV_DONTNEED);
    #else
        return -1;  /* elsewhere the pages may keep what they hold */
    #endif
    }
    static inline void release_zeros(void *memory, size_t size) { munmap(memory, size); }
    #endif
    """
    void prefetch_for_write(const void *place) noexcept nogil
    uint64_t scale_hash(uint64_t hash, uint64_t count) noexcept nogil
    void *reserve_zeros(size_t size) noexcept nogil
    int forget_pages(void *memory, size_t size) noexcept nogil
    void release_zeros(void *memory, size_t size) noexcept nogil

cdef enum:
    MAP_SLOT_BYTES = 24
    TRACKED_OFFSETS_MAX = 1 << 26   # twice 8 MiB of bits

cdef struct MapSlot:
    Hash128 hash
    int64_t next_offset             # the offset + 1, so that zeros are an empty slot


@cython.final
cdef class LentBytes:
    """A buffer of somebody else's, held for as long as this lives."""

    cdef Py_buffer view
    cdef bint is_held

    def __cinit__(self, buffer, int flags):
        PyObject_GetBuffer(buffer, &self.view, flags)
        self.is_held = True

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.view)


@cython.final
cdef class OffsetMap:
    """A bounded map from the keys of records to offsets; see the top of this file."""

    cdef readonly int64_t slots
    cdef readonly int64_t capacity
    cdef readonly int64_t size
    cdef int64_t limit              # of `size`, in the slots that are in use
    cdef uint64_t slots_in_use
    cdef readonly int64_t latest_offset
    cdef readonly str hash_name
    cdef readonly bytes key
    cdef MapSlot *memory
    cdef size_t memory_bytes
    cdef uint64_t sip_key[2]
    cdef bint is_md5
    cdef uint8_t *superseded        # a bit for each offset that is tracked
    cdef uint8_t *special           # the same, in the same memory
    cdef size_t tracked_bytes       # of each of the two
    cdef int64_t tracked_from
    cdef int64_t tracked_to
    cdef object lent                # who owns the memory of the bits, if the map does not
    cdef bint is_decided            # the bits are all there is to know
    cdef uint64_t range_first       # of the upper halves of hashes: the lower ones choose slots
    cdef uint64_t range_last

    def __cinit__(self, int64_t memory_bytes, *, double load_factor=0.9, str hash_name="siphash",
                  bytes key=None):
        if hash_name not in ("siphash", "md5"):
            raise ValueError(f"hash {hash_name!r}; there are 'siphash' and 'md5'")
        self.slots = memory_bytes // MAP_SLOT_BYTES
        self.capacity = <int64_t> (self.slots * load_factor)
        # One slot stays free whatever the factor: a search ends at an empty one.
        self.capacity = min(self.capacity, self.slots - 1)
        if self.capacity < 1:
            raise ValueError(
                f"{memory_bytes} bytes with a load factor of {load_factor} hold no key"
            )
        self.hash_name = hash_name
        self.is_md5 = hash_name == "md5"
        self.key = os.urandom(16) if key is None else key
        siphash_key(self.key, self.sip_key)
        self.latest_offset = -1
        self.range_last = <uint64_t> -1
        self.limit = self.capacity
        self.slots_in_use = <uint64_t> self.slots
        self.memory_bytes = <size_t> self.slots * MAP_SLOT_BYTES
        self.memory = <MapSlot *> reserve_zeros(self.memory_bytes)
        if self.memory == NULL:
            raise MemoryError(f"{self.memory_bytes} bytes for the cleaner's offset map")

    def __dealloc__(self):
        if self.memory != NULL:
            release_zeros(self.memory, self.memory_bytes)
        self.untrack()

    def __len__(self):
        return self.size

    @property
    def utilization(self):
        return <double> self.size / <double> self.slots

    def clear(self, int64_t keys_at_most=INT64_MAX):
        if self.size:
            with nogil:
                memset(self.memory, 0, <size_t> self.slots_in_use * MAP_SLOT_BYTES)
        self.forget(keys_at_most)
        self.lent = None

    def release(self):
        with nogil:
            if forget_pages(self.memory, self.memory_bytes) != 0:
                memset(self.memory, 0, self.memory_bytes)
        self.forget(INT64_MAX)
        self.lent = None

    cdef void forget(self, int64_t keys_at_most) noexcept nogil:
        """Memory that is not touched costs nothing: few keys are kept in few slots."""
        keys_at_most = max(min(keys_at_most, self.slots), 0)
        self.slots_in_use = <uint64_t> min(self.slots, 2 * keys_at_most + 64)
        # Were there more keys after all, the map is full: a search ends at an empty slot.
        self.limit = min(self.capacity, <int64_t> self.slots_in_use - 1)
        self.size = 0
        self.latest_offset = -1
        self.untrack()

    def restrict(self, uint64_t first, uint64_t last):
        if last < first:
            raise ValueError(f"hashes from {first} to {last}")
        self.range_first, self.range_last = first, last

    def mark_in(self, superseded, special, int64_t first_offset, int64_t end_offset):
        self.borrow(superseded, special, first_offset, end_offset, PyBUF_WRITABLE)

    def decide(self, superseded, special, int64_t first_offset, int64_t end_offset):
        self.borrow(superseded, special, first_offset, end_offset, PyBUF_SIMPLE)
        self.is_decided = True

    cdef int borrow(self, superseded, special, int64_t first_offset, int64_t end_offset,
                    int flags) except -1:
        cdef LentBytes bits = LentBytes(superseded, flags)
        cdef LentBytes specials = LentBytes(special, flags)
        cdef int64_t wanted
        if first_offset < 0 or end_offset < first_offset:
            raise ValueError(f"offsets from {first_offset} to {end_offset}")
        wanted = ((end_offset - first_offset) >> 3) + (((end_offset - first_offset) & 7) != 0)
        if bits.view.len < wanted or specials.view.len < wanted:
            raise ValueError(f"{bits.view.len} and {specials.view.len} bytes; {wanted} are needed")
        self.untrack()
        self.lent = (bits, specials)
        self.superseded = <uint8_t *> bits.view.buf
        self.special = <uint8_t *> specials.view.buf
        self.tracked_from, self.tracked_to = first_offset, end_offset
        return 0

    def track(self, int64_t first_offset, int64_t end_offset):
        cdef size_t size
        self.untrack()
        self.lent = None
        if first_offset < 0 or end_offset <= first_offset:
            return
        if end_offset - first_offset > TRACKED_OFFSETS_MAX:
            end_offset = first_offset + TRACKED_OFFSETS_MAX
        size = <size_t> ((end_offset - first_offset + 7) >> 3)
        self.superseded = <uint8_t *> reserve_zeros(2 * size)
        if self.superseded != NULL:
            self.tracked_bytes = size
            self.special = self.superseded + size
            self.tracked_from = first_offset
            self.tracked_to = end_offset

    cdef void untrack(self) noexcept nogil:
        if self.tracked_bytes:
            release_zeros(self.superseded, 2 * self.tracked_bytes)
        self.superseded = self.special = NULL
        self.tracked_bytes = 0
        self.tracked_from = self.tracked_to = 0
        self.is_decided = False

    cdef inline bint is_tracked(self, int64_t offset) noexcept nogil:
        return self.tracked_from <= offset < self.tracked_to

    cdef inline void mark(self, uint8_t *bits, int64_t offset) noexcept nogil:
        cdef uint64_t place
        if self.is_tracked(offset):
            place = <uint64_t> (offset - self.tracked_from)
            bits[place >> 3] |= <uint8_t> (1 << (place & 7))

    cdef inline void mark_special(self, int64_t offset) noexcept nogil:
        self.mark(self.special, offset)

    cdef inline bint is_superseded(self, int64_t offset) noexcept nogil:
        cdef uint64_t place = <uint64_t> (offset - self.tracked_from)
        return self.is_tracked(offset) and (self.superseded[place >> 3] >> (place & 7)) & 1

    cdef inline bint is_in_range(self, const Hash128 *hash) noexcept nogil:
        return self.range_first <= hash.high <= self.range_last

    cdef bint is_untouched(self, int64_t first_offset, int64_t last_offset) noexcept nogil:
        """Whether all these offsets are tracked, and no record among them is marked."""
        cdef uint64_t place, last
        cdef uint8_t marks
        if not (self.is_tracked(first_offset) and self.is_tracked(last_offset)):
            return False
        place = <uint64_t> (first_offset - self.tracked_from)
        last = <uint64_t> (last_offset - self.tracked_from)
        while place <= last:
            marks = (self.superseded[place >> 3] | self.special[place >> 3]) >> (place & 7)
            if last - place < 8:
                marks &= <uint8_t> ((1 << (last - place + 1)) - 1)
            if marks:
                return False
            place = (place | 7) + 1
        return True

    def put(self, bytes key, int64_t offset):
        if offset < 0 or offset == INT64_MAX:
            raise ValueError(f"offset {offset}")
        if not self.store(self.hash_of(<const uint8_t *> PyBytes_AS_STRING(key), len(key)), offset):
            raise ValueError(f"all of the {self.limit} entries are taken")

    def get(self, bytes key):
        return self.find(self.hash_of(<const uint8_t *> PyBytes_AS_STRING(key), len(key)))

    def entries(self):
        cdef bytearray taken = bytearray(self.size * MAP_SLOT_BYTES)
        cdef MapSlot *target = <MapSlot *> PyByteArray_AS_STRING(taken)
        cdef int64_t limit = self.size
        cdef int64_t count = 0
        cdef uint64_t i
        with nogil:
            for i in range(self.slots_in_use):
                if self.memory[i].next_offset != 0 and count < limit:
                    target[count] = self.memory[i]
                    count += 1
        return taken

    def put_entries(self, entries):
        cdef LentBytes lent = LentBytes(entries, PyBUF_SIMPLE)
        cdef Py_ssize_t count = lent.view.len // MAP_SLOT_BYTES
        cdef const MapSlot *slots = <const MapSlot *> lent.view.buf
        cdef bint is_whole = True
        cdef Py_ssize_t i
        with nogil:
            for i in range(count):
                if i + 16 < count:
                    self.expect(&slots[i + 16].hash)
                if slots[i].next_offset <= 0 or not self.store(slots[i].hash,
                                                               slots[i].next_offset - 1):
                    is_whole = False
                    break
        return is_whole

    def raise_latest_offset(self, int64_t offset):
        self.latest_offset = max(self.latest_offset, offset)

    cdef inline Hash128 hash_of(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        if self.is_md5:
            return md5_of(data, size)
        return siphash_of(self.sip_key, data, size)

    cdef inline void expect(self, const Hash128 *hash) noexcept nogil:
        """Ask the memory for the slot of a hash that will be looked up soon."""
        cdef MapSlot *slot = &self.memory[scale_hash(hash.low, self.slots_in_use)]
        prefetch_for_write(slot)
        prefetch_for_write(<uint8_t *> slot + (MAP_SLOT_BYTES - 1))  # it may lie on two lines

    cdef inline MapSlot *slot_of(self, Hash128 hash) noexcept nogil:
        """The slot that has the hash, or the empty one where it belongs."""
        cdef uint64_t place = scale_hash(hash.low, self.slots_in_use)
        cdef MapSlot *slot
        while True:
            slot = &self.memory[place]
            if slot.next_offset == 0:
                return slot
            if slot.hash.low == hash.low and slot.hash.high == hash.high:
                return slot
            place += 1
            if place == self.slots_in_use:
                place = 0

    cdef inline bint store(self, Hash128 hash, int64_t offset) noexcept nogil:
        """As Kafka: when the map is full, not even a key that it holds can be put."""
        cdef MapSlot *slot
        if self.size >= self.limit:
            return False
        slot = self.slot_of(hash)
        if slot.next_offset == 0:
            slot.hash = hash
            self.size += 1
        else:
            self.mark(self.superseded, slot.next_offset - 1)
        slot.next_offset = offset + 1
        self.latest_offset = offset
        return True

    cdef inline int64_t find(self, Hash128 hash) noexcept nogil:
        return self.slot_of(hash).next_offset - 1
