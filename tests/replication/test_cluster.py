"""Three nodes, one partition, and a keeper of metadata that elects leaders from the ISR only.

Whatever the order in which nodes hear of changes, fetch, propose, fall behind and cut their logs:
what was acknowledged with acks=all, and what a consumer could have read, is on every node that
could be elected.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st
from nodes import ORDERS, Node, batch, replicate, values

from stratalog.metadata.topics import PartitionChange
from stratalog.replication.parts import AppendResult
from stratalog.storage.layout import TopicPartition
from stratalog.testing import ManualClock

IDS = (1, 2, 3)
LAG_MS = 1_000
ROUNDS = 40


@dataclass(frozen=True)
class Registration:
    """The partition, as the keeper of metadata has it."""

    leader: int = 1
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: tuple[int, ...] = IDS


@dataclass
class Metadata:
    current: Registration = field(default_factory=Registration)

    def decide(self, change: PartitionChange) -> None:
        """Take an ISR that was proposed on the latest partition epoch."""
        assert change.isr is not None
        assert self.current.leader in change.isr, "a leader is always in its ISR"
        self.current = replace(
            self.current, isr=change.isr, partition_epoch=self.current.partition_epoch + 1
        )

    def elect(self, leader: int) -> None:
        self.current = replace(
            self.current,
            leader=leader,
            leader_epoch=self.current.leader_epoch + 1,
            partition_epoch=self.current.partition_epoch + 1,
        )


class Cluster:
    def __init__(self, *, flush_on_ack: bool, min_isr: int) -> None:
        self.flush_on_ack = flush_on_ack
        self.clock = ManualClock()
        self.metadata = Metadata()
        self.nodes = {
            node_id: Node(
                node_id,
                clock=self.clock,
                flush_on_ack=flush_on_ack,
                topic={"min_insync_replicas": min_isr},
                replica_lag_time_max_ms=LAG_MS,
            )
            for node_id in IDS
        }
        # Answers of the keeper of metadata that are still on their way.
        self.answers: list[tuple[int, PartitionChange, int | None]] = []
        self.told: list[bytes] = []
        self.visible: list[bytes] = []
        self.count = 0
        for node_id in IDS:
            self.hear(node_id)

    # --- what happens -------------------------------------------------------------------------

    def hear(self, node_id: int) -> None:
        """The node is told what the metadata says now."""
        now, node = self.metadata.current, self.nodes[node_id]
        if now.leader == node_id:
            node.lead(
                epoch=now.leader_epoch,
                replicas=IDS,
                isr=now.isr,
                partition_epoch=now.partition_epoch,
            )
        else:
            node.follow(
                leader_id=now.leader,
                epoch=now.leader_epoch,
                replicas=IDS,
                partition_epoch=now.partition_epoch,
            )

    def produce(self, node_id: int, acks: int) -> None:
        self.count += 1
        node = self.nodes[node_id]
        content = batch(b"%d" % self.count)

        def respond(results: dict[TopicPartition, AppendResult]) -> None:
            info, error = results[ORDERS]
            if error is None and acks == -1:
                assert info is not None, "it was appended"
                assert info.last_offset < node.log().high_watermark
                self.told.append(content[61:])

        node.replicas.append_records(
            {ORDERS: content}, respond, required_acks=acks, timeout_ms=LAG_MS
        )

    def fetch(self, follower: int) -> None:
        """From whomever the follower takes for the leader."""
        leader = self.nodes[follower].partition().leader_id
        if leader != follower:
            replicate(self.nodes[follower], self.nodes[leader])

    def decide(self, node_id: int, *, is_willing: bool = True) -> None:
        """The keeper of metadata takes or refuses what the node has proposed; to what was decided
        on an older epoch the answer is what the node has yet to hear."""
        node = self.nodes[node_id]
        for change in node.proposed:
            if change.partition_epoch != self.metadata.current.partition_epoch:
                continue
            if is_willing:
                self.metadata.decide(change)
            epoch = self.metadata.current.partition_epoch if is_willing else None
            self.answers.append((node_id, change, epoch))
        node.proposed.clear()

    def answer(self) -> None:
        while self.answers:
            node_id, change, epoch = self.answers.pop(0)
            self.nodes[node_id].replicas.isr_decided(change, epoch)

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        for node in self.nodes.values():
            node.replicas.expire(self.clock.now_ms())

    # --- what always holds --------------------------------------------------------------------

    def check(self) -> None:
        electable = [values(self.nodes[node_id].log()) for node_id in self.metadata.current.isr]
        for node in self.nodes.values():
            log = node.log()
            end = log.recovery_point if self.flush_on_ack else log.log_end_offset
            assert log.high_watermark <= end, "only what is durable may be seen"
            if node.partition().is_leader:
                seen = values(log, log.high_watermark)
                assert seen[: len(self.visible)] == self.visible[: len(seen)]
                self.visible = max(self.visible, seen, key=len)
        for each in electable:
            assert each[: len(self.visible)] == self.visible, "what was seen is not unseen"
            assert set(self.told) <= set(each), "what was acknowledged is not lost"

    def settle(self) -> None:
        """Everybody hears, flushes and fetches: all logs become the same, and all of it visible."""
        for _ in range(6):
            self.answer()
            for node_id in IDS:
                self.hear(node_id)
                self.nodes[node_id].flush()
            for node_id in IDS * 3:
                self.fetch(node_id)
                self.decide(node_id)
            self.answer()
            for node_id in IDS:
                self.nodes[node_id].flush()
        assert set(self.metadata.current.isr) == set(IDS)
        logs = [node.log() for node in self.nodes.values()]
        assert len({tuple(values(log)) for log in logs}) == 1
        leader = self.nodes[self.metadata.current.leader].log()
        assert leader.high_watermark == leader.log_end_offset


def live(cluster: Cluster, chance: random.Random) -> None:
    """One round: nodes that are cut off neither hear nor fetch nor are heard."""
    cut_off = {node_id for node_id in IDS if chance.random() < 0.3}
    for _ in range(chance.randrange(1, 6)):
        for node_id in chance.sample(IDS, 3):
            if node_id in cut_off:
                # It may still take itself for the leader.
                if chance.random() < 0.3:
                    cluster.produce(node_id, chance.choice((-1, 1)))
                continue
            for act in chance.sample(ACTS, chance.randrange(2, len(ACTS))):
                act(cluster, node_id)
                cluster.check()
            if cluster.nodes[node_id].partition().is_leader:
                cluster.produce(node_id, chance.choice((-1, -1, 0, 1)))
        cluster.pass_time(chance.choice((1, 1, LAG_MS // 2, LAG_MS + 1)))
        cluster.check()
    if chance.random() < 0.3:
        cluster.metadata.elect(chance.choice(cluster.metadata.current.isr))
        cluster.check()


ACTS: tuple[Callable[[Cluster, int], None], ...] = (
    Cluster.hear,
    Cluster.fetch,
    lambda cluster, node_id: cluster.nodes[node_id].flush(),
    lambda cluster, node_id: cluster.nodes[node_id].replicas.check_isr(cluster.clock.now_ms()),
    Cluster.decide,
    lambda cluster, node_id: cluster.decide(node_id, is_willing=False),
    lambda cluster, _node_id: cluster.answer(),
)


@given(seed=st.integers(0, 2**32), flush_on_ack=st.booleans(), min_isr=st.integers(1, 3))
def test_what_was_acknowledged_or_seen_is_on_whoever_may_lead(
    seed: int, flush_on_ack: bool, min_isr: int
) -> None:
    chance = random.Random(seed)
    cluster = Cluster(flush_on_ack=flush_on_ack, min_isr=min_isr)
    for _ in range(chance.randrange(2, ROUNDS)):
        live(cluster, chance)
    cluster.settle()
