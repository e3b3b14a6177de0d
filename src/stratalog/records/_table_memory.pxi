# Room for the rows of a batch, made before they are added.

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


cdef inline void reserve_more(Scratch *scratch, int64_t batches) noexcept nogil:
    # A little more than the first batch suggests: asking again would move it all.
    cdef int64_t more = scratch.used * batches + scratch.used * batches // 16
    if more >= RESERVED_BYTES_MIN:
        ensure(scratch, <Py_ssize_t> more)


cdef inline void reserve_binary(Binary *binary, int64_t batches) noexcept nogil:
    reserve_more(&binary.offsets, batches)
    reserve_more(&binary.data, batches)


cdef void reserve(Table *table, Py_ssize_t size) noexcept nogil:
    """Guess by the first batch, of `size` bytes, how much memory the whole run needs, and ask for
    it at once.

    Memory that grows step by step costs a page fault for each 4 KiB, and is moved again and
    again. Too little is made up for later, so failing is no fault."""
    cdef int64_t batches = min(table.expected_bytes, table.target_bytes) // max(size, 1)
    cdef int column, which
    table.expected_bytes = 0
    for column in range(COLUMN_COUNT):
        reserve_more(&table.fixed[column], batches)
    reserve_more(&table.list_offsets, batches)
    for which in range(4):
        reserve_binary(binary_of(table, which), batches)


cdef bint ensure_rows(Table *table, Py_ssize_t rows, Py_ssize_t size) noexcept nogil:
    """Room for a batch of `rows` records in `size` bytes, so that adding them needs no checks."""
    cdef int column
    cdef int width
    cdef Py_ssize_t headers
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
        if not ensure_bits(&table.list_valid, table.rows, rows):
            return False
        if not ensure_binary(&table.header_key, table.header_rows, headers, size):
            return False
        if not ensure_binary(&table.header_value, table.header_rows, headers, size):
            return False
    return True
