"""What the modules of messages share: the types that their values and layouts have.

A layout says which fields a struct has on the wire, in which versions:

    (class, field, field, ...)
    field = (kind, first version, last version, first nullable version, tag[, layout])

The fields are those of the class, in its order; -1 is "never nullable" and "not tagged"; a kind
that starts with ``[]`` is an array. The compiled module follows it: see ``records/_wire.pxi``.
"""

from typing import Any, Final, TypeAlias

NO_UUID: Final = bytes(16)
"""The zero id, which means that there is none."""

Records: TypeAlias = Any
"""Batches inside a message: a view when decoded; to send, anything that ``len`` measures, which
the encoder puts into its list of buffers as it is, so that a slice of a file is not read."""

Layout: TypeAlias = tuple[Any, ...]
