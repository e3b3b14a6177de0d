"""kafka-python's batch code and hash, and aiokafka's partitioner, to compare with: implementations
that nobody here wrote.

Importing it warns about importlib.resources, which this project's tests treat as an error.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from aiokafka.partitioner import DefaultPartitioner
    from kafka.partitioner.default import murmur2
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

__all__ = [
    "DefaultPartitioner",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "LegacyRecordBatchBuilder",
    "murmur2",
]
