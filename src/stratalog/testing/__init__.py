"""For tests of stratalog and of what is built on it: a real broker, a clock, a disk, records.

``broker`` and the pytest fixtures of ``plugin`` run a broker in a process of its own; the rest are
fakes for tests of the engine itself. All are imported when first used: pytest loads the plugin in
every run of everybody who has stratalog installed, and most of them do not use it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratalog.testing.brokers import BrokerStartError as BrokerStartError
    from stratalog.testing.brokers import RunningBroker as RunningBroker
    from stratalog.testing.brokers import broker as broker
    from stratalog.testing.clock import ManualClock as ManualClock
    from stratalog.testing.disk import CrashMode as CrashMode
    from stratalog.testing.faults import Fault as Fault
    from stratalog.testing.faults import Operation as Operation
    from stratalog.testing.faults import PowerLoss as PowerLoss
    from stratalog.testing.files import SimulatedFileSystem as SimulatedFileSystem

_HOME = {
    "BrokerStartError": "stratalog.testing.brokers",
    "CrashMode": "stratalog.testing.disk",
    "Fault": "stratalog.testing.faults",
    "ManualClock": "stratalog.testing.clock",
    "Operation": "stratalog.testing.faults",
    "PowerLoss": "stratalog.testing.faults",
    "RunningBroker": "stratalog.testing.brokers",
    "SimulatedFileSystem": "stratalog.testing.files",
    "broker": "stratalog.testing.brokers",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"stratalog.testing has no {name!r}")
    return getattr(import_module(_HOME[name]), name)
