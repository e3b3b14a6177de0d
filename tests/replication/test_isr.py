"""Who is left out of the ISR and who is taken in, and when nobody needs to be asked."""

from nodes import ORDERS, PAYMENTS, Node, batch

from stratalog.metadata.topics import PartitionChange
from stratalog.replication.isr import IsrPlan, plan_isr

ALL = (1, 2, 3)
LAG_MS = 1_000


def leading(isr: tuple[int, ...] = ALL, *, batches: int = 10) -> Node:
    """A leader with some records, whose followers have not fetched yet."""
    node = Node(1, replica_lag_time_max_ms=LAG_MS)
    node.lead(replicas=ALL, isr=isr, partition_epoch=4)
    if batches:
        node.produce(*[batch()] * batches, acks=1)
    return node


def planned(node: Node) -> IsrPlan | None:
    return plan_isr(node.partition(), node.clock.now_ms(), LAG_MS)


def test_a_follower_is_left_out_when_it_has_not_been_at_the_end_for_too_long() -> None:
    node = leading()
    node.clock.advance(LAG_MS)
    assert planned(node) is None
    node.fetch(10, replica_id=2)
    node.produce(acks=1)
    node.clock.advance(1)

    plan = planned(node)

    assert plan == IsrPlan(frozenset((1, 2)), lagging=frozenset((3,)), caught_up=frozenset())


def test_a_follower_at_the_end_is_in_sync_however_long_ago_it_fetched() -> None:
    node = leading()
    node.fetch(10, replica_id=2)
    node.fetch(10, replica_id=3)

    node.clock.advance(1_000 * LAG_MS)

    assert planned(node) is None


def test_a_leader_is_never_left_out() -> None:
    node = leading()
    node.clock.advance(LAG_MS + 1)

    plan = planned(node)

    assert plan is not None
    assert plan.isr == {1}


def test_a_follower_is_taken_in_when_it_has_what_consumers_may_have_seen() -> None:
    node = leading(isr=(1, 2))
    node.fetch(6, replica_id=2)
    assert node.log().high_watermark == 6
    node.partition().followers[3].log_end_offset = 5
    assert planned(node) is None

    node.partition().followers[3].log_end_offset = 6

    assert planned(node) == IsrPlan(frozenset(ALL), frozenset(), caught_up=frozenset((3,)))


def test_a_follower_needs_what_earlier_leaders_had_told_as_well() -> None:
    node = leading(isr=(1, 2))
    node.lead(epoch=1, replicas=ALL, isr=(1, 2), partition_epoch=5)
    node.partition().followers[3].log_end_offset = 9
    assert node.log().high_watermark == 0, "this leader does not know yet what was told"
    assert planned(node) is None

    node.partition().followers[3].log_end_offset = 10

    assert planned(node) is not None


def test_who_does_not_lead_plans_nothing() -> None:
    node = leading()
    node.follow(leader_id=2, epoch=1, replicas=ALL, partition_epoch=5)
    node.clock.advance(LAG_MS + 1)

    assert planned(node) is None


def test_a_check_proposes_what_all_partitions_need_on_the_epochs_they_have() -> None:
    node = leading()
    node.lead(PAYMENTS, replicas=(1, 3), partition_epoch=9)
    node.produce(key=PAYMENTS, acks=1)
    node.clock.advance(LAG_MS + 1)

    node.replicas.check_isr(node.clock.now_ms())

    assert node.proposed == [
        PartitionChange(name="orders", partition=0, partition_epoch=4, isr=(1,)),
        PartitionChange(name="payments", partition=3, partition_epoch=9, isr=(1,)),
    ]


def test_one_proposal_is_under_way_at_a_time() -> None:
    node = leading()
    node.clock.advance(LAG_MS + 1)
    node.replicas.check_isr(node.clock.now_ms())

    node.replicas.check_isr(node.clock.now_ms())
    node.fetch(10, replica_id=2)

    assert len(node.proposed) == 1


def test_a_fetch_proposes_to_take_its_follower_in() -> None:
    node = leading(isr=(1,))
    assert node.log().high_watermark == 10

    node.fetch(9, replica_id=3)
    assert node.proposed == []
    node.fetch(10, replica_id=3)

    (change,) = node.proposed
    assert change.isr == (1, 3)
    assert node.partition().maximal_isr == {1, 3}
    assert node.partition().isr == {1}


def test_who_is_being_let_in_is_waited_for_and_who_is_being_left_out_still_is() -> None:
    node = leading(isr=(1, 2), batches=0)
    node.fetch(0, replica_id=3)
    node.produce(acks=1)
    node.fetch(1, replica_id=2)
    assert node.log().high_watermark == 0, "3 is being let in"
    node.replicas.isr_decided(node.proposed.pop(), 5)
    node.fetch(1, replica_id=3)
    assert node.log().high_watermark == 1

    node.produce(acks=1)
    node.fetch(2, replica_id=2)
    node.clock.advance(LAG_MS + 1)
    node.replicas.check_isr(node.clock.now_ms())
    assert node.proposed[0].isr == (1, 2)
    assert node.log().high_watermark == 1, "3 is not left out yet"


def test_a_shrink_that_is_taken_completes_who_waited_for_those_left_out() -> None:
    node = leading(batches=0)
    answers = node.produce(timeout_ms=60_000)
    node.clock.advance(LAG_MS + 1)
    node.replicas.check_isr(node.clock.now_ms())
    assert answers == []

    node.replicas.isr_decided(node.proposed[0], 5)

    assert [answer.error for answer in answers] == [None]
    assert node.partition().partition_epoch == 5
    assert node.partition().isr == {1}


def test_a_refused_proposal_leaves_the_isr_and_lets_another_be_made() -> None:
    node = leading()
    node.clock.advance(LAG_MS + 1)
    node.replicas.check_isr(node.clock.now_ms())

    node.replicas.isr_decided(node.proposed[0], None)

    assert node.partition().isr == node.partition().maximal_isr == set(ALL)
    assert node.partition().partition_epoch == 4
    node.replicas.check_isr(node.clock.now_ms())
    assert len(node.proposed) == 2


def test_a_late_answer_does_not_settle_a_newer_proposal() -> None:
    node = leading()
    node.clock.advance(LAG_MS + 1)
    node.replicas.check_isr(node.clock.now_ms())
    node.lead(replicas=ALL, isr=(1,), partition_epoch=5)
    node.fetch(10, replica_id=2)
    late, newer = node.proposed

    for partition_epoch in (None, 5):
        node.replicas.isr_decided(late, partition_epoch)

    assert newer.partition_epoch == 5
    assert node.partition().maximal_isr == {1, 2}
    assert node.partition().isr == {1}


def test_to_hear_again_what_a_proposal_was_made_on_does_not_settle_it() -> None:
    node = leading(isr=(1,))
    node.fetch(10, replica_id=3)

    node.lead(replicas=ALL, isr=(1,), partition_epoch=4)

    assert node.partition().maximal_isr == {1, 3}


def test_an_answer_about_a_partition_that_has_gone_is_nobodys() -> None:
    node = leading()
    node.clock.advance(LAG_MS + 1)
    node.replicas.check_isr(node.clock.now_ms())
    node.replicas.drop(ORDERS)

    node.replicas.isr_decided(node.proposed[0], 5)

    assert node.replicas.find(ORDERS) is None


def test_a_single_node_has_nothing_to_check() -> None:
    node = Node(1, replica_lag_time_max_ms=LAG_MS)
    node.lead()
    node.lead(PAYMENTS)
    node.produce(acks=1)
    node.clock.advance(100 * LAG_MS)

    node.replicas.check_isr(node.clock.now_ms())

    assert node.proposed == []
