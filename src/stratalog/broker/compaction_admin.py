"""Compactions by others, over the admin port: planned, with the broker's own cleaner paused; pauses
renewed and released.

A pause has the id that its asker gives it, and ends by itself: when nobody renews it, the broker
cleans again. It lasts by the clock that is never set. Rounds are planned one by one, and the loop
does other things in between.
"""

import asyncio
from typing import Any

from stratalog.broker.commit_admin import path_or_none
from stratalog.broker.event_log import log_event
from stratalog.broker.services import Services
from stratalog.errors import InvalidRequestError
from stratalog.storage.cleaning.outside import SECONDS_MAX, LeftOut, wanted_keys
from stratalog.storage.commits.manifest import is_staging_id

_PARTITIONS_MAX = 100_000

Json = dict[str, Any]


async def plan(services: Services, body: Json) -> Json:
    """``{"id": 32 hex, "log_dir": path, "topics": [name], "partitions": [number] or null,
    "force": false, "seconds": 120}``; answers the rounds, which logs are left out and why, and
    how much has to stay free. Without ``log_dir``, as older drivers ask, the logs of all
    directories."""
    lease_id, seconds = _lease_id(body), _seconds(body)
    (topics, partitions), log_dir = _wanted(body), path_or_none(body.get("log_dir"))
    outside, now_ms = services.outside_rounds, services.clock.now_ms()
    keys = wanted_keys((log.topic_partition for log in services.logs), topics, partitions)
    outside.begin(lease_id, seconds=seconds, steady_ms=services.steady_clock.now_ms())
    rounds: list[Json] = []
    left_out: list[Json] = []
    for key in keys:
        found = outside.add(
            lease_id,
            key,
            now_ms=now_ms,
            is_forced=body.get("force") is True,
            log_dir=log_dir,
        )
        if isinstance(found, LeftOut):
            left_out.append(
                {**key._asdict(), "reason": found.reason, "is_damaged": found.is_damaged}
            )
        else:
            rounds.append(found.to_json())
        await asyncio.sleep(0)
    if not rounds:
        outside.release(lease_id)
    _end_later(services, seconds)
    log_event("compaction_planned", id=lease_id, rounds=len(rounds), left_out=len(left_out))
    return {
        "id": lease_id,
        "rounds": rounds,
        "left_out": left_out,
        "reserve_bytes": services.config.log_dir_reserve_bytes,
    }


def renew(services: Services, lease_id: str, body: Json) -> bool:
    """Whether there is such a pause still."""
    seconds = _seconds(body)
    steady_ms = services.steady_clock.now_ms()
    is_held = services.outside_rounds.renew(lease_id, seconds=seconds, steady_ms=steady_ms)
    _end_later(services, seconds)
    return is_held


def release(services: Services, lease_id: str) -> bool:
    return services.outside_rounds.release(lease_id)


def compactions(services: Services) -> Json:
    steady_ms = services.steady_clock.now_ms()
    services.outside_rounds.end(steady_ms)
    # People are told in the time of day, as it is now.
    ahead_ms = services.clock.now_ms() - steady_ms
    return {"compactions": services.outside_rounds.status(ahead_ms=ahead_ms)}


def _end_later(services: Services, seconds: float) -> None:
    """Somebody has to look when the time is over; more than once does no harm. The loop's clock
    and the one that is asked are the same: neither is set."""

    def end() -> None:
        services.outside_rounds.end(services.steady_clock.now_ms())

    services.loop.call_later(seconds + 0.01, end)


def _lease_id(body: Json) -> str:
    lease_id = body.get("id")
    if not isinstance(lease_id, str) or not is_staging_id(lease_id):
        raise InvalidRequestError('"id" is not an id of 32 hexadecimal digits')
    return lease_id


def _seconds(body: Json) -> float:
    seconds: Any = body.get("seconds")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= SECONDS_MAX:
        raise InvalidRequestError(f'"seconds" is not a number up to {SECONDS_MAX:g}')
    return float(seconds)


def _wanted(body: Json) -> tuple[list[str], list[int] | None]:
    topics, partitions = body.get("topics"), body.get("partitions")
    if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics):
        raise InvalidRequestError('"topics" is not a list of names')
    if partitions is None:
        return topics, None
    if (
        not isinstance(partitions, list)
        or not all(type(each) is int and 0 <= each < 2**31 for each in partitions)
        or len(partitions) * len(topics) > _PARTITIONS_MAX
    ):
        raise InvalidRequestError('"partitions" is neither a list of numbers nor null')
    return topics, partitions
