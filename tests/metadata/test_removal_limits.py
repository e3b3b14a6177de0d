"""Which of two configs removes more, held against what a plan of retention would delete."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import TopicConfig
from stratalog.metadata.removal_limits import looser_limits, unstated_limits
from stratalog.storage.retention import plan_retention

NOW_MS = 1_000


@dataclass(frozen=True)
class Piece:
    """A segment as a plan sees it."""

    base_offset: int
    size_bytes: int
    timestamp_ms: int

    def largest_timestamp_ms(self) -> int:
        return self.timestamp_ms

    def first_timestamp_ms(self) -> int:
        return self.timestamp_ms


LIMIT = st.sampled_from((-1, 0, 1, 100, 500, 900, 2_000))
CONFIGS = st.builds(
    TopicConfig,
    cleanup_policy=st.sampled_from(((), ("delete",), ("compact",), ("compact", "delete"))),
    retention_ms=LIMIT,
    retention_bytes=LIMIT,
)
PIECES = st.lists(
    st.tuples(st.integers(0, 600), st.integers(0, 1_500)), min_size=1, max_size=8
).map(lambda drawn: [Piece(place, *each) for place, each in enumerate(drawn)])


def going(config: TopicConfig, pieces: list[Piece], high_watermark: int) -> int:
    plan = plan_retention(
        pieces,
        config=config,
        log_start_offset=0,
        high_watermark=high_watermark,
        log_end_offset=len(pieces),
        now_ms=NOW_MS,
    )
    return len(plan.doomed)


@given(CONFIGS, CONFIGS, PIECES, st.integers(0, 8))
def test_without_a_looser_limit_nothing_goes_that_the_known_configs_keep(
    known: TopicConfig, other: TopicConfig, pieces: list[Piece], high_watermark: int
) -> None:
    before = going(known, pieces, high_watermark)
    if not looser_limits(known, other, "delete"):
        assert going(other, pieces, high_watermark) <= before


@given(CONFIGS, CONFIGS)
def test_a_config_is_never_looser_than_itself_and_one_of_two_different_limits_is(
    one: TopicConfig, two: TopicConfig
) -> None:
    assert looser_limits(one, one, "delete") == looser_limits(one, one, "compact") == []
    if one.delete and two.delete and one.retention_ms != two.retention_ms:
        both = [*looser_limits(one, two, "delete"), *looser_limits(two, one, "delete")]
        assert "retention.ms" in {each.name for each in both}


def test_compaction_removes_more_sooner_and_where_it_was_not_asked_for() -> None:
    kept = TopicConfig(cleanup_policy=("delete",), delete_retention_ms=100, min_compaction_lag_ms=5)
    compact = kept.altered(cleanup_policy=("compact",), delete_retention_ms=99)

    assert [
        (each.name, each.known, each.given) for each in looser_limits(kept, compact, "compact")
    ] == [
        ("cleanup.policy", "delete", "compact"),
        ("delete.retention.ms", "100", "99"),
    ]
    assert looser_limits(compact, compact.altered(min_cleanable_dirty_ratio=0.0), "compact") == []
    assert unstated_limits(compact, ()) == []
    assert unstated_limits(
        TopicConfig(cleanup_policy=("compact",)), ["log.cleaner.delete.retention.ms"]
    ) == ["min.compaction.lag.ms"]
