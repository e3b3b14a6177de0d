# The memory of columns in Arrow's layout, and how the records of one batch are added to them.
#
# A column of one width is a run of numbers; a column of bytes has offsets (int32, one more than
# values), data and a bit a value that says whether it is there. Room is made once a batch, so that
# adding a record checks nothing. A batch that turns out to be bad is taken back as a whole.

from libc.string cimport memset

cdef enum:
    COLUMN_OFFSET
    COLUMN_TIMESTAMP
    COLUMN_TIMESTAMP_TYPE
    COLUMN_KEY
    COLUMN_VALUE
    COLUMN_HEADERS
    COLUMN_LEADER_EPOCH
    COLUMN_PRODUCER_ID
    COLUMN_PRODUCER_EPOCH
    COLUMN_SEQUENCE
    COLUMN_IS_CONTROL
    COLUMN_IS_TRANSACTIONAL
    COLUMN_CODEC
    COLUMN_BATCH_POSITION
    COLUMN_BATCH_BASE_OFFSET
    COLUMN_COUNT

cdef extern from "<sys/mman.h>" nogil:
    enum:
        MADV_HUGEPAGE
    int madvise(void *, size_t, int)

cdef enum:
    HUGE_PAGE_BYTES = 2097152
    RECORD_BYTES_MIN = 7            # a record with neither key, value nor headers
    HEADER_BYTES_MIN = 2

# The names are the ones that callers ask for, in the order of the enum above.
COLUMN_NAMES = (
    "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers", "leader_epoch",
    "producer_id", "producer_epoch", "sequence", "is_control", "is_transactional", "codec",
    "batch_position", "batch_base_offset",
)

cdef struct Binary:                 # a column of Arrow's type binary
    Scratch offsets                 # int32, one more than there are values
    Scratch data
    Scratch valid                   # one bit a value
    int64_t null_count


cdef struct AbortedRange:           # sorted by producer id
    int64_t producer_id
    int64_t first_offset
    int64_t last_offset


cdef struct Table:
    uint32_t wanted                 # a bit for each column
    bint check_crc
    bint include_control
    int64_t start_offset
    int64_t end_offset
    int64_t rows
    int64_t header_rows
    int64_t decoded_bytes
    int64_t expected_bytes          # how much is about to be added; 0 once memory was reserved
    int64_t target_bytes
    bint full                       # whether the last run stopped because of target_bytes
    Scratch fixed[COLUMN_COUNT]     # the columns of one width
    Scratch list_offsets            # int32: where each record's headers begin
    Binary key
    Binary value
    Binary header_key
    Binary header_value
    AbortedRange *aborted
    Py_ssize_t aborted_count


cdef int column_width(int column) noexcept nogil:
    """Bytes a row; 0 for columns of bits and of bytes."""
    if (column == COLUMN_OFFSET or column == COLUMN_TIMESTAMP or column == COLUMN_PRODUCER_ID
            or column == COLUMN_BATCH_POSITION or column == COLUMN_BATCH_BASE_OFFSET):
        return 8
    if column == COLUMN_LEADER_EPOCH or column == COLUMN_SEQUENCE:
        return 4
    if column == COLUMN_PRODUCER_EPOCH:
        return 2
    if column == COLUMN_TIMESTAMP_TYPE or column == COLUMN_CODEC:
        return 1
    return 0


cdef inline bint wants(const Table *table, int column) noexcept nogil:
    return (table.wanted >> column) & 1


# --- memory ------------------------------------------------------------------------------------


cdef inline bint ensure(Scratch *scratch, Py_ssize_t more) noexcept nogil:
    """Make room for `more` bytes without counting them as used."""
    cdef Py_ssize_t used = scratch.used
    if scratch.capacity - used >= more:
        return True
    if scratch_room(scratch, more) == NULL:
        return False
    scratch.used = used
    if scratch.capacity >= 2 * HUGE_PAGE_BYTES:
        ask_for_huge_pages(scratch)
    return True


cdef void ask_for_huge_pages(Scratch *scratch) noexcept nogil:
    """Columns are written once from end to end: page faults would cost more than the copying."""
    cdef size_t start = (<size_t> scratch.data + HUGE_PAGE_BYTES - 1) & ~<size_t> (
        HUGE_PAGE_BYTES - 1)
    cdef size_t end = (<size_t> scratch.data + <size_t> scratch.capacity) & ~<size_t> (
        HUGE_PAGE_BYTES - 1)
    if start < end:
        madvise(<void *> start, end - start, MADV_HUGEPAGE)


cdef inline bint ensure_bits(Scratch *scratch, int64_t bit_count, int64_t more) noexcept nogil:
    """Room for bits [bit_count, bit_count + more), all zero; bytes in use are those with bits."""
    cdef Py_ssize_t size = <Py_ssize_t> ((bit_count + more + 7) // 8)
    cdef Py_ssize_t used = scratch.used
    if size > used:
        if scratch_room(scratch, size - used) == NULL:
            return False
        memset(scratch.data + used, 0, <size_t> (size - used))
    return True


cdef inline bint ensure_binary(Binary *binary, int64_t rows, Py_ssize_t more_rows,
                               Py_ssize_t more_bytes) noexcept nogil:
    return (ensure(&binary.offsets, 4 * more_rows) and ensure(&binary.data, more_bytes)
            and ensure_bits(&binary.valid, rows, more_rows))


cdef void reserve(Table *table, Py_ssize_t rows, Py_ssize_t size) noexcept nogil:
    """Guess by the first batch how much memory the whole run needs, and ask for it at once.

    Only what is written to costs anything, while memory that grows step by step costs a page
    fault for each 4 KiB. Too little is made up for later, so failing is no fault."""
    cdef int64_t batches = min(table.expected_bytes, table.target_bytes) // max(size, 1)
    cdef int64_t more_rows = rows * batches
    cdef int64_t more_bytes = size * batches
    cdef int column
    table.expected_bytes = 0
    if more_bytes < HUGE_PAGE_BYTES:
        return
    for column in range(COLUMN_COUNT):
        if wants(table, column):
            ensure(&table.fixed[column], <Py_ssize_t> (column_width(column) * more_rows))
    if wants(table, COLUMN_KEY):
        ensure_binary(&table.key, 0, 0, <Py_ssize_t> more_bytes)
        ensure(&table.key.offsets, <Py_ssize_t> (4 * more_rows))
    if wants(table, COLUMN_VALUE):
        ensure_binary(&table.value, 0, 0, <Py_ssize_t> more_bytes)
        ensure(&table.value.offsets, <Py_ssize_t> (4 * more_rows))
    if wants(table, COLUMN_HEADERS):
        ensure(&table.list_offsets, <Py_ssize_t> (4 * more_rows))


cdef bint ensure_rows(Table *table, Py_ssize_t rows, Py_ssize_t size) noexcept nogil:
    """Room for a batch of `rows` records in `size` bytes, so that adding them needs no checks."""
    cdef int column
    cdef int width
    cdef Py_ssize_t headers
    if table.expected_bytes:
        reserve(table, rows, size)
    for column in range(COLUMN_COUNT):
        if not wants(table, column):
            continue
        width = column_width(column)
        if width:
            if not ensure(&table.fixed[column], width * rows):
                return False
        elif column == COLUMN_IS_CONTROL or column == COLUMN_IS_TRANSACTIONAL:
            if not ensure_bits(&table.fixed[column], table.rows, rows):
                return False
    if wants(table, COLUMN_KEY) and not ensure_binary(&table.key, table.rows, rows, size):
        return False
    if wants(table, COLUMN_VALUE) and not ensure_binary(&table.value, table.rows, rows, size):
        return False
    if wants(table, COLUMN_HEADERS):
        headers = size // HEADER_BYTES_MIN
        if not ensure(&table.list_offsets, 4 * rows):
            return False
        if not ensure_binary(&table.header_key, table.header_rows, headers, size):
            return False
        if not ensure_binary(&table.header_value, table.header_rows, headers, size):
            return False
    return True


# --- taking a batch back -----------------------------------------------------------------------
#
# A fault in the middle of a batch must not leave half of it behind: columns of different lengths
# would be read past their end.


cdef struct Mark:
    int64_t rows
    int64_t header_rows
    int64_t null_counts[4]
    Py_ssize_t data_used[4]


cdef inline Binary *binary_of(Table *table, int which) noexcept nogil:
    if which < 2:
        return &table.value if which else &table.key
    return &table.header_value if which == 3 else &table.header_key


cdef inline Mark mark_of(Table *table) noexcept nogil:
    cdef Mark mark
    cdef int which
    mark.rows = table.rows
    mark.header_rows = table.header_rows
    for which in range(4):
        mark.null_counts[which] = binary_of(table, which).null_count
        mark.data_used[which] = binary_of(table, which).data.used
    return mark


cdef void clear_bits(Scratch *scratch, int64_t bit_count) noexcept nogil:
    """Keep the first `bit_count` bits and make the others zero."""
    cdef Py_ssize_t size = <Py_ssize_t> (bit_count >> 3)
    if size < scratch.used:
        scratch.data[size] &= <uint8_t> ((1 << (bit_count & 7)) - 1)
        memset(scratch.data + size + 1, 0, <size_t> (scratch.used - size - 1))


cdef void take_back(Table *table, const Mark *mark) noexcept nogil:
    cdef Binary *binary
    cdef int64_t rows
    cdef int which, column
    table.rows = mark.rows
    table.header_rows = mark.header_rows
    for which in range(4):
        binary = binary_of(table, which)
        rows = mark.rows if which < 2 else mark.header_rows
        binary.null_count = mark.null_counts[which]
        binary.data.used = mark.data_used[which]
        binary.offsets.used = min(binary.offsets.used, <Py_ssize_t> (4 * (rows + 1)))
        clear_bits(&binary.valid, rows)
    table.list_offsets.used = min(
        table.list_offsets.used, <Py_ssize_t> (4 * (mark.rows + 1))
    )
    for column in range(COLUMN_COUNT):
        if column_width(column):
            table.fixed[column].used = min(
                table.fixed[column].used, <Py_ssize_t> (column_width(column) * mark.rows)
            )
        else:
            clear_bits(&table.fixed[column], mark.rows)


# --- rows --------------------------------------------------------------------------------------


cdef inline void add_binary(Binary *binary, int64_t row, const uint8_t *field,
                            int32_t size) noexcept nogil:
    if size < 0:
        binary.null_count += 1
    else:
        if size:
            memcpy(binary.data.data + binary.data.used, field, <size_t> size)
            binary.data.used += size
        binary.valid.data[row >> 3] |= <uint8_t> (1 << (row & 7))
    (<int32_t *> (binary.offsets.data + binary.offsets.used))[0] = <int32_t> binary.data.used
    binary.offsets.used += 4


cdef inline void add_i64(Scratch *scratch, int64_t value) noexcept nogil:
    (<int64_t *> (scratch.data + scratch.used))[0] = value
    scratch.used += 8


cdef inline void add_i32(Scratch *scratch, int32_t value) noexcept nogil:
    (<int32_t *> (scratch.data + scratch.used))[0] = value
    scratch.used += 4


cdef void add_headers(Table *table, const uint8_t *data, const RecordView *r) noexcept nogil:
    """The headers of a record that parse_record accepted."""
    cdef Py_ssize_t at = r.headers_at
    cdef int32_t i
    cdef int32_t size = 0
    for i in range(r.header_count):
        read_varint(data, r.end_at, &at, &size)
        add_binary(&table.header_key, table.header_rows, data + at, size)
        at += size
        read_varint(data, r.end_at, &at, &size)
        add_binary(&table.header_value, table.header_rows, data + at, size)
        if size > 0:
            at += size
        table.header_rows += 1
    add_i32(&table.list_offsets, <int32_t> table.header_rows)


cdef inline void add_row(Table *table, const uint8_t *data, const RecordView *r, int64_t offset,
                         int64_t timestamp_ms, int32_t sequence) noexcept nogil:
    if wants(table, COLUMN_OFFSET):
        add_i64(&table.fixed[COLUMN_OFFSET], offset)
    if wants(table, COLUMN_TIMESTAMP):
        add_i64(&table.fixed[COLUMN_TIMESTAMP], timestamp_ms)
    if wants(table, COLUMN_KEY):
        add_binary(&table.key, table.rows, data + r.key_at, r.key_size)
    if wants(table, COLUMN_VALUE):
        add_binary(&table.value, table.rows, data + r.value_at, r.value_size)
    if wants(table, COLUMN_HEADERS):
        add_headers(table, data, r)
    if wants(table, COLUMN_SEQUENCE):
        add_i32(&table.fixed[COLUMN_SEQUENCE], sequence)
    table.rows += 1


cdef void repeat(Table *table, int column, int64_t value, int64_t first_row) noexcept nogil:
    """Give the rows from `first_row` on the value that all records of their batch have."""
    cdef Scratch *scratch = &table.fixed[column]
    cdef int64_t row, count = table.rows - first_row
    cdef uint8_t *p
    cdef int width = column_width(column)
    if count == 0 or not wants(table, column):
        return
    p = scratch.data + scratch.used
    if width == 8:
        for row in range(count):
            (<int64_t *> p)[row] = value
    elif width == 4:
        for row in range(count):
            (<int32_t *> p)[row] = <int32_t> value
    elif width == 2:
        for row in range(count):
            (<int16_t *> p)[row] = <int16_t> value
    elif width == 1:
        memset(p, <int> value, <size_t> count)
    elif value:
        for row in range(first_row, table.rows):
            scratch.data[row >> 3] |= <uint8_t> (1 << (row & 7))
    scratch.used += <Py_ssize_t> (width * count)


cdef void add_batch_columns(Table *table, const Header *h, int64_t first_row, int timestamp_type,
                            int64_t base_offset) noexcept nogil:
    cdef bint is_v2 = h.magic == 2
    repeat(table, COLUMN_TIMESTAMP_TYPE, timestamp_type, first_row)
    repeat(table, COLUMN_LEADER_EPOCH, h.partition_leader_epoch, first_row)
    repeat(table, COLUMN_PRODUCER_ID, h.producer_id, first_row)
    repeat(table, COLUMN_PRODUCER_EPOCH, h.producer_epoch, first_row)
    repeat(table, COLUMN_IS_CONTROL, is_v2 and h.attributes & CONTROL_BIT, first_row)
    repeat(table, COLUMN_IS_TRANSACTIONAL, is_v2 and h.attributes & TRANSACTIONAL_BIT, first_row)
    repeat(table, COLUMN_CODEC, h.attributes & CODEC_MASK, first_row)
    repeat(table, COLUMN_BATCH_POSITION, h.position, first_row)
    repeat(table, COLUMN_BATCH_BASE_OFFSET, base_offset, first_row)


cdef inline int32_t sequence_of(const Header *h, int32_t offset_delta) noexcept nogil:
    """Continues at 0 after 2147483647; -1 where the producer has none."""
    if h.base_sequence < 0:
        return -1
    return <int32_t> ((<uint32_t> h.base_sequence + <uint32_t> offset_delta) & 0x7FFFFFFF)


cdef int add_records(Table *table, const uint8_t *data, Py_ssize_t size,
                     const Header *h) noexcept nogil:
    """Add the records of one v2 batch that are in the range of offsets; `data` are they all."""
    cdef RecordView record
    cdef Mark mark = mark_of(table)
    cdef Py_ssize_t at = 0
    cdef int64_t offset
    cdef int32_t i
    cdef int fault
    if h.record_count > size // RECORD_BYTES_MIN:
        return FAULT_RECORDS_PREMATURE
    if not ensure_rows(table, h.record_count, size):
        return FAULT_MEMORY
    for i in range(h.record_count):
        fault = parse_record(data, size, &at, &record)
        if fault:
            take_back(table, &mark)
            return fault
        offset = <int64_t> (<uint64_t> h.base_offset + <uint64_t> record.offset_delta)
        if offset < table.start_offset or offset >= table.end_offset:
            continue
        add_row(table, data, &record, offset, record_timestamp(h, &record),
                sequence_of(h, record.offset_delta))
    if h.record_count and at != size:
        take_back(table, &mark)
        return FAULT_RECORDS_REMAINING
    add_batch_columns(table, h, mark.rows, (h.attributes & TIMESTAMP_TYPE_BIT) != 0,
                      h.base_offset)
    table.decoded_bytes += size
    return FAULT_NONE


cdef int add_message(Table *table, const uint8_t *data, const MessageView *m,
                     const Header *h) noexcept nogil:
    """Add one message of magic 0 or 1, if its offset is in the range."""
    cdef RecordView record
    cdef int64_t first_row = table.rows
    if m.offset < table.start_offset or m.offset >= table.end_offset:
        return FAULT_NONE
    if not ensure_rows(table, 1, max(m.key_size, 0) + max(m.value_size, 0)):
        return FAULT_MEMORY
    record.key_at = m.key_at
    record.key_size = m.key_size
    record.value_at = m.value_at
    record.value_size = m.value_size
    record.header_count = 0
    record.headers_at = record.end_at = 0
    add_row(table, data, &record, m.offset, m.timestamp_ms, -1)
    add_batch_columns(table, h, first_row, message_timestamp_type(m), h.base_offset)
    return FAULT_NONE


cdef int add_wrapped(Table *table, const uint8_t *data, Py_ssize_t size,
                     const MessageView *wrapper, Header *h) noexcept nogil:
    """Add what a compressed message holds."""
    cdef MessageView m
    cdef Mark mark = mark_of(table)
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t count, i
    cdef int64_t base
    cdef int fault
    fault = measure_messages(data, size, wrapper, table.check_crc, &count, &base)
    if fault:
        return fault
    for i in range(count):
        parse_message(data, size, &at, False, &m)
        adopt_wrapper(wrapper, base, &m)
        if i == 0:
            h.base_offset = m.offset
        fault = add_message(table, data, &m, h)
        if fault:
            take_back(table, &mark)
            return fault
    table.decoded_bytes += size
    return FAULT_NONE
