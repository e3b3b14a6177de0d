"""Fetch sessions against what a client and a broker that never forget would do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.broker.sessions import (
    EVICTION_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchContext,
    FetchSessions,
    Key,
)
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

NO_ID = bytes(16)
OLDEST_EPOCH = 0x7FFFFFFF


def asked(
    *partitions: int,
    session_id: int = NO_SESSION,
    epoch: int = INITIAL_EPOCH,
    offset: int = 0,
    forgotten: tuple[int, ...] = (),
    topic: str = "orders",
    topic_id: bytes = NO_ID,
) -> FetchRequest:
    topics = [
        FetchTopic(
            topic,
            topic_id,
            [FetchPartition(each, fetch_offset=offset) for each in partitions],
        )
    ]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=topics if partitions else (),
        forgotten_topics_data=[ForgottenTopic(topic, topic_id, forgotten)] if forgotten else (),
    )


def key(partition: int, topic: str = "orders") -> Key:
    return (topic, NO_ID, partition)


def begun(sessions: FetchSessions, request: FetchRequest, now_ms: int = 0) -> FetchContext:
    return sessions.begin(request, uses_topic_ids=False, now_ms=now_ms)


def numbers(context: FetchContext) -> list[int]:
    return [each[0][2] for each in context.partitions()]


def told(context: FetchContext, *answers: PartitionData) -> list[int]:
    news = context.news([(key(each.partition_index), each) for each in answers])
    return [data.partition_index for _, data in news]


def data(
    partition: int, high_watermark: int = 0, records: bytes = b"", **more: object
) -> PartitionData:
    return PartitionData(
        partition,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        **more,  # type: ignore[arg-type]
    )


# --- opening, going on, closing ---------------------------------------------------------------


def test_a_session_is_opened_by_its_first_fetch_and_goes_on_with_what_it_asked_for() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0, 1, 2))
    assert first.session_id != NO_SESSION
    assert not first.is_incremental
    assert numbers(first) == [0, 1, 2]

    second = begun(sessions, asked(session_id=first.session_id, epoch=1))

    assert second.session_id == first.session_id
    assert second.is_incremental
    assert numbers(second) == [0, 1, 2]


def test_a_fetch_without_a_session_opens_none() -> None:
    sessions = FetchSessions(10)

    context = begun(sessions, asked(0, 1, epoch=FINAL_EPOCH))

    assert (context.session_id, len(sessions)) == (NO_SESSION, 0)
    assert numbers(context) == [0, 1]


def test_the_final_epoch_closes_a_session_and_reads_what_it_names() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0, 1, 2))

    last = begun(sessions, asked(1, session_id=first.session_id, epoch=FINAL_EPOCH))

    assert numbers(last) == [1]
    assert (last.session_id, len(sessions)) == (NO_SESSION, 0)


def test_a_session_that_is_begun_anew_replaces_the_last() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))

    second = begun(sessions, asked(1, session_id=first.session_id))

    assert second.session_id not in (NO_SESSION, first.session_id)
    assert len(sessions) == 1
    assert numbers(second) == [1]


def test_a_session_that_nobody_knows_is_not_found() -> None:
    context = begun(FetchSessions(10), asked(session_id=77, epoch=1))

    assert context.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 5])
def test_a_fetch_that_went_astray_is_noticed_and_the_session_stays(epoch: int) -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))

    astray = begun(sessions, asked(1, session_id=first.session_id, epoch=epoch))
    assert astray.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    second = begun(sessions, asked(session_id=first.session_id, epoch=1))
    assert second.error == ErrorCode.NONE
    assert numbers(second) == [0], "what went astray has changed nothing"


def test_a_fetch_counts_once() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))
    begun(sessions, asked(session_id=first.session_id, epoch=1))

    again = begun(sessions, asked(session_id=first.session_id, epoch=1))

    assert again.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_epoch_after_the_largest_is_the_first() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))
    assert first.session is not None
    first.session.epoch = OLDEST_EPOCH

    assert not begun(sessions, asked(session_id=first.session_id, epoch=OLDEST_EPOCH)).error
    assert not begun(sessions, asked(session_id=first.session_id, epoch=1)).error


def test_a_session_of_names_does_not_go_on_with_ids_nor_the_other_way_round() -> None:
    sessions = FetchSessions(10)
    for uses_ids in (False, True):
        first = sessions.begin(asked(0), uses_topic_ids=uses_ids, now_ms=0)
        request = asked(session_id=first.session_id, epoch=1)

        context = sessions.begin(request, uses_topic_ids=not uses_ids, now_ms=0)

        assert context.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


# --- what a session asks for ------------------------------------------------------------------


def test_a_session_takes_partitions_in_changes_them_and_forgets_them() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0, 1, 2))
    request = asked(1, 3, session_id=first.session_id, epoch=1, offset=50, forgotten=(0, 9))

    second = begun(sessions, request)

    wanted = {each[2]: asked.fetch_offset for each, asked in second.partitions()}
    assert wanted == {1: 50, 2: 0, 3: 50}


def test_a_session_that_has_forgotten_everything_is_closed() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))

    second = begun(sessions, asked(session_id=first.session_id, epoch=1, forgotten=(0,)))

    assert (second.session_id, second.error, len(sessions)) == (NO_SESSION, ErrorCode.NONE, 0)


@given(
    st.lists(
        st.tuples(
            st.sets(st.integers(0, 5), max_size=3),
            st.sets(st.integers(0, 5), max_size=3),
            st.integers(0, 100),
        ),
        max_size=10,
    )
)
def test_a_session_wants_what_its_client_wants(
    steps: list[tuple[set[int], set[int], int]],
) -> None:
    sessions = FetchSessions(10)
    context = begun(sessions, asked(9))
    session_id = context.session_id
    wanted = {9: 0}
    for epoch, (added, forgotten, offset) in enumerate(steps, 1):
        request = asked(
            *sorted(added),
            session_id=session_id,
            epoch=epoch,
            offset=offset,
            forgotten=tuple(forgotten - added),
        )
        context = begun(sessions, request)
        wanted |= dict.fromkeys(added, offset)
        wanted = {each: at for each, at in wanted.items() if each not in forgotten - added}

        found = {each[2]: partition.fetch_offset for each, partition in context.partitions()}
        assert found == wanted


# --- what is answered -------------------------------------------------------------------------


def test_all_is_told_to_begin_with_and_then_only_news() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0, 1))
    assert told(first, data(0), data(1)) == [0, 1]
    second = begun(sessions, asked(session_id=first.session_id, epoch=1))

    assert told(second, data(0), data(1)) == []
    assert told(second, data(0, high_watermark=5), data(1)) == [0]
    assert told(second, data(0, high_watermark=5), data(1)) == []
    assert told(second, data(0, high_watermark=5), data(1, records=b"r")) == [1]
    start = data(0, high_watermark=5)._replace(log_start_offset=3)
    assert told(second, start, data(1)) == [0]


def test_a_partition_whose_history_differs_is_news() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))
    told(first, data(0))
    second = begun(sessions, asked(session_id=first.session_id, epoch=1))

    assert told(second, data(0, diverging_epoch=EpochEndOffset(1, 5))) == [0]


def test_an_error_is_told_each_time_and_that_it_has_gone_as_well() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0))
    told(first, data(0, high_watermark=5))
    second = begun(sessions, asked(session_id=first.session_id, epoch=1))
    failed = data(0, high_watermark=5)._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert told(second, failed) == [0]
    assert told(second, failed) == [0]
    assert told(second, data(0, high_watermark=5)) == [0]
    assert told(second, data(0, high_watermark=5)) == []


def test_without_a_session_all_is_told() -> None:
    context = begun(FetchSessions(10), asked(0, 1, epoch=FINAL_EPOCH))

    assert told(context, data(0), data(1)) == [0, 1]


def test_who_was_given_records_comes_last_the_next_time() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0, 1, 2))
    told(first, data(0, records=b"r"), data(1), data(2))
    second = begun(sessions, asked(session_id=first.session_id, epoch=1))
    assert numbers(second) == [0, 1, 2], "the first answer had to have them all"

    told(second, data(0, records=b"r"), data(1), data(2))

    third = begun(sessions, asked(session_id=first.session_id, epoch=2))
    assert numbers(third) == [1, 2, 0]


def test_a_partition_that_was_forgotten_while_its_fetch_waited_is_not_told() -> None:
    sessions = FetchSessions(10)
    first = begun(sessions, asked(0, 1))
    waiting = begun(sessions, asked(session_id=first.session_id, epoch=1))
    begun(sessions, asked(session_id=first.session_id, epoch=2, forgotten=(0,)))

    assert told(waiting, data(0, records=b"r"), data(1, records=b"r")) == [1]


# --- bounds -----------------------------------------------------------------------------------


def test_a_full_cache_turns_newcomers_away_until_somebody_has_not_been_seen_for_long() -> None:
    sessions = FetchSessions(2)
    first, second = (begun(sessions, asked(0)) for _ in range(2))
    assert begun(sessions, asked(0), EVICTION_MS).session_id == NO_SESSION
    assert not begun(sessions, asked(session_id=first.session_id, epoch=1), EVICTION_MS).error

    newcomer = begun(sessions, asked(0), EVICTION_MS + 1)

    assert newcomer.session_id != NO_SESSION
    assert len(sessions) == 2
    gone = begun(sessions, asked(session_id=second.session_id, epoch=1), EVICTION_MS + 1)
    assert gone.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not begun(sessions, asked(session_id=first.session_id, epoch=2)).error


def test_a_session_that_goes_on_is_not_put_out() -> None:
    sessions = FetchSessions(1)
    first = begun(sessions, asked(0))
    begun(sessions, asked(session_id=first.session_id, epoch=1), EVICTION_MS)

    assert begun(sessions, asked(0), EVICTION_MS + 1).session_id == NO_SESSION


def test_who_is_turned_away_is_still_answered() -> None:
    context = begun(FetchSessions(0), asked(0, 1))

    assert numbers(context) == [0, 1]
    assert told(context, data(0), data(1)) == [0, 1]


def test_all_sessions_together_remember_a_bounded_number_of_partitions() -> None:
    sessions = FetchSessions(10, partitions_max=5)
    first = begun(sessions, asked(0, 1, 2))

    assert begun(sessions, asked(0, 1, 2)).session_id == NO_SESSION
    second = begun(sessions, asked(0, 1))
    assert second.session_id != NO_SESSION
    grown = begun(sessions, asked(7, session_id=first.session_id, epoch=1))
    assert grown.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "it begins anew, without one"

    assert begun(sessions, asked(0, 1, 2)).session_id != NO_SESSION, "its room is free again"


def test_long_names_count_for_more() -> None:
    sessions = FetchSessions(10, partitions_max=10)

    assert begun(sessions, asked(0, topic="x" * 200)).session_id != NO_SESSION
    assert begun(sessions, asked(0, 1, topic="x" * 200)).session_id == NO_SESSION


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["open", "go on", "close", "forget"]),
            st.integers(0, 5),
            st.sets(st.integers(0, 9), max_size=4),
            st.sampled_from(["short", "a" * 64, "b" * 200]),
        ),
        max_size=40,
    )
)
def test_room_that_sessions_take_is_given_back(
    steps: list[tuple[str, int, set[int], str]],
) -> None:
    sessions = FetchSessions(4, partitions_max=12)
    open_ids: dict[int, int] = {}
    for step, number, partitions, topic in steps:
        session_id = list(open_ids)[number % len(open_ids)] if open_ids else NO_SESSION
        if step == "open":
            context = begun(sessions, asked(*partitions, topic=topic))
            if context.session_id:
                open_ids[context.session_id] = 0
            continue
        epoch = open_ids.get(session_id, 0) + 1
        if step == "close":
            request = asked(session_id=session_id, epoch=FINAL_EPOCH)
        elif step == "forget":
            request = asked(
                session_id=session_id, epoch=epoch, forgotten=tuple(partitions), topic=topic
            )
        else:
            request = asked(*partitions, session_id=session_id, epoch=epoch, topic=topic)
        context = begun(sessions, request)
        open_ids.pop(session_id, None)
        if context.session_id:
            open_ids[session_id] = epoch
    assert len(sessions) == len(open_ids) <= 4

    for session_id in open_ids:
        begun(sessions, asked(session_id=session_id, epoch=FINAL_EPOCH))

    assert len(sessions) == 0
    assert begun(sessions, asked(*range(12))).session_id != NO_SESSION, "all room is there again"
