"""Every exception that stratalog raises on purpose, a module for each layer that raises them.

Each carries its values as arguments, so that it survives pickling between processes, and builds
its own sentence from them. No wire error code appears here: the broker maps types to codes.

``from stratalog.errors import X`` is how they are imported, whichever module X is in: a star for
each, since all that a module has is meant for others and a list would only fall behind.
"""

from stratalog.errors.base import *
from stratalog.errors.metadata import *
from stratalog.errors.protocol import *
from stratalog.errors.records import *
from stratalog.errors.replication import *
from stratalog.errors.storage import *


def _name_after_this_package() -> None:
    """What a traceback, a pickle and a log line call an error is what one imports it by."""
    for each in globals().values():
        if isinstance(each, type) and each.__module__.startswith(f"{__name__}."):
            each.__module__ = __name__


_name_after_this_package()
