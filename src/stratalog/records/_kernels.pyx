# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, nonecheck=False
"""All work on batches and records that is done per batch or per record, compiled.

One rule holds throughout: the bytes come from the network or from a disk that may be damaged, so
no length, count or offset in them is believed before it was compared with the bytes at hand.

    _bytes.pxi     bytes to numbers and back, CRCs, faults
    _header.pxi    the header of a batch of any format
    _record.pxi    one record of a v2 batch
    _legacy.pxi    message sets of magic 0 and 1
    _search.pxi    binary search in the offset index and the time index
    _scan.pxi      walk the batches of a segment: check them and rebuild its indexes
    _resync.pxi    find the next valid batch after damage
    _encode.pxi    write headers and records
    _validate.pxi  what a leader checks in produced batches
    _columns.pxi   records to columns (_table, _table_memory), or what they leave out (_gaps)
    _fates.pxi     which transactions were aborted
    _lookup.pxi    find one record of a batch by its timestamp
    _clean.pxi     compaction: the offset map (_hash, _offset_map, _map_builder), the filter of
                   records (_walk, _transactions), keys too many for one map (_key_ranges)
    _survey.pxi    count what a compaction would meet
    _produce.pxi   rows of Arrow columns (_produce_rows) to batches, and which partition they go
                   to (_produce_partition)
    _time_ranges.pxi  smallest and largest timestamps of runs of batches
    _wire.pxi      messages of Kafka's protocol, from bytes (_wire_read) and to bytes (_wire_write)
"""

include "_bytes.pxi"
include "_header.pxi"
include "_record.pxi"
include "_legacy.pxi"
include "_search.pxi"
include "_scan.pxi"
include "_resync.pxi"
include "_encode.pxi"
include "_validate.pxi"
include "_columns.pxi"
include "_fates.pxi"
include "_lookup.pxi"
include "_clean.pxi"
include "_survey.pxi"
include "_time_ranges.pxi"
include "_produce.pxi"
include "_wire.pxi"
