"""Segments that are only numbers: what plans are made of when no file matters."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError
from stratalog.storage.index import TimestampOffset
from stratalog.storage.retention import RetentionPlan, plan_retention
from stratalog.storage.segment import FoundRecord

NOW_MS = 1_000_000
POLICIES = [("delete",), ("compact",), ("compact", "delete"), ()]

configs = st.builds(
    TopicConfig,
    cleanup_policy=st.sampled_from(POLICIES),
    retention_ms=st.integers(-1, 25),
    retention_bytes=st.integers(-2, 25),
)


@dataclass(eq=False)
class PlainSegment:
    """``largest_ms`` None is a segment whose age cannot be told; -1 one without timestamps."""

    base_offset: int
    size_bytes: int
    largest_ms: int | None = NOW_MS
    first_ms: int = 0
    modified_ms: int = NOW_MS
    looks: list[str] = field(default_factory=list)

    def largest_timestamp_ms(self) -> int:
        self.looks.append("largest")
        found = self.max_timestamp().timestamp_ms
        return found if found >= 0 else self.modified_ms

    def first_timestamp_ms(self) -> int:
        self.looks.append("first")
        return self.first_ms

    def max_timestamp(self) -> TimestampOffset:
        if self.largest_ms is None:
            raise CorruptSegmentError("0.log", 7, self.base_offset, "it is not a batch")
        return TimestampOffset(self.largest_ms, self.base_offset)

    def find_by_timestamp(self, timestamp_ms: int, *, start_offset: int) -> FoundRecord | None:
        return FoundRecord(start_offset, timestamp_ms, 0)


@dataclass(frozen=True)
class PlainLog:
    segments: list[PlainSegment]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


@st.composite
def plain_logs(draw: st.DrawFn, *, damage: bool = True) -> PlainLog:
    """Of a few segments, some of them empty, with ages on both sides of NOW_MS - 10."""
    times = st.integers(NOW_MS - 30, NOW_MS + 5) | st.just(-1)
    ages = times | st.none() if damage else times
    base_offset, segments = draw(st.integers(0, 3)), []
    for _ in range(draw(st.integers(1, 7))):
        size_bytes = draw(st.integers(0, 5))
        modified_ms = draw(st.integers(NOW_MS - 30, NOW_MS))
        segments.append(
            PlainSegment(base_offset, size_bytes, draw(ages), NOW_MS - 40, modified_ms=modified_ms)
        )
        base_offset += draw(st.integers(1, 4))
    end_offset = base_offset if segments[-1].size_bytes else segments[-1].base_offset
    first = segments[0].base_offset
    high_watermark = draw(st.integers(first, end_offset) | st.just(end_offset))
    log_start_offset = draw(st.integers(first, high_watermark) | st.just(high_watermark))
    return PlainLog(segments, log_start_offset, high_watermark, end_offset)


def plan(log: PlainLog, config: TopicConfig, now_ms: int = NOW_MS) -> RetentionPlan[PlainSegment]:
    return plan_retention(
        log.segments,
        config=config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
    )


def log_of(*segments: PlainSegment, end: int = 100, hw: int = 100, start: int = 0) -> PlainLog:
    return PlainLog(list(segments), start, hw, end)
