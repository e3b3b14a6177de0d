"""Who is in sync: when a leader leaves a follower out of its ISR, and when it takes one in.

A follower is left out when it has not been at the log's end for ``replica.lag.time.max.ms``,
however many records it is behind. It is taken in when it has everything that consumers may have
seen, of this leader and of those before. The leader only proposes; who keeps the metadata decides,
and one proposal is under way at a time.
"""

from typing import NamedTuple

from stratalog.metadata.topics import PartitionChange
from stratalog.replication.partition import Partition


class IsrPlan(NamedTuple):
    """Another ISR: who is left out of it for lagging, and who is taken in for having caught up."""

    isr: frozenset[int]
    lagging: frozenset[int]
    caught_up: frozenset[int]


def plan_isr(partition: Partition, now_ms: int, lag_max_ms: int) -> IsrPlan | None:
    """The ISR that the leader's knowledge asks for; None if it is the one there is, or if that is
    not to be said now. Changes nothing."""
    if not partition.followers or not partition.is_leader or partition.proposed_isr is not None:
        return None
    log = partition.log
    # What consumers may have seen: of this leader, or of one before it whose records this leader
    # has, though it may not know yet that they were told.
    told = max(log.high_watermark, partition.epoch_start_offset)
    lagging, caught_up = set(), set()
    for node, follower in partition.followers.items():
        if node not in partition.isr:
            if follower.log_end_offset >= told:
                caught_up.add(node)
        elif not follower.is_caught_up(log.log_end_offset, now_ms, lag_max_ms):
            lagging.add(node)
    if not lagging and not caught_up:
        return None
    isr = frozenset((partition.isr - lagging) | caught_up | {partition.node_id})
    return IsrPlan(isr, frozenset(lagging), frozenset(caught_up))


def propose(partition: Partition, plan: IsrPlan) -> PartitionChange:
    """Note that ``plan`` is under way, and say what to ask for. The ISR keeps the order of the
    replicas; it is refused if the partition has changed since."""
    partition.propose_isr(plan.isr)
    key = partition.log.topic_partition
    return PartitionChange(
        name=key.topic,
        partition=key.partition,
        partition_epoch=partition.partition_epoch,
        isr=tuple(node for node in partition.replicas if node in plan.isr),
    )
