"""Which module has an API's codecs, for which versions, flexible from which on.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import Final, NamedTuple


class CodecRange(NamedTuple):
    module: str
    lowest_version: int
    highest_version: int
    first_flexible_version: int | None


CODECS: Final[dict[int, CodecRange]] = {
    0: CodecRange("produce", 3, 13, 9),
    1: CodecRange("fetch", 4, 18, 12),
    2: CodecRange("list_offsets", 1, 11, 6),
    3: CodecRange("metadata", 0, 13, 9),
    8: CodecRange("offset_commit", 2, 10, 8),
    9: CodecRange("offset_fetch", 1, 10, 6),
    10: CodecRange("find_coordinator", 0, 6, 3),
    11: CodecRange("join_group", 0, 9, 6),
    12: CodecRange("heartbeat", 0, 4, 4),
    13: CodecRange("leave_group", 0, 5, 4),
    14: CodecRange("sync_group", 0, 5, 4),
    15: CodecRange("describe_groups", 0, 6, 5),
    16: CodecRange("list_groups", 0, 5, 3),
    17: CodecRange("sasl_handshake", 0, 1, None),
    18: CodecRange("api_versions", 0, 4, 3),
    19: CodecRange("create_topics", 2, 7, 5),
    20: CodecRange("delete_topics", 1, 6, 4),
    21: CodecRange("delete_records", 0, 2, 2),
    22: CodecRange("init_producer_id", 0, 5, 2),
    23: CodecRange("offset_for_leader_epoch", 2, 4, 4),
    24: CodecRange("add_partitions_to_txn", 0, 3, 3),
    25: CodecRange("add_offsets_to_txn", 0, 4, 3),
    26: CodecRange("end_txn", 0, 5, 3),
    28: CodecRange("txn_offset_commit", 0, 5, 3),
    29: CodecRange("describe_acls", 1, 3, 2),
    30: CodecRange("create_acls", 1, 3, 2),
    31: CodecRange("delete_acls", 1, 3, 2),
    32: CodecRange("describe_configs", 1, 4, 4),
    33: CodecRange("alter_configs", 0, 2, 2),
    34: CodecRange("alter_replica_log_dirs", 1, 2, 2),
    35: CodecRange("describe_log_dirs", 1, 5, 2),
    36: CodecRange("sasl_authenticate", 0, 2, 2),
    37: CodecRange("create_partitions", 0, 3, 2),
    42: CodecRange("delete_groups", 0, 2, 2),
    43: CodecRange("elect_leaders", 0, 2, 2),
    44: CodecRange("incremental_alter_configs", 0, 1, 1),
    45: CodecRange("alter_partition_reassignments", 0, 1, 0),
    46: CodecRange("list_partition_reassignments", 0, 0, 0),
    47: CodecRange("offset_delete", 0, 0, None),
    48: CodecRange("describe_client_quotas", 0, 1, 1),
    50: CodecRange("describe_user_scram_credentials", 0, 0, 0),
    55: CodecRange("describe_quorum", 0, 2, 0),
    60: CodecRange("describe_cluster", 0, 2, 0),
    61: CodecRange("describe_producers", 0, 0, 0),
    66: CodecRange("list_transactions", 0, 2, 0),
    68: CodecRange("consumer_group_heartbeat", 0, 1, 0),
    69: CodecRange("consumer_group_describe", 0, 1, 0),
    74: CodecRange("list_config_resources", 0, 1, 0),
    75: CodecRange("describe_topic_partitions", 0, 0, 0),
}
