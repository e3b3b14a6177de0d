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
    RESERVED_BYTES_MIN = 65536      # what is smaller grows as it likes
    RECORD_BYTES_MIN = 7            # a record with neither key, value nor headers
    HEADER_BYTES_MIN = 2

# The names are the ones that callers ask for, in the order of the enum above.
COLUMN_NAMES = (
    "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers", "leader_epoch",
    "producer_id", "producer_epoch", "sequence", "is_control", "is_transactional", "codec",
    "batch_position", "batch_base_offset",
)

include "_row_filter.pxi"
include "_gaps.pxi"

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
    bint in_microseconds            # the unit of the timestamps
    int64_t start_offset
    int64_t end_offset
    int64_t next_offset             # batches may not begin before it; -1 if they may
    int64_t highest_offset          # that a batch of the segment can have
    int64_t batches
    int64_t rows
    int64_t header_rows
    int64_t decoded_bytes
    int64_t expected_bytes          # how much is about to be added; 0 once memory was reserved
    int64_t target_bytes
    int64_t target_rows
    bint full                       # whether the last run stopped because of a target
    Scratch fixed[COLUMN_COUNT]     # the columns of one width
    Scratch list_offsets            # int32: where each record's headers begin
    Scratch list_valid              # a bit for each record that has headers
    int64_t list_null_count
    Binary key
    Binary value
    Binary header_key
    Binary header_value
    AbortedRange *aborted
    Py_ssize_t aborted_count
    bint needs_fates                # transactions count, and which were aborted is not known yet
    bint undecided                  # whether the last run stopped because of that
    RowFilter filter
    Gaps gaps


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


include "_table_memory.pxi"


# --- taking a batch back -----------------------------------------------------------------------
#
# A fault in the middle of a batch must not leave half of it behind: columns of different lengths
# would be read past their end.


cdef struct Mark:
    int64_t rows
    int64_t header_rows
    int64_t list_null_count
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
    mark.list_null_count = table.list_null_count
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
    table.list_null_count = mark.list_null_count
    clear_bits(&table.list_valid, mark.rows)
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
    if r.header_count:
        table.list_valid.data[table.rows >> 3] |= <uint8_t> (1 << (table.rows & 7))
    else:
        table.list_null_count += 1
    add_i32(&table.list_offsets, <int32_t> table.header_rows)


cdef inline int64_t microseconds(int64_t timestamp_ms) noexcept nogil:
    """As far as the type goes: nobody sets such a timestamp but to see what happens."""
    if timestamp_ms > INT64_MAX // 1000:
        return INT64_MAX
    if timestamp_ms < -(INT64_MAX // 1000):
        return -INT64_MAX
    return timestamp_ms * 1000


cdef inline void add_row(Table *table, const uint8_t *data, const RecordView *r, int64_t offset,
                         int64_t timestamp_ms, int32_t sequence) noexcept nogil:
    if wants(table, COLUMN_OFFSET):
        add_i64(&table.fixed[COLUMN_OFFSET], offset)
    if wants(table, COLUMN_TIMESTAMP):
        add_i64(&table.fixed[COLUMN_TIMESTAMP],
                microseconds(timestamp_ms) if table.in_microseconds else timestamp_ms)
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


cdef inline int64_t offset_in(const Header *h, int32_t offset_delta) noexcept nogil:
    return <int64_t> (<uint64_t> h.base_offset + <uint64_t> offset_delta)


cdef int add_records(Table *table, const uint8_t *data, Py_ssize_t size,
                     const Header *h) noexcept nogil:
    """Add the records of one v2 batch that are in the range of offsets; `data` are they all."""
    cdef RecordView record
    cdef Mark mark = mark_of(table)
    cdef Py_ssize_t at = 0
    cdef int64_t offset, timestamp_ms
    cdef int32_t i
    cdef int32_t last_delta = -1
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
        last_delta = settled_delta(h, i, record.offset_delta, last_delta)
        offset = offset_in(h, last_delta)
        if offset < table.start_offset or offset >= table.end_offset:
            continue
        timestamp_ms = record_timestamp(h, &record)
        if table.filter.is_set and not keeps_row(
                &table.filter, data + record.key_at, record.key_size, timestamp_ms):
            continue
        add_row(table, data, &record, offset, timestamp_ms, sequence_of(h, last_delta))
    if h.record_count and at != size:
        take_back(table, &mark)
        return FAULT_RECORDS_REMAINING
    add_batch_columns(table, h, mark.rows, (h.attributes & TIMESTAMP_TYPE_BIT) != 0,
                      h.base_offset)
    if table.expected_bytes and table.rows > mark.rows:
        reserve(table, size)
    # Of a batch that few rows are kept of, only as much counts, or many small results would come.
    if table.rows - mark.rows == h.record_count:
        table.decoded_bytes += size
    elif table.rows > mark.rows:
        table.decoded_bytes += size * (table.rows - mark.rows) // h.record_count
    return FAULT_NONE


cdef int note_records(Table *table, const uint8_t *data, Py_ssize_t size, const Header *h,
                      int reason) noexcept nogil:
    """Instead of adding them, when gaps are looked for."""
    cdef RecordView record
    cdef Py_ssize_t at = 0
    cdef int64_t offset
    cdef int32_t i
    cdef int32_t last_delta = -1
    cdef bint is_sound
    cdef int fault = walk_records(data, size, h, &is_sound)
    if fault:
        return fault
    if not ensure_gaps(&table.gaps, h.record_count):
        return FAULT_MEMORY
    # Damage reaches to where the next batch begins; what that lacks, compaction took.
    note_until(&table.gaps, h.base_offset, table.gaps.missing)
    table.gaps.missing = GAP_COMPACTED
    for i in range(h.record_count):
        parse_record(data, size, &at, &record)
        last_delta = settled_delta(h, i, record.offset_delta, last_delta)
        offset = offset_in(h, last_delta)
        if table.start_offset <= offset < table.end_offset:
            note_offset(&table.gaps, offset, reason)
    return FAULT_NONE


cdef int add_message(Table *table, const uint8_t *data, const MessageView *m,
                     const Header *h) noexcept nogil:
    """Add one message of magic 0 or 1, if its offset is in the range."""
    cdef RecordView record
    cdef int64_t first_row = table.rows
    if m.offset < table.start_offset or m.offset >= table.end_offset:
        return FAULT_NONE
    if table.gaps.is_on:
        if not ensure_gaps(&table.gaps, 1):
            return FAULT_MEMORY
        note_offset(&table.gaps, m.offset, GAP_NONE)
        return FAULT_NONE
    if table.filter.is_set and not keeps_row(
            &table.filter, data + m.key_at, m.key_size, m.timestamp_ms):
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
    if table.rows > mark.rows:
        table.decoded_bytes += size
    return FAULT_NONE
