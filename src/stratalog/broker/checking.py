"""Checks compressed batches before their logs see them, so that large ones do not keep the loop.

What is not compressed is checked by its log, at memory's speed. A compressed batch says nothing
about its size: here it is tried on the loop up to a small one, and what is larger is copied out of
the receive buffer and given to a worker. Meanwhile its connection takes no other request, so the
order of a producer's batches stays. Between producers there is no order to keep.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from typing_extensions import Buffer

from stratalog.broker.requests import Request
from stratalog.broker.services import Services
from stratalog.clock import Clock
from stratalog.errors import RecordTooLargeError, StratalogError
from stratalog.records import ProduceRules, validate_produced
from stratalog.replication.replica_manager import AppendResult
from stratalog.storage.appending import ValidatedRecords
from stratalog.storage.layout import TopicPartition

# Below these a batch is checked on the loop: as it came, and decompressed.
_COMPRESSED_BYTES = 64 << 10
_DECOMPRESSED_BYTES = 512 << 10
_CODEC_POSITION = 22
_CODEC_MASK = 7

_QUICK_MAX = 1_000

Checked = Mapping[TopicPartition, Buffer | ValidatedRecords]
Refused = Mapping[TopicPartition, AppendResult]
Append = Callable[[Checked, Refused], None]
Outcome = ValidatedRecords | StratalogError


class CheckedAhead:
    """Confined to the loop, but for what its worker does."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # A topic's rules, and the same but for how much may be decompressed on the loop.
        self._quick: dict[int, tuple[ProduceRules, ProduceRules]] = {}

    def check(
        self, request: Request, entries: Mapping[TopicPartition, memoryview], append: Append
    ) -> None:
        """Hand on to ``append`` what may be appended and what may not, at once or later."""
        checked: dict[TopicPartition, Buffer | ValidatedRecords] = {}
        refused: dict[TopicPartition, AppendResult] = {}
        work: list[tuple[TopicPartition, ProduceRules]] = []
        is_long = False
        for key, records in entries.items():
            partition = self._services.replicas.find(key)
            assert partition is not None, "unknown partitions were refused before"
            rules = partition.log.produce_rules
            if is_plain(records, rules):
                checked[key] = records
                continue
            work.append((key, rules))
            is_long = is_long or len(records) >= _COMPRESSED_BYTES
        for key, rules in () if is_long else work:
            outcome = _attempt(entries[key], self._quick_rules(rules), self._services.clock)
            if isinstance(outcome, ValidatedRecords):
                checked[key] = outcome._replace(rules=rules)
            elif _is_cut_short(outcome):
                is_long = True
                break
            else:
                refused[key] = AppendResult(error=outcome)
        if is_long:
            self._check_later(request, entries, dict(work), append)
        else:
            append(checked, refused)

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
        entries: Mapping[TopicPartition, memoryview],
        work: dict[TopicPartition, ProduceRules],
        append: Append,
    ) -> None:
        services = self._services
        request.is_pipelined = False
        # The receive buffer is used again as soon as this returns.
        held = {key: bytes(records) for key, records in entries.items()}
        size_bytes = sum(map(len, held.values()))
        services.memory.hold(size_bytes)

        def done(job: "asyncio.Future[dict[TopicPartition, Outcome]]") -> None:
            services.memory.release(size_bytes)
            if job.cancelled():
                return
            checked: dict[TopicPartition, Buffer | ValidatedRecords] = dict(held)
            refused = {}
            for key, outcome in job.result().items():
                if isinstance(outcome, ValidatedRecords):
                    checked[key] = outcome
                else:
                    del checked[key]
                    refused[key] = AppendResult(error=outcome)
            append(checked, refused)

        job = services.loop.run_in_executor(
            services.workers, _check_all, held, work, services.clock
        )
        job.add_done_callback(done)


def is_plain(records: memoryview, rules: ProduceRules) -> bool:
    """Whether the batch comes and stays uncompressed, so that its log can check it."""
    return not records[_CODEC_POSITION] & _CODEC_MASK and not rules.codec


def _check_all(
    held: Mapping[TopicPartition, bytes], work: Mapping[TopicPartition, ProduceRules], clock: Clock
) -> dict[TopicPartition, Outcome]:
    """On the worker."""
    return {key: _attempt(held[key], rules, clock) for key, rules in work.items()}


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
