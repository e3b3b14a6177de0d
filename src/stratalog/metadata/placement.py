"""Which nodes hold the replicas of new partitions: chosen here, or checked when given by hand.

Leaders go round the nodes. The followers of a partition start one node further each time that the
leaders have gone round, so that the partitions of a failed leader do not all fall to one node.
"""

from collections.abc import Sequence

from stratalog.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError


def place_replicas(
    nodes: Sequence[int],
    *,
    partition_count: int,
    replication_factor: int,
    first_partition: int = 0,
    first_node: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of each new partition, its leader first."""
    if replication_factor > len(nodes):
        raise InvalidReplicationFactorError(
            f"a replication factor of {replication_factor} needs as many nodes, "
            f"and there are {len(nodes)}"
        )
    ring = sorted(nodes)
    return [
        _replicas(ring, partition + first_node, replication_factor)
        for partition in range(first_partition, first_partition + partition_count)
    ]


def _replicas(ring: Sequence[int], turn: int, replication_factor: int) -> tuple[int, ...]:
    rounds, leader = divmod(turn, len(ring))
    others = [*ring[leader + 1 :], *ring[:leader]]
    shift = rounds % len(others) if others else 0
    followers = [*others[shift:], *others[:shift]]
    return (ring[leader], *followers[: replication_factor - 1])


def check_assignment(
    replicas: Sequence[int], nodes: Sequence[int], *, replication_factor: int | None
) -> tuple[int, ...]:
    """Replicas that somebody chose for a partition, or why they cannot be that."""
    if not replicas:
        raise InvalidReplicaAssignmentError("a partition was assigned to no node at all")
    for node in replicas:
        if node not in nodes:
            raise InvalidReplicaAssignmentError(f"there is no node {node} to assign a replica to")
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignmentError(f"{list(replicas)} names a node more than once")
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignmentError(
            f"{list(replicas)} has {len(replicas)} replicas where the other partitions have "
            f"{replication_factor}"
        )
    return tuple(replicas)
