"""How a group gets from one generation to the next, and what happens when members are late.

    prepare    members learn with their next heartbeat that they are to join again
    join       answered to all at once: when everybody has joined, or time is up for the others
    sync       answered to all at once: when the leader's assignment is in the log

Four deadlines: of a member's session; of the join phase; of the sync phase; and of a new group,
which waits a little for more members, as often as one comes, up to its rebalance timeout.
"""

import logging
from collections.abc import Mapping

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import group_key, group_value
from stratalog.coordinator.member import JoinResult, Member, SyncResult
from stratalog.coordinator.shard import Shard
from stratalog.coordinator.states import GroupState
from stratalog.coordinator.timers import Timers
from stratalog.protocol.error_codes import ErrorCode

# A member that has never been told its id sends no heartbeats: so long its JoinGroup may wait.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
# Clients choose their timeouts; a deadline in the past must not make the coordinator spin.
_SHORTEST_RETRY_MS = 100

_logger = logging.getLogger("stratalog")


class Rebalances:
    """Changes groups as time goes by, and as members come and go. ``clock`` tells the time of day,
    which is stored with a group; deadlines go by ``steady_clock``."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, steady_clock: Clock, timers: Timers
    ) -> None:
        self._config = config
        self._clock = clock
        self._steady_clock = steady_clock
        self._timers = timers

    # --- the join phase -----------------------------------------------------------------------

    def rebalance_or_complete(self, shard: Shard, group: Group, reason: str) -> None:
        """Members have changed: begin a rebalance, or end its join phase if that was the last."""
        if group.can_rebalance:
            self.prepare(shard, group, reason)
        else:
            self.maybe_complete_join(shard, group)

    def prepare(self, shard: Shard, group: Group, reason: str) -> None:
        now_ms = self._clock.now_ms()
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.reset_assignments(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
        self.stop_waiting_for_sync(group)
        is_first = group.state is GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
        _logger.info(
            "group_rebalancing",
            extra={"fields": {"group": group.group_id, "reason": reason}},
        )
        if is_first:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_more(shard, group, delay_ms, left_ms)
        elif group.has_all_joined or group.rebalance_timeout_ms <= 0:
            # Without members there is nobody who would wait for those that were given an id.
            self.complete_join(shard, group)
        else:
            self._wait_for_join(shard, group, group.rebalance_timeout_ms)

    def _wait_for_join(self, shard: Shard, group: Group, timeout_ms: int) -> None:
        self._timers.schedule(
            ("join", group.group_id),
            self._steady_clock.now_ms() + timeout_ms,
            lambda: self.complete_join(shard, group),
        )

    def _wait_for_more(self, shard: Shard, group: Group, delay_ms: int, left_ms: int) -> None:
        self._timers.schedule(
            ("join", group.group_id),
            self._steady_clock.now_ms() + delay_ms,
            lambda: self._maybe_wait_for_more(shard, group, delay_ms, left_ms),
        )

    def _maybe_wait_for_more(self, shard: Shard, group: Group, delay_ms: int, left_ms: int) -> None:
        if group.is_member_added and left_ms:
            group.is_member_added = False
            next_delay_ms = min(self._config.group_initial_rebalance_delay_ms, left_ms)
            self._wait_for_more(shard, group, next_delay_ms, max(left_ms - delay_ms, 0))
        else:
            self.complete_join(shard, group)

    def maybe_complete_join(self, shard: Shard, group: Group) -> None:
        """The first rebalance waits for its time to pass, whoever has joined."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_joined
        ):
            self.complete_join(shard, group)

    def complete_join(self, shard: Shard, group: Group) -> None:
        """Go on with those who have joined; static members may be away for a while."""
        self._timers.cancel(("join", group.group_id))
        for member in list(group.members.values()):
            if not member.is_awaiting_join and not member.is_static:
                self.forget_member(group, member)
        if not group.elect_joined_leader() and group.members:
            retry_ms = max(group.rebalance_timeout_ms, _SHORTEST_RETRY_MS)
            self._wait_for_join(shard, group, retry_ms)
            return
        group.begin_generation(self._clock.now_ms())
        if group.state is GroupState.EMPTY:
            self.store(shard, group, {})
            return
        _logger.info(
            "group_rebalanced",
            extra={
                "fields": {
                    "group": group.group_id,
                    "generation": group.generation_id,
                    "members": len(group.members),
                }
            },
        )
        for member in list(group.members.values()):
            group.pending_sync.add(member.member_id)
            member.is_new = False
            self.expect_heartbeat(shard, group, member)
        generation_id = group.generation_id
        self._timers.schedule(
            ("sync", group.group_id),
            self._steady_clock.now_ms() + max(group.rebalance_timeout_ms, 0),
            lambda: self._expire_sync(shard, group, generation_id),
        )
        answers = [(member, group.joined(member)) for member in group.members.values()]
        for member, answer in answers:
            group.answer_join(member, answer)

    # --- the sync phase -----------------------------------------------------------------------

    def synced(self, group: Group, member_id: str) -> None:
        """A member has sent its SyncGroup."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._timers.cancel(("sync", group.group_id))

    def stop_waiting_for_sync(self, group: Group) -> None:
        group.pending_sync.clear()
        self._timers.cancel(("sync", group.group_id))

    def _expire_sync(self, shard: Shard, group: Group, generation_id: int) -> None:
        if group.generation_id != generation_id or not group.pending_sync:
            return
        late = sorted(group.pending_sync)
        for member_id in late:
            self.forget_member(group, group.members[member_id])
        self.prepare(shard, group, f"{len(late)} members have not synced in time")

    def propagate(self, shard: Shard, group: Group, assignments: Mapping[str, bytes]) -> None:
        """The leader's word is in the log: everybody may have what is theirs."""
        waiting = []
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.is_awaiting_sync:
                # While it waited for us its session could not expire, nor was it watched.
                self.expect_heartbeat(shard, group, member)
                waiting.append(member)
        group.transition_to(GroupState.STABLE, self._clock.now_ms())
        for member in waiting:
            group.answer_sync(member, group.synced(member))

    def reset_assignments(self, shard: Shard, group: Group, error: ErrorCode) -> None:
        """Nobody has got anything, and who waits for it is told why."""
        waiting = []
        for member in group.members.values():
            member.assignment = b""
            if member.is_awaiting_sync:
                self.expect_heartbeat(shard, group, member)
                waiting.append(member)
        for member in waiting:
            group.answer_sync(member, SyncResult(error))

    def store(self, shard: Shard, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Keep a generation that nobody waits for: should it get lost, the next one is kept."""

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                fields = {"group": group.group_id, "error": error.name}
                _logger.warning("group_not_stored", extra={"fields": fields})

        record = (group_key(group.group_id), group_value(group.stored(assignments)))
        shard.write([record], self._clock.now_ms(), done)

    # --- members ------------------------------------------------------------------------------

    def expect_heartbeat(
        self, shard: Shard, group: Group, member: Member, timeout_ms: int | None = None
    ) -> None:
        """From now on, within its session timeout."""
        member_id = member.member_id
        self.expect_heartbeat_of(
            shard, group, member_id, member.session_timeout_ms if timeout_ms is None else timeout_ms
        )

    def expect_heartbeat_of(
        self, shard: Shard, group: Group, member_id: str, timeout_ms: int
    ) -> None:
        self._timers.schedule(
            ("session", group.group_id, member_id),
            self._steady_clock.now_ms() + timeout_ms,
            lambda: self._expire_session(shard, group, member_id),
        )

    def _expire_session(self, shard: Shard, group: Group, member_id: str) -> None:
        if member_id in group.pending_join:
            group.remove(member_id)
            self._maybe_complete_after_removal(shard, group)
            return
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return
        fields = {"group": group.group_id, "member": member_id}
        _logger.info("group_member_expired", extra={"fields": fields})
        self.remove_member(shard, group, member, f"the session of {member_id} has expired")

    def remove_member(self, shard: Shard, group: Group, member: Member, reason: str) -> None:
        self.forget_member(group, member)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare(shard, group, reason)
        else:
            self._maybe_complete_after_removal(shard, group)

    def forget_member(self, group: Group, member: Member) -> None:
        """It is out; whatever it waits for tells it so."""
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        group.answer_join(member, JoinResult(unknown))
        group.answer_sync(member, SyncResult(unknown))
        group.remove(member.member_id)
        self._timers.cancel(("session", group.group_id, member.member_id))

    def _maybe_complete_after_removal(self, shard: Shard, group: Group) -> None:
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
            self.complete_join(shard, group)

    def forget_pending(self, group: Group, member_id: str) -> None:
        """A member that was given an id and has not joined with it."""
        group.remove(member_id)
        self._timers.cancel(("session", group.group_id, member_id))

    # --- whole groups -------------------------------------------------------------------------

    def loaded(self, shard: Shard, group: Group) -> None:
        """A group has been read from the log: its members may be alive, and have time to say so."""
        for member in group.members.values():
            self.expect_heartbeat(shard, group, member)
        if len(group.members) > self._config.group_max_size:
            self.prepare(shard, group, "there are more members than group.max.size")

    def stop_watching(self, group: Group) -> None:
        """Nothing happens to the group any more because of time."""
        self._timers.cancel(("join", group.group_id))
        self._timers.cancel(("sync", group.group_id))
        for member_id in (*group.members, *group.pending_join):
            self._timers.cancel(("session", group.group_id, member_id))

    def close(self, group: Group, error: ErrorCode) -> None:
        """The group is not here any more."""
        self.stop_watching(group)
        group.transition_to(GroupState.DEAD, self._clock.now_ms())
        group.answer_all(error)
