# Hashes of keys, 128 bits each: two keys are taken for one when their hashes are equal.
#
# SipHash-2-4 with a secret key is the default: whoever chooses the keys of records cannot compute
# it, and so cannot find two that erase each other. MD5 is what Apache Kafka uses.

import math

cdef struct Hash128:
    uint64_t low
    uint64_t high


cdef inline uint64_t load_le_u64(const uint8_t *p) noexcept nogil:
    return <uint64_t> load_le_u32(p) | (<uint64_t> load_le_u32(p + 4) << 32)


cdef inline uint64_t rotate_left_64(uint64_t bits, int count) noexcept nogil:
    return (bits << count) | (bits >> (64 - count))


# --- SipHash-2-4, the variant of 128 bits --------------------------------------------------------


cdef inline void sip_round(uint64_t *v) noexcept nogil:
    v[0] += v[1]
    v[2] += v[3]
    v[1] = rotate_left_64(v[1], 13) ^ v[0]
    v[3] = rotate_left_64(v[3], 16) ^ v[2]
    v[0] = rotate_left_64(v[0], 32)
    v[2] += v[1]
    v[0] += v[3]
    v[1] = rotate_left_64(v[1], 17) ^ v[2]
    v[3] = rotate_left_64(v[3], 21) ^ v[0]
    v[2] = rotate_left_64(v[2], 32)


cdef inline Hash128 siphash_of(const uint64_t *key, const uint8_t *data,
                               Py_ssize_t size) noexcept nogil:
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef Hash128 hash
    cdef Py_ssize_t at = 0
    cdef int i
    v[0] = key[0] ^ <uint64_t> 0x736F6D6570736575
    v[1] = key[1] ^ <uint64_t> 0x646F72616E646F6D ^ 0xEE
    v[2] = key[0] ^ <uint64_t> 0x6C7967656E657261
    v[3] = key[1] ^ <uint64_t> 0x7465646279746573
    while size - at >= 8:
        word = load_le_u64(data + at)
        v[3] ^= word
        sip_round(v)
        sip_round(v)
        v[0] ^= word
        at += 8
    word = <uint64_t> size << 56
    for i in range(<int> (size - at)):
        word |= <uint64_t> data[at + i] << (8 * i)
    v[3] ^= word
    sip_round(v)
    sip_round(v)
    v[0] ^= word
    v[2] ^= 0xEE
    for i in range(4):
        sip_round(v)
    hash.low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for i in range(4):
        sip_round(v)
    hash.high = v[0] ^ v[1] ^ v[2] ^ v[3]
    return hash


# --- MD5 (RFC 1321) ------------------------------------------------------------------------------

cdef uint32_t[64] MD5_SINES
cdef int[16] MD5_TURNS

for _step in range(64):
    MD5_SINES[_step] = int(abs(math.sin(_step + 1)) * 2**32)
for _step, _turn in enumerate((7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21)):
    MD5_TURNS[_step] = _turn


cdef inline void md5_block(uint32_t *state, const uint8_t *block) noexcept nogil:
    cdef uint32_t a = state[0]
    cdef uint32_t b = state[1]
    cdef uint32_t c = state[2]
    cdef uint32_t d = state[3]
    cdef uint32_t mixed, before
    cdef int step, word
    for step in range(64):
        if step < 16:
            mixed = (b & c) | (~b & d)
            word = step
        elif step < 32:
            mixed = (d & b) | (~d & c)
            word = (5 * step + 1) & 15
        elif step < 48:
            mixed = b ^ c ^ d
            word = (3 * step + 5) & 15
        else:
            mixed = c ^ (b | ~d)
            word = (7 * step) & 15
        before = d
        d = c
        c = b
        mixed += a + MD5_SINES[step] + load_le_u32(block + 4 * word)
        b += rotate_left(mixed, MD5_TURNS[4 * (step >> 4) + (step & 3)])
        a = before
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d


cdef Hash128 md5_of(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t state[4]
    cdef uint8_t tail[128]
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t rest, padded
    cdef Hash128 hash
    cdef int i
    state[0] = 0x67452301
    state[1] = 0xEFCDAB89
    state[2] = 0x98BADCFE
    state[3] = 0x10325476
    while size - at >= 64:
        md5_block(state, data + at)
        at += 64
    rest = size - at
    padded = 64 if rest < 56 else 128
    memset(tail, 0, sizeof(tail))
    if rest:
        memcpy(tail, data + at, <size_t> rest)
    tail[rest] = 0x80
    for i in range(8):
        tail[padded - 8 + i] = <uint8_t> ((<uint64_t> size << 3) >> (8 * i))
    md5_block(state, tail)
    if padded == 128:
        md5_block(state, tail + 64)
    hash.low = <uint64_t> state[0] | (<uint64_t> state[1] << 32)
    hash.high = <uint64_t> state[2] | (<uint64_t> state[3] << 32)
    return hash


cdef bytes hash_bytes(const Hash128 *hash):
    return hash.low.to_bytes(8, "little") + hash.high.to_bytes(8, "little")


def siphash128(bytes key, data):
    cdef Py_buffer view
    cdef uint64_t words[2]
    cdef Hash128 hash
    siphash_key(key, words)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        hash = siphash_of(words, <const uint8_t *> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return hash_bytes(&hash)


def md5(data):
    cdef Py_buffer view
    cdef Hash128 hash
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        hash = md5_of(<const uint8_t *> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return hash_bytes(&hash)


cdef int siphash_key(bytes key, uint64_t *words) except -1:
    if len(key) != 16:
        raise ValueError(f"a SipHash key of {len(key)} bytes; it has 16")
    words[0] = load_le_u64(<const uint8_t *> PyBytes_AS_STRING(key))
    words[1] = load_le_u64(<const uint8_t *> PyBytes_AS_STRING(key) + 8)
    return 0
