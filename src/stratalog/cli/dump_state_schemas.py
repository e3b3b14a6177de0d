"""Records of ``__transaction_state``, ``__share_group_state`` and ``__remote_log_metadata``."""

from stratalog.records.messages import Array, Field, Message, flexible

# --- __transaction_state -----------------------------------------------------------------------

_TRANSACTION_PARTITIONS = Message((Field("topic", "string"), Field("partitionIds", Array("int32"))))

TRANSACTION_KEYS = {0: Message((Field("transactionalId", "string"),))}
TRANSACTION_VALUES = {
    0: Message(
        (
            Field("producerId", "int64"),
            Field("previousProducerId", "int64", since=1, tag=0, default=-1),
            Field("nextProducerId", "int64", since=1, tag=1, default=-1),
            Field("producerEpoch", "int16"),
            Field("nextProducerEpoch", "int16", since=1, tag=3, default=-1),
            Field("transactionTimeoutMs", "int32"),
            Field("transactionStatus", "int8"),
            Field("transactionPartitions", Array(_TRANSACTION_PARTITIONS), nullable=True),
            Field("transactionLastUpdateTimestampMs", "int64"),
            Field("transactionStartTimestampMs", "int64"),
            Field("clientTransactionVersion", "int16", since=1, tag=2, default=0),
        ),
        last_version=1,
        flexible_since=1,
    )
}

# --- __share_group_state -------------------------------------------------------------------------

_SHARE_KEY = Message(
    (Field("groupId", "string"), Field("topicId", "uuid"), Field("partition", "int32"))
)
_STATE_BATCHES = Field(
    "stateBatches",
    Array(
        flexible(
            Field("firstOffset", "int64"),
            Field("lastOffset", "int64"),
            Field("deliveryState", "int8"),
            Field("deliveryCount", "int16"),
        )
    ),
)
_COMPLETE_COUNT = Field("deliveryCompleteCount", "int32", tag=0, default=-1)

SHARE_KEYS = {0: _SHARE_KEY, 1: _SHARE_KEY}
SHARE_VALUES = {
    0: flexible(
        Field("snapshotEpoch", "int32"),
        Field("stateEpoch", "int32"),
        Field("leaderEpoch", "int32"),
        Field("startOffset", "int64"),
        _COMPLETE_COUNT,
        Field("createTimestamp", "int64"),
        Field("writeTimestamp", "int64"),
        _STATE_BATCHES,
    ),
    1: flexible(
        Field("snapshotEpoch", "int32"),
        Field("leaderEpoch", "int32"),
        Field("startOffset", "int64"),
        _COMPLETE_COUNT,
        _STATE_BATCHES,
    ),
}

# --- __remote_log_metadata -----------------------------------------------------------------------

_TOPIC_ID_PARTITION = Field(
    "topicIdPartition",
    flexible(Field("name", "string"), Field("id", "uuid"), Field("partition", "int32")),
)
_SEGMENT_ID = Field("remoteLogSegmentId", flexible(_TOPIC_ID_PARTITION, Field("id", "uuid")))
_SEGMENT_STATE = Field("state", "int8")
_CUSTOM_METADATA = Field("customMetadata", "bytes", nullable=True)
_EPOCH = flexible(Field("leaderEpoch", "int32"), Field("offset", "int64"))
_SEGMENT = (
    Field("startOffset", "int64"),
    Field("endOffset", "int64"),
    Field("brokerId", "int32"),
    Field("maxTimestampMs", "int64"),
    Field("eventTimestampMs", "int64"),
    Field("segmentLeaderEpochs", Array(_EPOCH)),
    Field("segmentSizeInBytes", "int32"),
    _CUSTOM_METADATA,
    _SEGMENT_STATE,
    Field("txnIdxEmpty", "bool", tag=0, default=False),
)

REMOTE_SEGMENT, REMOTE_SEGMENT_UPDATE, REMOTE_PARTITION_DELETE, REMOTE_SEGMENT_SNAPSHOT = range(4)

REMOTE_LOG_RECORDS: dict[int, tuple[str, Message]] = {
    REMOTE_SEGMENT: ("RemoteLogSegmentMetadata", flexible(_SEGMENT_ID, *_SEGMENT)),
    REMOTE_SEGMENT_UPDATE: (
        "RemoteLogSegmentMetadataUpdate",
        flexible(
            _SEGMENT_ID,
            Field("brokerId", "int32"),
            Field("eventTimestampMs", "int64"),
            _CUSTOM_METADATA,
            _SEGMENT_STATE,
        ),
    ),
    REMOTE_PARTITION_DELETE: (
        "RemotePartitionDeleteMetadata",
        flexible(
            _TOPIC_ID_PARTITION,
            Field("brokerId", "int32"),
            Field("eventTimestampMs", "int64"),
            _SEGMENT_STATE,
        ),
    ),
    REMOTE_SEGMENT_SNAPSHOT: (
        "RemoteLogSegmentMetadataSnapshot",
        flexible(Field("segmentId", "uuid"), *_SEGMENT),
    ),
}
