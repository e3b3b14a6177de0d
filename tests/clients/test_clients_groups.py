"""Groups of each client library: every partition has one owner, and nothing is lost on the way."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from client_api import Record, RefusedError, TopicPartition
from group_members import Group
from reading import wait_until

PARTITIONS = 6
FENCED_INSTANCE_ID = 82
FATAL = -150


def numbered(start: int, stop: int) -> list[Record]:
    return [Record(b"%04d" % n, partition=n % PARTITIONS) for n in range(start, stop)]


def values(records: list[Record]) -> list[bytes]:
    return [record.value or b"" for record in records]


@pytest.fixture
def shared_topic(make_topic: Callable[..., str]) -> str:
    return make_topic(PARTITIONS)


@pytest.fixture
def group(client: Any, shared_topic: str, fresh_name: Callable[[], str]) -> Iterator[Group]:
    with Group(client, fresh_name(), shared_topic) as group:
        yield group


def test_three_members_share_all_partitions_and_take_over_from_one_that_leaves(
    client: Any, shared_topic: str, fresh_name: Callable[[], str], assignor: str
) -> None:
    producer = client.producer()
    first, second = numbered(0, 60), numbered(60, 120)
    with Group(client, fresh_name(), shared_topic, assignor=assignor) as group:
        members = [group.join() for _ in range(3)]
        group.wait_shared(members, PARTITIONS)
        producer.send(shared_topic, first)
        group.wait_received(values(first))

        members[1].stop()
        group.wait_shared([members[0], members[2]], PARTITIONS)
        producer.send(shared_topic, second)
        group.wait_received(values(second))

        group.check_received(values(first + second))


def test_a_member_that_comes_later_takes_its_share(
    client: Any, shared_topic: str, group: Group
) -> None:
    alone = group.join()
    group.wait_shared([alone], PARTITIONS)

    other = group.join()

    group.wait_shared([alone, other], PARTITIONS)
    records = numbered(0, 60)
    client.producer().send(shared_topic, records)
    group.wait_received(values(records))
    group.check_received(values(records))


def test_more_members_than_partitions_leave_some_without_work(
    client: Any, make_topic: Callable[..., str], fresh_name: Callable[[], str]
) -> None:
    topic = make_topic(2)
    with Group(client, fresh_name(), topic) as group:
        members = [group.join() for _ in range(3)]

        group.wait_shared(members, 2)

        assert sorted(len(member.assignment) for member in members) == [0, 1, 1]


@pytest.mark.needs("members that join again for new partitions")
def test_a_new_partition_is_given_to_a_member(
    client: Any, admin: Any, make_topic: Callable[..., str], fresh_name: Callable[[], str]
) -> None:
    topic = make_topic(1)
    with Group(client, fresh_name(), topic, metadata_age_ms=200) as group:
        member = group.join()
        group.wait_shared([member], 1)

        assert admin.create_partitions(topic, 3) == 0

        group.wait_shared([member], 3)


def test_the_coordinator_tells_the_members_of_a_group(
    admin: Any, shared_topic: str, group: Group
) -> None:
    members = [group.join(client_id=f"member-{number}") for number in range(3)]
    group.wait_shared(members, PARTITIONS)

    told = wait_until(lambda: admin.describe_group(group.group_id), lambda it: it.state == "stable")

    assert sorted(each.client_id for each in told.members) == [f"member-{n}" for n in range(3)]
    assert {each.partitions for each in told.members} == {member.assignment for member in members}
    assert group.group_id in admin.groups()


def test_static_members_keep_their_partitions_when_they_come_back(
    client: Any, shared_topic: str, group: Group
) -> None:
    names = ["one", "two", "three"]
    members = [group.join(instance_id=name) for name in names]
    group.wait_shared(members, PARTITIONS)
    before = members[1].assignment
    others = [list(members[index].assignments_seen) for index in (0, 2)]

    members[1].stop()
    back = group.join(instance_id="two")
    group.wait_shared([members[0], back, members[2]], PARTITIONS)

    assert back.assignment == before
    assert [members[index].assignments_seen for index in (0, 2)] == others
    records = numbered(0, 60)
    client.producer().send(shared_topic, records)
    group.wait_received(values(records))
    group.check_received(values(records))


@pytest.mark.needs("remove members of a group")
def test_a_static_member_is_removed_by_an_admin(
    admin: Any, shared_topic: str, group: Group
) -> None:
    members = [group.join(instance_id=name) for name in ("one", "two")]
    group.wait_shared(members, PARTITIONS)
    members[1].stop()  # a static member does not leave by itself

    assert admin.remove_static_member(group.group_id, "two") == 0

    group.wait_shared([members[0]], PARTITIONS)


def test_a_group_that_reads_two_topics_gets_the_partitions_of_both(
    client: Any, make_topic: Callable[..., str], fresh_name: Callable[[], str]
) -> None:
    topics = [make_topic(2), make_topic(2)]
    with Group(client, fresh_name(), topics[0]) as group:
        group.topics.append(topics[1])
        members = [group.join(assignor="roundrobin") for _ in range(2)]
        everything = {TopicPartition(topic, index) for topic in topics for index in (0, 1)}

        group.wait(
            lambda: (
                {len(member.assignment) for member in members} == {2}
                and set().union(*(member.assignment for member in members)) == everything
            ),
            lambda: [member.assignment for member in members],
        )


@contextmanager
def dying_member(
    client: Any, broker: Any, group: Group, session_timeout_ms: int
) -> Iterator["subprocess.Popen[str]"]:
    """A member in another process that has partitions already; it is killed at the latest here."""
    script = Path(__file__).with_name("dying_member.py")
    arguments = [client.name, broker.bootstrap_server, group.group_id, group.topics[0]]
    process = subprocess.Popen(
        [sys.executable, str(script), *arguments, str(session_timeout_ms)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "assigned\n"
            yield process
        finally:
            process.kill()


def test_the_partitions_of_a_member_that_dies_are_taken_over(
    client: Any, broker: Any, shared_topic: str, group: Group
) -> None:
    alive = group.join()
    group.wait_shared([alive], PARTITIONS)
    with dying_member(client, broker, group, session_timeout_ms=1_000) as dying:
        group.wait(
            lambda: len(alive.assignment) == PARTITIONS // 2, lambda: sorted(alive.assignment)
        )

        dying.kill()

        group.wait_shared([alive], PARTITIONS)
    records = numbered(0, 60)
    client.producer().send(shared_topic, records)
    group.wait_received(values(records))


@pytest.mark.needs("static members that are fenced")
def test_a_second_member_with_the_same_instance_id_fences_the_first(
    client: Any, topic: str, fresh_name: Callable[[], str]
) -> None:
    group, partition = fresh_name(), TopicPartition(topic, 0)
    first = client.consumer(group, instance_id="same")
    first.subscribe([topic])
    wait_until(lambda: first.poll(0.1) or first.assignment(), bool)
    first.commit({partition: 0})

    second = client.consumer(group, instance_id="same")
    second.subscribe([topic])
    wait_until(lambda: second.poll(0.1) or second.assignment(), bool)

    with pytest.raises(RefusedError) as refused:
        first.commit({partition: 1})
    # librdkafka calls it fatal when a heartbeat was faster to tell.
    assert refused.value.code in (FENCED_INSTANCE_ID, FATAL)
    second.commit({partition: 2})
