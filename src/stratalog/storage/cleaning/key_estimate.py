"""How many keys and records a log has, from some megabytes of its dirty part.

Samples are taken all over the dirty part, where its segments and their index entries begin. Were
all keys as likely as each other, K keys would show K (1 - exp(-n / K)) different ones in n records:
solved for K, that tells how many all records show. Where some keys are likelier, it is too few.
Nothing but speed depends on it: a map that turns out too small is tried again with half the keys.
"""

import math
import struct
from contextlib import suppress
from dataclasses import dataclass

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import KeySurvey
from stratalog.storage.cleaning.rewriting import RoundPlan, Source
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.layout import LOG_SUFFIX, OFFSET_INDEX_SUFFIX

SAMPLES = 16
SAMPLE_BYTES = 1 << 20
_ENTRY = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class Estimate:
    """``keys`` are those of the dirty part, ``records`` those of the whole round. At most as many
    as there are offsets."""

    keys: int
    records: int


def estimate_round(plan: RoundPlan) -> Estimate:
    offsets = max(plan.upper_bound_offset - plan.first_dirty_offset, 0)
    all_offsets = plan.upper_bound_offset - plan.sources[0].base_offset
    survey = KeySurvey(plan.first_dirty_offset)
    sampled_bytes = 0
    for source, position in _places(plan):
        with suppress(CorruptBatchError, DiskError):
            sampled_bytes += _feed(plan.files, source, position, survey)
    keyed = survey.records - survey.null_keys
    if keyed <= 0:
        return Estimate(offsets, all_offsets)
    found = min(survey.estimated_keys, keyed)
    records = min(offsets, _records(plan, survey, sampled_bytes))
    keys = max(1, min(records, extrapolate(found, keyed, records)))
    # Of the clean part, as many to a byte as in the dirty one.
    size_bytes = sum(each.size_bytes for each in plan.sources)
    scale = size_bytes / max(1, _dirty_bytes(plan))
    return Estimate(keys, min(all_offsets, math.ceil(records * scale)))


def extrapolate(found: int, sampled: int, records: int) -> int:
    """So many different keys in ``sampled`` records: how many in ``records``?"""
    if found >= 0.99 * sampled:
        return records
    low, high = float(found), 1e15
    for _ in range(100):
        middle = (low + high) / 2
        if middle * -math.expm1(-sampled / middle) < found:
            low = middle
        else:
            high = middle
    return math.ceil(high * -math.expm1(-records / high))


def _records(plan: RoundPlan, survey: KeySurvey, sampled_bytes: int) -> int:
    """By the size of what was sampled: offsets that compaction took away hold no record."""
    dirty_bytes = _dirty_bytes(plan)
    if dirty_bytes <= sampled_bytes:
        return survey.records
    return math.ceil(1.2 * survey.records * dirty_bytes / max(1, sampled_bytes))


def _dirty_bytes(plan: RoundPlan) -> int:
    return sum(each.size_bytes - each.first_dirty_position for each in plan.dirty)


def _places(plan: RoundPlan) -> list[tuple[Source, int]]:
    dirty = [each for each in plan.dirty if each.size_bytes > each.first_dirty_position]
    if not dirty:
        return []
    each_segment = max(1, SAMPLES // len(dirty))
    chosen = dirty[:: max(1, len(dirty) // SAMPLES)]
    return [(source, at) for source in chosen for at in _positions(plan, source, each_segment)]


def _positions(plan: RoundPlan, source: Source, count: int) -> list[int]:
    first = source.first_dirty_position
    path = source.path.removesuffix(LOG_SUFFIX) + OFFSET_INDEX_SUFFIX
    entries: list[int] = []
    with suppress(DiskError):
        content = read_file(plan.files, path)[: source.offset_index_bytes]
        entries = [
            position
            for _, position in _ENTRY.iter_unpack(content[: len(content) // 8 * 8])
            if first < position < source.size_bytes
        ]
    if source.size_bytes - first <= count * SAMPLE_BYTES or not entries:
        return [first]
    step = max(1, len(entries) // count)
    return [first, *entries[step::step]][:count]


def _feed(files: FileSystem, source: Source, position: int, survey: KeySurvey) -> int:
    """How many bytes of batches were there: a small segment has less than a sample."""
    file = files.open(source.path, writable=False)
    try:
        size = min(SAMPLE_BYTES, source.size_bytes - position)
        piece = file.read_at(position, size)
        fed_bytes = survey.feed(piece, position)
        if not fed_bytes and survey.wanted_bytes <= source.size_bytes - position:
            fed_bytes = survey.feed(file.read_at(position, survey.wanted_bytes), position)
        return fed_bytes
    finally:
        file.close()
