# Messages of Kafka's protocol: which fields they have, and bytes to values and back by that.
#
# A layout says what a struct looks like in all of its versions:
#
#     (class, field, field, ...)     one field for each of the class, a NamedTuple, in its order
#     field = (kind, first version, last version, first nullable version, tag[, layout])
#
# The kind is one of WIRE_KINDS, with [] before it for an array; -1 is "never nullable" and "not
# tagged". A MessageCodec is made of a layout for one version, once; after that, messages are read
# (_wire_read.pxi) and written (_wire_write.pxi) by following its C structs. A field that the
# version does not have is passed over when written and has the class's default when read.

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

from stratalog.errors import ProtocolError

cdef enum:
    # Those of a fixed size come first.
    WIRE_INT8
    WIRE_INT16
    WIRE_UINT16
    WIRE_INT32
    WIRE_INT64
    WIRE_FLOAT64
    WIRE_BOOL
    WIRE_UUID
    WIRE_STRING
    WIRE_BYTES
    WIRE_RECORDS
    WIRE_STRUCT

cdef enum:
    UUID_BYTES = 16
    STRING_BYTES_MAX = 0x7FFF
    REQUEST_HEAD_BYTES = 10         # of a request's header, up to the client id
    # Larger than any that is spoken; what lies outside is found without a table.
    API_KEYS = 128
    API_VERSIONS = 32

cdef dict WIRE_KINDS = {
    "int8": WIRE_INT8,
    "int16": WIRE_INT16,
    "uint16": WIRE_UINT16,
    "int32": WIRE_INT32,
    "int64": WIRE_INT64,
    "float64": WIRE_FLOAT64,
    "bool": WIRE_BOOL,
    "uuid": WIRE_UUID,
    "string": WIRE_STRING,
    "bytes": WIRE_BYTES,
    "records": WIRE_RECORDS,
    "struct": WIRE_STRUCT,
}

cdef int[8] WIRE_FIXED_BYTES = [1, 2, 2, 4, 8, 8, 1, UUID_BYTES]

# What is read besides fields, by the names that errors give it.
cdef str WIRE_TAGS = "tagged fields"
cdef str WIRE_HEAD = "its header"
cdef str WIRE_CORRELATION_ID = "correlation_id"
cdef str WIRE_CLIENT_ID = "client_id"

cdef str REQUEST_HEADER = "request header"


cdef struct WireStruct:
    PyObject *type
    Py_ssize_t slots                # fields of the class, whichever the version has
    bint is_flexible
    int untagged                    # fields: so many untagged ones, in the order of the wire,
    int tagged                      # then so many tagged ones, by tag,
    int absent                      # then so many that this version does not have
    WireField *fields
    Py_ssize_t smallest_bytes
    WireStruct *made_before         # all structs of a codec, to be freed


cdef struct WireField:
    int kind
    bint is_array
    bint is_nullable
    int slot
    int tag
    Py_ssize_t element_bytes        # the fewest bytes that one takes, or an element of the array
    WireStruct *inner
    PyObject *name                  # the codec keeps these two
    PyObject *default


include "_wire_read.pxi"
include "_wire_write.pxi"


@cython.final
cdef class MessageCodec:
    cdef readonly str api
    cdef readonly int version
    cdef int _api_key
    cdef bint _is_header_flexible
    cdef bint _has_records
    cdef Py_ssize_t _elements_max
    cdef WireStruct *_message
    cdef WireStruct *_made
    cdef list _kept

    def __cinit__(self, str api not None, tuple layout not None, int version, *,
                  bint is_flexible=False, int api_key=-1, bint is_header_flexible=False,
                  elements_max=None):
        self.api = api
        self.version = version
        self._api_key = api_key
        self._is_header_flexible = is_header_flexible
        self._elements_max = PY_SSIZE_T_MAX if elements_max is None else elements_max
        self._kept = []
        self._message = self._add(layout, is_flexible, False)

    def __dealloc__(self):
        cdef WireStruct *made = self._made
        cdef WireStruct *before
        while made != NULL:
            before = made.made_before
            free(made.fields)
            free(made)
            made = before

    cdef WireStruct *_add(self, tuple layout, bint is_flexible, bint is_in_tag) except NULL:
        """The struct of a layout, and first those inside it."""
        cls = layout[0]
        if not (isinstance(cls, type) and issubclass(cls, tuple)):
            raise TypeError(f"{cls!r} is no class of tuples")
        names = cls._fields
        if len(names) != len(layout) - 1:
            raise ValueError(f"{cls.__name__} has {len(names)} fields, its layout others")
        cdef WireStruct *made = <WireStruct *> calloc(1, sizeof(WireStruct))
        if made == NULL:
            raise MemoryError
        made.made_before = self._made
        self._made = made
        made.fields = <WireField *> calloc(max(len(names), 1), sizeof(WireField))
        if made.fields == NULL:
            raise MemoryError
        self._kept.append(cls)
        made.type = <PyObject *> cls
        made.slots = len(names)
        made.is_flexible = is_flexible
        made.smallest_bytes = 1 if is_flexible else 0
        self._add_fields(made, cls, layout, is_in_tag)
        return made

    cdef int _add_fields(self, WireStruct *made, cls, tuple layout, bint is_in_tag) except -1:
        untagged, tagged, absent = [], [], []
        for slot, (_, first, last, _, tag, *_) in enumerate(layout[1:]):
            if not first <= self.version <= last:
                absent.append(slot)
            elif tag < 0:
                untagged.append(slot)
            else:
                tagged.append((tag, slot))
        if tagged and not made.is_flexible:
            raise ValueError(f"{cls.__name__} has tags in a version that is not flexible")
        made.untagged, made.tagged, made.absent = len(untagged), len(tagged), len(absent)
        slots = [*untagged, *(slot for _, slot in sorted(tagged)), *absent]
        for number, slot in enumerate(slots):
            self._add_field(made, &made.fields[number], cls, slot, layout[slot + 1], is_in_tag)
            if number < made.untagged:
                made.smallest_bytes += wire_smallest(&made.fields[number], made.is_flexible)
        return 0

    cdef int _add_field(self, WireStruct *made, WireField *field, cls, int slot,
                        tuple about, bint is_in_tag) except -1:
        kind, first, last, nullable_from, tag, *inner = about
        name = cls._fields[slot]
        default = cls._field_defaults[name]
        self._kept.append(name)
        self._kept.append(default)
        field.name = <PyObject *> name
        field.default = <PyObject *> default
        field.slot = slot
        field.tag = tag
        field.is_array = kind.startswith("[]")
        field.kind = WIRE_KINDS[kind.removeprefix("[]")]
        field.is_nullable = 0 <= nullable_from <= self.version
        if not first <= self.version <= last:
            return 0
        is_in_tag = is_in_tag or tag >= 0
        if field.kind == WIRE_RECORDS:
            if is_in_tag or field.is_array:
                raise ValueError(f"{name}: records are in a tagged field or in an array")
            self._has_records = True
        if inner:
            field.inner = self._add(inner[0], made.is_flexible, is_in_tag)
        elif field.kind == WIRE_STRUCT:
            raise ValueError(f"{name} is a struct without a layout")
        field.element_bytes = wire_smallest_element(field, made.is_flexible)
        if field.is_array and field.element_bytes <= 0:
            raise ValueError(f"{name}: elements of no bytes would let any count through")
        return 0

    # --- what is the same for all ---------------------------------------------------------------

    cpdef decode(self, frame, Py_ssize_t position=0):
        cdef Py_buffer buffer
        cdef WireReader reader
        view = wire_view(frame) if self._has_records else None
        PyObject_GetBuffer(frame, &buffer, PyBUF_SIMPLE)
        try:
            self._start(&reader, &buffer, view)
            wire_seek(&reader, position)
            return wire_read_struct(&reader, self._message)
        finally:
            PyBuffer_Release(&buffer)

    cdef void _start(self, WireReader *reader, Py_buffer *buffer, view) noexcept:
        reader.data = <const uint8_t *> buffer.buf
        reader.position = 0
        reader.end = buffer.len
        reader.elements = 0
        reader.elements_max = self._elements_max
        reader.view = <PyObject *> view
        reader.api = <PyObject *> self.api
        reader.version = self.version

    cpdef encode(self, value):
        cdef WireWriter writer
        if self._has_records:
            raise ValueError(f"{self.api} has records: it is more than one buffer")
        self._begin(&writer)
        try:
            wire_write_struct(&writer, self._message, value)
            return wire_written(&writer)
        finally:
            scratch_free(&writer.scratch)

    cdef void _begin(self, WireWriter *writer) noexcept:
        memset(writer, 0, sizeof(WireWriter))
        writer.api = <PyObject *> self.api
        writer.version = self.version

    cdef list _encode_frame(self, WireWriter *writer, value):
        """The buffers of a frame, whose head is written but for the size."""
        cdef list parts = []
        writer.parts = <PyObject *> parts
        wire_write_struct(writer, self._message, value)
        if writer.scratch.used or not parts:
            wire_hand_over(writer)
        # Nobody else has seen these bytes yet.
        first = parts[0]
        wire_store_size(writer, <uint8_t *> PyBytes_AS_STRING(first))
        return parts

    # --- responses ------------------------------------------------------------------------------

    cpdef encode_response(self, correlation_id, value):
        cdef WireWriter writer
        cdef uint8_t *head
        self._begin(&writer)
        try:
            head = wire_room(&writer, 9 if self._is_header_flexible else 8)
            store_i32(head + 4, <int32_t> wire_int(
                &writer, WIRE_CORRELATION_ID, correlation_id, INT32_MIN, INT32_MAX))
            if self._is_header_flexible:
                head[8] = 0
            return self._encode_frame(&writer, value)
        finally:
            scratch_free(&writer.scratch)

    cpdef decode_response(self, frame):
        cdef Py_buffer buffer
        cdef WireReader reader
        cdef int32_t correlation_id
        view = wire_view(frame) if self._has_records else None
        PyObject_GetBuffer(frame, &buffer, PyBUF_SIMPLE)
        try:
            self._start(&reader, &buffer, view)
            correlation_id = load_i32(wire_take(&reader, WIRE_HEAD, 4))
            if self._is_header_flexible:
                wire_skip_tags(&reader)
            return correlation_id, wire_read_struct(&reader, self._message)
        finally:
            PyBuffer_Release(&buffer)

    # --- requests -------------------------------------------------------------------------------

    cpdef encode_request(self, correlation_id, client_id, value):
        cdef WireWriter writer
        cdef uint8_t *head
        self._begin(&writer)
        try:
            head = wire_room(&writer, 12)
            store_i16(head + 4, <int16_t> self._api_key)
            store_i16(head + 6, <int16_t> self.version)
            store_i32(head + 8, <int32_t> wire_int(
                &writer, WIRE_CORRELATION_ID, correlation_id, INT32_MIN, INT32_MAX))
            # Never compact, whatever the version.
            wire_write_string(&writer, WIRE_CLIENT_ID, client_id, True, False)
            if self._is_header_flexible:
                wire_room(&writer, 1)[0] = 0
            return self._encode_frame(&writer, value)
        finally:
            scratch_free(&writer.scratch)


cdef Py_ssize_t wire_smallest_element(WireField *field, bint is_flexible) noexcept:
    if field.kind <= WIRE_UUID:
        return WIRE_FIXED_BYTES[field.kind]
    if field.kind == WIRE_STRUCT:
        return field.inner.smallest_bytes
    if is_flexible:
        return 1
    return 2 if field.kind == WIRE_STRING else 4


cdef Py_ssize_t wire_smallest(WireField *field, bint is_flexible) noexcept:
    if field.is_array:
        return 1 if is_flexible else 4
    if field.kind == WIRE_STRUCT and field.is_nullable:
        return 1
    return field.element_bytes


@cython.final
cdef class MessageCodecs:
    cdef object _load
    cdef list _kept
    cdef PyObject *_found[API_KEYS][API_VERSIONS]

    def __cinit__(self, load):
        self._load = load
        self._kept = []

    cdef MessageCodec _find(self, int api_key, int version):
        cdef PyObject *found
        cdef bint is_kept = 0 <= api_key < API_KEYS and 0 <= version < API_VERSIONS
        if is_kept:
            found = self._found[api_key][version]
            if found != NULL:
                return <MessageCodec> found
        cdef MessageCodec made = self._load(api_key, version)
        if is_kept and self._found[api_key][version] == NULL:
            self._kept.append(made)
            self._found[api_key][version] = <PyObject *> made
        return made

    def decode(self, int api_key, int version, frame, Py_ssize_t position=0):
        return self._find(api_key, version).decode(frame, position)

    def encode(self, int api_key, int version, value):
        return self._find(api_key, version).encode(value)

    def decode_response(self, int api_key, int version, frame):
        return self._find(api_key, version).decode_response(frame)

    def encode_response(self, int api_key, int version, correlation_id, value):
        return self._find(api_key, version).encode_response(correlation_id, value)

    def encode_request(self, int api_key, int version, correlation_id, client_id, value):
        return self._find(api_key, version).encode_request(correlation_id, client_id, value)


@cython.final
cdef class RequestHeaders:
    cdef object _header
    cdef bint _is_flexible[API_KEYS][API_VERSIONS]

    def __cinit__(self, header, flexible):
        if not (isinstance(header, type) and issubclass(header, tuple)
                and len(header._fields) == 4):
            raise TypeError(f"{header!r} is no class of tuples of four")
        self._header = header
        for api_key, version in flexible:
            if not (0 <= api_key < API_KEYS and 0 <= version < API_VERSIONS):
                raise ValueError(f"no room for version {version} of api key {api_key}")
            self._is_flexible[<int> api_key][<int> version] = True

    def decode(self, frame):
        cdef Py_buffer buffer
        cdef WireReader reader
        PyObject_GetBuffer(frame, &buffer, PyBUF_SIMPLE)
        try:
            reader.data = <const uint8_t *> buffer.buf
            reader.position = 0
            reader.end = buffer.len
            reader.elements = reader.elements_max = 0
            reader.view = NULL
            reader.api = <PyObject *> REQUEST_HEADER
            reader.version = -1
            header = self._decode(&reader)
            return header, reader.position
        finally:
            PyBuffer_Release(&buffer)

    cdef object _decode(self, WireReader *reader):
        cdef const uint8_t *head = wire_take(reader, WIRE_HEAD, REQUEST_HEAD_BYTES)
        cdef int16_t api_key = load_i16(head)
        cdef int16_t version = load_i16(head + 2)
        cdef Py_ssize_t size = load_i16(head + 8)
        client_id = None
        if size >= 0:
            client_id = wire_text(reader, WIRE_CLIENT_ID, size)
        if (0 <= api_key < API_KEYS and 0 <= version < API_VERSIONS
                and self._is_flexible[api_key][version]):
            wire_skip_tags(reader)
        header = wire_new(<PyObject *> self._header, 4)
        wire_put(header, 0, api_key)
        wire_put(header, 1, version)
        wire_put(header, 2, load_i32(head + 4))
        wire_put(header, 3, client_id)
        return header
