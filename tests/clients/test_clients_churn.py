"""Members that come and go at random while records keep coming: nothing may get lost.

At least once is what a group promises: every record is delivered. What a member has in hand when
the group changes under it comes again, and no more than that: the rest is committed. What a group
has committed at the end is all there is.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from churning import CHURN_SECONDS, PARTITIONS, Load, check_nothing_lost, churn
from group_members import Group


@pytest.mark.deep
@pytest.mark.parametrize("start_broker", ["stratalog"], indirect=True, scope="session")
@pytest.mark.parametrize("seed", range(2))
# kafka-python leaves a connection to the garbage collector when it is closed while it connects.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("collect_garbage")
def test_nothing_is_lost_while_members_come_and_go(
    client: Any,
    admin: Any,
    make_topic: Callable[..., str],
    fresh_name: Callable[[], str],
    assignor: str,
    seed: int,
) -> None:
    topic = make_topic(PARTITIONS)
    load = Load(client.producer(is_idempotent=True), topic)
    with Group(client, fresh_name(), topic, assignor=assignor) as group:
        with load.running():
            churn(group, random.Random(seed), CHURN_SECONDS)
        group.wait_received(load.values)

    check_nothing_lost(group, load.values, admin.group_offsets(group.group_id))
