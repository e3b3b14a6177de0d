# Messages to bytes. A value that its field cannot carry is refused by name. Records are handed on
# as they are, between the bytes before and after them: bytes of memory, or a slice of a file, of
# which only the length is asked.

from cpython.buffer cimport PyBUF_ND, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_Check
from cpython.long cimport PyLong_Check
from cpython.tuple cimport PyTuple_Check
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport INT16_MAX, INT16_MIN, INT32_MIN, INT8_MAX, INT8_MIN, UINT16_MAX
from libc.string cimport memmove

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


cdef struct WireWriter:
    Scratch scratch
    Py_ssize_t handed_bytes         # in the parts that are done
    PyObject *parts
    PyObject *api
    int version


cdef int wire_refuse_value(WireWriter *writer, str reason) except -1:
    raise ProtocolError(<object> writer.api, writer.version, -1, reason)


cdef inline uint8_t *wire_room(WireWriter *writer, Py_ssize_t size) except NULL:
    cdef uint8_t *room = scratch_room(&writer.scratch, size)
    if room == NULL:
        raise MemoryError
    return room


cdef inline bytes wire_written(WireWriter *writer):
    return PyBytes_FromStringAndSize(<char *> writer.scratch.data, writer.scratch.used)


cdef int wire_hand_over(WireWriter *writer) except -1:
    """What is written so far becomes a part."""
    (<list> writer.parts).append(wire_written(writer))
    writer.handed_bytes += writer.scratch.used
    writer.scratch.used = 0
    return 0


cdef int wire_store_size(WireWriter *writer, uint8_t *at) except -1:
    """The size of all parts, the four bytes of the size itself excepted."""
    cdef Py_ssize_t size = writer.handed_bytes - 4
    if size > INT32_MAX:
        wire_refuse_value(writer, f"it has {size} bytes, more than a frame can")
    store_i32(at, <int32_t> size)
    return 0


cdef int wire_write_varint(WireWriter *writer, uint64_t value) except -1:
    cdef uint8_t *room
    while value > 0x7F:
        room = wire_room(writer, 1)
        room[0] = <uint8_t> (value & 0x7F | 0x80)
        value >>= 7
    room = wire_room(writer, 1)
    room[0] = <uint8_t> value
    return 0


cdef int wire_write_struct(WireWriter *writer, WireStruct *struct, object value) except -1:
    # Tuples do not change while Python code, of an int's __index__ say, runs in between.
    if PyTuple_Check(value):
        values = value
    else:
        values = wire_elements(writer, (<object> struct.type).__name__, value)
    if PyTuple_GET_SIZE(values) != struct.slots:
        wire_refuse_value(writer, f"{value!r} is no {(<object> struct.type).__name__}")
    cdef WireField *field = struct.fields
    cdef WireField *end = field + struct.untagged
    while field < end:
        wire_write(writer, field, <object> PyTuple_GET_ITEM(values, field.slot),
                   struct.is_flexible)
        field += 1
    if struct.is_flexible:
        wire_write_tags(writer, struct, values)
    return 0


cdef inline int wire_write(WireWriter *writer, WireField *field, object value,
                           bint is_flexible) except -1:
    if field.is_array:
        return wire_write_array(writer, field, value, is_flexible)
    return wire_write_one(writer, field, value, is_flexible)


cdef int wire_write_one(WireWriter *writer, WireField *field, object value,
                        bint is_flexible) except -1:
    """A field that is no array, or an element of one that is, which is never null."""
    cdef bint is_nullable = field.is_nullable and not field.is_array
    name = <object> field.name
    if field.kind <= WIRE_UUID:
        return wire_write_fixed(writer, field.kind, name, value)
    if field.kind == WIRE_STRING:
        return wire_write_string(writer, name, value, is_nullable, is_flexible)
    if field.kind == WIRE_BYTES:
        return wire_write_bytes(writer, name, value, is_nullable, is_flexible)
    if field.kind == WIRE_RECORDS:
        return wire_write_records(writer, name, value, is_nullable, is_flexible)
    if is_nullable:
        wire_room(writer, 1)[0] = 255 if value is None else 1
        if value is None:
            return 0
    elif value is None:
        wire_refuse_value(writer, f"{name} is null")
    return wire_write_struct(writer, field.inner, value)


cdef int wire_write_fixed(WireWriter *writer, int kind, object name, object value) except -1:
    cdef int64_t number
    cdef bint is_true
    if kind == WIRE_INT32:
        number = wire_int(writer, name, value, INT32_MIN, INT32_MAX)
        store_i32(wire_room(writer, 4), <int32_t> number)
    elif kind == WIRE_INT64:
        number = wire_int(writer, name, value, INT64_MIN, INT64_MAX)
        store_i64(wire_room(writer, 8), number)
    elif kind == WIRE_INT16:
        number = wire_int(writer, name, value, INT16_MIN, INT16_MAX)
        store_i16(wire_room(writer, 2), <int16_t> number)
    elif kind == WIRE_INT8:
        number = wire_int(writer, name, value, INT8_MIN, INT8_MAX)
        wire_room(writer, 1)[0] = <uint8_t> <int8_t> number
    elif kind == WIRE_BOOL:
        is_true = bool(value)
        wire_room(writer, 1)[0] = 1 if is_true else 0
    elif kind == WIRE_UUID:
        wire_write_uuid(writer, name, value)
    elif kind == WIRE_UINT16:
        number = wire_int(writer, name, value, 0, UINT16_MAX)
        store_i16(wire_room(writer, 2), <int16_t> <uint16_t> number)
    else:
        wire_write_float(writer, name, value)
    return 0


cdef inline int64_t wire_int(WireWriter *writer, object name, object value, int64_t low,
                             int64_t high) except? -1:
    cdef int overflow = 0
    cdef int64_t number = 0
    # Room is made only after this: __index__ may be anybody's code.
    if PyLong_Check(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
    elif hasattr(type(value), "__index__"):
        number = PyLong_AsLongLongAndOverflow(value.__index__(), &overflow)
    else:
        wire_refuse_value(writer, f"{name} is {value!r}, which is no integer")
    if overflow or number < low or number > high:
        wire_refuse_value(writer, f"{name} is {value}, which is not from {low} to {high}")
    return number


cdef int wire_write_uuid(WireWriter *writer, object name, object value) except -1:
    if not PyBytes_Check(value) or PyBytes_GET_SIZE(value) != UUID_BYTES:
        wire_refuse_value(writer, f"{name} is {value!r}, which is not {UUID_BYTES} bytes")
    memcpy(wire_room(writer, UUID_BYTES), PyBytes_AS_STRING(value), UUID_BYTES)
    return 0


cdef int wire_write_float(WireWriter *writer, object name, object value) except -1:
    cdef double number = 0
    cdef uint64_t bits
    try:
        number = value
    except (TypeError, OverflowError):
        wire_refuse_value(writer, f"{name} is {value!r}, which is no number of 64 bits")
    memcpy(&bits, &number, sizeof(bits))
    store_i64(wire_room(writer, 8), <int64_t> bits)
    return 0


cdef inline int wire_write_length(WireWriter *writer, object name, Py_ssize_t length,
                                  int plain_bytes, bint is_flexible) except -1:
    """A length or count; -1 is null."""
    cdef Py_ssize_t most = INT16_MAX if plain_bytes == 2 else INT32_MAX
    if length > most:
        wire_refuse_value(writer, f"{name} has {length} bytes or elements, over the limit of "
                                  f"{most}")
    if is_flexible:
        return wire_write_varint(writer, <uint64_t> (length + 1))
    if plain_bytes == 2:
        store_i16(wire_room(writer, 2), <int16_t> length)
    else:
        store_i32(wire_room(writer, 4), <int32_t> length)
    return 0


cdef int wire_write_null(WireWriter *writer, object name, int plain_bytes, bint is_nullable,
                         bint is_flexible) except -1:
    if not is_nullable:
        wire_refuse_value(writer, f"{name} is null")
    return wire_write_length(writer, name, -1, plain_bytes, is_flexible)


cdef int wire_write_string(WireWriter *writer, object name, object value, bint is_nullable,
                           bint is_flexible) except -1:
    cdef Py_ssize_t size = 0
    cdef const char *data = NULL
    if value is None:
        return wire_write_null(writer, name, 2, is_nullable, is_flexible)
    if not PyUnicode_Check(value):
        wire_refuse_value(writer, f"{name} is {value!r}, which is no string")
    try:
        data = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError:
        wire_refuse_value(writer, f"{name} is {value!r}, which UTF-8 cannot write")
    wire_write_length(writer, name, size, 2, is_flexible)
    memcpy(wire_room(writer, size), data, <size_t> size)
    return 0


cdef int wire_write_bytes(WireWriter *writer, object name, object value, bint is_nullable,
                          bint is_flexible) except -1:
    cdef Py_buffer buffer
    if value is None:
        return wire_write_null(writer, name, 4, is_nullable, is_flexible)
    try:
        PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
    except (TypeError, BufferError):
        wire_refuse_value(writer, f"{name} is {value!r}, which is no bytes")
    try:
        wire_write_length(writer, name, buffer.len, 4, is_flexible)
        memcpy(wire_room(writer, buffer.len), buffer.buf, <size_t> buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return 0


cdef int wire_write_records(WireWriter *writer, object name, object value, bint is_nullable,
                            bint is_flexible) except -1:
    cdef Py_ssize_t size
    cdef bint are_bytes
    cdef Py_buffer buffer
    if value is None:
        return wire_write_null(writer, name, 4, is_nullable, is_flexible)
    if PyObject_CheckBuffer(value):
        try:
            PyObject_GetBuffer(value, &buffer, PyBUF_ND)
        except BufferError:
            wire_refuse_value(writer, f"{name} is {value!r}, whose bytes are not in one place")
        size = buffer.len
        are_bytes = buffer.itemsize == 1 and buffer.ndim == 1
        PyBuffer_Release(&buffer)
        if not are_bytes:
            # Who sends the parts asks them for their length, which has to be one in bytes too.
            value = memoryview(value).cast("B") if size else b""
    else:
        size = wire_slice_bytes(writer, name, value)
    wire_write_length(writer, name, size, 4, is_flexible)
    wire_hand_over(writer)
    (<list> writer.parts).append(value)
    writer.handed_bytes += size
    return 0


cdef Py_ssize_t wire_slice_bytes(WireWriter *writer, object name, object value) except -1:
    """How long what is not in memory is. A slice of a file has a length and no elements; text and
    lists have both, and their length is not one in bytes."""
    kind = type(value)
    if not hasattr(kind, "__len__") or hasattr(kind, "__iter__"):
        wire_refuse_value(writer, f"{name} is {value!r}, which is neither bytes nor a slice of a "
                                  "file")
    return len(value)


cdef int wire_write_array(WireWriter *writer, WireField *field, object value,
                          bint is_flexible) except -1:
    cdef Py_ssize_t i, count
    name = <object> field.name
    if value is None:
        return wire_write_null(writer, name, 4, field.is_nullable, is_flexible)
    if PyTuple_Check(value):
        elements = value
    else:
        elements = wire_elements(writer, name, value)
    count = PyTuple_GET_SIZE(elements)
    wire_write_length(writer, name, count, 4, is_flexible)
    for i in range(count):
        wire_write_one(writer, field, <object> PyTuple_GET_ITEM(elements, i), is_flexible)
    return 0


cdef object wire_elements(WireWriter *writer, object name, object value):
    try:
        return tuple(value)
    except TypeError:
        wire_refuse_value(writer, f"{name} is {value!r}, which is no sequence")


cdef int wire_write_tags(WireWriter *writer, WireStruct *struct, object values) except -1:
    """The tagged fields that differ from their defaults."""
    cdef WireField *field = struct.fields + struct.untagged
    cdef WireField *end = field + struct.tagged
    cdef Py_ssize_t at = writer.scratch.used
    cdef int given = 0
    wire_room(writer, 1)
    while field < end:
        value = <object> PyTuple_GET_ITEM(values, field.slot)
        if wire_is_given(field, value):
            given += 1
            wire_write_varint(writer, <uint64_t> field.tag)
            wire_write_tagged(writer, field, value)
        field += 1
    # So few that a byte counts them; there are no records in tagged fields, so it is still here.
    writer.scratch.data[at] = <uint8_t> given
    return 0


cdef bint wire_is_given(WireField *field, object value) except -1:
    default = <object> field.default
    if value is default:
        return False
    if field.is_array and default is not None:
        # What has no length is refused when it is written.
        return value is None or not hasattr(value, "__len__") or len(value) > 0
    return value != default


cdef int wire_write_tagged(WireWriter *writer, WireField *field, object value) except -1:
    """A tagged field with its size before it, for which one byte is mostly enough."""
    cdef Py_ssize_t at = writer.scratch.used
    cdef Py_ssize_t size, more, bits
    cdef uint8_t *data
    wire_room(writer, 1)
    wire_write(writer, field, value, True)
    size = writer.scratch.used - at - 1
    more = 0
    bits = size >> 7
    while bits:
        more += 1
        bits >>= 7
    if more:
        wire_room(writer, more)
        data = writer.scratch.data + at
        memmove(data + 1 + more, data + 1, <size_t> size)
    writer.scratch.used = at
    wire_write_varint(writer, <uint64_t> size)
    writer.scratch.used += size
    return 0
