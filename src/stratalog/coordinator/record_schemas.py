"""Records of ``__consumer_offsets`` by type: offsets, and the groups of every protocol."""

from stratalog.records.messages import ZERO_UUID, Array, Field, Message, flexible

GROUP_METADATA_TYPE = 2

_OFFSET_KEY = Message(
    (Field("group", "string"), Field("topic", "string"), Field("partition", "int32"))
)
_GROUP_KEY = Message((Field("groupId", "string"),))
_MEMBER_KEY = Message((Field("groupId", "string"), Field("memberId", "string")))
_MEMBER = Message(
    (
        Field("memberId", "string"),
        Field("groupInstanceId", "string", since=3, nullable=True),
        Field("clientId", "string"),
        Field("clientHost", "string"),
        Field("rebalanceTimeout", "int32", since=1),
        Field("sessionTimeout", "int32"),
        Field("subscription", "bytes"),
        Field("assignment", "bytes"),
    )
)
_CLASSIC_PROTOCOL = Message((Field("name", "string"), Field("metadata", "bytes")))
_CLASSIC_MEMBER = Message(
    (Field("sessionTimeoutMs", "int32"), Field("supportedProtocols", Array(_CLASSIC_PROTOCOL)))
)
_ASSIGNED = Message((Field("topicId", "uuid"), Field("partitions", Array("int32"))))
_ASSIGNMENT_EPOCHS = Field("assignmentEpochs", Array("int32"), nullable=True, tag=0, default=[])
_CURRENT = Message((*_ASSIGNED.fields, _ASSIGNMENT_EPOCHS))
_TOPIC_METADATA = Message(
    (
        Field("topicId", "uuid"),
        Field("topicName", "string"),
        Field("numPartitions", "int32"),
        Field(
            "partitionMetadata",
            Array(Message((Field("partition", "int32"), Field("racks", Array("string"))))),
        ),
    )
)

_SHARE_TOPIC = flexible(Field("topicId", "uuid"), Field("topicName", "string"))
_SHARE_PARTITIONS = flexible(*_SHARE_TOPIC.fields, Field("partitions", Array("int32")))

_TASKS = flexible(Field("subtopologyId", "string"), Field("partitions", Array("int32")))
_CURRENT_TASKS = flexible(*_TASKS.fields, _ASSIGNMENT_EPOCHS)
_STREAMS_ENDPOINT = flexible(Field("host", "string"), Field("port", "uint16"))
_KEY_VALUE = flexible(Field("key", "string"), Field("value", "string"))
_STREAMS_TOPIC = flexible(
    Field("name", "string"),
    Field("partitions", "int32"),
    Field("replicationFactor", "int16"),
    Field("topicConfigs", Array(_KEY_VALUE)),
)
_COPARTITION_GROUP = flexible(
    Field("sourceTopics", Array("int16")),
    Field("sourceTopicRegex", Array("int16")),
    Field("repartitionSourceTopics", Array("int16")),
)
_SUBTOPOLOGY = flexible(
    Field("subtopologyId", "string"),
    Field("sourceTopics", Array("string")),
    Field("sourceTopicRegex", Array("string")),
    Field("stateChangelogTopics", Array(_STREAMS_TOPIC)),
    Field("repartitionSinkTopics", Array("string")),
    Field("repartitionSourceTopics", Array(_STREAMS_TOPIC)),
    Field("copartitionGroups", Array(_COPARTITION_GROUP)),
)
_TARGET_METADATA = flexible(
    Field("assignmentEpoch", "int32"), Field("assignmentTimestamp", "int64", tag=0, default=0)
)

GROUP_KEYS = {
    0: _OFFSET_KEY,
    1: _OFFSET_KEY,
    2: Message((Field("group", "string"),)),
    3: _GROUP_KEY,
    4: _GROUP_KEY,
    5: _MEMBER_KEY,
    6: _GROUP_KEY,
    7: _MEMBER_KEY,
    8: _MEMBER_KEY,
    10: _MEMBER_KEY,
    11: _GROUP_KEY,
    12: _GROUP_KEY,
    13: _MEMBER_KEY,
    14: _MEMBER_KEY,
    15: _GROUP_KEY,
    16: Message((Field("groupId", "string"), Field("regularExpression", "string"))),
    17: _GROUP_KEY,
    19: _MEMBER_KEY,
    20: _GROUP_KEY,
    21: _MEMBER_KEY,
    22: _MEMBER_KEY,
    23: _GROUP_KEY,
}
GROUP_VALUES = {
    0: Message(
        (Field("offset", "int64"), Field("metadata", "string"), Field("commitTimestamp", "int64"))
    ),
    1: Message(
        (
            Field("offset", "int64"),
            Field("leaderEpoch", "int32", since=3),
            Field("metadata", "string"),
            Field("commitTimestamp", "int64"),
            Field("expireTimestamp", "int64", since=1, until=1),
            Field("topicId", "uuid", since=4, tag=0, default=ZERO_UUID),
        ),
        last_version=4,
        flexible_since=4,
    ),
    GROUP_METADATA_TYPE: Message(
        (
            Field("protocolType", "string"),
            Field("generation", "int32"),
            Field("protocol", "string", nullable=True),
            Field("leader", "string", nullable=True),
            Field("currentStateTimestamp", "int64", since=2),
            Field("members", Array(_MEMBER)),
        ),
        last_version=4,
        flexible_since=4,
    ),
    3: Message(
        (Field("epoch", "int32"), Field("metadataHash", "int64", tag=0, default=0)),
        flexible_since=0,
    ),
    4: Message((Field("topics", Array(_TOPIC_METADATA)),), flexible_since=0),
    5: Message(
        (
            Field("instanceId", "string", nullable=True),
            Field("rackId", "string", nullable=True),
            Field("clientId", "string"),
            Field("clientHost", "string"),
            Field("subscribedTopicNames", Array("string")),
            Field("subscribedTopicRegex", "string", nullable=True),
            Field("rebalanceTimeoutMs", "int32"),
            Field("serverAssignor", "string", nullable=True),
            Field(
                "classicMemberMetadata",
                _CLASSIC_MEMBER,
                nullable=True,
                tag=0,
                default={"sessionTimeoutMs": 0, "supportedProtocols": []},
            ),
        ),
        flexible_since=0,
    ),
    6: _TARGET_METADATA,
    7: Message((Field("topicPartitions", Array(_ASSIGNED)),), flexible_since=0),
    8: Message(
        (
            Field("memberEpoch", "int32"),
            Field("previousMemberEpoch", "int32"),
            Field("state", "int8"),
            Field("assignedPartitions", Array(_CURRENT)),
            Field("partitionsPendingRevocation", Array(_CURRENT)),
        ),
        flexible_since=0,
    ),
    10: flexible(
        Field("rackId", "string", nullable=True),
        Field("clientId", "string"),
        Field("clientHost", "string"),
        Field("subscribedTopicNames", Array("string")),
    ),
    11: flexible(Field("epoch", "int32"), Field("metadataHash", "int64")),
    12: _TARGET_METADATA,
    13: flexible(Field("topicPartitions", Array(_ASSIGNED))),
    14: flexible(
        Field("memberEpoch", "int32"),
        Field("previousMemberEpoch", "int32"),
        Field("state", "int8"),
        Field("assignedPartitions", Array(_ASSIGNED)),
    ),
    15: flexible(
        Field("initializingTopics", Array(_SHARE_PARTITIONS)),
        Field("initializedTopics", Array(_SHARE_PARTITIONS)),
        Field("deletingTopics", Array(_SHARE_TOPIC)),
    ),
    16: flexible(
        Field("topics", Array("string")), Field("version", "int64"), Field("timestamp", "int64")
    ),
    17: flexible(
        Field("epoch", "int32"),
        Field("metadataHash", "int64"),
        Field("validatedTopologyEpoch", "int32", tag=0, default=-1),
        Field("lastAssignmentConfigs", Array(_KEY_VALUE), nullable=True, tag=1, default=[]),
    ),
    19: flexible(
        Field("instanceId", "string", nullable=True),
        Field("rackId", "string", nullable=True),
        Field("clientId", "string"),
        Field("clientHost", "string"),
        Field("rebalanceTimeoutMs", "int32"),
        Field("topologyEpoch", "int32"),
        Field("processId", "string"),
        Field("userEndpoint", _STREAMS_ENDPOINT, nullable=True),
        Field("clientTags", Array(_KEY_VALUE)),
    ),
    20: _TARGET_METADATA,
    21: flexible(
        Field("activeTasks", Array(_TASKS)),
        Field("standbyTasks", Array(_TASKS)),
        Field("warmupTasks", Array(_TASKS)),
    ),
    22: flexible(
        Field("memberEpoch", "int32"),
        Field("previousMemberEpoch", "int32"),
        Field("state", "int8"),
        Field("activeTasks", Array(_CURRENT_TASKS)),
        Field("standbyTasks", Array(_CURRENT_TASKS)),
        Field("warmupTasks", Array(_CURRENT_TASKS)),
        Field("activeTasksPendingRevocation", Array(_CURRENT_TASKS)),
        Field("standbyTasksPendingRevocation", Array(_CURRENT_TASKS)),
        Field("warmupTasksPendingRevocation", Array(_CURRENT_TASKS)),
    ),
    23: flexible(Field("epoch", "int32"), Field("subtopologies", Array(_SUBTOPOLOGY))),
}

_OWNED = Message((Field("topic", "string"), Field("partitions", Array("int32"))))

CONSUMER_SUBSCRIPTION = Message(
    (
        Field("topics", Array("string")),
        Field("userData", "bytes", nullable=True),
        Field("ownedPartitions", Array(_OWNED), since=1),
        Field("generationId", "int32", since=2),
        Field("rackId", "string", since=3, nullable=True),
    ),
    last_version=3,
)
CONSUMER_ASSIGNMENT = Message(
    (Field("assignedPartitions", Array(_OWNED)), Field("userData", "bytes", nullable=True)),
    last_version=3,
)
