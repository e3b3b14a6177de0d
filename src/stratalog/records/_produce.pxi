# Rows to batches: what a load writes, with no Python object per record.
#
# Each partition has one open batch, into which its rows are encoded as they come, straight from
# Arrow's buffers. A batch that is full gets its header and CRC where it lies and is handed over
# without a copy; only one that is to be compressed goes through Python once more. All of it runs
# with the GIL released.

include "_produce_rows.pxi"
include "_produce_partition.pxi"

from stratalog.errors import InvalidRowError

cdef enum:
    ROW_TAKEN = 0
    ROW_PARTITION
    ROW_KEY_MISSING
    ROW_TIMESTAMP
    ROW_TIMESTAMP_BOUNDS
    ROW_BROKEN_KEY
    ROW_BROKEN_VALUE
    ROW_BROKEN_HEADERS
    ROW_HEADER_NULL
    ROW_HEADER_KEY
    ROW_TOO_LARGE
    ROW_MEMORY

cdef dict ROW_FAULTS = {
    ROW_PARTITION: ("partition", "it is null, or there is no such partition"),
    ROW_KEY_MISSING: ("key", "it is null, and a compacted topic takes no records without a key"),
    ROW_TIMESTAMP: (
        "timestamp", "it is before 1970; a record's timestamp is never negative, and null stands"
        " for the time of writing"
    ),
    ROW_BROKEN_KEY: ("key", "its Arrow array contradicts itself"),
    ROW_BROKEN_VALUE: ("value", "its Arrow array contradicts itself"),
    ROW_BROKEN_HEADERS: ("headers", "its Arrow array contradicts itself"),
    ROW_HEADER_NULL: ("headers", "one of them is null"),
    ROW_HEADER_KEY: ("headers", "one of them has no key"),
    ROW_TOO_LARGE: ("value", "the record has more bytes than a batch can hold"),
}

# The longest that is ever before the key: length, attributes, timestamp and offset deltas.
cdef enum:
    RECORD_BYTES_MAX = 0x7FFFFFFF - 61 - 64


cdef struct OpenBatch:
    Scratch bytes                   # room for the header, then records
    int64_t base_timestamp_ms
    int64_t max_timestamp_ms
    int64_t first_row
    Py_ssize_t size_before          # of the batch before this one, which it may come to
    int32_t count


cdef struct FullBatch:
    OpenBatch batch
    int32_t partition


cdef struct Encoding:
    OpenBatch *open
    int32_t partitions
    Py_ssize_t batch_bytes
    Py_ssize_t memory_bytes         # of all open batches, after which they are closed as they are
    Py_ssize_t open_bytes
    Scratch full                    # FullBatch, in the order in which they became so
    int64_t rows_before             # rows of earlier calls
    int64_t now_ms
    int64_t earliest_ms             # what a row may say
    int64_t latest_ms
    int64_t ticks_a_ms
    bint needs_keys
    bint is_compressed


cdef struct Row:
    Field key
    Field value
    int64_t timestamp_ms
    Py_ssize_t headers_start
    Py_ssize_t headers_end
    Py_ssize_t headers_size         # encoded, with their count


# --- one row ---------------------------------------------------------------------------------


cdef int measure_headers(RowColumn lists, RowColumn structs, RowColumn keys, RowColumn values,
                         Py_ssize_t index, Row *row) noexcept nogil:
    """Find the headers of a row and what they take."""
    cdef Field field
    cdef Py_ssize_t i
    cdef Py_ssize_t size = 0
    row.headers_start = row.headers_end = 0
    if not is_null(lists, index):
        if not read_span(lists, index, structs.rows, &row.headers_start, &row.headers_end):
            return ROW_BROKEN_HEADERS
    if row.headers_end - row.headers_start > RECORD_BYTES_MAX:
        return ROW_TOO_LARGE
    for i in range(row.headers_start, row.headers_end):
        if is_null(structs, i):
            return ROW_HEADER_NULL
        if not read_field(keys, i, &field):
            return ROW_BROKEN_HEADERS
        if field.size < 0:
            return ROW_HEADER_KEY
        size += 5 + field.size
        if not read_field(values, i, &field):
            return ROW_BROKEN_HEADERS
        size += 5 + max(field.size, <Py_ssize_t> 0)
        if size > RECORD_BYTES_MAX:
            return ROW_TOO_LARGE
    row.headers_size = exact_headers_size(keys, values, row)
    return ROW_TAKEN


cdef inline Py_ssize_t exact_headers_size(RowColumn keys, RowColumn values,
                                          const Row *row) noexcept nogil:
    cdef Field field
    cdef Py_ssize_t i
    cdef Py_ssize_t size = varint_size(<int32_t> (row.headers_end - row.headers_start))
    for i in range(row.headers_start, row.headers_end):
        read_field(keys, i, &field)
        size += varint_size(<int32_t> field.size) + field.size
        read_field(values, i, &field)
        size += varint_size(<int32_t> field.size) + max(field.size, <Py_ssize_t> 0)
    return size


cdef inline uint8_t *write_headers(uint8_t *p, RowColumn keys, RowColumn values,
                                   const Row *row) noexcept nogil:
    cdef Field field
    cdef Py_ssize_t i
    p = write_varint(p, <int32_t> (row.headers_end - row.headers_start))
    for i in range(row.headers_start, row.headers_end):
        read_field(keys, i, &field)
        p = write_bytes(p, field.data, field.size)
        read_field(values, i, &field)
        p = write_bytes(p, field.data, field.size)
    return p


# --- batches that fill -------------------------------------------------------------------------


cdef void write_v2_header(uint8_t *p, Py_ssize_t size, const OpenBatch *batch) noexcept nogil:
    """The header of an uncompressed batch at offset 0, of no producer and no leader, and its CRC
    over what follows."""
    store_i64(p, 0)
    store_i32(p + 8, <int32_t> (size - LOG_OVERHEAD_BYTES))
    store_i32(p + 12, -1)
    p[16] = 2
    store_i16(p + 21, 0)
    store_i32(p + 23, batch.count - 1)
    store_i64(p + 27, batch.base_timestamp_ms)
    store_i64(p + 35, batch.max_timestamp_ms)
    store_i64(p + 43, -1)
    store_i16(p + 51, -1)
    store_i32(p + 53, -1)
    store_i32(p + 57, batch.count)
    store_i32(p + 17, <int32_t> crc_extend(CRC_CASTAGNOLI, 0, p + 21, <size_t> (size - 21)))


cdef bint close_batch(Encoding *encoding, int32_t partition) noexcept nogil:
    """Put the open batch of a partition among the full ones; False if there is no memory."""
    cdef OpenBatch *batch = &encoding.open[partition]
    cdef FullBatch *full
    if batch.count == 0:
        return True
    full = <FullBatch *> scratch_room(&encoding.full, sizeof(FullBatch))
    if full == NULL:
        return False
    encoding.open_bytes -= batch.bytes.used
    if not encoding.is_compressed:
        write_v2_header(batch.bytes.data, batch.bytes.used, batch)
    full.batch = batch[0]
    full.partition = partition
    batch.size_before = batch.bytes.used
    batch.bytes.data = NULL
    batch.bytes.used = batch.bytes.capacity = 0
    batch.count = 0
    return True


cdef bint close_all(Encoding *encoding) noexcept nogil:
    cdef int32_t partition
    for partition in range(encoding.partitions):
        if not close_batch(encoding, partition):
            return False
    return True


cdef bint open_batch(OpenBatch *batch, int64_t timestamp_ms, int64_t row,
                     Py_ssize_t size) noexcept nogil:
    """Begin a batch with room for as much as the one before it held."""
    cdef Py_ssize_t capacity = max(
        batch.size_before + (batch.size_before >> 6), V2_HEADER_BYTES + size
    )
    batch.bytes.data = <uint8_t *> malloc(<size_t> capacity)
    if batch.bytes.data == NULL:
        return False
    batch.bytes.capacity = capacity
    batch.bytes.used = V2_HEADER_BYTES
    batch.base_timestamp_ms = batch.max_timestamp_ms = timestamp_ms
    batch.first_row = row
    return True


cdef int encode_row(Encoding *encoding, int32_t partition, const Row *row, int64_t number,
                 RowColumn header_keys, RowColumn header_values) noexcept nogil:
    """Encode one row at the end of its partition's batch, or of a new one."""
    cdef OpenBatch *batch = &encoding.open[partition]
    cdef int64_t delta = timestamp_delta(row.timestamp_ms, batch.base_timestamp_ms)
    cdef Py_ssize_t fields, length, size
    cdef uint8_t *p
    if row.key.size > RECORD_BYTES_MAX or row.value.size > RECORD_BYTES_MAX:
        return ROW_TOO_LARGE
    fields = (
        1 + varint_size(<int32_t> row.key.size) + max(row.key.size, <Py_ssize_t> 0)
        + varint_size(<int32_t> row.value.size) + max(row.value.size, <Py_ssize_t> 0)
        + row.headers_size
    )
    if fields > RECORD_BYTES_MAX:
        return ROW_TOO_LARGE
    length = fields + varlong_size(delta) + varint_size(batch.count)
    size = varint_size(<int32_t> length) + length
    if batch.count and batch.bytes.used + size > encoding.batch_bytes:
        if not close_batch(encoding, partition):
            return ROW_MEMORY
    if batch.count == 0:
        delta = 0
        length = fields + 2
        size = varint_size(<int32_t> length) + length
        if not open_batch(batch, row.timestamp_ms, number, size):
            return ROW_MEMORY
        encoding.open_bytes += V2_HEADER_BYTES
    p = scratch_room(&batch.bytes, size)
    if p == NULL:
        return ROW_MEMORY
    encoding.open_bytes += size
    p = write_varint(p, <int32_t> length)
    p[0] = 0
    p = write_varlong(p + 1, delta)
    p = write_varint(p, batch.count)
    p = write_bytes(p, row.key.data, row.key.size)
    p = write_bytes(p, row.value.data, row.value.size)
    if row.headers_end > row.headers_start:
        write_headers(p, header_keys, header_values, row)
    else:
        p[0] = 0
    batch.count += 1
    batch.max_timestamp_ms = max(batch.max_timestamp_ms, row.timestamp_ms)
    return ROW_TAKEN


# --- many rows ---------------------------------------------------------------------------------


@cython.final
cdef class RowEncoder:
    """Takes rows of Arrow columns and gives whole batches, each of one partition.

    One encoder is for one thread, and of no more use after an error."""

    cdef Encoding encoding
    cdef bint is_broken

    def __cinit__(self, int32_t partitions, *, Py_ssize_t batch_bytes, Py_ssize_t memory_bytes,
                  bint compressed=False, bint needs_keys=False):
        memset(&self.encoding, 0, sizeof(Encoding))
        if partitions < 1:
            raise ValueError(f"{partitions} partitions")
        if not 1 <= batch_bytes <= 1 << 30:
            raise ValueError(f"batches of {batch_bytes} bytes; there are some of 1 byte to 1 GiB")
        self.encoding.open = <OpenBatch *> calloc(<size_t> partitions, sizeof(OpenBatch))
        if self.encoding.open == NULL:
            raise MemoryError
        self.encoding.partitions = partitions
        self.encoding.batch_bytes = batch_bytes
        self.encoding.memory_bytes = memory_bytes
        self.encoding.is_compressed = compressed
        self.encoding.needs_keys = needs_keys

    def __dealloc__(self):
        cdef int32_t partition
        cdef Py_ssize_t i
        cdef FullBatch *full = <FullBatch *> self.encoding.full.data
        for partition in range(self.encoding.partitions):
            scratch_free(&self.encoding.open[partition].bytes)
        for i in range(self.encoding.full.used // <Py_ssize_t> sizeof(FullBatch)):
            scratch_free(&full[i].batch.bytes)
        scratch_free(&self.encoding.full)
        free(self.encoding.open)

    @property
    def open_bytes(self):
        """Of all batches that are not full yet."""
        return self.encoding.open_bytes

    @property
    def rows(self):
        """How many were taken."""
        return self.encoding.rows_before

    def add(self, RowColumn partitions not None, RowColumn key, RowColumn value not None,
            RowColumn timestamp, tuple headers, *, int64_t now_ms, int64_t ticks_a_ms=1,
            int64_t earliest_ms=0, int64_t latest_ms=INT64_MAX):
        """Take all rows; returns what became full, as flush() does. `headers` are the columns of
        lists, structs, keys and values; `timestamp` counts so many ticks in a millisecond, and
        where it is not null lies from `earliest_ms` to `latest_ms`."""
        cdef RowColumn lists = None
        cdef RowColumn structs = None
        cdef RowColumn header_keys = None
        cdef RowColumn header_values = None
        cdef Py_ssize_t index = 0
        cdef int fault
        if headers is not None:
            lists, structs, header_keys, header_values = headers
            if None in headers:
                raise ValueError("a column of headers is missing")
            require(lists, True)
            require(header_keys, True)
            require(header_values, True)
            if header_keys.rows < structs.rows or header_values.rows < structs.rows:
                raise ValueError("columns of headers with different lengths")
        require(partitions, False)
        require(key, True)
        require(value, True)
        require(timestamp, False)
        for column in (key, value, timestamp, lists):
            if column is not None and (<RowColumn> column).rows != partitions.rows:
                raise ValueError(f"columns of {column.rows} and {partitions.rows} rows")
        if ticks_a_ms < 1 or now_ms < -1:
            raise ValueError(f"{ticks_a_ms} ticks a millisecond, at {now_ms} ms")
        self.refuse_if_broken()
        self.encoding.now_ms = now_ms
        self.encoding.earliest_ms = earliest_ms
        self.encoding.latest_ms = latest_ms
        self.encoding.ticks_a_ms = ticks_a_ms
        with nogil:
            fault = encode_rows(&self.encoding, partitions, key, value, timestamp, lists, structs,
                             header_keys, header_values, &index)
        if fault:
            self.is_broken = True
            if fault == ROW_MEMORY:
                raise MemoryError("no room for the batches of a load")
            if fault == ROW_TIMESTAMP_BOUNDS:
                told = "timestamp", self.outside(number_of(timestamp, index) // ticks_a_ms)
            else:
                told = ROW_FAULTS[fault]
            raise InvalidRowError(self.encoding.rows_before + index, *told)
        self.encoding.rows_before += partitions.rows
        return self.take()

    def flush(self):
        """What is left, as a list of (partition, bytes, record count, base and largest timestamp,
        first row) of each batch. The bytes are a whole batch, or if it is to be compressed the
        room for a header and then the records."""
        cdef bint closed
        self.refuse_if_broken()
        with nogil:
            closed = close_all(&self.encoding)
        if not closed:
            self.is_broken = True
            raise MemoryError("no room for the batches of a load")
        return self.take()

    cdef str outside(self, int64_t timestamp_ms):
        return (
            f"{timestamp_ms} ms is outside of {self.encoding.earliest_ms} to"
            f" {self.encoding.latest_ms}, which is what message.timestamp.before.max.ms and"
            " message.timestamp.after.max.ms of the topic allow at the time of writing"
        )

    cdef int refuse_if_broken(self) except -1:
        if self.is_broken:
            raise ValueError("this encoder has failed before")
        return 0

    cdef list take(self):
        cdef FullBatch *full = <FullBatch *> self.encoding.full.data
        cdef Py_ssize_t count = self.encoding.full.used // <Py_ssize_t> sizeof(FullBatch)
        cdef Py_ssize_t i
        cdef list taken = []
        for i in range(count):
            taken.append((
                full[i].partition,
                take_memory(&full[i].batch.bytes),
                full[i].batch.count,
                full[i].batch.base_timestamp_ms,
                full[i].batch.max_timestamp_ms,
                full[i].batch.first_row,
            ))
        self.encoding.full.used = 0
        return taken


cdef int encode_rows(Encoding *encoding, RowColumn partitions, RowColumn keys, RowColumn values,
                  RowColumn timestamps, RowColumn lists, RowColumn structs,
                  RowColumn header_keys, RowColumn header_values,
                  Py_ssize_t *index) noexcept nogil:
    """Encode all rows; at a fault, *index is the row that has it."""
    cdef Row row
    cdef Py_ssize_t i
    cdef int64_t partition
    cdef int fault
    memset(&row, 0, sizeof(Row))
    row.headers_size = 1
    row.key.size = -1
    for i in range(partitions.rows):
        index[0] = i
        partition = number_of(partitions, i)
        if is_null(partitions, i) or not 0 <= partition < encoding.partitions:
            return ROW_PARTITION
        if keys is not None and not read_field(keys, i, &row.key):
            return ROW_BROKEN_KEY
        if encoding.needs_keys and row.key.size < 0:
            return ROW_KEY_MISSING
        if not read_field(values, i, &row.value):
            return ROW_BROKEN_VALUE
        row.timestamp_ms = encoding.now_ms
        if timestamps is not None and not is_null(timestamps, i):
            row.timestamp_ms = number_of(timestamps, i)
            if row.timestamp_ms < 0:
                return ROW_TIMESTAMP
            row.timestamp_ms //= encoding.ticks_a_ms
            if not encoding.earliest_ms <= row.timestamp_ms <= encoding.latest_ms:
                return ROW_TIMESTAMP_BOUNDS
        if lists is not None:
            fault = measure_headers(lists, structs, header_keys, header_values, i, &row)
            if fault:
                return fault
        fault = encode_row(encoding, <int32_t> partition, &row, encoding.rows_before + i,
                           header_keys, header_values)
        if fault:
            return fault
        if encoding.open_bytes > encoding.memory_bytes and not close_all(encoding):
            return ROW_MEMORY
    return ROW_TAKEN
