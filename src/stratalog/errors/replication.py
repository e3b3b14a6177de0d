"""What this replica cannot do now, or not for whoever asks."""

from stratalog.errors.base import StratalogError


class ReplicationError(StratalogError):
    """This replica cannot do now what was asked of it."""


class NotLeaderError(ReplicationError):
    """Another node leads the partition, or nobody does."""


class FencedLeaderEpochError(ReplicationError):
    """Whoever asks knows an older leader epoch than this replica."""


class UnknownLeaderEpochError(ReplicationError):
    """Whoever asks knows a newer leader epoch than this replica."""


class NotEnoughReplicasError(ReplicationError):
    """Fewer replicas are in sync than ``min.insync.replicas`` asks for; nothing was appended."""


class NotEnoughReplicasAfterAppendError(ReplicationError):
    """It was appended, but fewer replicas are in sync than were asked for."""


class OffsetNotAvailableError(ReplicationError):
    """A new leader does not know yet how far the old one's records are stable."""


class InvalidRequiredAcksError(ReplicationError):
    """``acks`` is 0, 1 or -1."""


class RequestTimedOutError(ReplicationError):
    """It did not happen in the time that was given."""
