"""Batches and records: bytes to values and back, without files or sockets.

``_kernels`` is compiled and does all that is done per batch or per record; ``compression`` frames
the codecs, ``builder`` and ``control`` make batches.
"""

from stratalog.records._kernels import (
    BatchHeader,
    CleanedTransactions,
    KeySurvey,
    MapBuilder,
    OffsetMap,
    RecordFilter,
    SegmentScan,
    TimeRangeGather,
    TimeRangeScan,
    check_crc,
    find_batch,
    find_record_by_timestamp,
    find_valid_batch,
    min_timestamp,
    offset_entry,
    overlapping_ranges,
    read_header,
    read_headers,
    search_offset_index,
    search_time_index,
    search_time_index_by_offset,
    time_entry,
    upper_bound_by_position,
)
from stratalog.records.builder import Record, TimestampType, build_batch
from stratalog.records.compression import Codec, compress, decompress
from stratalog.records.control import (
    ControlRecord,
    ControlType,
    build_end_transaction_marker,
    parse_control_record,
    read_control_batch,
)
from stratalog.records.validation import (
    AppendOrigin,
    ProducedBatches,
    ProduceRules,
    validate_produced,
)

__all__ = [
    "AppendOrigin",
    "BatchHeader",
    "CleanedTransactions",
    "Codec",
    "ControlRecord",
    "ControlType",
    "KeySurvey",
    "MapBuilder",
    "OffsetMap",
    "ProduceRules",
    "ProducedBatches",
    "Record",
    "RecordFilter",
    "SegmentScan",
    "TimeRangeGather",
    "TimeRangeScan",
    "TimestampType",
    "build_batch",
    "build_end_transaction_marker",
    "check_crc",
    "compress",
    "decompress",
    "find_batch",
    "find_record_by_timestamp",
    "find_valid_batch",
    "min_timestamp",
    "offset_entry",
    "overlapping_ranges",
    "parse_control_record",
    "read_control_batch",
    "read_header",
    "read_headers",
    "search_offset_index",
    "search_time_index",
    "search_time_index_by_offset",
    "time_entry",
    "upper_bound_by_position",
    "validate_produced",
]
