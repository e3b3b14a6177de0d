"""Where replicas go: properties of any placement, and the order in which requests are refused."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import BROKER, NODES

from stratalog.errors import (
    ConfigError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    StratalogError,
    TooManyPartitionsError,
    TopicExistsError,
)
from stratalog.metadata import MetadataImage, NewTopic, TopicMetadata
from stratalog.metadata.image import Update, apply_update
from stratalog.metadata.names import random_topic_id
from stratalog.metadata.placement import place_replicas
from stratalog.metadata.topics import check_request_size, plan_partitions, plan_topic

EMPTY = MetadataImage(cluster_id="c", node_id=1, nodes=NODES)


def planned(wanted: NewTopic, image: MetadataImage = EMPTY) -> TopicMetadata:
    return plan_topic(image, wanted, broker=BROKER, topic_id=random_topic_id())


@given(
    nodes=st.sets(st.integers(0, 50), min_size=1, max_size=7),
    partition_count=st.integers(1, 60),
    first=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    data=st.data(),
)
def test_replicas_are_different_nodes_and_leaders_are_spread_evenly(
    nodes: set[int], partition_count: int, first: tuple[int, int], data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(nodes)))
    placed = place_replicas(
        tuple(nodes),
        partition_count=partition_count,
        replication_factor=factor,
        first_partition=first[0],
        first_node=first[1],
    )
    assert all(len(set(replicas)) == factor and set(replicas) <= nodes for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[node] for node in nodes) <= 1


def test_the_followers_of_a_leader_are_spread_too() -> None:
    placed = place_replicas(range(4), partition_count=12, replication_factor=2)
    followers = Counter(replicas[1] for replicas in placed if replicas[0] == 0)
    assert followers == {1: 1, 2: 1, 3: 1}


def test_a_topic_is_led_by_the_first_of_its_replicas_all_of_which_are_in_sync() -> None:
    topic = planned(NewTopic(name="orders", assignments={1: [3, 1], 0: [2, 3]}))
    assert [(each.leader, each.replicas, each.isr) for each in topic.partitions] == [
        (2, (2, 3), (2, 3)),
        (3, (3, 1), (3, 1)),
    ]
    assert {each.leader_epoch for each in topic.partitions} == {0}


def test_new_partitions_go_on_round_the_nodes() -> None:
    orders = planned(NewTopic(name="orders", partition_count=2))
    image = apply_update(EMPTY, Update(topics=(orders,)))
    grown = plan_partitions(image, "orders", 6)
    assert grown.partitions[:2] == orders.partitions
    assert Counter(each.leader for each in grown.partitions) == dict.fromkeys(NODES, 2)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (NewTopic(name="a b", configs={"no.such": "1"}), InvalidTopicError),
        (NewTopic(name="a.b", configs={"no.such": "1"}), TopicExistsError),
        (NewTopic(name="a_b", configs={"no.such": "1"}), InvalidTopicError),
        (NewTopic(name="t", configs={"retention.ms": None}, partition_count=0), ConfigError),
        (NewTopic(name="t", configs={"no.such": "1"}, partition_count=0), ConfigError),
        (
            NewTopic(name="t", partition_count=0, replication_factor=0),
            InvalidReplicationFactorError,
        ),
        (NewTopic(name="t", partition_count=0, replication_factor=9), InvalidPartitionsError),
        (
            NewTopic(name="t", partition_count=1, replication_factor=4),
            InvalidReplicationFactorError,
        ),
        (NewTopic(name="t", assignments={0: [1]}, replication_factor=1), InvalidRequestError),
        (NewTopic(name="t", assignments={0: [1]}, partition_count=1), InvalidRequestError),
        (NewTopic(name="t", assignments={1: [1]}), InvalidReplicaAssignmentError),
        (NewTopic(name="t", assignments={0: []}), InvalidReplicaAssignmentError),
        (NewTopic(name="t", assignments={0: [4]}), InvalidReplicaAssignmentError),
        (NewTopic(name="t", assignments={0: [1, 1]}), InvalidReplicaAssignmentError),
        (NewTopic(name="t", assignments={0: [1], 1: [2, 3]}), InvalidReplicaAssignmentError),
        (NewTopic(name="__cluster_metadata"), InvalidRequestError),
    ],
)
def test_what_is_wrong_first_in_kafkas_order_is_what_is_said(
    wanted: NewTopic, error: type[StratalogError]
) -> None:
    image = apply_update(EMPTY, Update(topics=(planned(NewTopic(name="a.b")),)))
    with pytest.raises(error):
        planned(wanted, image)


@pytest.mark.parametrize(
    ("count", "assignments", "error"),
    [
        (2, None, InvalidPartitionsError),
        (1, None, InvalidPartitionsError),
        (4, [[1, 2]], InvalidReplicaAssignmentError),
        (3, [[1]], InvalidReplicaAssignmentError),
        (3, [[1, 9]], InvalidReplicaAssignmentError),
        (10_003, None, TooManyPartitionsError),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(
    count: int, assignments: list[list[int]] | None, error: type[StratalogError]
) -> None:
    orders = planned(NewTopic(name="orders", partition_count=2, replication_factor=2))
    image = apply_update(EMPTY, Update(topics=(orders,)))
    with pytest.raises(error):
        plan_partitions(image, "orders", count, assignments=assignments)


def test_one_request_creates_ten_thousand_partitions_and_not_one_more() -> None:
    most = [
        NewTopic(name="t", partition_count=9_997),
        NewTopic(name="u"),
        NewTopic(name="v", assignments={0: [1]}),
    ]
    check_request_size(most, BROKER)
    with pytest.raises(TooManyPartitionsError):
        check_request_size([*most, NewTopic(name="w", partition_count=1)], BROKER)
