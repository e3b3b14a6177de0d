"""The steps that a history is made of: plain values, so that hypothesis draws, shows and shrinks
them. ``cleaning_world`` takes them."""

from dataclasses import dataclass

from stratalog.records import Codec

SLOTS = 1000


@dataclass(frozen=True)
class RowSpec:
    """A record to be written. ``key`` is None for none; ``gap`` offsets are left out before it."""

    key: int | None
    is_tombstone: bool = False
    age_ms: int = 0
    gap: int = 0
    value_bytes: int = 8
    has_headers: bool = False


@dataclass(frozen=True)
class Append:
    """Data. A ``producer`` below 0 is none, and one that is ``transactional`` opens a transaction
    if it has none. ``magic`` below 2 leaves out what those formats lack."""

    rows: tuple[RowSpec, ...]
    producer: int = -1
    transactional: bool = False
    codec: Codec = Codec.NONE
    magic: int = 2
    log_append_time: bool = False
    gap: int = 0


@dataclass(frozen=True)
class End:
    """The end of a transaction; a coordinator may raise the producer's epoch with it. A producer
    that has none open gets a marker that ends nothing."""

    producer: int
    commit: bool
    raises_epoch: bool = False


@dataclass(frozen=True)
class Roll:
    pass


@dataclass(frozen=True)
class Clean:
    """Some time later, a round."""

    after_ms: int = 0
    slots: int = SLOTS


@dataclass(frozen=True)
class Expire:
    """Much later: producers that have written nothing are forgotten."""


@dataclass(frozen=True)
class Reopen:
    is_clean: bool = True


@dataclass(frozen=True)
class RaiseStart:
    """DeleteRecords up to some part of the log, in hundredths."""

    part: int


@dataclass(frozen=True)
class DropFirst:
    """Retention takes the first segment away."""


Step = Append | End | Roll | Clean | Expire | Reopen | RaiseStart | DropFirst
