"""Three nodes, one partition, and a keeper of metadata that elects leaders from the ISR only.

Whatever the order in which nodes hear of changes, fetch, propose, fall behind and cut their logs:
what was acknowledged with acks=all, and what a consumer could have read, is on every node that
could be elected.
"""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from nodes import ORDERS, Node, batch, replicate, values

from stratalog.metadata.topics import PartitionChange
from stratalog.testing import ManualClock

IDS = (1, 2, 3)
LAG_MS = 1_000

node_ids = st.sampled_from(IDS)


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

    def decide(self, change: PartitionChange) -> bool:
        """An ISR that was proposed on the latest partition epoch is taken."""
        if change.partition_epoch != self.current.partition_epoch:
            return False
        assert change.isr is not None
        assert self.current.leader in change.isr, "a leader is always in its ISR"
        self.current = replace(
            self.current, isr=change.isr, partition_epoch=self.current.partition_epoch + 1
        )
        return True

    def elect(self, leader: int) -> None:
        self.current = replace(
            self.current,
            leader=leader,
            leader_epoch=self.current.leader_epoch + 1,
            partition_epoch=self.current.partition_epoch + 1,
        )


class ClusterMachine(RuleBasedStateMachine):
    @initialize(flush_on_ack=st.booleans(), min_isr=st.integers(1, 3))
    def start(self, flush_on_ack: bool, min_isr: int) -> None:
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
        self.answers: list[tuple[int, PartitionChange, bool]] = []
        self.told: list[bytes] = []
        self.seen = dict.fromkeys(IDS, 0)
        self.count = 0
        for node_id in IDS:
            self.hear(node_id)

    # --- what happens -------------------------------------------------------------------------

    @rule(node_id=node_ids)
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

    @rule(node_id=node_ids, acks=st.sampled_from([-1, -1, 0, 1]))
    def produce(self, node_id: int, acks: int) -> None:
        self.count += 1
        node = self.nodes[node_id]
        content = batch(b"%d" % self.count)

        def respond(results: dict) -> None:  # type: ignore[type-arg]
            info, error = results[ORDERS]
            if error is None and acks == -1:
                assert info.last_offset < node.log().high_watermark
                self.told.append(content[61:])

        node.replicas.append_records(
            {ORDERS: content}, respond, required_acks=acks, timeout_ms=LAG_MS
        )

    @rule(follower=node_ids, times=st.integers(1, 3))
    def fetch(self, follower: int, times: int) -> None:
        """From whomever the follower takes for the leader."""
        leader = self.nodes[follower].partition().leader_id
        if leader != follower:
            for _ in range(times):
                replicate(self.nodes[follower], self.nodes[leader])

    @rule(node_id=node_ids)
    def flush(self, node_id: int) -> None:
        self.nodes[node_id].flush()

    @rule(ms=st.sampled_from([1, LAG_MS // 2, LAG_MS + 1]))
    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        for node in self.nodes.values():
            node.replicas.expire(self.clock.now_ms())

    @rule(node_id=node_ids)
    def check_isr(self, node_id: int) -> None:
        self.nodes[node_id].replicas.check_isr(self.clock.now_ms())

    @rule(node_id=node_ids)
    def decide(self, node_id: int) -> None:
        """The keeper of metadata takes or refuses what the node has proposed."""
        node = self.nodes[node_id]
        for change in node.proposed:
            self.answers.append((node_id, change, self.metadata.decide(change)))
        node.proposed.clear()

    @rule()
    def answer(self) -> None:
        while self.answers:
            node_id, change, is_taken = self.answers.pop(0)
            epoch = (change.partition_epoch or 0) + 1
            self.nodes[node_id].replicas.isr_decided(
                ORDERS, change.isr if is_taken else None, epoch
            )

    @rule(data=st.data())
    def elect(self, data: st.DataObject) -> None:
        self.metadata.elect(data.draw(st.sampled_from(self.metadata.current.isr)))

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def what_was_acknowledged_is_on_whoever_may_lead(self) -> None:
        for node_id in self.metadata.current.isr:
            assert set(self.told) <= set(values(self.nodes[node_id].log()))

    @invariant()
    def what_consumers_may_read_is_on_whoever_may_lead(self) -> None:
        for node in self.nodes.values():
            visible = values(node.log(), node.log().high_watermark)
            for other in self.metadata.current.isr:
                assert values(self.nodes[other].log())[: len(visible)] == visible

    @invariant()
    def a_high_watermark_never_goes_down(self) -> None:
        for node_id, node in self.nodes.items():
            high_watermark = node.log().high_watermark
            if node.partition().is_leader:
                assert high_watermark >= self.seen[node_id]
            self.seen[node_id] = high_watermark

    @invariant()
    def a_high_watermark_never_passes_what_was_flushed(self) -> None:
        for node in self.nodes.values():
            log = node.log()
            end = log.recovery_point if self.flush_on_ack else log.log_end_offset
            assert log.high_watermark <= end

    def teardown(self) -> None:
        """Once everybody hears and fetches, all logs are the same and all of it is told."""
        if not hasattr(self, "nodes"):
            return
        for _ in range(4):
            for node_id in IDS:
                self.hear(node_id)
                self.decide(node_id)
            self.answer()
            self.metadata.elect(self.metadata.current.leader)
            for node_id in IDS:
                self.hear(node_id)
                self.flush(node_id)
            for node_id in IDS:
                self.fetch(node_id, 3)
        logs = [node.log() for node in self.nodes.values()]
        assert set(self.metadata.current.isr) == set(IDS)
        assert len({tuple(values(log)) for log in logs}) == 1
        leader = self.nodes[self.metadata.current.leader].log()
        assert leader.high_watermark == leader.log_end_offset
        self.what_was_acknowledged_is_on_whoever_may_lead()


TestCluster = ClusterMachine.TestCase
