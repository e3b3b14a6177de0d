"""Records of the metadata log ``__cluster_metadata``: the controller's own, and the quorum's.

By type (or control type): the name that Kafka prints, and the fields.
"""

from stratalog.records.messages import Array, Field, Message, flexible

_UUIDS = Array("uuid")
_INTS = Array("int32")


def _change(name: str, kind: str | Array, tag: int, *, since: int = 0) -> Field:
    """A field that is there only where the record changes it."""
    return Field(name, kind, since=since, nullable=True, tag=tag)


_ENDPOINT = flexible(
    Field("name", "string"),
    Field("host", "string"),
    Field("port", "uint16"),
    Field("securityProtocol", "int16"),
)
_FEATURE = flexible(
    Field("name", "string"),
    Field("minSupportedVersion", "int16"),
    Field("maxSupportedVersion", "int16"),
)
_ENTITY = flexible(Field("entityType", "string"), Field("entityName", "string", nullable=True))

_REGISTER_BROKER = flexible(
    Field("brokerId", "int32"),
    Field("isMigratingZkBroker", "bool", since=2),
    Field("incarnationId", "uuid"),
    Field("brokerEpoch", "int64"),
    Field("endPoints", Array(_ENDPOINT)),
    Field("features", Array(_FEATURE)),
    Field("rack", "string", nullable=True),
    Field("fenced", "bool"),
    Field("inControlledShutdown", "bool", since=1),
    Field("logDirs", _UUIDS, since=3, tag=0, default=[]),
    _change("cordonedLogDirs", _UUIDS, 1, since=4),
    last_version=4,
)
_PARTITION = flexible(
    Field("partitionId", "int32"),
    Field("topicId", "uuid"),
    Field("replicas", _INTS),
    Field("isr", _INTS),
    Field("removingReplicas", _INTS),
    Field("addingReplicas", _INTS),
    Field("leader", "int32"),
    Field("leaderRecoveryState", "int8", tag=0, default=0),
    Field("leaderEpoch", "int32"),
    Field("partitionEpoch", "int32"),
    Field("directories", _UUIDS, since=1),
    _change("eligibleLeaderReplicas", _INTS, 1, since=2),
    _change("lastKnownElr", _INTS, 2, since=2),
    last_version=2,
)
_PARTITION_CHANGE = flexible(
    Field("partitionId", "int32"),
    Field("topicId", "uuid"),
    _change("isr", _INTS, 0),
    Field("leader", "int32", tag=1, default=-2),
    _change("replicas", _INTS, 2),
    _change("removingReplicas", _INTS, 3),
    _change("addingReplicas", _INTS, 4),
    Field("leaderRecoveryState", "int8", tag=5, default=-1),
    _change("directories", _UUIDS, 8, since=1),
    _change("eligibleLeaderReplicas", _INTS, 6, since=2),
    _change("lastKnownElr", _INTS, 7, since=2),
    last_version=2,
)
_BROKER_REGISTRATION_CHANGE = flexible(
    Field("brokerId", "int32"),
    Field("brokerEpoch", "int64"),
    Field("fenced", "int8", tag=0, default=0),
    Field("inControlledShutdown", "int8", since=1, tag=1, default=0),
    Field("logDirs", _UUIDS, since=2, tag=2, default=[]),
    _change("cordonedLogDirs", _UUIDS, 3, since=3),
    last_version=3,
)
_ACCESS_CONTROL_ENTRY = flexible(
    Field("id", "uuid"),
    Field("resourceType", "int8"),
    Field("resourceName", "string"),
    Field("patternType", "int8"),
    Field("principal", "string"),
    Field("host", "string"),
    Field("operation", "int8"),
    Field("permissionType", "int8"),
)
_DELEGATION_TOKEN = flexible(
    Field("owner", "string"),
    Field("requester", "string"),
    Field("renewers", Array("string")),
    Field("issueTimestamp", "int64"),
    Field("maxTimestamp", "int64"),
    Field("expirationTimestamp", "int64"),
    Field("tokenId", "string"),
)
_USER_SCRAM_CREDENTIAL = flexible(
    Field("name", "string"),
    Field("mechanism", "int8"),
    Field("salt", "bytes"),
    Field("storedKey", "bytes"),
    Field("serverKey", "bytes"),
    Field("iterations", "int32"),
)
_REGISTER_CONTROLLER = flexible(
    Field("controllerId", "int32"),
    Field("incarnationId", "uuid"),
    Field("zkMigrationReady", "bool"),
    Field("endPoints", Array(_ENDPOINT)),
    Field("features", Array(_FEATURE)),
)
_CONFIG = flexible(
    Field("resourceType", "int8"),
    Field("resourceName", "string"),
    Field("name", "string"),
    Field("value", "string", nullable=True),
)
_CLIENT_QUOTA = flexible(
    Field("entity", Array(_ENTITY)),
    Field("key", "string"),
    Field("value", "float64"),
    Field("remove", "bool"),
)
_PRODUCER_IDS = flexible(
    Field("brokerId", "int32"), Field("brokerEpoch", "int64"), Field("nextProducerId", "int64")
)
_BROKER_AND_EPOCH = flexible(Field("id", "int32"), Field("epoch", "int64"))

METADATA_RECORDS: dict[int, tuple[str, Message]] = {
    0: ("REGISTER_BROKER_RECORD", _REGISTER_BROKER),
    1: (
        "UNREGISTER_BROKER_RECORD",
        flexible(Field("brokerId", "int32"), Field("brokerEpoch", "int64")),
    ),
    2: ("TOPIC_RECORD", flexible(Field("name", "string"), Field("topicId", "uuid"))),
    3: ("PARTITION_RECORD", _PARTITION),
    4: ("CONFIG_RECORD", _CONFIG),
    5: ("PARTITION_CHANGE_RECORD", _PARTITION_CHANGE),
    7: ("FENCE_BROKER_RECORD", _BROKER_AND_EPOCH),
    8: ("UNFENCE_BROKER_RECORD", _BROKER_AND_EPOCH),
    9: ("REMOVE_TOPIC_RECORD", flexible(Field("topicId", "uuid"))),
    10: ("DELEGATION_TOKEN_RECORD", _DELEGATION_TOKEN),
    11: ("USER_SCRAM_CREDENTIAL_RECORD", _USER_SCRAM_CREDENTIAL),
    12: ("FEATURE_LEVEL_RECORD", flexible(Field("name", "string"), Field("featureLevel", "int16"))),
    14: ("CLIENT_QUOTA_RECORD", _CLIENT_QUOTA),
    15: ("PRODUCER_IDS_RECORD", _PRODUCER_IDS),
    17: ("BROKER_REGISTRATION_CHANGE_RECORD", _BROKER_REGISTRATION_CHANGE),
    18: ("ACCESS_CONTROL_ENTRY_RECORD", _ACCESS_CONTROL_ENTRY),
    19: ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", flexible(Field("id", "uuid"))),
    20: ("NO_OP_RECORD", flexible()),
    21: ("ZK_MIGRATION_STATE_RECORD", flexible(Field("zkMigrationState", "int8"))),
    22: (
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        flexible(Field("name", "string"), Field("mechanism", "int8")),
    ),
    23: ("BEGIN_TRANSACTION_RECORD", flexible(_change("name", "string", 0))),
    24: ("END_TRANSACTION_RECORD", flexible()),
    25: ("ABORT_TRANSACTION_RECORD", flexible(_change("reason", "string", 0))),
    26: ("REMOVE_DELEGATION_TOKEN_RECORD", flexible(Field("tokenId", "string"))),
    27: ("REGISTER_CONTROLLER_RECORD", _REGISTER_CONTROLLER),
    28: ("CLEAR_ELR_RECORD", flexible(Field("topicName", "string"))),
}

# --- control records ------------------------------------------------------------------------------

_VOTER = Message((Field("voterId", "int32"), Field("voterDirectoryId", "uuid", since=1)))
_LISTENER = Message((Field("name", "string"), Field("host", "string"), Field("port", "uint16")))
_VERSIONS = Message((Field("minSupportedVersion", "int16"), Field("maxSupportedVersion", "int16")))
_FULL_VOTER = Message(
    (
        Field("voterId", "int32"),
        Field("voterDirectoryId", "uuid"),
        Field("endpoints", Array(_LISTENER)),
        Field("kRaftVersionFeature", _VERSIONS),
    )
)

# By control type: how Kafka introduces the record, and what it holds.
QUORUM_RECORDS = {
    2: (
        "LeaderChange: ",
        Message(
            (
                Field("version", "int16"),
                Field("leaderId", "int32"),
                Field("voters", Array(_VOTER)),
                Field("grantingVoters", Array(_VOTER)),
            ),
            last_version=1,
            flexible_since=0,
        ),
    ),
    3: (
        "SnapshotHeader ",
        Message(
            (Field("version", "int16"), Field("lastContainedLogTimestamp", "int64")),
            flexible_since=0,
        ),
    ),
    4: ("SnapshotFooter ", Message((Field("version", "int16"),), flexible_since=0)),
    5: (
        "KRaftVersion ",
        Message((Field("version", "int16"), Field("kRaftVersion", "int16")), flexible_since=0),
    ),
    6: (
        "KRaftVoters ",
        Message((Field("version", "int16"), Field("voters", Array(_FULL_VOTER))), flexible_since=0),
    ),
}
