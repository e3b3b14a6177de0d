"""Checks compressed batches before their logs see them, so that large ones do not keep the loop.

What is not compressed is checked by its log, at memory's speed. A compressed batch says nothing
about its size: here it is tried on the loop up to a small one, and what is larger is copied out of
the receive buffer and given to a worker. Meanwhile its connection takes no other request, so the
order of a producer's batches stays. Between producers there is no order to keep.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from typing_extensions import Buffer

from stratalog.broker.requests import Request
from stratalog.broker.services import Services
from stratalog.clock import Clock
from stratalog.errors import RecordTooLargeError, StratalogError
from stratalog.records import ProduceRules, validate_produced
from stratalog.replication.parts import PartitionAppend
from stratalog.storage.appending import ValidatedRecords

# Below these a batch is checked on the loop: as it came, and decompressed.
_COMPRESSED_BYTES = 64 << 10
_DECOMPRESSED_BYTES = 512 << 10
_CODEC_POSITION = 22
_CODEC_MASK = 7

_QUICK_MAX = 1_000

Outcome = ValidatedRecords | StratalogError


class CheckedAhead:
    """Confined to the loop, but for what its worker does."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # A topic's rules, and the same but for how much may be decompressed on the loop.
        self._quick: dict[int, tuple[ProduceRules, ProduceRules]] = {}

    def check(
        self,
        request: Request,
        appends: Sequence[PartitionAppend],
        append: Callable[[Sequence[PartitionAppend]], None],
    ) -> None:
        """Hand on to ``append`` what may be appended, at once or later; what may not be is refused
        in ``appends``."""
        work: list[tuple[PartitionAppend, ProduceRules]] = []
        is_long = False
        for each in appends:
            partition = self._services.replicas.find(each.key)
            assert partition is not None, "unknown partitions were refused before"
            rules = partition.log.produce_rules
            records = _as_sent(each)
            if not is_plain(records[_CODEC_POSITION] & _CODEC_MASK, rules):
                work.append((each, rules))
                is_long = is_long or len(records) >= _COMPRESSED_BYTES
        for each, rules in () if is_long else work:
            outcome = _attempt(_as_sent(each), self._quick_rules(rules), self._services.clock)
            if isinstance(outcome, ValidatedRecords):
                each.records = outcome._replace(rules=rules)
            elif _is_cut_short(outcome):
                is_long = True
                break
            else:
                each.records, each.error = None, outcome
        if is_long:
            left = [(each, rules) for each, rules in work if each.error is None]
            self._check_later(request, appends, left, append)
        else:
            append(_unrefused(appends))

    def _quick_rules(self, rules: ProduceRules) -> ProduceRules:
        known = self._quick.get(id(rules))
        if known is None or known[0] is not rules:
            if len(self._quick) >= _QUICK_MAX:
                self._quick.clear()
            quick = replace(rules, max_decompressed_bytes=_DECOMPRESSED_BYTES)
            known = self._quick[id(rules)] = (rules, quick)
        return known[1]

    def _check_later(
        self,
        request: Request,
        appends: Sequence[PartitionAppend],
        work: list[tuple[PartitionAppend, ProduceRules]],
        append: Callable[[Sequence[PartitionAppend]], None],
    ) -> None:
        services = self._services
        request.is_pipelined = False
        size_bytes = keep_records(appends)
        services.memory.hold(size_bytes)
        held = [(_as_sent(each), rules) for each, rules in work]

        def done(job: "asyncio.Future[list[Outcome]]") -> None:
            services.memory.release(size_bytes)
            if job.cancelled():
                return
            for (each, _), outcome in zip(work, job.result(), strict=True):
                if isinstance(outcome, ValidatedRecords):
                    each.records = outcome
                else:
                    each.records, each.error = None, outcome
            append(_unrefused(appends))

        job = services.loop.run_in_executor(services.workers, _check_all, held, services.clock)
        job.add_done_callback(done)


def keep_records(appends: Iterable[PartitionAppend]) -> int:
    """Copy records out of the receive buffer, which is used again; returns how many bytes."""
    size_bytes = 0
    for each in appends:
        records = each.records
        if isinstance(records, ValidatedRecords):
            records = records.records  # what was made of them refers to the buffer
        if records is not None:
            each.records = kept = bytes(records)
            size_bytes += len(kept)
    return size_bytes


def _unrefused(appends: Iterable[PartitionAppend]) -> list[PartitionAppend]:
    return [each for each in appends if each.error is None]


def _as_sent(each: PartitionAppend) -> memoryview:
    records = each.records.records if isinstance(each.records, ValidatedRecords) else each.records
    assert records is not None, "it has not been appended yet"
    return memoryview(records)


def is_plain(codec: int, rules: ProduceRules) -> bool:
    """Whether a batch of that codec comes and stays uncompressed, so that its log can check it."""
    return not codec and not rules.codec


def _check_all(held: Sequence[tuple[memoryview, ProduceRules]], clock: Clock) -> list[Outcome]:
    """On the worker."""
    return [_attempt(records, rules, clock) for records, rules in held]


def _attempt(records: Buffer, rules: ProduceRules, clock: Clock) -> Outcome:
    try:
        produced = validate_produced(
            records, rules, first_offset=0, leader_epoch=-1, now_ms=clock.now_ms()
        )
    except StratalogError as error:
        # What was raised leads to the frames that raised it, and so to all that was decompressed;
        # and whoever keeps it is among their callers.
        error.__traceback__ = error.__context__ = None
        return error
    return ValidatedRecords(records, rules, produced)


def _is_cut_short(error: StratalogError) -> bool:
    """Whether it was only the loop's time that did not suffice."""
    return isinstance(error, RecordTooLargeError) and error.limit_bytes == _DECOMPRESSED_BYTES
