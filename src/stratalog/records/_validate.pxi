# What a leader checks in produced batches, and the batch that it stores instead of them.
#
# Usually that is the producer's own v2 batch with a new header: base offset and leader epoch lie
# outside the CRC, so nothing else is touched. Where the codec or the format has to change, or the
# source is a message set of magic 0 or 1, the records are encoded anew as one v2 batch.
#
# Kafka's order of checks is kept, so that a batch with two faults gets the same error: first every
# batch by itself (base offset, size, CRC), then the request, then the header, then the records.

include "_codec.pxi"
include "_rebuild.pxi"

from stratalog.errors import InvalidRecordError, InvalidTimestampError, RejectedRecord

cdef enum:
    GIL_WORTH_BYTES = 131072        # below this, giving the GIL away costs more than it gives
    COPIED_BYTES = 1024             # a batch of at most this is copied whole
    RECORD_OVERHEAD_MAX = 21        # length, attributes, deltas: all that re-encoding can lengthen

cdef enum:
    LENGTH_MIN = 14                 # a message of magic 0 with neither key nor value
    MAGIC_AT = 16
    CODEC_AT = 22                   # of the attributes' two bytes the lower one

cdef str ONE_BATCH = "a produce request holds exactly one batch for each partition"

cdef enum:
    ACCEPTED = 0
    REJECTED_NULL_KEY
    REJECTED_TIMESTAMP
    REJECTED_LOG_APPEND_TIME
    REJECTED_NEGATIVE_TIMESTAMP
    REJECTED_MAGIC


cdef struct Policy:
    int64_t now_ms
    int64_t before_max_ms
    int64_t after_max_ms
    int64_t max_message_bytes
    int64_t max_decompressed_bytes
    int64_t first_offset
    int32_t leader_epoch
    int32_t codec_id                # -1: the producer's
    bint compacted
    bint log_append_time
    bint is_client


cdef struct Walk:
    int64_t min_timestamp_ms
    int64_t max_timestamp_ms
    int64_t rejected_count
    bint offsets_count_from_zero


@cython.final
@cython.freelist(16)
cdef class ProducedBatches:
    """What a leader writes for one produce request, and what it answers."""

    cdef readonly BatchHeader header
    cdef readonly tuple headers     # that one
    cdef readonly list buffers
    cdef readonly int64_t size_bytes
    cdef readonly int64_t min_timestamp_ms
    cdef readonly int64_t max_timestamp_ms
    cdef readonly int64_t log_append_time_ms
    cdef readonly bint rebuilt
    cdef readonly bint offsets_count_from_zero

    def __init__(self):
        raise TypeError("ProducedBatches are made by validate_produced")

    @property
    def last_offset(self):
        return self.header.last_offset

    def move(self, int64_t by, int32_t leader_epoch):
        """Give the batch other offsets and another leader epoch: both lie outside the CRC."""
        cdef bytearray first = self.buffers[0]
        cdef uint8_t *p = <uint8_t *> PyByteArray_AS_STRING(first)
        if len(first) < V2_HEADER_BYTES or by > INT64_MAX - self.header.last_offset:
            raise corrupt(FAULT_OFFSET_RANGE)
        self.header.base_offset += by
        self.header.last_offset += by
        self.header.partition_leader_epoch = leader_epoch
        store_i64(p, self.header.base_offset)
        store_i32(p + 12, leader_epoch)

    def __repr__(self):
        return f"ProducedBatches({self.header!r}, rebuilt={self.rebuilt})"


# --- the rules of a record ---------------------------------------------------------------------


cdef inline int judge(const Policy *policy, bint is_log_append_time, int32_t key_size,
                      int64_t timestamp_ms) noexcept nogil:
    cdef int64_t age_ms
    if policy.compacted and key_size < 0:
        return REJECTED_NULL_KEY
    if not policy.log_append_time and timestamp_ms != -1:
        # Java's arithmetic, which wraps.
        age_ms = <int64_t> (<uint64_t> policy.now_ms - <uint64_t> timestamp_ms)
        if age_ms > policy.before_max_ms:
            return REJECTED_TIMESTAMP
        if <int64_t> (0 - <uint64_t> age_ms) > policy.after_max_ms:
            return REJECTED_TIMESTAMP
    elif is_log_append_time:
        return REJECTED_LOG_APPEND_TIME
    return ACCEPTED


cdef str rejection(int verdict, int64_t timestamp_ms, const Policy *policy):
    if verdict == REJECTED_NULL_KEY:
        return "a compacted topic takes no record without a key"
    if verdict == REJECTED_TIMESTAMP:
        earliest = <object> policy.now_ms - <object> policy.before_max_ms
        latest = <object> policy.now_ms + <object> policy.after_max_ms
        return f"timestamp {timestamp_ms} is outside [{earliest}, {latest}]"
    if verdict == REJECTED_LOG_APPEND_TIME:
        return "a producer may not set the timestamp type to LogAppendTime"
    if verdict == REJECTED_NEGATIVE_TIMESTAMP:
        return f"timestamp {timestamp_ms} is negative"
    return "its magic differs from that of the message around it"


cdef object refusal(list rejected, bint is_timestamp):
    """The one exception for all rejected records; a timestamp among them decides its type."""
    if is_timestamp:
        return InvalidTimestampError("records with invalid timestamps", tuple(rejected))
    return InvalidRecordError(f"{len(rejected)} invalid records", tuple(rejected))


cdef inline bint is_timestamp_verdict(int verdict) noexcept nogil:
    return (verdict == REJECTED_TIMESTAMP or verdict == REJECTED_LOG_APPEND_TIME
            or verdict == REJECTED_NEGATIVE_TIMESTAMP)


cdef inline int64_t record_timestamp(const Header *h, const RecordView *r) noexcept nogil:
    """The timestamp that readers see."""
    if h.attributes & TIMESTAMP_TYPE_BIT:
        return h.max_timestamp_ms
    return <int64_t> (<uint64_t> h.base_timestamp_ms + <uint64_t> r.timestamp_delta)


cdef int walk_produced(const uint8_t *data, Py_ssize_t size, const Header *h,
                       const Policy *policy, Walk *walk) noexcept nogil:
    """Check all records of a v2 batch whose records, decompressed, are `data`."""
    cdef RecordView record
    cdef Py_ssize_t at = 0
    cdef int64_t timestamp_ms
    cdef int32_t i
    cdef int fault
    cdef bint is_log_append_time = (h.attributes & TIMESTAMP_TYPE_BIT) != 0
    walk.min_timestamp_ms = INT64_MAX
    walk.max_timestamp_ms = -1
    walk.rejected_count = 0
    walk.offsets_count_from_zero = True
    for i in range(h.record_count):
        fault = parse_record(data, size, &at, &record)
        if fault:
            return fault
        timestamp_ms = record_timestamp(h, &record)
        if judge(policy, is_log_append_time, record.key_size, timestamp_ms):
            walk.rejected_count += 1
        if timestamp_ms > walk.max_timestamp_ms:
            walk.max_timestamp_ms = timestamp_ms
        if timestamp_ms < walk.min_timestamp_ms:
            walk.min_timestamp_ms = timestamp_ms
        if h.base_offset + record.offset_delta != i:
            walk.offsets_count_from_zero = False
    if at != size:
        return FAULT_RECORDS_REMAINING
    return FAULT_NONE


cdef object refuse_records(const uint8_t *data, Py_ssize_t size, const Header *h,
                           const Policy *policy):
    """Walk again, now keeping why each record is rejected."""
    cdef RecordView record
    cdef Py_ssize_t at = 0
    cdef int64_t timestamp_ms
    cdef int32_t i
    cdef int verdict
    cdef bint is_timestamp = False
    cdef list rejected = []
    for i in range(h.record_count):
        if parse_record(data, size, &at, &record):
            break
        timestamp_ms = record_timestamp(h, &record)
        verdict = judge(
            policy, (h.attributes & TIMESTAMP_TYPE_BIT) != 0, record.key_size, timestamp_ms
        )
        if verdict:
            is_timestamp = is_timestamp or is_timestamp_verdict(verdict)
            rejected.append(RejectedRecord(i, rejection(verdict, timestamp_ms, policy)))
    return refusal(rejected, is_timestamp)


# --- the rules of a batch ----------------------------------------------------------------------


cdef int check_shallow(const uint8_t *data, Py_ssize_t size, const Policy *policy,
                       Header *first, Py_ssize_t *batch_count) except -1:
    """Check every whole batch by itself; one that is cut at the end is left out, as Kafka does.

    Returns the first fault that is not one of bytes but of meaning (InvalidRecord in Kafka)."""
    cdef Header h
    cdef Py_ssize_t at = 0
    cdef uint32_t crc
    cdef int fault
    cdef int meaning = FAULT_NONE
    batch_count[0] = 0
    while True:
        fault = parse_header(data + at, size - at, at, &h)
        if fault == FAULT_SIZE_MIN or fault == FAULT_SIZE_MAX or fault == FAULT_MAGIC:
            raise corrupt(fault, at, h.base_offset)
        if fault == MORE_BYTES or h.size_bytes > size - at:
            return meaning
        if policy.is_client and h.magic == 2 and h.base_offset != 0:
            raise InvalidRecordError(f"the base offset must be 0, not {h.base_offset}")
        if h.size_bytes > policy.max_message_bytes:
            raise RecordTooLargeError("the batch", h.size_bytes, policy.max_message_bytes)
        if h.size_bytes >= GIL_WORTH_BYTES:
            with nogil:
                crc = batch_crc(data + at, &h)
        else:
            crc = batch_crc(data + at, &h)
        if crc != h.crc:
            raise corrupt(FAULT_CRC, at, h.base_offset)
        if fault and not meaning:
            meaning = fault
        if batch_count[0] == 0:
            first[0] = h
        batch_count[0] += 1
        at += <Py_ssize_t> h.size_bytes


cdef int check_batch(const Header *h, const Policy *policy) except -1:
    """The header of a v2 batch against what its origin may write."""
    if h.record_count == 0:
        raise InvalidRecordError("the batch has no records")
    if not policy.is_client:
        return 0
    if h.last_offset - h.base_offset + 1 != h.record_count:
        raise InvalidRecordError(
            f"offsets [{h.base_offset}, {h.last_offset}] for {h.record_count} records"
        )
    if h.attributes & CONTROL_BIT:
        raise InvalidRecordError("clients may not write control records")
    if h.producer_id >= 0 and h.base_sequence < 0:
        raise InvalidRecordError(
            f"sequence {h.base_sequence} in a batch of producer id {h.producer_id}"
        )
    return 0


# The rules that were read last: one batch after the other is of the same topic, and to read them
# takes as long as to check a record.
cdef object read_rules = None
cdef Policy rules_read


cdef int read_policy(rules, Policy *policy) except -1:
    global read_rules
    if rules is not read_rules:
        read_rules = None
        codec = rules.codec
        rules_read.compacted = rules.compacted
        rules_read.log_append_time = rules.log_append_time
        rules_read.before_max_ms = rules.before_max_ms
        rules_read.after_max_ms = rules.after_max_ms
        rules_read.max_message_bytes = rules.max_message_bytes
        rules_read.max_decompressed_bytes = rules.max_decompressed_bytes
        rules_read.codec_id = -1 if codec is None else codec
        read_rules = rules
    policy[0] = rules_read
    return 0


# --- a batch that stays as it is ---------------------------------------------------------------


cdef ProducedBatches stamp_produced(records, const uint8_t *data, Header *h,
                                    const Policy *policy, const Walk *walk):
    """The batch with its offsets, leader epoch and, where they change, timestamp type and CRC."""
    cdef ProducedBatches produced = ProducedBatches.__new__(ProducedBatches)
    cdef bytearray header
    cdef uint8_t *p
    cdef uint32_t crc
    # To have a small batch in one piece is cheaper than to leave its records where they are.
    cdef bint is_copied = h.size_bytes <= COPIED_BYTES
    cdef Py_ssize_t header_bytes = <Py_ssize_t> h.size_bytes if is_copied else V2_HEADER_BYTES
    cdef int64_t max_timestamp_ms = walk.max_timestamp_ms
    cdef int64_t delta = h.last_offset - h.base_offset
    cdef bint is_log_append_time = (h.attributes & TIMESTAMP_TYPE_BIT) != 0
    if policy.first_offset > INT64_MAX - h.record_count:
        raise corrupt(FAULT_OFFSET_RANGE)
    h.last_offset = policy.first_offset + h.record_count - 1
    h.base_offset = h.last_offset - delta
    h.partition_leader_epoch = policy.leader_epoch
    h.position = 0
    header = stamped(data, header_bytes, h.base_offset, policy.leader_epoch)
    if policy.log_append_time:
        max_timestamp_ms = policy.now_ms
    if is_log_append_time != policy.log_append_time or max_timestamp_ms != h.max_timestamp_ms:
        # As Kafka rewrites the attributes: bits 7 to 15 become 0.
        h.attributes &= 0x77
        if policy.log_append_time:
            h.attributes |= TIMESTAMP_TYPE_BIT
        h.max_timestamp_ms = max_timestamp_ms
        p = <uint8_t *> PyByteArray_AS_STRING(header)
        store_i16(p + 21, h.attributes)
        store_i64(p + 35, max_timestamp_ms)
        crc = crc_extend(CRC_CASTAGNOLI, 0, p + 21, V2_HEADER_BYTES - 21)
        h.crc = crc_extend(CRC_CASTAGNOLI, crc, data + V2_HEADER_BYTES,
                           <size_t> (h.size_bytes - V2_HEADER_BYTES))
        store_i32(p + 17, <int32_t> h.crc)
    produced.header = make_header(h)
    produced.headers = (produced.header,)
    produced.buffers = [header]
    if not is_copied:
        produced.buffers.append(memoryview(records)[V2_HEADER_BYTES:h.size_bytes])
    produced.offsets_count_from_zero = walk.offsets_count_from_zero
    produced.size_bytes = h.size_bytes
    produced.min_timestamp_ms = (max_timestamp_ms if policy.log_append_time
                                 else walk.min_timestamp_ms)
    produced.max_timestamp_ms = max_timestamp_ms
    produced.log_append_time_ms = policy.now_ms if policy.log_append_time else -1
    return produced


cdef ProducedBatches keep_batch(records, const uint8_t *batch, const uint8_t *data,
                                Py_ssize_t size, Header *h, const Policy *policy):
    """Check the records of a batch that is stored as it came; `data` are they, decompressed."""
    cdef Walk walk
    cdef int fault
    if size >= GIL_WORTH_BYTES:
        with nogil:
            fault = walk_produced(data, size, h, policy, &walk)
    else:
        fault = walk_produced(data, size, h, policy, &walk)
    if fault:
        raise InvalidRecordError(fault_reason(fault))
    if walk.rejected_count:
        raise refuse_records(data, size, h, policy)
    if h.attributes & CODEC_MASK and not walk.offsets_count_from_zero:
        # Kafka fails on these with an unknown error: it no longer has the keys and values.
        raise InvalidRecordError("offset deltas of a compressed batch must count from 0")
    if policy.is_client and not walk.offsets_count_from_zero:
        # Kafka stores them as they are, and its consumers then pass over acknowledged records.
        body = memoryview(records)[V2_HEADER_BYTES:h.size_bytes]
        return rebuild_batch(body, h, 0, None, policy)
    return stamp_produced(records, batch, h, policy, &walk)


# --- what a produce request may hold -----------------------------------------------------------


cdef Py_ssize_t whole_batch_bytes(const uint8_t *data, Py_ssize_t size) except -1:
    """How long the batch is that starts there; 0 if none does, or not the whole of one."""
    cdef int32_t length
    if size < LOG_OVERHEAD_BYTES:
        return 0
    length = load_i32(data + 8)
    if length < LENGTH_MIN:
        raise CorruptBatchError(f"a batch of length {length} is less than the smallest message")
    if size <= MAGIC_AT:
        return 0
    if data[MAGIC_AT] > 2:
        raise CorruptBatchError(f"magic {data[MAGIC_AT]} is no format of batches")
    return length + LOG_OVERHEAD_BYTES if size - LOG_OVERHEAD_BYTES >= length else 0


def lone_batch(records):
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef Py_ssize_t size
    if records is None:
        raise InvalidRecordError(ONE_BATCH)
    PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *> view.buf
        size = whole_batch_bytes(data, view.len)
        if size == 0 or (size < view.len and whole_batch_bytes(data + size, view.len - size)):
            raise InvalidRecordError(ONE_BATCH)
        if data[MAGIC_AT] != 2:
            raise InvalidRecordError(
                f"a produce request holds batches of magic 2, not of {data[MAGIC_AT]}"
            )
        return size, data[CODEC_AT] & CODEC_MASK
    finally:
        PyBuffer_Release(&view)


# --- entry -------------------------------------------------------------------------------------


cdef ProducedBatches validate_v2(records, const uint8_t *data, Header *h, const Policy *policy,
                                 level):
    cdef Py_buffer view
    cdef int source_codec_id = h.attributes & CODEC_MASK
    cdef bint in_place
    check_batch(h, policy)
    in_place = (policy.codec_id < 0 or policy.codec_id == source_codec_id
                or (source_codec_id == 0 and h.attributes & CONTROL_BIT))
    if in_place and source_codec_id == 0:
        return keep_batch(records, data, data + V2_HEADER_BYTES,
                          <Py_ssize_t> (h.size_bytes - V2_HEADER_BYTES), h, policy)
    body = memoryview(records)[V2_HEADER_BYTES:h.size_bytes]
    if source_codec_id:
        body = codec_decompress()(
            source_codec_id, body, limit_bytes=policy.max_decompressed_bytes
        )
    if not in_place:
        return rebuild_batch(body, h, policy.codec_id, level, policy)
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        return keep_batch(records, data, <const uint8_t *> view.buf, view.len, h, policy)
    finally:
        PyBuffer_Release(&view)


def validate_produced(records, rules, int64_t first_offset, int32_t leader_epoch, int64_t now_ms,
                      bint is_client=True):
    cdef Py_buffer view
    cdef Policy policy
    cdef Header first
    cdef Py_ssize_t batch_count
    cdef int fault
    cdef const uint8_t *data
    read_policy(rules, &policy)
    policy.first_offset = first_offset
    policy.leader_epoch = leader_epoch
    policy.now_ms = now_ms
    policy.is_client = is_client
    PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *> view.buf
        fault = check_shallow(data, view.len, &policy, &first, &batch_count)
        if batch_count == 0:
            raise InvalidRecordError("the request has no batch")
        if first.magic == 2 and batch_count != 1:
            raise InvalidRecordError("the request has more than one batch")
        if fault:
            raise InvalidRecordError(fault_reason(fault))
        if first.magic == 2:
            return validate_v2(records, data, &first, &policy, rules.level)
        return rebuild_messages(data, view.len, &first, batch_count, rules.level, &policy)
    finally:
        PyBuffer_Release(&view)


# --- many batches ------------------------------------------------------------------------------


cdef struct KeptBatch:
    Header header
    int64_t min_timestamp_ms


cdef bint is_kept(const uint8_t *p, Header *h, const Policy *policy, Walk *walk) noexcept nogil:
    """Whether a leader stores the batch at `p`, all of which is there, as it is; not if that takes
    more than one look at its bytes."""
    if h.magic != 2 or h.attributes or h.producer_id >= 0:
        return False
    if policy.log_append_time or policy.codec_id > 0:
        return False
    if h.size_bytes > policy.max_message_bytes:
        return False
    h.last_offset -= h.base_offset
    h.base_offset = 0
    if h.record_count < 1 or h.last_offset + 1 != h.record_count:
        return False
    if batch_crc(p, h) != h.crc:
        return False
    if walk_produced(p + V2_HEADER_BYTES, <Py_ssize_t> h.size_bytes - V2_HEADER_BYTES, h, policy,
                     walk):
        return False
    return (not walk.rejected_count and walk.offsets_count_from_zero
            and walk.max_timestamp_ms == h.max_timestamp_ms)


cdef Py_ssize_t keep_run(uint8_t *data, Py_ssize_t size, Policy *policy,
                         Scratch *kept) except -1 nogil:
    """Stamp all batches that are kept, up to the first that is not; returns their size."""
    cdef KeptBatch batch
    cdef Header *h = &batch.header
    cdef Walk walk
    cdef uint8_t *room
    cdef Py_ssize_t at = 0
    while (parse_header(data + at, size - at, at, h) == FAULT_NONE and h.size_bytes <= size - at
            and is_kept(data + at, h, policy, &walk)
            and policy.first_offset <= INT64_MAX - h.record_count):
        h.base_offset = policy.first_offset
        h.last_offset += policy.first_offset
        h.partition_leader_epoch = policy.leader_epoch
        h.position = 0
        batch.min_timestamp_ms = walk.min_timestamp_ms
        store_i64(data + at, h.base_offset)
        store_i32(data + at + 12, h.partition_leader_epoch)
        policy.first_offset += h.record_count
        room = scratch_room(kept, sizeof(KeptBatch))
        if room == NULL:
            raise MemoryError
        memcpy(room, &batch, sizeof(KeptBatch))
        at += <Py_ssize_t> h.size_bytes
    return at


def keep_batches(records, rules, int64_t first_offset, int32_t leader_epoch, int64_t now_ms,
                 int64_t batch_bytes_max):
    cdef Py_buffer view
    cdef Policy policy
    cdef Scratch kept = Scratch(NULL, 0, 0)
    cdef KeptBatch *batches
    cdef Py_ssize_t i
    cdef list found = []
    read_policy(rules, &policy)
    policy.first_offset = first_offset
    policy.leader_epoch = leader_epoch
    policy.now_ms = now_ms
    policy.max_message_bytes = min(policy.max_message_bytes, batch_bytes_max)
    PyObject_GetBuffer(records, &view, PyBUF_WRITABLE)
    try:
        with nogil:
            keep_run(<uint8_t *> view.buf, view.len, &policy, &kept)
        batches = <KeptBatch *> kept.data
        for i in range(kept.used // <Py_ssize_t> sizeof(KeptBatch)):
            found.append((make_header(&batches[i].header), batches[i].min_timestamp_ms))
        return found
    finally:
        PyBuffer_Release(&view)
        scratch_free(&kept)
