# Messages from bytes. Every read is compared with the end first, and nothing is allocated by a
# length or a count before that was compared with the bytes that are there. How deep structs nest
# is the layout's decision, not the bytes'. Records are views of the frame; all else is copied.
# Of a message that anybody may send, the elements of all arrays are counted before they are made.

cdef extern from *:
    """
    /* What tuple's own __new__ does for a subclass, without a tuple to copy from. */
    static CYTHON_INLINE PyObject *wire_new(PyObject *type, Py_ssize_t slots) {
        return ((PyTypeObject *) type)->tp_alloc((PyTypeObject *) type, slots);
    }
    """
    object wire_new(PyObject *type, Py_ssize_t slots)

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *data, Py_ssize_t size, const char *errors)
    bint PyMemoryView_Check(object view)
    bint PyUnicode_IS_ASCII(object text)
    Py_ssize_t PY_SSIZE_T_MAX
    Py_buffer *PyMemoryView_GET_BUFFER(object view)
    object PySequence_GetSlice(object sequence, Py_ssize_t start, Py_ssize_t stop)

cdef enum:
    # An array claims at least so many bytes an element, of which the slot in a tuple may take
    # eight times as much: beyond this many, slots are made as elements are read.
    ELEMENTS_AT_ONCE = 1024
    REPLACED_BYTES = 3              # of U+FFFD, which stands for as little as one byte


cdef struct WireReader:
    const uint8_t *data
    Py_ssize_t position
    Py_ssize_t end
    Py_ssize_t elements             # of all arrays so far
    Py_ssize_t elements_max
    PyObject *view                  # what records are slices of
    PyObject *api
    int version


cdef int wire_refuse(WireReader *reader, str reason) except -1:
    raise ProtocolError(<object> reader.api, reader.version, reader.position, reason)


cdef inline const uint8_t *wire_take(WireReader *reader, object name, Py_ssize_t size) except NULL:
    """The next ``size`` bytes, which are passed."""
    cdef const uint8_t *at = reader.data + reader.position
    if size > reader.end - reader.position:
        wire_refuse(reader, f"it ends in the middle of {name}")
    reader.position += size
    return at


cdef inline const uint8_t *wire_claimed(WireReader *reader, object name,
                                        Py_ssize_t size) except NULL:
    """The next ``size`` bytes, where ``size`` was read from the message."""
    cdef const uint8_t *at = reader.data + reader.position
    cdef Py_ssize_t left = reader.end - reader.position
    if size > left:
        wire_refuse(reader, f"{name} claims {size} bytes where {left} are left")
    reader.position += size
    return at


cdef int wire_seek(WireReader *reader, Py_ssize_t position) except -1:
    if not 0 <= position <= reader.end:
        wire_refuse(reader, "it ends in the middle of its header")
    reader.position = position
    return 0


cdef int64_t wire_varint(WireReader *reader, object name) except -1:
    """An unsigned varint of 32 bits."""
    cdef uint64_t value = wire_take(reader, name, 1)[0]
    cdef uint64_t byte = value
    cdef int shift = 7
    if value < 0x80:
        return <int64_t> value
    value &= 0x7F
    while byte & 0x80:
        if shift > 28:
            wire_refuse(reader, f"{name} has a varint of more than 5 bytes")
        byte = wire_take(reader, name, 1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
    if value > 0xFFFFFFFF:
        wire_refuse(reader, f"{name} has a varint of more than 32 bits")
    return <int64_t> value


cdef inline object wire_text(WireReader *reader, object name, Py_ssize_t size):
    """The text of the next ``size`` bytes, where ``size`` was read from the message."""
    text = PyUnicode_DecodeUTF8(
        <const char *> wire_claimed(reader, name, size), size, "replace")
    if size * REPLACED_BYTES > STRING_BYTES_MAX and not PyUnicode_IS_ASCII(text):
        wire_check_text(reader, name, size, text)
    return text


cdef int wire_check_text(WireReader *reader, object name, Py_ssize_t size, str text) except -1:
    """What is not UTF-8 is longer as text than it was. Who sends it would be told so, but others
    may be who are to be told of it later, and then no answer could hold it."""
    cdef Py_ssize_t written = len(text.encode())
    if written > STRING_BYTES_MAX:
        wire_refuse(reader, f"{name} has {size} bytes that are not all UTF-8, and {written} as "
                            f"text, over the limit of {STRING_BYTES_MAX}")
    return 0


cdef object wire_view(frame):
    """A view of a frame's bytes, for records to be slices of."""
    view = frame if PyMemoryView_Check(frame) else memoryview(frame)
    cdef Py_buffer *buffer = PyMemoryView_GET_BUFFER(view)
    return view if buffer.itemsize == 1 and buffer.ndim == 1 else view.cast("B")


cdef inline void wire_put(object made, Py_ssize_t slot, object value) noexcept:
    """Fill a slot of a new tuple."""
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, slot, value)


cdef object wire_read_struct(WireReader *reader, WireStruct *struct):
    made = wire_new(struct.type, struct.slots)
    cdef WireField *field = struct.fields
    cdef WireField *end = field + struct.untagged
    while field < end:
        if field.is_array:
            wire_put(made, field.slot, wire_read_array(reader, field, struct.is_flexible))
        else:
            wire_put(made, field.slot, wire_read_one(reader, field, struct.is_flexible))
        field += 1
    end += struct.tagged + struct.absent
    while field < end:
        wire_put(made, field.slot, <object> field.default)
        field += 1
    if struct.is_flexible:
        wire_read_tags(reader, struct, made)
    return made


cdef object wire_read_one(WireReader *reader, WireField *field, bint is_flexible):
    """A field that is no array, or an element of one that is, which is never null."""
    cdef const uint8_t *at
    cdef bint is_nullable = field.is_nullable and not field.is_array
    name = <object> field.name
    if field.kind <= WIRE_UUID:
        return wire_fixed(field.kind, wire_take(reader, name, WIRE_FIXED_BYTES[field.kind]))
    if field.kind == WIRE_STRUCT:
        if is_nullable and <int8_t> wire_take(reader, name, 1)[0] < 0:
            return None
        return wire_read_struct(reader, field.inner)
    cdef Py_ssize_t size = wire_length(
        reader, name, 2 if field.kind == WIRE_STRING else 4, is_nullable, is_flexible)
    if size < 0:
        return None
    if field.kind == WIRE_STRING and size > STRING_BYTES_MAX:
        wire_refuse(reader, f"{name} has {size} bytes, over the limit of {STRING_BYTES_MAX}")
    if field.kind == WIRE_STRING:
        return wire_text(reader, name, size)
    at = wire_claimed(reader, name, size)
    if field.kind == WIRE_BYTES:
        return PyBytes_FromStringAndSize(<const char *> at, size)
    return PySequence_GetSlice(<object> reader.view, reader.position - size, reader.position)


cdef inline object wire_fixed(int kind, const uint8_t *at):
    cdef uint64_t bits
    cdef double number
    if kind == WIRE_INT32:
        return load_i32(at)
    elif kind == WIRE_INT64:
        return load_i64(at)
    elif kind == WIRE_INT16:
        return load_i16(at)
    elif kind == WIRE_INT8:
        return <int8_t> at[0]
    elif kind == WIRE_BOOL:
        return at[0] != 0
    elif kind == WIRE_UUID:
        return PyBytes_FromStringAndSize(<const char *> at, UUID_BYTES)
    elif kind == WIRE_UINT16:
        return load_u16(at)
    bits = load_u64(at)
    memcpy(&number, &bits, sizeof(number))
    return number


cdef inline Py_ssize_t wire_length(WireReader *reader, object name, int plain_bytes,
                                   bint is_nullable, bint is_flexible) except -2:
    """A length or count: compact, which is one more and 0 for null, or of a fixed size, where any
    negative is null. -1 for null, of what may be null."""
    cdef Py_ssize_t length
    cdef const uint8_t *at
    if is_flexible:
        length = <Py_ssize_t> wire_varint(reader, name) - 1
    else:
        at = wire_take(reader, name, plain_bytes)
        length = load_i16(at) if plain_bytes == 2 else load_i32(at)
    if length < 0:
        if not is_nullable:
            wire_refuse(reader, f"{name} is null")
        return -1
    return length


cdef object wire_read_array(WireReader *reader, WireField *field, bint is_flexible):
    cdef Py_ssize_t count, left, i
    name = <object> field.name
    count = wire_length(reader, name, 4, field.is_nullable, is_flexible)
    if count < 0:
        return None
    left = reader.end - reader.position
    if count > left // field.element_bytes:
        wire_refuse(reader, f"{name} claims {count} elements where {left} bytes are left")
    reader.elements += count
    if reader.elements > reader.elements_max:
        wire_refuse(reader, f"with {name} it names {reader.elements} things; at most "
                            f"{reader.elements_max} are taken")
    if count > ELEMENTS_AT_ONCE:
        return tuple([wire_read_one(reader, field, is_flexible) for i in range(count)])
    made = PyTuple_New(count)
    for i in range(count):
        wire_put(made, i, wire_read_one(reader, field, is_flexible))
    return made


cdef int wire_read_tags(WireReader *reader, WireStruct *struct, object made) except -1:
    cdef int64_t tag
    cdef Py_ssize_t stop
    cdef WireField *field
    cdef Py_ssize_t count = wire_tag_count(reader)
    while count > 0:
        count -= 1
        tag = wire_varint(reader, WIRE_TAGS)
        stop = wire_tag_stop(reader, tag)
        field = wire_tagged(struct, tag)
        if field == NULL:
            reader.position = stop
            continue
        if field.is_array:
            value = wire_read_array(reader, field, True)
        else:
            value = wire_read_one(reader, field, True)
        before = <object> PyTuple_GET_ITEM(made, field.slot)
        wire_put(made, field.slot, value)
        Py_DECREF(before)
        if reader.position != stop:
            wire_refuse(reader, f"tagged field {tag} ends {reader.position - stop:+} bytes from "
                                "where it says")
    return 0


cdef int wire_skip_tags(WireReader *reader) except -1:
    """Pass a tag section of which no tag is known."""
    cdef Py_ssize_t count = wire_tag_count(reader)
    while count > 0:
        count -= 1
        reader.position = wire_tag_stop(reader, wire_varint(reader, WIRE_TAGS))
    return 0


cdef inline Py_ssize_t wire_tag_count(WireReader *reader) except -1:
    """How many tagged fields follow; each takes two bytes at least."""
    cdef Py_ssize_t count = <Py_ssize_t> wire_varint(reader, WIRE_TAGS)
    cdef Py_ssize_t left = reader.end - reader.position
    if count * 2 > left:
        wire_refuse(reader, f"tagged fields claims {count} elements where {left} bytes are left")
    return count


cdef Py_ssize_t wire_tag_stop(WireReader *reader, int64_t tag) except -1:
    """Where the bytes of the tagged field end that the reader stands before."""
    cdef Py_ssize_t size = <Py_ssize_t> wire_varint(reader, WIRE_TAGS)
    cdef Py_ssize_t left = reader.end - reader.position
    if size > left:
        wire_refuse(reader, f"tagged field {tag} claims {size} bytes where {left} are left")
    return reader.position + size


cdef WireField *wire_tagged(WireStruct *struct, int64_t tag) noexcept:
    cdef WireField *field = struct.fields + struct.untagged
    cdef WireField *end = field + struct.tagged
    while field < end:
        if field.tag == tag:
            return field
        field += 1
    return NULL
