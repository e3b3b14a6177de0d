"""Fakes for tests of stratalog and of what is built on it: a clock, a disk, random records."""

from stratalog.testing.clock import ManualClock
from stratalog.testing.disk import CrashMode
from stratalog.testing.faults import Fault, Operation, PowerLoss
from stratalog.testing.files import SimulatedFileSystem

__all__ = [
    "CrashMode",
    "Fault",
    "ManualClock",
    "Operation",
    "PowerLoss",
    "SimulatedFileSystem",
]
