# The offsets of a range that are not returned to a reader, as runs with a reason.
#
# Every offset of the range is either that of a record that is returned, or in exactly one run.
# Runs of one reason that touch are one. What is missing between the records that are there was
# compacted away; what is there and not returned is a control record, or was aborted.

cdef enum:
    GAP_NONE = -1                   # a record that is returned
    GAP_COMPACTED
    GAP_ABORTED
    GAP_CONTROL
    GAP_DAMAGED

# In the order of the numbers above.
GAP_REASONS = ("compacted", "aborted", "control", "damaged")

cdef struct Gaps:
    bint is_on
    int64_t next_offset             # what was not spoken of yet begins here
    int64_t start_offset            # the last run, which may still grow
    int64_t end_offset
    int reason                      # GAP_NONE if there is none
    int missing                     # why what comes before the next record is not there
    int64_t count                   # of those in the columns
    Scratch starts
    Scratch ends
    Scratch reasons


cdef inline bint ensure_gaps(Gaps *gaps, Py_ssize_t records) noexcept nogil:
    """Room for what `records` records can add: a run before each, and one for itself."""
    cdef Py_ssize_t runs = 2 * records + 2
    return (ensure(&gaps.starts, 8 * runs) and ensure(&gaps.ends, 8 * runs)
            and ensure(&gaps.reasons, runs))


cdef inline void end_gap(Gaps *gaps) noexcept nogil:
    if gaps.reason == GAP_NONE:
        return
    add_i64(&gaps.starts, gaps.start_offset)
    add_i64(&gaps.ends, gaps.end_offset)
    gaps.reasons.data[gaps.reasons.used] = <uint8_t> gaps.reason
    gaps.reasons.used += 1
    gaps.count += 1
    gaps.reason = GAP_NONE


cdef inline void note_gap(Gaps *gaps, int64_t start_offset, int64_t end_offset,
                          int reason) noexcept nogil:
    if gaps.reason == reason and gaps.end_offset == start_offset:
        gaps.end_offset = end_offset
        return
    end_gap(gaps)
    gaps.start_offset = start_offset
    gaps.end_offset = end_offset
    gaps.reason = reason


cdef inline void note_offset(Gaps *gaps, int64_t offset, int reason) noexcept nogil:
    """A record is at `offset`; GAP_NONE if it is returned."""
    if offset < gaps.next_offset:
        return
    if offset > gaps.next_offset:
        note_gap(gaps, gaps.next_offset, offset, gaps.missing)
    gaps.missing = GAP_COMPACTED
    if reason != GAP_NONE:
        note_gap(gaps, offset, offset + 1, reason)
    gaps.next_offset = offset + 1


cdef inline void note_until(Gaps *gaps, int64_t end_offset, int reason) noexcept nogil:
    """Nothing more is returned before `end_offset`."""
    if end_offset > gaps.next_offset:
        note_gap(gaps, gaps.next_offset, end_offset, reason)
        gaps.next_offset = end_offset


cdef void free_gaps(Gaps *gaps) noexcept nogil:
    scratch_free(&gaps.starts)
    scratch_free(&gaps.ends)
    scratch_free(&gaps.reasons)
