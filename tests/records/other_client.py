"""kafka-python's batch code, an implementation nobody here wrote, to compare with.

Importing it warns about importlib.resources, which this project's tests treat as an error.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

__all__ = ["DefaultRecordBatch", "DefaultRecordBatchBuilder", "LegacyRecordBatchBuilder"]
