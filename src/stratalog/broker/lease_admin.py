"""Leases over the admin port: granted, renewed, released and listed, as values for JSON.

A lease is written to its file before anybody is told of it, on the worker that may wait, so that a
broker started after this one was killed knows of it.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from stratalog.broker.event_log import log_event
from stratalog.broker.services import Services
from stratalog.errors import DiskError, InvalidRequestError
from stratalog.storage.leases import Lease, is_lease_id, parse_ranges
from stratalog.storage.log_leases import LeaseWrite

# Ranges of ten thousand partitions of a topic with the longest of names.
LEASE_BODY_BYTES_MAX = 4 << 20
_SECONDS_MAX = 10 * 365 * 86_400

Json = dict[str, Any]


async def grant(services: Services, body: Json) -> Json:
    holder = body.get("holder")
    if not isinstance(holder, str) or not holder:
        raise InvalidRequestError('the body does not say who holds the lease, as "holder"')
    duration_ms = _duration_ms(body)
    # Ten thousand ranges take some milliseconds to be checked.
    ranges = await services.loop.run_in_executor(services.workers, parse_ranges, body.get("ranges"))
    leases = services.logs.leases
    lease, writes = leases.grant(holder, duration_ms, ranges)
    leases.note_written(lease, await services.run_blocking(lambda: _write(writes)))
    log_event("lease_granted", id=lease.lease_id, holder=holder, partitions=len(ranges))
    return _told(services, lease)


async def renew(services: Services, lease_id: str, body: Json) -> Json | None:
    """None: there is no such lease any more."""
    duration_ms = _duration_ms(body)
    leases = services.logs.leases
    if lease_id not in leases.book.leases and is_lease_id(lease_id):
        # It may have been left as a file since the last look.
        for look in leases.plan_looks():
            with suppress(DiskError):
                leases.take_found(await services.run_blocking(look))
    lease = leases.book.renew(lease_id, duration_ms)
    return None if lease is None else _told(services, lease)


def release(services: Services, lease_id: str) -> bool:
    """Whether there was such a lease."""
    leases = services.logs.leases
    is_known = leases.book.release(lease_id)
    leases.run(services.clock.now_ms())
    return is_known


def leases(services: Services) -> Iterator[Json]:
    """Those that hold now, the oldest first."""
    book = services.logs.leases.book
    for lease in sorted(book.leases.values(), key=lambda each: each.created_ms):
        yield {
            "id": lease.lease_id,
            "holder": lease.holder,
            "created_ms": lease.created_ms,
            "until_ms": lease.until_ms,
            "topics": lease.topics,
            "held_bytes": book.bytes_of(lease),
        }


def _told(services: Services, lease: Lease) -> Json:
    # Not the time of day alone: whoever asked may have another.
    left_ms = lease.until_ms - services.clock.now_ms()
    return {"id": lease.lease_id, "until_ms": lease.until_ms, "seconds": left_ms / 1000}


def _duration_ms(body: Json) -> int:
    seconds: Any = body.get("seconds")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= _SECONDS_MAX:
        raise InvalidRequestError('"seconds" is not a number of seconds for which a lease can last')
    return int(seconds * 1000)


def _write(writes: list[LeaseWrite]) -> list[str]:
    """The directories where it could be written. Without its file a lease holds while this broker
    runs, which is better than not at all."""
    written = []
    for log_dir, write in writes:
        with suppress(DiskError):
            write()
            written.append(log_dir)
    return written
