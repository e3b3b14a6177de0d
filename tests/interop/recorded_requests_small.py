"""Scenarios of the small requests of administrators, which one node can answer."""

from recorded_requests import Talk
from recorded_requests_data import batch, to

from stratalog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from stratalog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from stratalog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from stratalog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from stratalog.protocol.messages.describe_acls import DescribeAclsRequest
from stratalog.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from stratalog.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from stratalog.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from stratalog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from stratalog.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from stratalog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from stratalog.protocol.messages.init_producer_id import InitProducerIdRequest
from stratalog.protocol.messages.list_config_resources import ListConfigResourcesRequest
from stratalog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from stratalog.protocol.messages.list_transactions import ListTransactionsRequest

TOPIC, USER_ANY, LITERAL, READ, ALLOW = 2, "User:*", 3, 3, 3
PREFERRED, UNCLEAN = 0, 1
EXACT, DEFAULT, ANY = 0, 1, 2


def acls(talk: Talk) -> None:
    talk.ask_every("all of a topic", DescribeAclsRequest(TOPIC, "t", LITERAL, None, None, 1, 1))
    new = AclCreation(TOPIC, "t", LITERAL, USER_ANY, "*", READ, ALLOW)
    talk.ask_every("two", CreateAclsRequest([new, new._replace(resource_name="u")]))
    gone = DeleteAclsFilter(TOPIC, "t", LITERAL, None, None, READ, ALLOW)
    talk.ask_every("one", DeleteAclsRequest([gone]))


def elections(talk: Talk) -> None:
    talk.have_topic("elections", 2)
    for kind, name in ((PREFERRED, "preferred"), (UNCLEAN, "unclean")):
        wanted = [TopicPartitions("elections", [0, 1, 7]), TopicPartitions("nothing", [0])]
        talk.ask_every(f"{name}, some", ElectLeadersRequest(kind, wanted))
        talk.ask_every(f"{name}, none", ElectLeadersRequest(kind, []))
    talk.ask_every("of no such kind", ElectLeadersRequest(9, [TopicPartitions("elections", [0])]))


def reassignments(talk: Talk) -> None:
    talk.have_topic("reassignments", 2)
    for name, replicas in (
        ("where it is", [talk.node_id]),
        ("to another", [99]),
        ("to both", [talk.node_id, 99]),
        ("to the same twice", [talk.node_id, talk.node_id]),
        ("to none", []),
        ("to a negative one", [-1]),
        ("cancelled", None),
    ):
        partitions = [ReassignablePartition(number, replicas) for number in (0, 7)]
        topics = [
            ReassignableTopic("reassignments", partitions),
            ReassignableTopic("nothing", [ReassignablePartition(0, replicas)]),
        ]
        talk.ask_every(name, AlterPartitionReassignmentsRequest(60_000, True, topics))
    talk.ask_every("of nothing", AlterPartitionReassignmentsRequest())
    talk.ask_every("all", ListPartitionReassignmentsRequest(topics=None))
    some = [
        ListPartitionReassignmentsTopics("reassignments", [0, 7]),
        ListPartitionReassignmentsTopics("nothing", [0]),
    ]
    talk.ask_every("some", ListPartitionReassignmentsRequest(topics=some))


def directories(talk: Talk) -> None:
    talk.have_topic("directories", 1)
    here = talk.have(DescribeLogDirsRequest(None)).results[0].log_dir
    for name, path, topic, partition in (
        ("where it is", here, "directories", 0),
        ("to nowhere", "/nowhere", "directories", 0),
        ("to a relative one", "logs", "directories", 0),
        ("of no topic", here, "nothing", 0),
        ("of no partition", here, "directories", 7),
    ):
        topics = [AlterReplicaLogDirTopic(topic, [partition])]
        talk.ask_every(name, AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics)]))


def nobody(talk: Talk) -> None:
    """Users, quotas and transactions, of which there are none."""
    for name, components in (
        ("all", []),
        ("users", [ComponentData("user", ANY, None)]),
        ("one user", [ComponentData("user", EXACT, "alice")]),
        ("the default user", [ComponentData("user", DEFAULT, None)]),
        ("a user twice", [ComponentData("user", ANY, None)] * 2),
        ("of no such type", [ComponentData("nothing", ANY, None)]),
        ("anyone by a name", [ComponentData("user", ANY, "alice")]),
        (
            "an address and a user",
            [ComponentData("ip", ANY, None), ComponentData("user", ANY, None)],
        ),
        ("of no such match", [ComponentData("user", 9)]),
        ("exactly none", [ComponentData("user", EXACT, None)]),
        ("an empty type", [ComponentData("", ANY, None)]),
    ):
        talk.ask_every(name, DescribeClientQuotasRequest(components))
    for name, users in (
        ("all", None),
        ("none", []),
        ("one", [UserName("alice")]),
        ("one twice", [UserName("alice")] * 2),
        ("without a name", [UserName("")]),
    ):
        talk.ask_every(name, DescribeUserScramCredentialsRequest(users))
    talk.ask_every("all", ListTransactionsRequest())
    talk.ask_every("in states", ListTransactionsRequest(["Ongoing", "Nonsense"], [5]))
    talk.ask_ends("by a pattern", ListTransactionsRequest((), (), -1, "a.*"), since=2)
    talk.ask_ends("by no pattern", ListTransactionsRequest((), (), -1, "a("), since=2)


def quorum(talk: Talk) -> None:
    def of(topic: str, *partitions: int) -> DescribeQuorumRequest:
        asked = [RequestPartitionData(each) for each in partitions]
        return DescribeQuorumRequest([RequestTopicData(topic, asked)])

    talk.ask_every("of another partition", of("__cluster_metadata", 1))
    talk.ask_every("of another topic", of("nothing", 0))
    talk.ask_every("of nothing", DescribeQuorumRequest())


def producers(talk: Talk) -> None:
    talk.have_topic("producers", 2)
    asked = InitProducerIdRequest(None, 60_000)
    # Not the id 0, which would be recorded as the default that it is.
    given = talk.have_until(asked, lambda answer: not answer.error_code and answer.producer_id)
    counted = batch(b"a", b"b", producer_id=given.producer_id, producer_epoch=0, base_sequence=0)
    talk.have(to("producers", counted), 12)
    talk.ask_every(
        "of one and of none", DescribeProducersRequest([TopicRequest("producers", [0, 1])])
    )
    nothing = [TopicRequest("producers", [7]), TopicRequest("nothing", [0])]
    talk.ask_every("of what is not there", DescribeProducersRequest(nothing))


def resources(talk: Talk) -> None:
    talk.have_topic("resources")
    for name, types in (
        ("groups", [32]),
        ("metrics", [16]),
        ("brokers", [4]),
        ("loggers", [8]),
        ("metrics and groups", [16, 32]),
        ("of no such type", [99]),
    ):
        talk.ask_ends(name, ListConfigResourcesRequest(types), since=0 if types == [16] else 1)


SCENARIOS = {
    "acls": acls,
    "elections": elections,
    "reassignments": reassignments,
    "directories": directories,
    "nobody": nobody,
    "quorum": quorum,
    "producers": producers,
    "config-resources": resources,
}
