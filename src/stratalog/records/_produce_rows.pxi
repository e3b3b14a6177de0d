# Rows of Arrow columns, read in place: what is to become records.
#
# A column is a view of Arrow's own buffers. They come from another process, so the sizes of the
# buffers are compared with what the column says of itself when it is taken, and each offset in
# them before the bytes it points at are read.


cdef struct Field:
    const uint8_t *data
    Py_ssize_t size                 # -1 for null


@cython.final
cdef class RowColumn:
    """One Arrow array: validity bits, offsets (of binary, of lists) and values, as far as its type
    has them. `width` is the size in bytes of an offset, or else of a value."""

    cdef Py_buffer views[3]         # validity, offsets, values
    cdef bint is_held[3]
    cdef readonly Py_ssize_t rows
    cdef Py_ssize_t first           # Arrow's offset: the row of the buffers that is row 0 here
    cdef int width
    cdef const uint8_t *valid       # NULL: no row is null
    cdef const uint8_t *offsets     # NULL: values of fixed width
    cdef const uint8_t *values
    cdef Py_ssize_t values_size

    def __cinit__(self, Py_ssize_t rows, Py_ssize_t first, int width, valid, offsets, values):
        cdef Py_ssize_t end = first + rows
        memset(self.views, 0, sizeof(self.views))
        if not 0 <= first <= INT64_MAX >> 4 or not 0 <= rows <= INT64_MAX >> 4:
            raise ValueError(f"{rows} rows from row {first} on")
        if width not in (4, 8):
            raise ValueError(f"a column of width {width}")
        self.rows = rows
        self.first = first
        self.width = width
        self.valid = self.take(0, valid, (end + 7) >> 3)
        self.offsets = self.take(1, offsets, (end + 1) * width if rows else 0)
        self.values = self.take(2, values, end * width if offsets is None and values is not None
                                else 0)
        self.values_size = self.views[2].len

    cdef const uint8_t *take(self, int which, buffer, Py_ssize_t least) except? NULL:
        if buffer is None:
            return NULL
        PyObject_GetBuffer(buffer, &self.views[which], PyBUF_SIMPLE)
        self.is_held[which] = True
        if self.views[which].len < least:
            raise ValueError(
                f"an Arrow buffer of {self.views[which].len} bytes where its array needs {least}"
            )
        return <const uint8_t *> self.views[which].buf

    def __dealloc__(self):
        cdef int which
        for which in range(3):
            if self.is_held[which]:
                PyBuffer_Release(&self.views[which])


cdef int require(RowColumn column, bint has_offsets) except -1:
    """Whether the column is one of bytes or lists, or of numbers; as many rows as it may have."""
    if column is not None and column.rows:
        if (column.offsets != NULL) != has_offsets or (not has_offsets and column.values == NULL):
            raise ValueError("an Arrow array that has not the buffers of its type")
    return 0


cdef inline int64_t native_at(const uint8_t *data, Py_ssize_t at, int width) noexcept nogil:
    """A number of Arrow's: in this machine's own order, of four or eight bytes."""
    cdef int32_t narrow
    cdef int64_t wide
    if width == 4:
        memcpy(&narrow, data + 4 * at, 4)
        return narrow
    memcpy(&wide, data + 8 * at, 8)
    return wide


cdef inline bint is_null(RowColumn column, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t at = column.first + row
    return column.valid != NULL and not column.valid[at >> 3] >> (at & 7) & 1


cdef inline int64_t number_of(RowColumn column, Py_ssize_t row) noexcept nogil:
    return native_at(column.values, column.first + row, column.width)


cdef inline bint read_span(RowColumn column, Py_ssize_t row, Py_ssize_t most, Py_ssize_t *start,
                           Py_ssize_t *end) noexcept nogil:
    """Where the bytes or the elements of a row are; False unless they lie within `most`."""
    cdef Py_ssize_t at = column.first + row
    start[0] = native_at(column.offsets, at, column.width)
    end[0] = native_at(column.offsets, at + 1, column.width)
    return 0 <= start[0] <= end[0] <= most


cdef inline bint read_field(RowColumn column, Py_ssize_t row, Field *field) noexcept nogil:
    """The bytes of a row; False if the array contradicts itself."""
    cdef Py_ssize_t start, end
    field.data = NULL
    field.size = -1
    if is_null(column, row):
        return True
    if not read_span(column, row, column.values_size, &start, &end):
        return False
    field.data = column.values + start
    field.size = end - start
    return True
