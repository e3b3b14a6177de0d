# Message sets of magic 0 and 1: one message, and the messages inside a compressed one.
#
#   offset i64 | size i32 | crc u32 | magic i8 | attributes i8 | timestamp i64 (magic 1 only)
#   keyLength i32, key | valueLength i32, value       (a negative length is null)
#
# A compressed message holds whole messages in its value. Inside magic 0 their offsets are the
# real ones; inside magic 1 they count from the first one, and the wrapper has that of the last.
# As in Kafka, a message cut at the end of a set ends it, and what follows a value is not looked at.


cdef struct MessageView:
    int64_t offset
    int64_t timestamp_ms            # -1 for magic 0
    Py_ssize_t key_at
    Py_ssize_t value_at
    int32_t key_size                # below 0 is null
    int32_t value_size
    uint8_t attributes
    int8_t magic


cdef inline bint read_sized(const uint8_t *data, Py_ssize_t end, Py_ssize_t *at,
                            Py_ssize_t *field_at, int32_t *field_size) noexcept nogil:
    if end - at[0] < 4:
        return False
    field_size[0] = load_i32(data + at[0])
    at[0] += 4
    field_at[0] = at[0]
    if field_size[0] > 0:
        if field_size[0] > end - at[0]:
            return False
        at[0] += field_size[0]
    return True


cdef int parse_message(const uint8_t *data, Py_ssize_t end, Py_ssize_t *at, bint check_crc,
                       MessageView *m) noexcept nogil:
    """Read the message at *at and move *at behind it: FAULT_NONE, MORE_BYTES or a fault."""
    cdef Py_ssize_t i = at[0]
    cdef int32_t size
    if end - i < LOG_OVERHEAD_BYTES:
        return MORE_BYTES
    size = load_i32(data + i + 8)
    if size < LEGACY_SIZE_MIN:
        return FAULT_SIZE_MIN
    if size > end - i - LOG_OVERHEAD_BYTES:
        return MORE_BYTES
    m.offset = load_i64(data + i)
    m.magic = <int8_t> data[i + 16]
    m.attributes = data[i + 17]
    m.timestamp_ms = -1
    end = i + LOG_OVERHEAD_BYTES + size
    if m.magic != 0 and m.magic != 1:
        return FAULT_MAGIC
    if m.magic == 1 and size < V1_SIZE_MIN:
        return FAULT_SIZE_MIN
    if check_crc and load_u32(data + i + 12) != crc_extend(
            CRC_IEEE, 0, data + i + 16, <size_t> (end - i - 16)):
        return FAULT_CRC
    i += LEGACY_HEADER_BYTES
    if m.magic == 1:
        m.timestamp_ms = load_i64(data + i)
        i += 8
    if not read_sized(data, end, &i, &m.key_at, &m.key_size):
        return FAULT_LEGACY_LENGTHS
    if not read_sized(data, end, &i, &m.value_at, &m.value_size):
        return FAULT_LEGACY_LENGTHS
    at[0] = end
    return FAULT_NONE


cdef int measure_messages(const uint8_t *data, Py_ssize_t size, const MessageView *wrapper,
                          bint check_crc, Py_ssize_t *count, int64_t *base) noexcept nogil:
    """How many messages the contents of `wrapper` are, and what to add to their offsets."""
    cdef MessageView m
    cdef Py_ssize_t at = 0
    cdef int fault
    count[0] = 0
    m.offset = 0
    while True:
        fault = parse_message(data, size, &at, check_crc, &m)
        if fault == MORE_BYTES:
            break
        if fault:
            return fault
        if m.attributes & CODEC_MASK:
            return FAULT_LEGACY_NESTED
        count[0] += 1
    if count[0] == 0:
        return FAULT_LEGACY_EMPTY
    base[0] = 0
    # Some producers leave the wrapper's offset at 0: the first message is then the base.
    if wrapper.magic == 1 and wrapper.offset != 0:
        if wrapper.offset < m.offset:
            return FAULT_LEGACY_RELATIVE
        base[0] = <int64_t> (<uint64_t> wrapper.offset - <uint64_t> m.offset)
    return FAULT_NONE


cdef inline void adopt_wrapper(const MessageView *wrapper, int64_t base,
                               MessageView *m) noexcept nogil:
    """Give a message from inside `wrapper` the offset and the timestamp that readers see."""
    if wrapper.magic == 1:
        m.offset = <int64_t> (<uint64_t> base + <uint64_t> m.offset)
        if m.magic == 1:
            m.attributes = wrapper.attributes & TIMESTAMP_TYPE_BIT
            if m.attributes:
                m.timestamp_ms = wrapper.timestamp_ms


cdef inline int message_timestamp_type(const MessageView *m) noexcept nogil:
    if m.magic == 0:
        return -1
    return 1 if m.attributes & TIMESTAMP_TYPE_BIT else 0


cdef object decompress_message(const uint8_t *data, const MessageView *m, int64_t limit_bytes):
    """The messages inside a compressed one, as an object that exports a buffer."""
    if m.value_size < 0:
        raise CorruptBatchError("a compressed message has no value", base_offset=m.offset)
    return codec_decompress()(
        m.attributes & CODEC_MASK,
        PyMemoryView_FromMemory(<char *> (data + m.value_at), m.value_size, PyBUF_READ),
        limit_bytes=limit_bytes,
        magic=m.magic,
    )


cdef object _codec_decompress = None


cdef object codec_decompress():
    # Imported when first needed: that module imports this one.
    global _codec_decompress
    if _codec_decompress is None:
        from stratalog.records.compression import decompress
        _codec_decompress = decompress
    return _codec_decompress
