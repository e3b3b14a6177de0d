"""Handing staged segments over to the owner of a log directory, or being the owner for a moment.

A broker that runs is asked over its admin port; where nobody owns the directory, this process takes
the lock, commits, and lets go. Either way the caller gets a definite answer, or keeps asking.
"""

from stratalog.handover.errors import CommitUnknownError, HandoverError
from stratalog.handover.facts import TopicFacts
from stratalog.handover.handover import Handover, open_handover

__all__ = ["CommitUnknownError", "Handover", "HandoverError", "TopicFacts", "open_handover"]
