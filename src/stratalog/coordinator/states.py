"""The states of a group and the ways between them. All transitions are in one table, and there is
no other place that sets a state.

    Empty                nobody is in it; there may be offsets
    PreparingRebalance   members are asked to join again, and waited for
    CompletingRebalance  all have joined; the leader is waited for, who says who gets what
    Stable               everybody has got it
    Dead                 it is gone from here
"""

import enum
from typing import Final


class GroupState(enum.Enum):
    """The values are Kafka's names, as admin clients see them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


PREVIOUS_STATES: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
